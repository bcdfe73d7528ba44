"""`raymarch info`: contents of a volume file, or the memory layouts in force on this machine."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from raymarch.cli import options, say

RAYS = "on training rays that meet the box; raymarch evaluate tells it on whole images, best ones not fitted"
SIDE = 800  # pixels a side of the image that the forecast is about
MOST, FIRST = 12, 3  # entries of a list up to which all are shown, and how many of a longer one


@click.command(epilog="Example: raymarch info tower.h5")
@click.argument("file", required=False)
@click.option("--time", "clock", is_flag=True, help="Also measure how long an image of 800 x 800 takes.")
@options.places
@options.as_json
def info(
    file: str | None, clock: bool, channel: int | None, time: int | None, level: int | None, format: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Shape, box, activations, size and history of the volume FILE, and what rendering it takes.

    Of a scalar volume: type, units, spacing, sides of the body, range and histogram.

    Without FILE: the processor and which memory layouts grids have on it, default or measured by `raymarch tune`.
    """
    if file is None:
        if clock or any(place is not None for place in (channel, time, level, format)):
            raise click.UsageError(
                "--time, --channel, --time-point, --level and --format are about a FILE; give it, or leave them out"
            )
        _machine(as_json)
        return
    from raymarch.cli.scalar_info import print_scalar
    from raymarch.device.memory import memory_of_rendering
    from raymarch.io.volumes.scalar_summary import ScalarSummary
    from raymarch.io.volumes.volume_file import describe, load
    from raymarch.volumes.bricks import bricks_in_words
    from raymarch.volumes.samples import samples_in_words

    place: dict[str, Any] = {"channel": channel, "time": time, "level": level, "format": format}
    found = describe(file, **place)
    record: dict[str, Any] = found.record()
    extra: dict[str, Any] = {}
    held = None if isinstance(found, ScalarSummary) else found.bytes_in_memory  # a scan becomes a volume
    of = record["shape"], record.get("degree", 0), SIDE * SIDE, record.get("bricks"), held
    extra["bytes_to_render"] = memory_of_rendering(*of).total
    if clock:
        from raymarch.fitting.forecast import forecast_rendering

        extra["seconds_to_render"] = forecast_rendering(load(file, **place), SIDE, SIDE).seconds
    if isinstance(found, ScalarSummary):
        print_scalar(file, found, place, as_json, extra)
        return
    record |= extra
    if as_json:
        options.print_json(record)
        return
    provenance = record.pop("provenance")
    views = provenance.get("views")
    if isinstance(views, dict) and isinstance(views.get("origin"), list):  # whose digits all count
        views["origin"] = "  ".join(f"{x:.12g}" for x in views["origin"])
    if isinstance(provenance.get("rays_psnr"), float):
        provenance["rays_psnr"] = f"{provenance['rays_psnr']:.2f} dB {RAYS}"
    if record["bricks"] is None:
        del record["bricks"]
    else:
        record["bricks"] = bricks_in_words(record["shape"], record["bricks"])
    if record["boxes"] > 1:
        record["shape"] = samples_in_words(record["shape"], record["boxes"])
    for name in ("bytes_on_disk", "bytes_in_memory", "bytes_to_render"):
        record[name] = f"{record[name]:,}"
    for name, value in [*record.items(), *provenance.items()]:
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for i, (part, one) in enumerate(rows):
            say.result(f"{_short(name) if i == 0 else '':16} {_short(part):14} {_short(one)}".rstrip())


def _machine(as_json: bool) -> None:
    """Memory layouts in force, and where they are from."""
    from raymarch.device.layout_cache import choice_file, in_force, processor
    from raymarch.device.layout_choice import IN_WORDS, block_in_words

    found, file = in_force(), str(choice_file())
    if as_json:
        record = {"processor": processor(), "layouts": asdict(found.choice), "measured": dict(found.measured)}
        options.print_json({**record, "date": found.date, "file": file if found.date else None})
        return
    say.result(f"{'processor':16} {processor()}")
    say.result(f"{'layouts':16} {f'measured {found.date}, {file}' if found.date else 'not measured: raymarch tune'}")
    for kind, block in asdict(found.choice).items():
        origin = "measured" if kind in found.measured else "default"
        say.result(f"{'':16} {IN_WORDS[kind]:42} {block_in_words(block):12} {origin}")


def _short(value: object) -> str:
    """A value for people: four figures, no brackets around the outermost list."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        rest = f"  ... {len(value)} in all" if len(value) > MOST else ""
        some = value[:FIRST] if rest else value
        return "  ".join("(" + _short(v) + ")" if isinstance(v, (list, tuple)) else _short(v) for v in some) + rest
    if isinstance(value, dict):
        return "  ".join(f"{name}={_short(v)}" for name, v in value.items())
    return "-" if value is None else str(value).encode("unicode_escape").decode()

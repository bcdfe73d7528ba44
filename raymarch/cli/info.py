"""`raymarch info`: contents of a volume file, or the memory layouts in force on this machine."""

from __future__ import annotations

import math
import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, output

if TYPE_CHECKING:
    from raymarch.io.volumes.summary import ScalarSummary
    from raymarch.volumes.scalar_volume import ScalarVolume

RAYS_NOTE = "on training rays that meet the box; raymarch evaluate tells it on whole images, best ones not fitted"
FORECAST_SIDE = 800  # pixels a side of the image that the forecast is about
MAX_ENTRIES, SHORTENED_ENTRIES = 12, 3  # entries of a list up to which all are shown, and how many of a longer one
MAX_VALUES_READ = 1 << 26  # values that are looked at; of more every so many along each axis
MAX_BAR_LENGTH = 40  # characters of the longest bar
ANATOMICAL_SIDES = dict(
    zip("RLAPSI", ("the right", "the left", "the front", "the back", "the head", "the feet"), strict=True)
)


@click.command(epilog="Example: raymarch info tower.h5")
@click.argument("file", required=False)
@click.option("--time", "clock", is_flag=True, help="Also measure how long an image of 800 x 800 takes.")
@options.place_options
@options.as_json
def info(
    file: str | None,
    clock: bool,
    channel: int | None,
    time: int | None,
    level: int | None,
    format: str | None,
    as_json: bool,
) -> None:
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
    from raymarch.device.memory import memory_of_rendering
    from raymarch.io.volumes.summary import ScalarSummary
    from raymarch.io.volumes.volume_file import describe, load
    from raymarch.volumes.bricks import bricks_text
    from raymarch.volumes.samples import samples_text

    place: dict[str, Any] = {"channel": channel, "time": time, "level": level, "format": format}
    found = describe(file, **place)
    record: dict[str, Any] = found.record()
    extra: dict[str, Any] = {}
    held = None if isinstance(found, ScalarSummary) else found.bytes_in_memory  # a scan becomes a volume
    of = record["shape"], record.get("degree", 0), FORECAST_SIDE * FORECAST_SIDE, record.get("bricks"), held
    colours = len(record.get("channels", ("red", "green", "blue")))
    extra["bytes_to_render"] = memory_of_rendering(*of, colours).total
    if clock:
        from raymarch.fitting.forecast import forecast_rendering

        extra["seconds_to_render"] = forecast_rendering(load(file, **place), FORECAST_SIDE, FORECAST_SIDE).seconds
    if isinstance(found, ScalarSummary):
        print_scalar(file, found, place, as_json, extra)
        return
    record |= extra
    if as_json:
        output.print_json(record)
        return
    provenance = record.pop("provenance")
    views = provenance.get("views")
    if isinstance(views, dict) and isinstance(views.get("origin"), list):  # whose digits all count
        views["origin"] = "  ".join(f"{x:.12g}" for x in views["origin"])
    if isinstance(provenance.get("rays_psnr"), float):
        provenance["rays_psnr"] = f"{provenance['rays_psnr']:.2f} dB {RAYS_NOTE}"
    if record["bricks"] is None:
        del record["bricks"]
    else:
        record["bricks"] = bricks_text(record["shape"], record["bricks"])
    if record["boxes"] > 1:
        record["shape"] = samples_text(record["shape"], record["boxes"])
    for name in ("bytes_on_disk", "bytes_in_memory", "bytes_to_render"):
        record[name] = f"{record[name]:,}"
    for name, value in [*record.items(), *provenance.items()]:
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for i, (part, one) in enumerate(rows):
            output.print_result(
                f"{_short_value(name) if i == 0 else '':16} {_short_value(part):14} {_short_value(one)}".rstrip()
            )


def _machine(as_json: bool) -> None:
    """Memory layouts in force, and where they are from."""
    from raymarch.device.layout_choice import USE_WORDS, block_text, choice_file, current_choice, processor

    found, file = current_choice(), str(choice_file())
    if as_json:
        record = {"processor": processor(), "layouts": asdict(found.choice), "measured": dict(found.measured)}
        output.print_json({**record, "date": found.date, "file": file if found.date else None})
        return
    output.print_result(f"{'processor':16} {processor()}")
    output.print_result(
        f"{'layouts':16} {f'measured {found.date}, {file}' if found.date else 'not measured: raymarch tune'}"
    )
    for kind, block in asdict(found.choice).items():
        origin = "measured" if kind in found.measured else "default"
        output.print_result(f"{'':16} {USE_WORDS[kind]:42} {block_text(block):12} {origin}")


def _short_value(value: object) -> str:
    """A value for people: four figures, no brackets around the outermost list."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        rest = f"  ... {len(value)} in all" if len(value) > MAX_ENTRIES else ""
        some = value[:SHORTENED_ENTRIES] if rest else value
        return (
            "  ".join("(" + _short_value(v) + ")" if isinstance(v, (list, tuple)) else _short_value(v) for v in some)
            + rest
        )
    if isinstance(value, dict):
        return "  ".join(f"{name}={_short_value(v)}" for name, v in value.items())
    return "-" if value is None else str(value).encode("unicode_escape").decode()


def print_scalar(file: str, summary: ScalarSummary, place: dict[str, Any], as_json: bool, extra: dict) -> None:
    """What a scalar volume's header says, and range, mean and histogram of its values."""
    from raymarch.errors import RaymarchError
    from raymarch.volumes.value_kind import contents_of

    record: dict[str, Any] = {**summary.record(), **extra}
    stride = math.ceil((math.prod(summary.shape) / MAX_VALUES_READ) ** (1 / 3))
    try:
        volume, whole = _read(file, stride, place)
        found = contents_of(volume)
        record |= {"low": found.low, "high": found.high, "mean": found.mean, "stride_of_values": stride}
        record["histogram"] = {"edges": list(found.edges), "counts": list(found.counts)}
        record["suggested"] = suggestions(file, volume, place, whole)
    except RaymarchError as error:
        output.print_note(f"note: the values were not looked at: {error}")
    if as_json:
        output.print_json(record)
        return
    for name, text in _lines(record):
        output.print_result(f"{name:16} {text}".rstrip())


def _read(file: str, stride: int, place: dict[str, Any]) -> tuple[Any, bool]:
    """Volume, NaN of it taken as empty, and whether it has none."""
    from raymarch.errors import RaymarchError
    from raymarch.io.volumes.volume_file import load

    try:
        return load(file, stride=stride, **place), True
    except RaymarchError:
        return load(file, stride=stride, nan="empty", **place), False


def suggestions(file: str, volume: ScalarVolume, place: dict[str, Any], whole: bool = True) -> dict[str, Any] | None:
    """What a first look at a volume takes: window, table, value of a surface, and commands to type; None of values that
    single precision hardly tells apart. What `raymarch render` does not read as it is, is converted first."""
    from raymarch.errors import RaymarchError
    from raymarch.volumes.default_table import table_of_kind
    from raymarch.volumes.value_kind import KIND_WORDS, kind_of

    seen = volume.as_volume()
    kind = kind_of(seen, volume.unit)
    try:
        table = table_of_kind(seen, kind)[1]
    except RaymarchError:
        return None
    window, (low, high) = [kind.ground, kind.top], volume.range
    iso = kind.iso if kind.iso is not None and low < kind.iso < high else None
    named, commands = shlex.quote(file), []
    options = {"channel": "--channel", "time": "--time-point", "level": "--level", "format": "--format"}
    changes = [f"{options[name]} {said}" for name, said in place.items() if said is not None]
    changes += [] if whole else ["--nan empty"]
    if changes:
        commands.append(f"raymarch convert {named} one.h5 {' '.join(changes)}")
        named = "one.h5"
    if window[0] < window[1]:
        commands.append(f"raymarch slices {named} --window {window[0]:.12g},{window[1]:.12g} --out slices.png")
    how = "--mode average" if kind.name == "level" else f"--table {table}"
    commands.append(f"raymarch render {named} --orbit 8 {how} --out pictures")
    if iso is not None:
        commands.append(f"raymarch render {named} --orbit 8 --iso {iso:.12g} --out surface")
    up = None if volume.world else "0,0,-1"
    if up:
        commands.append(f"raymarch render {named} --orbit 8 {how} --up {up} --out upside-down")
    return {"kind": KIND_WORDS[kind.name], "window": window, "iso": iso, "table": table, "up": up, "commands": commands}


def _lines(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and texts of the lines, those of nothing left out."""
    from raymarch.errors import distinct_figures

    def several(numbers: list[float], sign: str = "  ", step: float = 0.0) -> str:
        return sign.join(distinct_figures(x, step=step)[0] for x in numbers)

    unit, length = record["unit"], record["length_unit"]
    spacing = several(record["spacing"], " x ") + (f" {length}" if length else "  (no unit of length is said)")
    lines = [
        ("name", record["name"]),
        ("shape", several(record["shape"], " x ")),
        ("values", f"{record['dtype']}" + (f", in {unit}" if unit else "")),
        ("spacing", spacing),
        ("origin", several(record["origin"], step=min(record["spacing"]))),
        *[("directions" if i == 0 else "", f"{axis}  {several(row)}") for i, (axis, row) in enumerate(
            zip("xyz", record["directions"], strict=True)
        )],
    ]  # fmt: skip
    if (record["slope"], record["intercept"]) != (1.0, 0.0):
        lines.insert(3, ("scaled", f"stored x {record['slope']:g} + {record['intercept']:g}"))
    if record["world"]:
        words = ", ".join(
            f"{axis} to {ANATOMICAL_SIDES[side]}" for axis, side in zip("xyz", record["sides"], strict=True)
        )
        lines.append(("sides", f"{record['sides']} in a world of {record['world']}: {words}"))
    if "low" in record:
        low, high = distinct_figures(record["low"], record["high"])
        mean = distinct_figures(record["mean"], step=record["high"] - record["low"])[0]
        lines.append(("range", f"{low} to {high}, mean {mean}"))
        if record["stride_of_values"] > 1:
            lines.append(("", f"of one value in {record['stride_of_values']} along each axis"))
        edges, counts = distinct_figures(*record["histogram"]["edges"]), record["histogram"]["counts"]
        for i, count in enumerate(counts):
            bar = "#" * math.ceil(MAX_BAR_LENGTH * count / max(counts))
            lines.append(("histogram" if i == 0 else "", f"{edges[i]:>12}  {count:>12,}  {bar}"))
    if record.get("suggested"):
        lines.append(("seems to be", record["suggested"]["kind"]))
        lines += [("try" if i == 0 else "", line) for i, line in enumerate(record["suggested"]["commands"])]
    lines += [(name, f"{record[name]:,}") for name in ("bytes_on_disk", "bytes_in_memory", "bytes_to_render")]
    if "seconds_to_render" in record:
        lines.append(("seconds_to_render", f"{record['seconds_to_render']:.4g}"))
    return [(name, text) for name, text in lines if text]

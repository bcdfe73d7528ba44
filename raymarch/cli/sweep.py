"""`raymarch sweep`: fits of one image set by many settings, by any workers, with a table and a plot of their scores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raymarch.cli import options, output
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.fit import LEARNED, preset_of, settings_of
from raymarch.cli.option_kinds import Box, Duration, usage_errors
from raymarch.cli.set_options import SetReading, set_reading
from raymarch.cli.worker_options import Workers, worker_options
from raymarch.errors import RaymarchError

if TYPE_CHECKING:
    from raymarch.fitting.sweep import Sweep, SweptFit

PLOT = "sweep.png"
OPENING, CLOSING = "([{", ")]}"


@click.command(epilog="Example: raymarch sweep scenes/tower --set sh_degree=0,1 --seconds 30 --out sweep")
@click.argument("data")
@click.option("--out", required=True, help="Folder of the sweep: one a fit in it, sweep.csv and sweep.png.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    required=True,
    metavar="NAME=VALUE,VALUE",
    help="A setting of rm.FitSettings or rm.Adam and its values; of several settings all combinations are fitted.",
)
@click.option(
    "--preset",
    type=click.Choice(["quick", "default", "high", "medium", "photos"]),
    help="What the settings change. If not given, photos for a scene without end and default for an object.",
)
@click.option("--seconds", type=Duration(), help="Of each fit's steps, in place of the preset's steps.")
@click.option("--steps", type=int, help="Of each fit, in place of the preset's.")
@click.option("--split", default="train", show_default=True, help="Which views to fit.")
@click.option("--held-out", default="test", show_default=True, help="Which views to score them on.")
@click.option("--box", type=Box(), help="Where the object is; found from masks and cameras if not given.")
@set_reading(LEARNED, with_masks=True, with_depths=True)
@click.option("--overwrite", is_flag=True, help="Make fits again that are in OUT by other words than these.")
@worker_options
@device_options
@options.as_json
def sweep(
    data: str,
    out: str,
    pairs: tuple[str, ...],
    preset: str | None,
    seconds: float | None,
    steps: int | None,
    split: str,
    held_out: str,
    box: list[list[float]] | None,
    reading: SetReading,
    overwrite: bool,
    workers: Workers,
    device: Device,
    as_json: bool,
) -> int:
    """Fit DATA by each combination of settings, each in a folder of its own, and compare their scores.

    What is finished is not done again: the same command goes on where another was cut off. A fit that cannot be made
    is a row with its error, and the exit code is 1.
    """
    from raymarch.cli.progress import CountProgress
    from raymarch.fitting.settings.settings import change_settings
    from raymarch.fitting.settings.settings import preset as settings_of_preset
    from raymarch.fitting.sweep import combine_settings
    from raymarch.fitting.sweep import sweep as make_sweep
    from raymarch.io.image_sets.load import load_views

    values, where = values_of(pairs), workers.where
    if (Path(out) / PLOT).is_dir():
        raise RaymarchError(f"{Path(out) / PLOT}: is a folder where the plot goes; move it, or choose another --out")
    learned = reading.background == "learned"
    asked = (("seconds", seconds), ("steps", steps), ("learn_background", learned or None))
    with usage_errors():
        given = {name: value for name, value in asked if value is not None}
        base = settings_of_preset(preset or "default", **given)
    combinations = combine_settings(values)
    depths = any(change_settings(base, **changes).depth_weight > 0 for changes in combinations)
    read = {"background": None if learned else reading.background, **reading.options(depths=depths)}
    if preset is None:
        base = settings_of_preset(preset_of(load_views(data, split, **read), box), **given)  # type: ignore[arg-type]
    if where is None:
        device.start()
    total = len(combinations)
    there: list[SweptFit] = []
    with CountProgress("sweep", total) as progress, _say_where_it_stands(out, total, there):

        def seen(one: SweptFit) -> None:
            there.append(one)
            progress.advance()
            if not as_json:
                output.print_result(_line(one))

        how = {"out": out, "preset": base, "split": split, "held_out": held_out, "box": box, "overwrite": overwrite}
        how |= {"reading": read, "executor": where, "device": workers.device(device), "show": seen}
        found = make_sweep(data, values, **how)  # type: ignore[arg-type]
    _plot(found, out)
    if as_json:
        output.print_json({"folder": found.folder, "fits": [asdict(one) for one in found.fits]})
    else:
        best = f", the best {found.best.name} with {found.best.psnr:.2f} dB" if found.best else ""
        output.print_result(f"{out}: {len(found.fits)} fits{best}")
    return 1 if any(one.error for one in found.fits) else 0


@contextmanager
def _say_where_it_stands(out: str, total: int, there: list[SweptFit]) -> Iterator[None]:
    """Note of how to go on where Ctrl-C comes between."""
    try:
        yield
    except KeyboardInterrupt:
        if os.path.isdir(out):
            output.print_note(f"{out}: has {len(there)} of {total} fits; the same command goes on with the others")
        raise


def values_of(pairs: tuple[str, ...]) -> dict[str, list[object]]:
    """Values by setting of `NAME=VALUE,VALUE` words, cut at the commas that no brackets are about.

    Example:
        >>> values_of(("rays=4096,8192", "levels=((0,0.5),(0.4,1))"))
        {'rays': [4096, 8192], 'levels': [((0, 0.5), (0.4, 1))]}
    """
    values: dict[str, list[object]] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        if name in values:
            raise click.UsageError(f"--set {name}: is there twice; give all its values at once, {name}=VALUE,VALUE")
        words = split_values(text)
        if "" in map(str.strip, words):
            raise click.UsageError(f"--set {pair:.60}: has an empty value; want {name:.40}=VALUE,VALUE")
        values[name] = [settings_of((f"{name}={word}",))[name] for word in words]
    return values


def split_values(text: str) -> list[str]:
    """Words between the commas that no brackets are about."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter in OPENING) - (letter in CLOSING)
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return words


def _line(one: SweptFit) -> str:
    if one.error:
        return f"{one.name}: {one.error}"
    score = f"no score ({one.unscored})" if one.psnr is None else f"PSNR {one.psnr:.2f} dB"
    kept = ", of an earlier sweep" if one.found else ""
    return f"{one.name}: {score}, {one.steps} steps in {one.seconds:.0f} s{kept}"


def _plot(found: Sweep, out: str) -> None:
    """The scores as a picture in the sweep's folder, where there are any."""
    if found.best is None:
        return
    from raymarch import plot
    from raymarch.io.images.write import write_png
    from raymarch.plot.panels import picture_of

    picture = picture_of(lambda: plot.sweep(found).get_figure(root=True))  # type: ignore[arg-type, return-value]
    write_png(os.fspath(Path(out) / PLOT), picture / 255.0, overwrite=True)

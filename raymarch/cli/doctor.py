"""`raymarch doctor`: what is wrong with an image set, or with a volume that was fitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, say

if TYPE_CHECKING:
    import numpy as np

    from raymarch.data.views import Views
    from raymarch.data.volume import Volume
    from raymarch.diagnosis.finding import Finding


@click.command(epilog="Example: raymarch doctor scenes/tower --plot tower.png")
@click.argument("data")
@click.option(
    "--volume", "run", metavar="VOLUME", help="Volume that was fitted to DATA: say what is wrong with it too."
)
@click.option("--plot", type=click.Path(), help="Picture to write (.png): cameras with their images, box, coverage.")
@click.option("--box", type=options.Box(), help="Box that a fit would take; the set's own if not given.")
@click.option("--split", help="Which views to look at; all of them if not given, or those to train on.")
@click.option("--time", "clock", is_flag=True, help="Also measure how long a default fit takes.")
@options.overwrite
@options.downscale
@options.holdout
@options.background
@options.follow_links
@options.arch
@options.as_json
def doctor(
    data: str, run: str | None, plot: str | None, box: list[list[float]] | None, split: str | None, clock: bool,
    overwrite: bool, downscale: float | None, holdout: int | None, background: str | None, follow_links: bool,
    arch: str, as_json: bool,
) -> None:  # fmt: skip
    """What is wrong with the image set DATA, each fault with its cure: poses, lenses, images, exposure, box.

    With --volume, what is wrong with a fit: floaters, what no view sees, the gap between views that were fitted and
    held out, exposure, opacity near cameras. "error" is what no fit can make up for, "warning" what makes it worse,
    "note" what is worth knowing.
    """
    from raymarch.diagnosis.diagnose import examine
    from raymarch.diagnosis.finding import by_severity
    from raymarch.diagnosis.reading import read_set
    from raymarch.geometry.pose import require_box
    from raymarch.io.images.write import require_pictures

    given = None if box is None else require_box(box)
    reading = {"downscale": 1.0 if downscale is None else downscale, "holdout": holdout}
    volume = None
    if run is not None:
        from raymarch.io.volumes.volume_file import load

        volume = load(run)
        reading = options.reading_of(volume, downscale, holdout)
    if plot is not None:
        require_pictures([plot], overwrite)
    views, findings = read_set(data, split, background=background, follow_links=follow_links, **reading)
    if views is not None:
        say.note(f"{views.count_in_words()} from {data}")
        found = examine(views, given)
        findings += found.findings
        if volume is not None:
            findings += _of_fit(data, volume, arch, background, follow_links, reading)
        elif not any(each.severity == "error" for each in findings):
            findings += _forecast(views, given, arch, clock)
        if plot is not None:
            _plot(plot, views, views.box if given is None else given, found.points, overwrite)
    _print(by_severity(findings), as_json)


def _forecast(views: Views, box: np.ndarray | None, arch: str, clock: bool) -> list[Finding]:
    """What a default fit would take, as a note; or why it would be refused."""
    from raymarch import runtime
    from raymarch.data.samples import samples_in_words
    from raymarch.diagnosis.finding import Finding
    from raymarch.diagnosis.reading import notes
    from raymarch.errors import RaymarchError
    from raymarch.fitting.forecast import forecast

    runtime.start(arch)
    try:
        with notes():  # what it would say is found here
            asked = forecast(views, box=box, clock=clock)
    except RaymarchError as error:
        fault, _, cure = str(error).rpartition("; ")
        return [Finding("refused", "error", f"a default fit would be refused: {fault or error}", cure or "correct it")]
    shape = samples_in_words(asked.memory.shape, asked.boxes)
    took = "" if asked.seconds is None else f" and {asked.seconds:.0f} s"
    message = f"a default fit takes {asked.memory.total / 1e9:.2f} GB of the {asked.free_bytes / 1e9:.1f} GB free{took}"
    return [
        Finding("forecast", "note", f"{message}, for {shape} samples", "--downscale, --resolution, --preset change it")
    ]


def _of_fit(
    data: str, volume: Volume, arch: str, background: str | None, follow_links: bool, reading: dict[str, Any]
) -> list[Finding]:
    """What is wrong with a volume that was fitted to the set's views for training."""
    from raymarch import runtime
    from raymarch.diagnosis.diagnose_fit import diagnose_fit
    from raymarch.diagnosis.reading import read_set

    runtime.start(arch)
    behind: Any = volume.background if background is None else background
    train, test = (
        read_set(data, split, background=behind, follow_links=follow_links, **reading)[0] for split in ("train", "test")
    )
    return [] if train is None else list(diagnose_fit(volume, train, test))


def _plot(path: str, views: Views, box: np.ndarray | None, points: np.ndarray, overwrite: bool) -> None:
    """Picture of the set."""
    from raymarch.io.images.write import write_png
    from raymarch.plot.image_set import picture

    write_png(path, picture(views, box, points), overwrite)


def _print(findings: Sequence[Finding], as_json: bool) -> None:
    """Findings on stdout, a line each and its cure below it, or all as JSON."""
    if as_json:
        options.print_json({"findings": [each.record() for each in findings]})
        return
    for each in findings:
        say.result(f"{each.severity:8} {each.code}: {each.message}")
        say.result(f"{'':8} {each.cure}")
    if not any(each.severity != "note" for each in findings):
        say.result("nothing wrong was found")

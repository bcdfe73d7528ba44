"""`raymarch doctor`: what is wrong with an image set, or with a volume that was fitted to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, output, set_options
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import Box
from raymarch.cli.set_options import SetReading, load_fitted, moved_poses, refined_views

if TYPE_CHECKING:
    import numpy as np

    from raymarch.diagnosis.finding import Finding
    from raymarch.views.views import Views
    from raymarch.volumes.volume import Volume


@click.command(epilog="Example: raymarch doctor scenes/tower --plot tower.png")
@click.argument("data")
@click.option(
    "--volume", "run", metavar="VOLUME", help="Volume that was fitted to DATA: say what is wrong with it too."
)
@click.option("--plot", type=click.Path(), help="Picture to write (.png): cameras with their images, box, coverage.")
@click.option("--box", type=Box(), help="Box that a fit would take; the set's own if not given.")
@click.option("--split", help="Which views to look at; all of them if not given, or those to train on.")
@click.option("--time", "clock", is_flag=True, help="Also measure how long a fit takes.")
@options.overwrite
@set_options.set_reading(set_options.background_of_set, with_masks=True)
@device_options
@options.as_json
def doctor(
    data: str,
    run: str | None,
    plot: str | None,
    box: list[list[float]] | None,
    split: str | None,
    clock: bool,
    overwrite: bool,
    reading: SetReading,
    device: Device,
    as_json: bool,
) -> int:
    """What is wrong with the image set DATA, each fault with its cure: poses, lenses, images, exposure, box.

    With --volume, what is wrong with a fit: floaters, what no view sees, the gap between views that were fitted and
    held out, exposure, opacity near cameras. "error" is what no fit can make up for, "warning" what makes it worse,
    "note" what is worth knowing. Exit code 0: no error was found; 1: one was, or DATA cannot be looked at.
    """
    from raymarch.diagnosis.diagnose import examine
    from raymarch.diagnosis.finding import setting_of_fit, sort_findings
    from raymarch.diagnosis.read_set import read_set
    from raymarch.errors import RaymarchError
    from raymarch.geometry.boxes import require_box
    from raymarch.io.files.atomic import require_writable
    from raymarch.io.images.write import require_pictures
    from raymarch.views.world_origin import box_near

    if plot is not None:
        require_pictures([plot], overwrite)
        require_writable(plot)
    given = None if box is None else require_box(box)
    volume = None if run is None else load_fitted(run)
    if volume is not None and not volume.is_colour:
        its = f"--volume {run}: has the channels {', '.join(volume.channels)}, want a fit of colours"
        raise RaymarchError(f"{its}; leave it out, raymarch evaluate {run} {data} scores each channel")
    views, findings = read_set(data, split, background=reading.background, **reading.options(volume, depths=True))
    if views is not None:
        output.print_note(f"{views.count_in_words()} from {data}")
        given = None if given is None else box_near(given, views.origin)
        preset, taken, views = _planned_fit(views, given)
        found = examine(_in_colour(views), given)
        if volume is not None:
            known = setting_of_fit(volume, "exposure") is True  # then the set's exposures are the fit's already
            findings += [each for each in found.findings if not (known and each.code == "exposure")]
            findings += _fit_findings(data, volume, device, reading)
        else:
            findings += found.findings
            if not _has_errors(findings):
                findings += _forecast(views, preset, given, device, clock, findings)
        if plot is not None:
            _plot_set(plot, views, taken, found.points, overwrite)
    _print(sort_findings(findings), as_json)
    return 1 if _has_errors(findings) else 0


def _in_colour(views: Views) -> Views:
    """Views that have colours; of other channels those that have what is shown of them."""
    if not views.channels:
        return views
    shown = views.shown[: 3 if views.colours > 2 else 1]
    known = [i for i, has in enumerate(views.has_channel[:, : len(shown)]) if has.all()]
    output.print_note(f"{len(known)} of {len(views)} views have {', '.join(shown)}, which are looked at as colours")
    return (views[known] if known else views).in_colour()


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(each.severity == "error" for each in findings)


def _planned_fit(views: Views, given: np.ndarray | None) -> tuple[str, np.ndarray | None, Views]:
    """Preset and box that `raymarch fit` would take, None where it finds one by masks; and the views without a box of
    their own that it would not."""
    from raymarch.errors import RaymarchError
    from raymarch.fitting.plan.bounds import box_of_scene
    from raymarch.fitting.plan.survey import Survey
    from raymarch.fitting.settings.settings import preset_of_views

    preset = preset_of_views(views, given)
    if given is not None:
        return preset, given, views
    if preset != "photos":
        views = replace(views, box=None) if views.shows_silhouettes else views
        return preset, views.box, views
    try:
        box = box_of_scene(Survey(views))
    except RaymarchError:  # which the forecast will say
        box = None
    return preset, box, replace(views, box=None)


def _forecast(
    views: Views, preset: str, box: np.ndarray | None, device: Device, clock: bool, known: Sequence[Finding]
) -> list[Finding]:
    """What a fit with the preset would take and say, as notes, but for what is known; or why it would be refused."""
    from raymarch.diagnosis.finding import Finding
    from raymarch.diagnosis.read_set import collect_notes
    from raymarch.errors import RaymarchError
    from raymarch.fitting.forecast import forecast
    from raymarch.views.contents import background_doubt
    from raymarch.volumes.samples import samples_text

    device.start()
    try:
        with collect_notes() as said:
            asked = forecast(views, preset, box=box, clock=clock)
    except RaymarchError as error:
        fault, _, cure = str(error).rpartition("; ")
        message = f"a fit with preset {preset} would be refused: {fault or error}"
        return [Finding("refused", "error", message, cure or "correct it")]
    shape = samples_text(asked.memory.shape, asked.boxes)
    took = "" if asked.seconds is None else f" and {asked.seconds:.0f} s"
    needed, free = asked.memory.total / 1e9, asked.free_bytes / 1e9
    message = f"a fit takes preset {preset} by itself, and with it {needed:.2f} GB of the {free:.1f} GB free{took}"
    cure = "--downscale, --resolution, --preset change it"
    found = [Finding("forecast", "note", f"{message}, for {shape} samples", cure)]
    for text in dict.fromkeys(said):
        if any(each.message in text for each in known):
            continue
        fault, _, cure = text.rpartition("; ")
        severity = "warning" if text == background_doubt(views) else "note"  # which spoils every fit
        found.append(Finding("fit", severity, fault or text, cure if fault else "raymarch fit says so"))
    return found


def _fit_findings(data: str, volume: Volume, device: Device, reading: SetReading) -> list[Finding]:
    """What is wrong with a volume that was fitted to the set's views for training, by the cameras that its fit had."""
    from raymarch.diagnosis.diagnose_fit import diagnose_fit
    from raymarch.diagnosis.finding import Finding
    from raymarch.diagnosis.read_set import read_set

    device.start()
    behind: Any = volume.background if reading.background is None else reading.background
    how = reading.options(volume)
    (train, _), (test, why) = (read_set(data, split, background=behind, **how) for split in ("train", "test"))
    if train is None:
        return []
    given, train = train, refined_views(volume, train)
    test = None if test is None else refined_views(volume, test, say_so=False)
    if test is not None and moved_poses(given, train):
        message = "the fit moved its own cameras, and held-out views keep theirs, so the gap between them is not told"
        moved = Finding("gap", "note", message, "raymarch evaluate scores held-out views by their own cameras")
        return [*diagnose_fit(volume, train, None), moved]
    findings = list(diagnose_fit(volume, train, test))
    if test is None:
        message = f"no views are held out to tell the gap by ({why[0].message})"
        findings.append(Finding("gap", "note", message, "hold some out of the fit: a split test, or --holdout 8"))
    return findings


def _plot_set(path: str, views: Views, box: np.ndarray | None, points: np.ndarray, overwrite: bool) -> None:
    """Picture of the set."""
    from raymarch.io.images.write import write_png
    from raymarch.plot.images import picture

    write_png(path, picture(views, box, points), overwrite)


def _print(findings: Sequence[Finding], as_json: bool) -> None:
    """Findings on stdout, a line each and its cure below it, or all as JSON."""
    if as_json:
        output.print_json({"findings": [each.record() for each in findings]})
        return
    for each in findings:
        output.print_result(f"{each.severity:8} {each.code}: {each.message}")
        output.print_result(f"{'':8} {each.cure}")
    if not any(each.severity != "note" for each in findings):
        output.print_result("no error or warning")

"""`raymarch fit`: volume from an image set."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raymarch.cli import options, output, rank_options, server_options
from raymarch.cli.device_options import Device, device_options
from raymarch.cli.option_kinds import Background, Box, Duration, Gigabytes, pack_options, usage_errors
from raymarch.cli.set_options import SetReading, set_reading

if TYPE_CHECKING:
    from raymarch.fitting.checkpoints.saver import Checkpoints
    from raymarch.fitting.fitter import Fitter
    from raymarch.fitting.forecast import Forecast
    from raymarch.fitting.report import Fit
    from raymarch.fitting.save_fit import SavedVolume
    from raymarch.fitting.settings.settings import FitSettings
    from raymarch.registration.refine import Refinement
    from raymarch.viewer.fit_viewer import FitViewer
    from raymarch.views.views import Views

LEARNED = click.option(
    "--background",
    type=Background("learned"),
    metavar="COLOUR",
    help="Colour behind the object: white, black, r,g,b in 0..1, or a number a channel; or learned.",
)
MAX_SETTING = 1000  # characters
WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}  # as other languages write them


@dataclass(frozen=True)
class Asked:
    """Settings of a fit that are asked for, as the options say; None of those that are the preset's."""

    preset: str | None
    seconds: float | None
    steps: int | None
    resolution: int | None
    sh_degree: int | None
    seed: int | None
    memory: float | None
    pairs: tuple[str, ...]

    def settings(self, preset: str, learned: bool) -> FitSettings:
        """Settings of a preset with what is asked for in its place; UsageError for what is none."""
        from raymarch.fitting.settings.settings import preset as settings_of_preset

        names = ("seconds", "steps", "resolution", "sh_degree", "seed", "memory")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if learned:
            given["learn_background"] = True
        with usage_errors():
            return settings_of_preset(preset, **{**given, **settings_of(self.pairs)})


@dataclass(frozen=True)
class Saving:
    """Where a fit is saved, and how often, as the options say."""

    out: str | None
    overwrite: bool
    checkpoint_every: float | None
    resume: bool

    @property
    def keeps(self) -> bool:
        """Whether checkpoints are wanted."""
        return self.resume or self.checkpoint_every is not None

    def checkpoints(self) -> Checkpoints:
        """Where checkpoints go."""
        from raymarch.fitting.checkpoints.saver import Checkpoints

        return Checkpoints(f"{self.out}.checkpoint", self.checkpoint_every, self.resume, self.overwrite)

    def require(self, data: str) -> Checkpoints:
        """Write check before anything is read: a volume can go there, it is not the image set, no checkpoint would be
        lost; where checkpoints go."""
        from raymarch.io.files.authorship import require_other
        from raymarch.io.volumes.volume_file import require_target

        if self.out is None:
            raise click.UsageError("Missing option '--out'; or take --dry-run, which writes nothing.")
        require_other(self.out, data)
        require_target(self.out, self.overwrite, whole=True)
        checkpoints = self.checkpoints()
        checkpoints.require()
        if not self.keeps:
            checkpoints.say_what_is_lost()
        return checkpoints


@dataclass(frozen=True)
class Refining:
    """Whether cameras are moved before the fit, and what of them besides their poses."""

    refine: bool
    refine_also: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.refine or bool(self.refine_also)


@dataclass(frozen=True)
class Viewing:
    """Whether a fit is looked at in a browser as it runs, and how."""

    view: bool
    port: int
    no_browser: bool

    def require(self) -> None:
        """UsageError for options of --view without it."""
        if (self.port or self.no_browser) and not self.view:
            raise click.UsageError("--port and --no-browser are of --view; give it, or leave them out")
        if server_options.given_options() and not self.view:
            raise click.UsageError(f"{server_options.given_options()[0]} is of --view; give it, or leave this out")

    @contextmanager
    def viewed(self, as_json: bool = False) -> Iterator[FitViewer | None]:
        """Viewer of a fit that is about to begin, its URL said, beside JSON on stderr; None where none is wanted."""
        if not self.view:
            yield None
            return
        from raymarch.viewer.fit_viewer import FitViewer
        from raymarch.viewer.server.open_browser import announce

        with FitViewer(server_options.make_server(self.port)) as viewer:
            viewer.file = str(click.get_current_context().params.get("out") or "")
            announce(
                viewer.server,
                output.print_note if as_json else output.print_result,
                output.print_note,
                browser=not self.no_browser,
            )
            viewer.server.send({"type": "note", "text": "the fit is about to begin"}, hello=True)
            yield viewer


def view_options(command: Any) -> Any:
    """Options of a fit that is looked at."""
    of = "Of --view: "
    for option in (
        click.option(
            "--no-browser",
            is_flag=True,
            help=f"{of}only print the URL, the first line of stdout, with --json of stderr.",
        ),
        click.option("--port", type=click.IntRange(0, 65535), default=0, help=f"{of}where to listen; else a free one."),
        click.option("--view", is_flag=True, help="Look at the fit in a browser as it runs, and at what came of it."),
    ):
        command = option(command)
    return server_options.server_options(of)(command)


@click.command(epilog="Example: raymarch fit scenes/tower --preset quick --out tower.h5")
@click.argument("data")
@click.option("--out", help="Volume file to write (.h5).")
@click.option(
    "--preset",
    type=click.Choice(["quick", "default", "high", "medium", "photos"]),
    help="Settings for a first look, for things with surfaces, for the same with more time, for clouds and fog, for"
    " photographs. If not given, photos for a scene without end and default for an object.",
)
@click.option(
    "--seconds",
    type=Duration(),
    help="Stop after so many seconds of steps, in place of the preset's steps; with --steps too, whichever comes first."
    " Loading and compiling come before, and what they took is said.",
)
@click.option(
    "--steps", type=int, help="Stop after so many steps, in place of the preset's; quick ends after 45 s otherwise."
)
@click.option("--resolution", type=int, help="Samples along the box's longest side.")
@click.option("--sh-degree", type=click.IntRange(0, 3), help="View dependence: degree of the spherical harmonics.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--split", default="train", show_default=True, help="Which views to fit.")
@click.option("--box", type=Box(), help="Where the object is; found from masks and cameras if not given.")
@set_reading(LEARNED, with_masks=True, with_depths=True)
@click.option(
    "--refine",
    is_flag=True,
    help="Move the cameras first, in 2/5 of --seconds, and fit in the rest; for poses a little off.",
)
@click.option(
    "--refine-also",
    type=click.Choice(["focal", "principal_point", "lens"]),
    multiple=True,
    help="As --refine, and this of the cameras too, by one change for all views; may be given several times.",
)
@click.option("--memory", type=Gigabytes(), help="How much memory it may take [GB]; else what is free.")
@click.option(
    "--checkpoint-every",
    type=Duration(60, 1e-9, 1e6, "minutes between two"),
    metavar="MINUTES",
    help="Save the fit as it stands so often, beside OUT as OUT.checkpoint; removed once the volume is written.",
)
@click.option("--resume", is_flag=True, help="Go on from OUT.checkpoint; all else as it was given to that fit.")
@options.overwrite
@view_options
@click.option("--dry-run", is_flag=True, help="Only say how much memory and time it would take; writes nothing.")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other setting of rm.FitSettings or rm.Adam: hull=False, slots=None, levels=((0,0.5),(0.4,1)).",
)
@device_options
@options.as_json
@pack_options(Asked, "asked")
@pack_options(Saving, "saving")
@pack_options(Refining, "refining")
@pack_options(Viewing, "viewing")
def fit(
    data: str,
    split: str,
    box: list[list[float]] | None,
    asked: Asked,
    reading: SetReading,
    refining: Refining,
    saving: Saving,
    viewing: Viewing,
    dry_run: bool,
    device: Device,
    as_json: bool,
) -> int:
    """Recover a volume from the images in DATA and save it.

    Ctrl-C, SIGTERM and SIGHUP stop early and save what is there; a volume that is finished is never replaced by one
    that is not, which goes beside it as NAME.interrupted.h5. Exit code 0: it is in the file asked for, all of it or
    what there was when stopped. 1: it is elsewhere, as is said, or its numbers ran away, or there is none.
    """
    from raymarch.errors import RaymarchError
    from raymarch.fitting.report import NOT_FINITE, cut_short
    from raymarch.io.files.lock import lock_file
    from raymarch.io.image_sets.load import load_views

    viewing.require()
    with rank_options.shared(device) as processes, output.keep_warnings() as warnings, ExitStack() as alone:
        processes.require_alone(view=viewing.view, refine=bool(refining), dry_run=dry_run)
        learned = reading.background == "learned"
        settings = asked.settings(asked.preset or "default", learned)
        checkpoints = None if dry_run or not processes.first else saving.require(data)
        if saving.out is not None and checkpoints is not None:
            alone.enter_context(lock_file(saving.out, "choose another --out"))
        how = reading.options(depths=settings.depth_weight > 0)
        views = load_views(data, split, background=None if learned else reading.background, **how)
        if refining and views.channels:
            raise RaymarchError(
                f"--refine compares colours, and the views have the channels {', '.join(views.channels)}; leave it out,"
                " and --refine-also"
            )
        if asked.preset is None:
            settings = asked.settings(preset_of(views, box), learned)
        many = "" if processes.ranks is None else f", ranks by {processes.ranks.by}: {processes.ranks.size}"
        output.print_note(f"{views.count_in_words()} from {data}, on {processes.device.start().arch}{many}")
        if not processes.first:
            from raymarch.fitting.fit import fit as fit_with_others

            how = {"ranks": processes.ranks, "checkpoints": saving.checkpoints() if saving.keeps else None}
            fit_with_others(views, settings, box=box, **how)  # type: ignore[arg-type]
            return 0

        if checkpoints is None or saving.out is None:
            return print_forecast(views, settings, box, as_json, refines=bool(refining), also=refining.refine_also)

        limits: dict[str, Any] = {"box": box, "checkpoints": checkpoints if saving.keeps else None}
        if processes.ranks is not None:
            limits["ranks"] = processes.ranks
        with viewing.viewed(as_json) as viewer:
            result, kept = _run(views, settings, saving.out, saving.overwrite, refining, limits, viewer)
            _report(result, kept, views, warnings, as_json)
            if not (kept.why or cut_short(result.ended)) and (saving.keeps or saving.overwrite):  # else it is another's
                checkpoints.remove()
            elif saving.keeps and Path(checkpoints.path).exists():
                on = "--resume --view, and lower rates there," if result.ended.startswith(NOT_FINITE) else "--resume"
                output.print_note(
                    f"{checkpoints.path} has the fit as it stood; the same command with {on} goes on from there"
                )
            alone.close()  # what follows only looks at it
            view_on(viewer)
    return 1 if kept.why or result.ended.startswith(NOT_FINITE) else 0


def _run(
    views: Views,
    settings: FitSettings,
    out: str,
    overwrite: bool,
    refining: Refining,
    how: dict[str, Any],
    viewer: FitViewer | None = None,
) -> tuple[Fit, SavedVolume]:
    """The fit, and where its volume is saved."""
    from raymarch.cli.progress import FitProgress
    from raymarch.fitting import fit as fitting
    from raymarch.fitting.report import NoStep, cut_short
    from raymarch.fitting.save_fit import save_volume
    from raymarch.io.volumes.volume_file import bytes_of_file, require_target
    from raymarch.registration.refined_fit import fit_refined
    from raymarch.system.interrupt import catch_first_interrupt

    def ready(fitter: Fitter) -> None:
        size = bytes_of_file(fitter.plan.samples, fitter.settings.sh_degree, fitter.plan.memory.colours)
        require_target(out, overwrite, size=size, whole=True)
        if viewer is not None:
            viewer.attach(fitter)

    if viewer is not None:
        how = {**how, "between": viewer.between}
    with catch_first_interrupt() as asked:  # so that what stops the fit does not disturb the saving too
        with FitProgress() as progress:
            refined = partial(fit_refined, refined=_say_moved, also=refining.refine_also)
            make = refined if refining else fitting.fit
            try:
                result = make(views, settings, show=progress, started=options.START_TIME, ready=ready, **how)
            except NoStep as error:
                left = f"{out} is untouched" if Path(out).exists() else "no volume was written"
                raise NoStep(f"{error}; {left}") from None
        kept = save_volume(result.volume, out, overwrite)
        if viewer is not None and (viewer.control.stopped_by_page or not cut_short(result.ended)) and not asked():
            viewer.finish(result.volume, result.ended)
        return result, kept


def preset_of(views: Views, box: list[list[float]] | None) -> str:
    """Name of the preset to take where none is asked for; said on stderr where it is not the default."""
    from raymarch.fitting.settings.settings import preset_of_views

    name = preset_of_views(views, box)
    if name != "default":
        output.print_note(f"the views show no object by itself but a scene, so --preset {name} is taken")
    elif preset_of_views(views) != name:
        output.print_note(
            "--box means --preset default, one box; for a horizon behind it --preset photos --set boxes=6"
        )
    return name


def _say_moved(refinement: Refinement) -> None:
    """How far the cameras moved, as a note."""
    degrees, share = refinement.degrees, 100 * refinement.share
    output.print_note(
        f"cameras turned by {degrees.mean():.2f} degrees and moved by {share.mean():.2f} % of their distance in the"
        f" mean, by {degrees.max():.2f} degrees and {share.max():.2f} % at most"
    )


def _report(result: Fit, kept: SavedVolume, views: Views, warnings: list[str], as_json: bool) -> None:
    """What came of it: notes to stderr, the result to stdout."""
    from raymarch.diagnosis.diagnose_fit import volume_findings
    from raymarch.fitting.level_schedule import DONE, is_early
    from raymarch.geometry.ndc import near_plane_of
    from raymarch.volumes.samples import samples_text

    ended = "" if result.ended == DONE or is_early(result.ended) else f"; {result.ended}"  # a warning has said that
    corners = ",".join(f"{v:.3g}" for v in result.box.ravel().tolist())
    if result.volume.ndc_from_world is None:
        output.print_note(f"box {corners} (--box overrides){ended}")
    else:
        near = near_plane_of(result.volume.ndc_from_world)
        output.print_note(f"NDC, near plane at {near:.3g} world units (--set ndc=False overrides){ended}")
    if kept.why:
        output.print_note(f"raymarch: {kept.why}")
    findings = [f"{finding.message}; {finding.cure}" for finding in volume_findings(result.volume, views)]
    for each in findings:
        output.print_note(f"note: {each}")
    output.print_note(
        f"note: {result.preparation:.0f} s of loading and compiling came before the steps and their"
        f" {result.seconds:.0f} s; kernels are compiled once a machine, and read from then on"
    )
    last = result.history[-1]
    if as_json:
        output.print_json(
            {
                "out": str(kept.path),
                "steps": result.volume.provenance["steps"],
                "seconds": result.seconds,
                "preparation_seconds": result.preparation,
                "rays_psnr": last.psnr,
                "shape": result.volume.shape,
                "sh_degree": result.volume.degree,
                "box": result.box.tolist(),
                "ended": result.ended,
                "resumed_from": result.resumed_from,
                "warnings": [*warnings, *findings],
            }
        )
    else:
        size = samples_text(result.volume.shape, result.volume.boxes)
        quality = f"{last.psnr:.2f} dB on its rays, {result.seconds:.0f} s"
        named = "" if result.volume.is_colour else f", channels {', '.join(result.volume.channels)}"
        output.print_result(f"{kept.path}: {size} samples, SH degree {result.volume.degree}{named}, {quality}")


def view_on(viewer: FitViewer | None) -> None:
    """Serve the volume of a fit that has come to its end until Ctrl-C; one that was interrupted is not waited for.

    The fit is done and saved, so that a page's server that is gone is a note.
    """
    if viewer is None or not viewer.done:
        return
    from raymarch.system.interrupt import catch_first_interrupt

    if viewer.server.running:
        output.print_note("the page shows what came of it; Ctrl-C ends it")
    with catch_first_interrupt() as asked:
        viewer.viewer.run(lambda: asked() or not viewer.server.running)
    if not (asked() or viewer.server.running):
        output.print_note("the page's server has ended; what was fitted is saved, and raymarch view shows it")


def print_forecast(
    views: Views,
    settings: FitSettings,
    box: list[list[float]] | None,
    as_json: bool,
    refines: bool = False,
    also: Sequence[str] = (),
) -> int:
    """Exit code, once the forecast is printed; RaymarchError where the fit would raise one."""
    from raymarch.fitting import forecast as cost
    from raymarch.fitting.forecast import forecast
    from raymarch.fitting.level_schedule import describe_ending, is_early
    from raymarch.registration.refined_fit import forecast_refined

    output.print_note(
        f"measuring {cost.PROBE_STEPS} steps, or {cost.PROBE_SECONDS:.0f} s of them; what is not yet compiled on "
        "this machine"
        " comes first"
    )
    record: dict[str, Any] = {}
    lines: list[str] = []
    if refines:
        first, ahead, told = forecast_refined(views, settings, also=also, box=box)
        lines = [refinement_text(first, ahead)]
        record["refine"] = {"bytes": ahead.memory.total, "steps": first.steps, "seconds": first.seconds}
    else:
        told = forecast(views, settings, box=box)
    if as_json:
        output.print_json({**told.record(), **record})
    else:
        click.echo("\n".join([*lines, forecast_text(told)]))
    if told.steps is not None and is_early(ended := describe_ending(told.steps, settings)):
        output.print_note(f"note: the fit would be {ended}")
    return 0


def refinement_text(first: FitSettings, ahead: Forecast) -> str:
    """Refinement before a fit in words: a line."""
    steps = "" if first.steps is None else f"{first.steps} steps"
    if first.seconds is None:
        long = f"{steps} before the fit, whose time, of the moves too, comes on top and is not measured"
    else:
        long = f"the first {first.seconds:.3g} s{f', or {steps}' if steps else ''}; below is the fit in what is left"
    return f"refine  {ahead.memory.total / 1e9:.2f} GB at its peak; {long}"


def forecast_text(forecast: Forecast) -> str:
    """Forecast of a fit in words: a line each for its grid, its memory and its time."""
    from raymarch.volumes.samples import samples_text

    memory, free = forecast.memory, f"{forecast.free_bytes / 1e9:.1f} GB are free"
    parts = ", ".join(f"{name} {size / 1e9:.2f}" for name, size in memory.parts.items())
    lines = [
        f"grid    {samples_text(memory.shape, forecast.boxes)} samples, SH degree {memory.sh_degree}",
        f"memory  {memory.total / 1e9:.2f} GB at its peak ({parts}); {free}",
    ]
    if forecast.seconds is not None:
        seconds = f"{forecast.seconds:.0f}" if forecast.seconds >= 10 else f"{forecast.seconds:.2g}"
        lines.append(f"time    about {seconds} s for {forecast.steps} steps, measured on a few")
    if forecast.preparation is not None:
        lines.append(
            f"start   {forecast.preparation:.0f} s here of loading and compiling, which come before; less once compiled"
        )
    return "\n".join(lines)


def settings_of(pairs: tuple[str, ...]) -> dict[str, object]:
    """`name=value` pairs as Python's literals: numbers, True, None, pairs in brackets; anything else is a word."""
    changes: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if len(text) > MAX_SETTING:
            raise click.UsageError(
                f"--set {name:.60}: has {len(text):,} characters, want at most {MAX_SETTING:,}; shorten it"
            )
        if not (name and equals):
            raise click.UsageError(f"--set {pair:.60}: want NAME=VALUE of some characters, such as tv_density=1e-3")
        changes[name] = text
        with contextlib.suppress(ValueError):  # words as float knows them, nan and inf too
            changes[name] = float(text)
        wrong = contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
        with wrong, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            changes[name] = ast.literal_eval(WORDS.get(text.strip().lower(), text.strip()))
    return changes

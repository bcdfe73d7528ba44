"""Fit of a volume to views, from the first step to the last, in one call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from raymarch.arguments.checks import Numbers, callback, number, optional
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import BrickGrid
from raymarch.fitting.checkpoints.saver import CHECKPOINTS, Checkpoints, CheckpointSaver
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.ranked_fitter import RankedFitter
from raymarch.fitting.report import INTERRUPTED, Fit, NoStep, NotFinite, Report
from raymarch.fitting.settings.settings import FitSettings, settings_for
from raymarch.geometry.boxes import BOX
from raymarch.ranks.comm import COMM, Comm
from raymarch.system.interrupt import catch_first_interrupt
from raymarch.views.views import Views


@checked(
    box=optional(BOX),
    show=optional(callback),
    started=optional(number()),
    ready=optional(callback),
    checkpoints=optional(CHECKPOINTS),
    between=optional(callback),
    ranks=optional(COMM),
)
def fit(
    views: Views,
    settings: FitSettings | str = "default",
    *,
    box: Numbers | None = None,
    show: Callable[[Report], None] | None = None,
    started: float | None = None,
    ready: Callable[[Fitter], None] | None = None,
    checkpoints: Checkpoints | None = None,
    between: Callable[[Fitter], bool] | None = None,
    ranks: Comm | None = None,
    **changes: Any,
) -> Fit:
    """Volume recovered from views (inverse volume rendering).

    Args:
        views: cameras and images.
        settings: a `FitSettings`, or the name of a preset with `changes` by name (`seconds=60`, `objective=...`).
        box: lower and upper corner (2, 3) in the world; found from masks and cameras if not given.
        show: called with each `Report`, for progress.
        started: `time.perf_counter()` from which the result's `preparation` counts; now if not given. The setting
            `seconds` counts from the first step, whatever this is.
        ready: called with the `Fitter` before its first step, to refuse what it would come to.
        checkpoints: `rm.Checkpoints`, where and how often the fit is saved as it stands, and whether it goes on from
            there. The file stays when this returns: remove it once the volume is saved.
        between: called with the `Fitter` before each step; where it returns True the fit ends, as by Ctrl-C.
        ranks: those that make this fit together, of `rm.open_ranks()`; all call this with the same views and settings.
            Rays of a step are dealt to them. On CPUs 1, 2, 4 and 8 ranks have the same bits, others than without.
            Callables are asked on the first rank alone, which is the one to save what comes of it, and checkpoints;
            any count of ranks goes on from a checkpoint, which all of them read.

    Where time ends it after very few steps, or before the finest level, that is logged as a warning.

    Ctrl-C ends it early and keeps the volume, as do SIGTERM and SIGHUP where the program does not handle them itself;
    `ended` tells; a checkpoint is saved too. Raises RaymarchError where the views or settings cannot be fitted or are
    not those of the checkpoint, where it was stopped before its first step, and where another fit writes the same
    checkpoint.

    Example:
        >>> fit(views, "quick", seconds=60).volume.shape  # doctest: +SKIP
        (131, 131, 160)
    """
    first = ranks is None or ranks.rank == 0
    saving, halted = CheckpointSaver(checkpoints, writes=first), list[bool]()

    def over() -> bool:
        if asked() or (first and between is not None and between(fitter)):
            halted.append(True)
        return bool(halted)

    settings = settings_for(views, settings, **changes)
    settings = saving.as_found(settings)
    with ExitStack() as stack:
        stack.enter_context(saving.alone())
        asked = stack.enter_context(catch_first_interrupt())
        fitter: Fitter
        if ranks is None:
            fitter = stack.enter_context(Fitter(views, settings, box=box, started=started))
        else:
            fitter = stack.enter_context(RankedFitter(views, settings, ranks, box=box, started=started, stop_when=over))
        stop = fitter.has_halted if isinstance(fitter, RankedFitter) else over
        if ready is not None and first:
            ready(fitter)
        saving.begin(fitter)
        fitter.clock.prepared()  # once more: what went by since is preparation too
        try:
            for report in fitter.run(stop):
                if show is not None and first:
                    show(report)
                saving.after(fitter)
            cut = fitter.progress < 1 and (stop() if ranks is not None else asked() or bool(halted))
            if cut:
                saving.save(fitter)
            if cut and fitter.steps_done == 0:
                raise NoStep("nothing was fitted: interrupted before the first step; begin anew")
            ended = f"{INTERRUPTED} at step {fitter.steps_done}" if cut else fitter.ending()
        except NotFinite as error:
            ended = str(error)
        if isinstance(fitter.grid, BrickGrid):
            fitter.grid.end_fit()  # the volume's arrays take its place
        volume, resumed = fitter.volume(ended), saving.resumed_from
        if resumed is not None:
            volume = replace(volume, provenance={**volume.provenance, "resumed_from": resumed})
        times = fitter.seconds, resumed, fitter.preparation
        return Fit(volume, fitter.settings, tuple(fitter.history), fitter.box, ended, *times)

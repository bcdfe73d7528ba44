"""Fit with camera refinement: the first part of its time moves the cameras, the rest fits a volume to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.data.views import Views
from raymarch.fitting.fit import fit
from raymarch.fitting.report import Fit
from raymarch.fitting.settings import FitSettings
from raymarch.registration.refine import FIRST, SETTINGS, Refinement, refine

SHARE = 0.4  # of the steps, and of the seconds, for the cameras


def settings_of_refinement(settings: FitSettings, spent: float = 0.0) -> FitSettings:
    """Settings of the refinement before a fit that has spent so many seconds: its share, no hull, from coarse to fine.

    Example:
        >>> settings_of_refinement(FitSettings(steps=1000)).steps
        400
    """
    steps = None if settings.steps is None else max(round(SHARE * settings.steps), FIRST)
    seconds = None if settings.seconds is None else max(SHARE * settings.seconds - spent, 1.0)
    return replace(settings, steps=steps, seconds=seconds, hull=False, levels=SETTINGS.levels)


def fit_refined(
    views: Views,
    settings: FitSettings,
    *,
    box: Numbers | None = None,
    started: float | None = None,
    refined: Callable[[Refinement], None] = lambda refinement: None,
    **how: Any,
) -> Fit:
    """Volume fitted to views whose poses are refined first; its provenance has the poses.

    Args:
        views, settings, box, started: as of `fit`; `settings.seconds` count for both parts.
        refined: called with the `Refinement` before the fit.
        how: `show` and `ready` of `fit`.

    Raises RaymarchError as `refine` and `fit` do.

    Example:
        >>> fit_refined(views, preset("photos", seconds=600)).volume.provenance["refined"]["degrees"]  # doctest: +SKIP
        0.31
    """
    started = time.perf_counter() if started is None else started
    found = refine(views, ("pose",), settings_of_refinement(settings, time.perf_counter() - started), box=box)
    refined(found)
    result = fit(found.views, settings, box=box, started=started, **how)
    volume = replace(result.volume, provenance={**result.volume.provenance, "refined": _record(found)})
    return replace(result, volume=volume)


def _record(found: Refinement) -> dict[str, Any]:
    """How far the cameras moved, and where they are, in plain numbers: the upper rows of world_from_camera."""
    poses = [
        [name, *np.round(camera.world_from_camera[:3].ravel(), 7).tolist()]
        for name, camera in zip(found.views.names, found.views.cameras, strict=True)
    ]
    return {"degrees": float(found.degrees.mean()), "share": float(found.share.mean()), "poses": poses}

"""Fit with camera refinement: the first part of its time moves the cameras, the rest fits a volume to them."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.arrays import Numbers, array
from raymarch.data.exposure import NEUTRAL_EXPOSURE
from raymarch.data.views import Views
from raymarch.data.views_digest import POSE
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.report import Fit
from raymarch.fitting.settings import FitSettings
from raymarch.io.checkpoints.checkpoint_file import record_of
from raymarch.io.files.strict_json import parse_json
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
    checkpoints: Checkpoints | None = None,
    refined: Callable[[Refinement], None] = lambda refinement: None,
    **how: Any,
) -> Fit:
    """Volume fitted to views whose poses are refined first; its provenance has the poses.

    Args:
        views, settings, box, started: as of `fit`; `settings.seconds` count for both parts.
        checkpoints: as of `fit`, from when the cameras are refined on; one that is resumed has them as they were found.
        refined: called with the `Refinement` before the fit.
        how: `show` and `ready` of `fit`.

    Raises RaymarchError as `refine` and `fit` do, and where the checkpoint's cameras were refined from other ones.

    Example:
        >>> fit_refined(views, preset("photos", seconds=600)).volume.provenance["refined"]["degrees"]  # doctest: +SKIP
        0.31
    """
    started = time.perf_counter() if started is None else started
    if checkpoints is not None:
        checkpoints.require()
    if checkpoints is not None and checkpoints.resume:
        found = _resumed(views, checkpoints.path)
    else:
        found = refine(views, ("pose",), settings_of_refinement(settings, time.perf_counter() - started), box=box)
    refined(found)
    if checkpoints is not None:
        checkpoints = replace(checkpoints, note=_note(found, views))
    result = fit(found.views, settings, box=box, started=started, checkpoints=checkpoints, **how)
    volume = replace(result.volume, provenance={**result.volume.provenance, "refined": _record(found)})
    return replace(result, volume=volume)


def _record(found: Refinement) -> dict[str, Any]:
    """How far the cameras moved, and where they are, in plain numbers: the upper rows of world_from_camera."""
    poses = [
        [name, *np.round(camera.world_from_camera[:3].ravel(), 7).tolist()]
        for name, camera in zip(found.views.names, found.views.cameras, strict=True)
    ]
    return {"degrees": float(found.degrees.mean()), "share": float(found.share.mean()), "poses": poses}


def _note(found: Refinement, views: Views) -> str:
    """What a checkpoint keeps of a refinement beside its cameras: how far they moved, and where they were before."""
    return json.dumps({"moved": [*found.degrees.tolist(), *found.share.tolist()], "before": _checksum(views)})


def _checksum(views: Views) -> str:
    """Checksum of the poses, whose last bits may differ between machines."""
    poses = np.round([camera.world_from_camera for camera in views.cameras], 7) + 0.0  # of -0 too
    return hashlib.sha256(poses.tobytes()).hexdigest()


def _resumed(views: Views, path: str | os.PathLike[str]) -> Refinement:
    """Refinement that a checkpoint is of a fit after."""
    record, count = record_of(path), len(views)
    told = parse_json(record["note"] or "{}", f"{path}: note")
    moved = told.get("moved") if isinstance(told, dict) else None
    if moved is None:
        raise RaymarchError(f"{path}: is of a fit without refinement; leave --refine out, or begin anew (--overwrite)")
    poses = [camera[:POSE] for camera in record["views"]["cameras"]]
    if told.get("before") != _checksum(views) or len(poses) != count:
        cure = "give those it had, or begin anew without it (--overwrite)"
        raise RaymarchError(f"{path}: is of a fit to other views: the cameras that were refined differ; {cure}")
    degrees, share = array(2 * count, low=0)(f"{path}: note", moved).reshape(2, count)
    cameras = [camera.exactly(np.reshape(pose, (4, 4))) for camera, pose in zip(views.cameras, poses, strict=True)]
    return Refinement(replace(views, cameras=cameras), np.tile(NEUTRAL_EXPOSURE, (count, 1)), degrees, share, ())

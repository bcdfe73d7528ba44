"""Fit with camera refinement: the first part of its time moves the cameras, the rest fits a volume to them."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Numbers, array
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.checkpoint import DIFFERENT_CURE
from raymarch.fitting.checkpoints.checkpoint_file import read_record
from raymarch.fitting.checkpoints.saver import Checkpoints
from raymarch.fitting.fit import fit
from raymarch.fitting.forecast import Forecast, forecast
from raymarch.fitting.report import Fit
from raymarch.fitting.settings.settings import FitSettings, change_settings
from raymarch.io.files.strict import parse_json
from raymarch.registration.intrinsics import change_of_shared
from raymarch.registration.refine import (
    DEFAULT_SETTINGS,
    FIRST_MOVE_STEP,
    REFINEMENT_SETTINGS,
    Refinement,
    box_of_refinement,
    memory_of_moves,
    refine,
    require_refinable,
)
from raymarch.views.exposure import NEUTRAL_EXPOSURE
from raymarch.views.identity import ViewsDigest, camera_of_numbers, record_of, recorded_indices
from raymarch.views.views import Views

# The checkpoint of the fit keeps the refinement before it, so that a resumed fit does not repeat it.


def note_of(found: Refinement, views: Views, also: Sequence[str]) -> str:
    """Note of a refinement in a checkpoint: how far the cameras moved, what else moved, and the former cameras."""
    moved = [*found.degrees.tolist(), *found.share.tolist()]
    return json.dumps({"moved": moved, "also": sorted(also), "before": _checksum(views)})


def resumed_refinement(views: Views, also: Sequence[str], path: str | os.PathLike[str]) -> Refinement:
    """Refinement of these views that a checkpoint is of a fit after.

    Raises RaymarchError where it is of a fit without one, of other cameras, or of one that moved other things.
    """
    record, count = read_record(path), len(views)
    told = parse_json(record["note"] or "{}", f"{path}: note")
    if not isinstance(told, dict) or "moved" not in told:
        raise RaymarchError(f"{path}: is of a fit without refinement; leave --refine out, or begin anew (--overwrite)")
    cameras, lenses = record["views"]["cameras"], record["views"]["lenses"]
    if told.get("before") != _checksum(views) or len(cameras) != count:
        raise RaymarchError(
            f"{path}: is of a fit to other views: the cameras that were refined differ; {DIFFERENT_CURE}"
        )
    if told.get("also") != sorted(also):
        was = ", ".join(map(str, told.get("also") or [])) or "poses alone"
        raise RaymarchError(f"{path}: is of a fit after another refinement, of {was}; {DIFFERENT_CURE}")
    degrees, share = array(2 * count, low=0)(f"{path}: note", told["moved"]).reshape(2, count)
    found = [camera_of_numbers(model, numbers) for model, numbers in zip(lenses, cameras, strict=True)]
    return Refinement(replace(views, cameras=found), np.tile(NEUTRAL_EXPOSURE, (count, 1)), degrees, share, ())


def _checksum(views: Views) -> str:
    """Checksum of the cameras to seven decimals: their last bits may differ between machines."""
    numbers = np.concatenate(ViewsDigest.cameras_of(views))
    return hashlib.sha256((np.round(numbers, 7) + 0.0).tobytes()).hexdigest()  # 0.0: of -0 too


CAMERA_FRACTION = 0.4  # of the steps, and of the seconds, for the cameras
POSE_ROWS = array(12, low=-MAX_COORDINATE, high=MAX_COORDINATE)  # of a pose: all but the last


def settings_of_refinement(settings: FitSettings) -> FitSettings:
    """Settings of the refinement before a fit: its share of the steps and seconds, no hull, from coarse to fine.

    Example:
        >>> settings_of_refinement(FitSettings(steps=1000)).steps
        400
    """
    steps = None if settings.steps is None else max(round(CAMERA_FRACTION * settings.steps), FIRST_MOVE_STEP)
    seconds = None if settings.seconds is None else CAMERA_FRACTION * settings.seconds
    return replace(settings, steps=steps, seconds=seconds, hull=False, levels=DEFAULT_SETTINGS.levels, depth_weight=0.0)


def settings_after_refinement(settings: FitSettings) -> FitSettings:
    """Settings of the fit after a refinement, which has all of the steps and what is left of the seconds.

    Example:
        >>> settings_after_refinement(FitSettings(steps=None, seconds=100.0)).seconds
        60.0
    """
    return settings if settings.seconds is None else replace(settings, seconds=(1 - CAMERA_FRACTION) * settings.seconds)


def forecast_refined(
    views: Views, settings: FitSettings, *, also: Sequence[str] = (), box: Numbers | None = None
) -> tuple[FitSettings, Forecast, Forecast]:
    """Forecast of a fit with camera refinement: the refinement's settings, its memory, that of its moves included, and
    the fit in what is left.

    How long steps that also move cameras take is not measured. Raises RaymarchError as `refine` and `forecast` do.
    """
    first = settings_of_refinement(settings)
    require_refinable(views, ("pose", *also), first)
    ahead = forecast(
        views, change_settings(first, **REFINEMENT_SETTINGS), box=box_of_refinement(views, first, box), clock=False
    )
    (x, y, z), parts = ahead.memory.shape, ahead.memory.parts
    parts = {**parts, **memory_of_moves(views, max(x // ahead.boxes, y, z), also)}
    ahead = replace(ahead, memory=replace(ahead.memory, parts=parts))
    return first, ahead, forecast(views, settings_after_refinement(settings), box=box)


def fit_refined(
    views: Views,
    settings: FitSettings,
    *,
    also: Sequence[str] = (),
    box: Numbers | None = None,
    started: float | None = None,
    checkpoints: Checkpoints | None = None,
    refined: Callable[[Refinement], None] = lambda refinement: None,
    **how: Any,
) -> Fit:
    """Volume fitted to views whose cameras are refined first; its provenance has the poses, and how the lens moved.

    Args:
        views, settings, box, started: as of `fit`; of `settings.seconds` two fifths are for the cameras and the rest
            for the fit, `settings.steps` are the fit's, before which come two fifths as many for the cameras.
        checkpoints: as of `fit`, from when the cameras are refined on; one that is resumed has them as they were found.
        also: what is moved beside the poses, by one change for all views: "focal", "principal_point", "lens".
        refined: called with the `Refinement` before the fit.
        how: `show` and `ready` of `fit`.

    Raises RaymarchError as `refine` and `fit` do, where Ctrl-C came before the fit began, and where the checkpoint's
    cameras were refined from other ones.

    Example:
        >>> fit_refined(views, preset("photos", seconds=600)).volume.provenance["refined"]["degrees"]  # doctest: +SKIP
        0.31
    """
    started = time.perf_counter() if started is None else started
    with ExitStack() as stack:
        if checkpoints is not None:
            checkpoints.require()
            stack.enter_context(checkpoints.locked())  # before the cameras are moved, which takes long
        return _refine(views, settings, also, box, started, checkpoints, refined, how)


def _refine(
    views: Views,
    settings: FitSettings,
    also: Sequence[str],
    box: Numbers | None,
    started: float,
    checkpoints: Checkpoints | None,
    refined: Callable[[Refinement], None],
    how: dict[str, Any],
) -> Fit:
    """The refinement of the cameras, computed or taken from the checkpoint, and the fit after it."""
    if checkpoints is not None and checkpoints.resume:
        found = resumed_refinement(views, also, checkpoints.path)
    else:
        found = refine(views, ("pose", *also), settings_of_refinement(settings), box=box)
        if found.interrupted:
            raise RaymarchError("interrupted while cameras were refined, so nothing was fitted; begin anew")
    refined(found)
    if checkpoints is not None:
        checkpoints = replace(checkpoints, note=note_of(found, views, also))
    how |= {"box": box, "checkpoints": checkpoints}
    result = fit(found.views, settings_after_refinement(settings), started=started + found.seconds, **how)
    told = result.volume.provenance
    given = {**told["views"], **record_of(views)}  # by poses that another reading of the set has
    volume = replace(result.volume, provenance={**told, "views": given, "refined": _record(found, views, also)})
    return replace(result, volume=volume)


def _record(found: Refinement, views: Views, also: Sequence[str]) -> dict[str, Any]:
    """How far the cameras moved, and where they are, in plain numbers: the upper rows of world_from_camera; and of what
    they share by how much it moved, which holds for views that were not refined too."""
    poses = [
        [name, *np.round(camera.world_from_camera[:3].ravel(), 7).tolist()]
        for name, camera in zip(found.views.names, found.views.cameras, strict=True)
    ]
    return {"degrees": float(found.degrees.mean()), "share": float(found.share.mean()), "poses": poses} | (
        {"shared": change_of_shared(views.cameras[0], found.views.cameras[0], also)} if also else {}
    )


def views_as_fitted(views: Views, provenance: Mapping[str, Any]) -> Views:
    """Views of the set of a refined fit, those that it was fitted to with the poses that were found for them, as far as
    its volume's provenance tells both.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> views_as_fitted(views, {}) is views
        True
    """
    refined = provenance.get("refined")
    told = refined.get("poses") if isinstance(refined, Mapping) else None
    poses = {}
    for each in told if isinstance(told, (list, tuple)) else ():
        with suppress(TypeError, ValueError):  # whatever a file may have there
            name, *rows = each
            poses[str(name)] = np.vstack([POSE_ROWS("poses", rows).reshape(3, 4), (0, 0, 0, 1)])
    if not poses:
        return views
    cameras = list(views.cameras)
    for i, name in recorded_indices(views, provenance.get("views")).items():
        with suppress(KeyError, RaymarchError):
            cameras[i] = replace(cameras[i], world_from_camera=poses[name])
    return replace(views, cameras=cameras)

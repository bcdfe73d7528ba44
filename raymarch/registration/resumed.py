"""Refinement of the cameras as the checkpoint of the fit after it keeps it, so that it is not done again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.arguments.arrays import array
from raymarch.errors import RaymarchError
from raymarch.fitting.checkpoints.file import record_of
from raymarch.fitting.differences import CURE
from raymarch.io.files.strict import parse_json
from raymarch.registration.refine import Refinement
from raymarch.views.exposure import NEUTRAL_EXPOSURE
from raymarch.views.identity import ViewsDigest, camera_of_numbers
from raymarch.views.views import Views


def note_of(found: Refinement, views: Views, also: Sequence[str]) -> str:
    """Note that a checkpoint keeps of a refinement beside its cameras: how far they moved, what else did, and what they
    were before."""
    moved = [*found.degrees.tolist(), *found.share.tolist()]
    return json.dumps({"moved": moved, "also": sorted(also), "before": _checksum(views)})


def resumed_refinement(views: Views, also: Sequence[str], path: str | os.PathLike[str]) -> Refinement:
    """Refinement of these views that a checkpoint is of a fit after.

    Raises RaymarchError where it is of a fit without one, of other cameras, or of one that moved other things.
    """
    record, count = record_of(path), len(views)
    told = parse_json(record["note"] or "{}", f"{path}: note")
    if not isinstance(told, dict) or "moved" not in told:
        raise RaymarchError(f"{path}: is of a fit without refinement; leave --refine out, or begin anew (--overwrite)")
    cameras, lenses = record["views"]["cameras"], record["views"]["lenses"]
    if told.get("before") != _checksum(views) or len(cameras) != count:
        raise RaymarchError(f"{path}: is of a fit to other views: the cameras that were refined differ; {CURE}")
    if told.get("also") != sorted(also):
        was = ", ".join(map(str, told.get("also") or [])) or "poses alone"
        raise RaymarchError(f"{path}: is of a fit after another refinement, of {was}; {CURE}")
    degrees, share = array(2 * count, low=0)(f"{path}: note", told["moved"]).reshape(2, count)
    found = [camera_of_numbers(model, numbers) for model, numbers in zip(lenses, cameras, strict=True)]
    return Refinement(replace(views, cameras=found), np.tile(NEUTRAL_EXPOSURE, (count, 1)), degrees, share, ())


def _checksum(views: Views) -> str:
    """Checksum of the cameras to seven decimals: their last bits may differ between machines."""
    numbers = np.concatenate(ViewsDigest.cameras_of(views))
    return hashlib.sha256((np.round(numbers, 7) + 0.0).tobytes()).hexdigest()  # 0.0: of -0 too

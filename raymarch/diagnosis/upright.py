"""Up of a set's world, where orbits about z would show what is in it lying down."""

from __future__ import annotations

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.geometry.up import GUESSED, up_of_cameras
from raymarch.matching.epipolar import poses_of
from raymarch.views.views import Views

OFF = np.deg2rad(30.0)  # from z, from which on it is worth a note


def upright(views: Views) -> Finding | None:
    """Note where the cameras' up is another than z."""
    poses = poses_of(views.cameras)
    up, how = up_of_cameras(poses[:, :3, 3], poses[:, :3, :3])
    if len(views) < 2 or how == GUESSED or up[2] > np.cos(OFF):
        return None
    told = ",".join(f"{number + 0.0:.2g}" for number in np.where(np.abs(up) < 0.05, 0, up))
    message = f"the cameras say that up is {told} in this world, about which no orbit goes by itself"
    return Finding("up", "note", message, f"--up {told} with raymarch render --orbit, up=({told}) with rm.orbit")

"""One similarity over another set of cameras: what no image can tell, taken out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.camera import Camera


def similarity(cameras: Sequence[Camera], onto: Sequence[Camera]) -> np.ndarray:
    """The similarity (4, 4) of the world that brings cameras nearest to others: rotation, shift and one scale.

    The rotation is the mean over the cameras' own; the scale makes their spreads alike, 1 where there is none (Horn
    1987, symmetric); the shift is the mean.

    Example:
        >>> cameras = [Camera.look_at((x, -4, 1)) for x in (-1.0, 0.0, 1.0)]
        >>> similarity(cameras, cameras).round(6).tolist()[0]
        [1.0, 0.0, 0.0, 0.0]
    """
    total = sum(b.world_from_camera[:3, :3] @ a.world_from_camera[:3, :3].T for a, b in zip(cameras, onto, strict=True))
    u, _, vt = np.linalg.svd(total)
    turn = u @ np.diag([1, 1, np.linalg.det(u @ vt)]) @ vt
    here, there = (np.array([c.position for c in some]) for some in (cameras, onto))
    a, b = (here - here.mean(0)) @ turn.T, there - there.mean(0)
    spread = np.linalg.norm(a)
    scale = float(np.linalg.norm(b) / spread) if spread > 1e-9 * np.linalg.norm(here) + 1e-300 else 1.0
    scale = scale if scale > 0 else 1.0
    out = np.eye(4)
    out[:3, :3] = scale * turn
    out[:3, 3] = there.mean(0) - scale * turn @ here.mean(0)
    return out


def carried(camera: Camera, world_from_world: np.ndarray) -> Camera:
    """A camera moved by a similarity of the world (4, 4); it sees the moved world as it saw the other."""
    scale = np.cbrt(np.linalg.det(world_from_world[:3, :3]))
    pose = camera.world_from_camera.copy()
    pose[:3, :3] = world_from_world[:3, :3] / scale @ pose[:3, :3]
    pose[:3, 3] = world_from_world[:3, :3] @ pose[:3, 3] + world_from_world[:3, 3]
    return replace(camera, world_from_camera=pose)


def aligned(cameras: Sequence[Camera], onto: Sequence[Camera]) -> list[Camera]:
    """The cameras moved by the one similarity that brings them nearest to the others."""
    moved = similarity(cameras, onto)
    return [carried(camera, moved) for camera in cameras]

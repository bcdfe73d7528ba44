"""Gauge of a reconstruction: an upright world about what the cameras look at, of a size known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raymarch.geometry.nearest_point import nearest_to_lines
from raymarch.geometry.up import up_of_cameras

ROUNDS = 20


class Gauge(NamedTuple):
    """Similarity (4, 4) from the world of structure from motion to an upright one, and how it was chosen."""

    world_from_sfm: np.ndarray
    up: str
    centre: str


def upright_gauge(eyes: np.ndarray, turns: np.ndarray, points: np.ndarray) -> Gauge:
    """Gauge in which z is up, what the cameras look at is the origin, and half of them are within 1 of it.

    Args:
        eyes: positions (view, 3).
        turns: rotations (view, 3, 3) world from camera, camera axes x right, y up, looking along -z.
        points: sparse points (point, 3); may be none.

    The first camera looks along +y, or as near as its height allows. Cameras that look outward have their own middle as
    origin, and half of the points within 1.

    Example:
        >>> eyes = 4 * np.array([[1.0, 0, 0], [0, 1, 0], [-1, 0, 0]])
        >>> turns = np.array([np.stack([np.cross(e / 4, [0, 0, -1.0]), [0, 0, 1], e / 4], -1) for e in eyes])
        >>> gauge = upright_gauge(eyes, turns, np.zeros((0, 3)))
        >>> gauge.centre, (gauge.world_from_sfm @ [*eyes[0], 1]).round(9).tolist()
        ('where the cameras look', [0.0, -1.0, 0.0, 1.0])
    """
    up, how = up_of_cameras(eyes, turns)
    centre, where = _centre(eyes, -turns[:, :, 2])
    inward = centre is not None
    middle = centre if centre is not None else np.median(eyes, axis=0)
    away = np.linalg.norm((eyes if inward or not len(points) else points) - middle, axis=1)
    size = float(np.median(away))
    if not size > 1e-12:
        size = float(away.max(initial=0.0)) or 1.0
    towards = -turns[0, :, 2] if not inward else middle - eyes[0]
    towards = towards - (towards @ up) * up
    if np.linalg.norm(towards) < 1e-6 * size:
        towards = np.cross(up, np.eye(3)[np.argmin(np.abs(up))])
    y = towards / np.linalg.norm(towards)
    turn = np.stack([np.cross(y, up), y, up])
    out = np.eye(4)
    out[:3, :3] = turn / size
    out[:3, 3] = -turn @ middle / size
    return Gauge(out, how, where)


def _centre(eyes: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray | None, str]:
    """Point nearest to the optical axes, those that miss it counting less; None where they do not look at one."""
    weights, centre = np.ones(len(eyes)), None
    for _ in range(ROUNDS):
        centre = nearest_to_lines(eyes, axes, weights)
        if centre is None:
            return None, "middle of the cameras"
        misses = np.linalg.norm(np.cross(axes, centre - eyes), axis=1)
        weights = 1 / (misses + 0.01 * np.median(np.linalg.norm(centre - eyes, axis=1)) + 1e-12)
    ahead = ((centre - eyes) * axes).sum(1) > 0
    return (centre, "where the cameras look") if ahead.mean() > 0.7 else (None, "middle of the cameras")

"""Near plane of a fit: how far before the cameras its rays begin, by how far these stand from what they look at."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.views.focus import looking_away

log = logging.getLogger("raymarch")
FEW = 0.05  # of the cameras, which may stand nearer
HALF_WAY = 0.5  # to the middle, where rays of the nearest camera begin at the latest


def near_plane(cameras: Sequence[Camera], middle: np.ndarray, share: float) -> float:
    """Distance before each camera [world unit]: a share of what half of them are from the middle (3,), but half the way
    there of the nearest at most, of those that look at it: what close-ups show is not to lie before where rays begin.
    One in twenty may stand nearer, as one that walks by.

    Example:
        >>> far, close = Camera.look_at((0, -4, 0)), Camera.look_at((0, -1, 0))
        >>> [near_plane(cameras, np.zeros(3), 0.25) for cameras in ([far], [far, far, close])]
        [1.0, 0.5]
    """
    usual, away = share * usual_distance(cameras, middle), _distances(cameras, middle)[~looking_away(cameras, middle)]
    nearest = float(np.quantile(away, FEW, method="lower")) if len(away) else np.inf
    if HALF_WAY * nearest < usual:
        log.warning("rays begin %.3g before their cameras in place of %.3g, for close-ups", HALF_WAY * nearest, usual)
    return min(usual, HALF_WAY * nearest)


def usual_distance(cameras: Sequence[Camera], middle: np.ndarray) -> float:
    """Distance of half the cameras from the middle (3,) of what they look at [world unit].

    Example:
        >>> usual_distance([Camera.look_at((0, -4, 0))], np.zeros(3))
        4.0
    """
    return float(np.median(_distances(cameras, middle)))


def _distances(cameras: Sequence[Camera], middle: np.ndarray) -> np.ndarray:
    """Distances (camera,) from the middle [world unit]."""
    return np.linalg.norm(np.array([camera.position for camera in cameras]) - middle, axis=1)

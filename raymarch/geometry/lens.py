"""Pinhole lens: pixels to directions in camera axes and back, and the slopes of both; `kernels/rays/lens.py` beside it.

A pixel (u, v) lies on the plane z = -1 before the camera at `((u - cu) / fu, (cv - v) / fv)`: x right, y up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SIGN = np.array([1.0, -1.0])  # v runs down, y up


def unproject(pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float]) -> np.ndarray:
    """Directions (..., 3) in camera axes, their z at -1, of pixels (..., 2).

    Example:
        >>> unproject(np.array([30.0, 0.0]), (10, 10), (20, 20)).tolist()
        [1.0, 2.0, -1.0]
    """
    plane = SIGN * (pixels - np.asarray(principal)) / np.asarray(focal)
    return np.concatenate([plane, -np.ones_like(plane[..., :1])], axis=-1)


def unproject_tangent(
    plane: np.ndarray, focal: Sequence[float], dot_focal: np.ndarray | None, dot_principal: np.ndarray | None
) -> np.ndarray:
    """dot_ of places (ray, 2) on the plane z = -1, by the lens; None for what does not move."""
    dot_plane = np.zeros_like(plane)
    if dot_focal is not None:
        dot_plane -= plane / focal * dot_focal
    if dot_principal is not None:
        dot_plane -= SIGN * dot_principal / focal
    return dot_plane


def unproject_adjoint(plane: np.ndarray, focal: Sequence[float], d_plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """d_focal and d_principal (2,) from d_ of the places (ray, 2) on the plane z = -1."""
    return -(plane * d_plane).sum(0) / focal, -SIGN * d_plane.sum(0) / focal


def project(local: np.ndarray, focal: Sequence[float], principal: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (..., 2) and depths (...) of points (..., 3) in camera axes; those behind the camera have depths under 0.

    Example:
        >>> pixels, depth = project(np.array([2.0, 4.0, -2.0]), (10, 10), (20, 20))
        >>> pixels.tolist(), float(depth)
        ([30.0, 0.0], 2.0)
    """
    depth = -local[..., 2]
    with np.errstate(divide="ignore", invalid="ignore"):
        return principal + focal * SIGN * local[..., :2] / depth[..., None], depth


def project_slope(local: np.ndarray, focal: Sequence[float]) -> np.ndarray:
    """d pixels / d points (point, 2, 3) in camera axes."""
    depth = -local[:, 2:]
    plane = local[:, :2] / depth
    flat = np.broadcast_to(np.eye(3)[:2], (len(local), 2, 3))
    return (SIGN * focal)[:, None] * (flat + plane[:, :, None] * np.eye(3)[2]) / depth[:, :, None]

"""Pixels to rays in camera axes, and points back to pixels, through a lens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.distortion import ANGLES
from raymarch.geometry.lens import PLAIN, Lens

SIGN = np.array([1.0, -1.0])  # v runs down, y up


def unproject(pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PLAIN) -> np.ndarray:
    """Directions (..., 3) in camera axes of pixels (..., 2): of a pinhole with their z at -1, of others unit vectors.

    Example:
        >>> unproject(np.array([30.0, 0.0]), (10, 10), (20, 20)).tolist()
        [1.0, 2.0, -1.0]
    """
    if not lens.plain or lens.parallel:
        return lens.directions((pixels - np.asarray(principal)) / np.asarray(focal))
    plane = SIGN * (pixels - np.asarray(principal)) / np.asarray(focal)
    return np.concatenate([plane, -np.ones_like(plane[..., :1])], axis=-1)


def starts(pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PLAIN) -> np.ndarray:
    """Origins (..., 3) of the rays of pixels (..., 2) in camera axes: 0, but for parallel rays beside each other.

    Example:
        >>> starts(np.array([30.0, 0.0]), (10, 10), (20, 20), Lens("orthographic")).tolist()
        [1.0, 2.0, 0.0]
    """
    plane = SIGN * (pixels - np.asarray(principal)) / np.asarray(focal) if lens.parallel else np.zeros_like(pixels)
    return np.concatenate([plane, np.zeros_like(plane[..., :1])], axis=-1)


def require_invertible(lens: Lens, pixels: np.ndarray, focal: Sequence[float], principal: Sequence[float]) -> None:
    """Fold check: RaymarchError, naming the farthest, for pixels (n, 2) that no direction goes to."""
    plane = (pixels - np.asarray(principal)) / np.asarray(focal)
    lost = lens.flattened(plane)[1]
    if lost.any():
        off = np.where(lost, np.linalg.norm(plane, axis=1), 0.0)
        u, v = pixels[np.argmax(off)]
        raise RaymarchError(lens.folds(f"pixel ({u:.1f}, {v:.1f}), {off.max():.3g}"))


def project(
    local: np.ndarray, focal: Sequence[float], principal: Sequence[float], lens: Lens = PLAIN
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (..., 2) and depths (...) of points (..., 3) in camera axes; those behind the camera have depths under 0.

    Depth is along the axis, but of a fisheye the distance, which is under 0 beyond the angle that it can see.

    Example:
        >>> pixels, depth = project(np.array([2.0, 4.0, -2.0]), (10, 10), (20, 20))
        >>> pixels.tolist(), float(depth)
        ([30.0, 0.0], 2.0)
    """
    depth = -local[..., 2]
    if lens.parallel:
        return principal + focal * SIGN * local[..., :2], depth
    if lens.plain:
        with np.errstate(divide="ignore", invalid="ignore"):
            return principal + focal * SIGN * local[..., :2] / depth[..., None], depth
    if lens.kind == ANGLES:
        distance = np.linalg.norm(local, axis=-1)
        depth = np.where(depth >= distance * np.cos(lens.reach), distance, -distance)
    return np.asarray(principal) + np.asarray(focal) * lens.plane(local), depth


def project_slope(local: np.ndarray, focal: Sequence[float], lens: Lens = PLAIN) -> np.ndarray:
    """d pixels / d points (point, 2, 3) in camera axes."""
    if lens.parallel:
        return np.broadcast_to(np.asarray(focal, float)[:, None] * SIGN[:, None] * np.eye(2, 3), (len(local), 2, 3))
    return np.asarray(focal, float)[:, None] * lens.slopes(local)[0]

"""Near and far planes of cameras as points, which tell where a scene may lie and not what images show."""

from __future__ import annotations

import numpy as np

GRID = np.linspace(0.0, 1.0, 3)  # of an image's width and height, at which near and far points are taken
STRAIGHT = 1e-12  # of the farthest place, up to which points of a line are off even steps


def are_planes(points: np.ndarray) -> bool:
    """Whether points (point, 3) are those of near and far planes, as LLFF's reader gives them.

    Example:
        >>> are_planes(np.stack(np.meshgrid([0, 1, 2], [0, 1, 2], [5, 9], indexing="ij"), -1).reshape(-1, 3))
        True
    """
    points = np.asarray(points, float)
    if not len(points) or len(points) % (2 * len(GRID) ** 2):
        return False
    frusta = points.reshape(-1, len(GRID), len(GRID), 2, 3)
    bends = [np.abs(np.diff(frusta, 2, axis=axis)).max() for axis in (1, 2)]  # of lines across the image
    return bool(max(bends) <= STRAIGHT * np.abs(points).max())

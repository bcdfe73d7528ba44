"""Slow twin of the page's shader in NumPy: how an atlas of bricks is sampled."""

from __future__ import annotations

import numpy as np

from raymarch.viewer.page.atlas import CELLS


def trilinear(samples: np.ndarray, place: np.ndarray) -> float:
    """A number (x, y, z) between its eight samples."""
    cell = np.minimum(place.astype(int), np.array(samples.shape) - 2)
    f = place - cell
    total = 0.0
    for corner in np.ndindex(2, 2, 2):
        weight = np.prod(np.where(corner, f, 1 - f))
        total += weight * samples[tuple(cell + corner)]
    return float(total)


def sampled(atlas, place: np.ndarray, channel: int, box: int = 0):
    """A channel of an atlas at a place in a box's index space; None where no brick is."""
    brick = np.minimum((place / CELLS).astype(int), np.array(atlas.table.shape[:0:-1]) - 1)
    found = int(atlas.table[(box, *brick[::-1])])
    if not found:
        return None
    low, span = atlas.ranges[found - 1, channel]
    if found - 1 >= atlas.count:
        return float(low)
    bytes_of_brick = atlas.planes[channel, found - 1].transpose(2, 1, 0) / 255
    return float(low + span * trilinear(bytes_of_brick, place - CELLS * brick))

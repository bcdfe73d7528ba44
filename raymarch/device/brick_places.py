"""Places of bricks in a pool: which bricks a grid's cells read, and in which order they lie, along a Morton curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.volumes.bricks import BRICK, table_shape

ROUNDING = 1e-3  # voxels by which a sample may lie outside its cell


def bricks_read(cells: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Bricks (x, y, z) bool of a level of `shape` samples that any of the marked cells (x, y, z) bool reads.

    Example:
        >>> cells = np.zeros((4, 4, 4), bool)
        >>> cells[0, 0, 1] = True  # samples 4 to 8 along z
        >>> np.argwhere(bricks_read(cells, (17, 17, 17))).tolist()
        [[0, 0, 0], [0, 0, 1]]
    """
    bricks = cells
    for axis, (samples, count) in enumerate(zip(shape, table_shape(shape), strict=True)):
        first, last = _reach(cells.shape[axis], samples)
        along = np.moveaxis(bricks, axis, 0)
        found = np.zeros((count, *along.shape[1:]), bool)
        for brick in range(count):
            found[brick] = along[np.searchsorted(last, brick) : np.searchsorted(first, brick, "right")].any(0)
        bricks = np.moveaxis(found, 0, axis)
    return bricks


def _reach(cells: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last brick along an axis that each cell reads."""
    edges = np.arange(cells + 1) * (samples - 1) / cells
    first = np.floor(edges[:-1] - ROUNDING).clip(0)
    last = np.floor(edges[1:] + ROUNDING).clip(max=samples - 2) + 1
    return first.astype(int) // BRICK, last.astype(int) // BRICK


def places_of(bricks: np.ndarray) -> np.ndarray:
    """Table (x, y, z) int32 of the places of bricks, 1 for the first along a Morton curve; 0 where none is.

    Example:
        >>> places_of(np.ones((2, 2, 2), bool)).ravel().tolist()
        [1, 2, 3, 4, 5, 6, 7, 8]
    """
    at = np.argwhere(bricks)
    table = np.zeros(bricks.shape, np.int32)
    table[tuple(at[np.argsort(_morton(at), kind="stable")].T)] = np.arange(1, len(at) + 1)
    return table


def _morton(at: np.ndarray) -> np.ndarray:
    """Morton codes of indices (n, 3): their bits in turn."""
    code = np.zeros(len(at), np.int64)
    for bit in range(20):
        for axis in range(3):
            code |= ((at[:, axis].astype(np.int64) >> bit) & 1) << (3 * bit + 2 - axis)
    return code

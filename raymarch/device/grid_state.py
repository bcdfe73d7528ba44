"""State of a fit's grid between two steps, in parts small enough that a copy of all is never in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.device.memory import OF_A_MOMENT
from raymarch.kernels.field.bricks import SAMPLES
from raymarch.kernels.field.snapshot import samples_in, samples_out
from raymarch.kernels.fit.coarse import CUBE

SLAB = 16 << 20  # bytes of a slab of samples, if that holds one layer of them


def width_of(grid: Grid) -> int:
    """Count of a sample's numbers of one kind: density and features."""
    return 1 + 3 * (grid.degree + 1) ** 2


def kept_of(grid: Grid) -> int:
    """Count of a sample's numbers that go on from step to step: its values, and density and colour of two moments."""
    return width_of(grid) + 2 * OF_A_MOMENT


def numbers_of(grid: Grid) -> int:
    """Count of all of a sample's numbers: those, and what is left of the gradient."""
    return kept_of(grid) + width_of(grid)


def count_of(grid: Grid) -> int:
    """Count of a level's samples: those of the bricks that are there, of a sparse grid."""
    return math.prod(_extent(grid))


def _extent(grid: Grid) -> tuple[int, int, int]:
    return (grid.bricks * SAMPLES, 1, 1) if isinstance(grid, BrickGrid) else grid.shape


def slabs_of(grid: Grid) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """First layer along x and shape (x, y, z) of each slab of the level; bricks count as one row along x."""
    x, y, z = _extent(grid)
    layer = y * z * numbers_of(grid) * np.dtype(runtime.dtype()).itemsize
    thick = max(SLAB // layer, 1)
    for first in range(0, x, thick):
        yield first, (min(thick, x - first), y, z)


def samples_of(grid: Grid) -> Iterator[np.ndarray]:
    """Numbers (x, y, z, n) of the level's samples, slab by slab: density and features, then density and colour of each
    moment, then what Adam left of the gradient, which is not always nothing: it passes over what underflows."""
    for first, shape in slabs_of(grid):
        values = np.empty((*shape, numbers_of(grid)), runtime.dtype())
        samples_out(grid.fields, first, values)
        yield values


def put_samples(grid: Grid, first: int, values: np.ndarray) -> None:
    """Put a slab back, its first layer at x = `first`."""
    samples_in(values, grid.fields, first)


def cubes_of(grid: Grid) -> np.ndarray:
    """Moments (cube, 2 * width) of the cubes of samples that the level's lie in, features and density the last."""
    both = [field.to_numpy()[_cubes(grid)] for field in _moments(grid)]
    return np.concatenate(both, axis=-1).reshape(-1, 2 * width_of(grid))


def put_cubes(grid: Grid, values: np.ndarray) -> None:
    """Put the moments of cubes back, as `cubes_of` gives them."""
    for field, part in zip(_moments(grid), np.split(values, 2, axis=-1), strict=True):
        whole = np.zeros_like(field.to_numpy())
        whole[_cubes(grid)] = part.reshape(whole[_cubes(grid)].shape)
        field.from_numpy(whole)


def _moments(grid: Grid) -> tuple[Any, Any]:
    return grid.fields.m_cube, grid.fields.v_cube


def _cubes(grid: Grid) -> tuple[slice, ...]:
    """Part of the cubes' fields that the level takes."""
    if isinstance(grid, BrickGrid):
        each = SAMPLES // CUBE**3
        return slice(1), slice(1), slice(each, each * (1 + grid.bricks))
    return tuple(slice(-(-n // CUBE)) for n in grid.shape)

"""Storage of a volume's samples: dense arrays, or bricks of what is not empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.arguments.checks import ReadOnly
from raymarch.errors import RaymarchError
from raymarch.volumes.bricks import (
    BRICK_SIDE,
    Bricks,
    overhanging_samples,
    require_dense,
    require_table,
    spread_bricks,
    table_shape,
)
from raymarch.volumes.samples import SAMPLES, require_channels, require_three_axes

Ends = list[tuple[float, tuple[int, ...]]]
Shape = tuple[int, int, int]
SMALLER_CURE = "take a smaller part, or a larger stride"
NOT_GIVEN: Any = ...  # of an argument that is not given
MISSING_CURE = "features and world_from_index are missing; of plain densities rm.Volume.from_array(density) makes one"


@dataclass(frozen=True, eq=False)
class Dense(ReadOnly):
    """Dense samples: raw density (x, y, z) and features (x, y, z, channel)."""

    values: np.ndarray
    colours: np.ndarray

    bricks = None

    def __post_init__(self) -> None:
        density, features = SAMPLES("density", self.values), SAMPLES("features", self.colours)
        require_three_axes(density)
        require_channels(density, features)
        for name, array in (("values", density.view()), ("colours", features.view())):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def shape(self) -> Shape:
        """Count of samples (x, y, z)."""
        return self.values.shape  # type: ignore[return-value]

    @property
    def channels(self) -> int:
        """Count of features."""
        return self.colours.shape[3]

    @property
    def nbytes(self) -> int:
        """Size of the arrays [byte]."""
        return self.values.nbytes + self.colours.nbytes

    def density(self, empty: float) -> np.ndarray:
        """Raw density (x, y, z)."""
        return self.values

    def features(self) -> np.ndarray:
        """Features (x, y, z, channel)."""
        return self.colours

    def at(self, index: Sequence[np.ndarray], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Raw density and features at the samples of three arrays of indices."""
        return self.values[tuple(index)], self.colours[tuple(index)]

    def part(self, index: Sequence[np.ndarray], empty: float) -> Dense:
        """Dense samples at the indices (n,) along each axis."""
        return Dense(*self.at(np.ix_(*index), empty))

    def ends(self, empty: float) -> Ends:
        """Least and greatest raw density, each with its index."""
        return _ends(self.values)

    def coloured(self) -> bool:
        """Whether any feature is not 0."""
        return bool(self.colours.any())

    def along_x(self, start: int, stop: int, empty: float) -> Dense:
        """The samples from `start` to before `stop` along x."""
        return Dense(self.values[start:stop], self.colours[start:stop])


@dataclass(frozen=True, eq=False)
class Sparse:
    """Sparse samples: bricks of a volume of `shape` samples (x, y, z)."""

    bricks: Bricks
    shape: Shape

    def __post_init__(self) -> None:
        require_table(self.bricks.table, self.shape)

    @property
    def channels(self) -> int:
        """Count of features."""
        return self.bricks.features.shape[4]

    @property
    def nbytes(self) -> int:
        """Size of the arrays [byte]."""
        return self.bricks.nbytes

    def density(self, empty: float) -> np.ndarray:
        """Raw density (x, y, z), made now; RaymarchError where the memory does not suffice."""
        return _unwritable(spread_bricks(self.bricks.table, self.bricks.density, self.shape, empty))

    def features(self) -> np.ndarray:
        """Features (x, y, z, channel), made now; RaymarchError where the memory does not suffice."""
        return _unwritable(spread_bricks(self.bricks.table, self.bricks.features, self.shape, 0.0))

    def at(self, index: Sequence[np.ndarray], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Raw density and features at the samples of three arrays of indices."""
        return self.bricks.at(index, empty)

    def part(self, index: Sequence[np.ndarray], empty: float) -> Dense:
        """Dense samples at the indices (n,) along each axis; RaymarchError where the memory does not suffice."""
        shape, kinds = tuple(map(len, index)), (self.bricks.density.dtype, self.bricks.features.dtype)
        require_dense(shape, kinds[0].itemsize + self.channels * kinds[1].itemsize, SMALLER_CURE)
        density, features = np.empty(shape, kinds[0]), np.empty((*shape, self.channels), kinds[1])
        i, j, k = index
        for plane in range(len(i)):  # one at a time, so that little is held twice
            density[plane], features[plane] = self.at((i[plane], j[:, None], k), empty)
        return Dense(density, features)

    def ends(self, empty: float) -> Ends:
        """Least and greatest raw density, each with its index; where a brick is missing it is `empty`."""
        table, values = self.bricks.table, self.bricks.density
        found: Ends = []
        first = np.unravel_index(table.argmin(), table.shape)  # of those that are missing, where any is
        if table[first] < 0:
            found.append((empty, tuple(int(n) * BRICK_SIDE for n in first)))
        numbers, out = overhanging_samples(table, self.shape)
        for pick, none in ((np.min, np.inf), (np.max, -np.inf)) if self.bricks.count else ():
            of_bricks = pick(values, axis=(1, 2, 3))
            of_bricks[numbers] = pick(np.where(out, none, values[numbers]), axis=(1, 2, 3))
            number = int(np.flatnonzero(of_bricks == pick(of_bricks))[0])
            place = np.argwhere(table == number)[0] * BRICK_SIDE
            inside = values[number][tuple(slice(n) for n in np.array(self.shape) - place)]
            at = place + np.argwhere(inside == of_bricks[number])[0]
            found.append((of_bricks[number], tuple(at.tolist())))
        return [min(found), max(found)]

    def coloured(self) -> bool:
        """Whether any feature of a sample is not 0; what lies beyond the shape is of none."""
        coloured: np.ndarray = np.any(self.bricks.features, axis=4)
        numbers, out = overhanging_samples(self.bricks.table, self.shape)
        coloured[numbers] &= ~out
        return bool(coloured.any())

    def along_x(self, start: int, stop: int, empty: float) -> Sparse:
        """The samples from `start` to before `stop` along x, in bricks of their own that begin at `start`."""
        old, (_, y, z) = self.bricks.table, self.shape
        table = np.full(table_shape((stop - start, y, z)), -1, np.int32)
        density, features, count = [self.bricks.density[:0]], [self.bricks.features[:0]], 0
        for a in range(len(table)):
            first, last = start + a * BRICK_SIDE, min(start + a * BRICK_SIDE + BRICK_SIDE, stop)
            j, k = np.nonzero((old[first // BRICK_SIDE : (last - 1) // BRICK_SIDE + 1] >= 0).any(0))
            table[a, j, k] = np.arange(count, count + len(j))
            count += len(j)
            i = np.arange(first, first + BRICK_SIDE).clip(max=last - 1)
            corner = [n[:, None, None, None] * BRICK_SIDE for n in (j, k)]
            u, v, w = np.ogrid[:BRICK_SIDE, :BRICK_SIDE, :BRICK_SIDE]
            values, colours = self.bricks.at((i[u], corner[0] + v, corner[1] + w), empty)
            values[:, last - first :], colours[:, last - first :] = empty, 0
            density.append(values)
            features.append(colours)
        return Sparse(Bricks(table, np.concatenate(density), np.concatenate(features)), (stop - start, y, z))


def sparse_of(samples: Dense | Sparse, empty: float) -> Sparse:
    """Samples in bricks, without those that show nothing."""
    return (
        samples
        if isinstance(samples, Sparse)
        else Sparse(Bricks.of_dense(samples.values, samples.colours, empty), samples.shape)
    )


def store_samples(density: Any, features: Any, kept: object, empty: float) -> Dense | Sparse:
    """Samples of a volume: the arrays given, and what is kept in place of those that are not."""
    if not isinstance(kept, (Dense, Sparse)):
        if density is NOT_GIVEN or features is NOT_GIVEN:
            raise RaymarchError(MISSING_CURE)
        return Dense(density, features)
    if density is NOT_GIVEN and features is NOT_GIVEN:
        return kept
    return Dense(
        kept.density(empty) if density is NOT_GIVEN else density, kept.features() if features is NOT_GIVEN else features
    )


def _unwritable(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _ends(values: np.ndarray) -> Ends:
    found = []
    for flat in (int(values.argmin()), int(values.argmax())):
        where = tuple(int(n) for n in np.unravel_index(flat, values.shape))
        found.append((values[where], where))
    return found

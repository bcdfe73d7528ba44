"""Storage of a volume's samples: dense arrays, or bricks of what is not empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.data.bricks import BRICK, Bricks, require_table, spread, table_shape
from raymarch.data.samples import SAMPLES, require_channels, require_three_axes
from raymarch.errors import RaymarchError

Ends = list[tuple[float, tuple[int, ...]]]
Shape = tuple[int, int, int]
LATER: Any = ...  # of an argument that is not given
MISSING = "features and world_from_index are missing; of plain densities rm.Volume.from_array(density) makes one"


@dataclass(frozen=True, eq=False)
class Dense:
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

    def ends(self) -> Ends:
        """Least and greatest raw density, each with its index."""
        return _ends(self.values)

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
        return _unwritable(spread(self.bricks.table, self.bricks.density, self.shape, empty))

    def features(self) -> np.ndarray:
        """Features (x, y, z, channel), made now; RaymarchError where the memory does not suffice."""
        return _unwritable(spread(self.bricks.table, self.bricks.features, self.shape, 0.0))

    def at(self, index: Sequence[np.ndarray], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Raw density and features at the samples of three arrays of indices."""
        return self.bricks.at(index, empty)

    def ends(self) -> Ends:
        """Least and greatest raw density of the bricks, each with its index."""
        if not self.bricks.count:
            return []
        found = []
        for end, (number, *inside) in _ends(self.bricks.density):
            place = np.argwhere(self.bricks.table == number)[0] * BRICK + inside
            found.append((end, tuple(place.tolist())))
        return found

    def along_x(self, start: int, stop: int, empty: float) -> Sparse:
        """The samples from `start` to before `stop` along x, in bricks of their own that begin at `start`."""
        old, (_, y, z) = self.bricks.table, self.shape
        table = np.full(table_shape((stop - start, y, z)), -1, np.int32)
        density, features, count = [self.bricks.density[:0]], [self.bricks.features[:0]], 0
        for a in range(len(table)):
            first, last = start + a * BRICK, min(start + a * BRICK + BRICK, stop)
            j, k = np.nonzero((old[first // BRICK : (last - 1) // BRICK + 1] >= 0).any(0))
            table[a, j, k] = np.arange(count, count + len(j))
            count += len(j)
            i = np.arange(first, first + BRICK).clip(max=last - 1)
            corner = [n[:, None, None, None] * BRICK for n in (j, k)]
            u, v, w = np.ogrid[:BRICK, :BRICK, :BRICK]
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


def stored(density: Any, features: Any, kept: object, empty: float) -> Dense | Sparse:
    """Samples of a volume: the arrays given, and what is kept in place of those that are not."""
    if not isinstance(kept, (Dense, Sparse)):
        if density is LATER or features is LATER:
            raise RaymarchError(MISSING)
        return Dense(density, features)
    if density is LATER and features is LATER:
        return kept
    return Dense(
        kept.density(empty) if density is LATER else density, kept.features() if features is LATER else features
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

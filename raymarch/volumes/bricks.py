"""Bricks: the samples of a sparse volume in cubes of 8^3, without those where nothing is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raymarch.arguments.checks import Check, ReadOnly, Wrong, instance_of, number, numeric
from raymarch.arguments.declared import checked, checked_field, validate_fields
from raymarch.errors import RaymarchError
from raymarch.system.resources import require_free
from raymarch.volumes.samples import SAMPLES, SHAPE, require_channels, require_three_axes, samples_text

BRICK_SIDE = 8  # samples a side
BRICK_SHAPE = (BRICK_SIDE,) * 3
BRICK_CURE = "stay with its bricks, or take a coarser volume"


def _table(value: object) -> np.ndarray:
    given = numeric(value)
    if given.dtype.kind not in "iu" or given.ndim != 3 or not given.size:
        raise Wrong(f"is {given.dtype} {given.shape}")
    for end in (int(given.min()), int(given.max())):
        if not -1 <= end < 1 << 31:
            raise Wrong(f"is {end} at {tuple(np.argwhere(given == end)[0].tolist())}")
    return given.astype(np.int32, copy=False)


TABLE = Check("int32 (x, y, z), -1 where no brick is, else its number", _table)


@dataclass(frozen=True, eq=False)
class Bricks(ReadOnly):
    """Samples of a sparse volume: brick (a, b, c) holds samples 8 a to 8 a + 7 along x, and likewise along y and z.

    Attributes:
        table: (x, y, z) int32, the number of each brick in the arrays, each once, or -1 where no brick is.
        density: (brick, 8, 8, 8) raw density, float, axes x, y, z.
        features: (brick, 8, 8, 8, channel) raw colour, float; channels as of `Volume`.

    Where no brick is the raw density is that of empty space (`Activation.empty`) and features are 0; so are samples of
    the last bricks that lie beyond a volume's shape, which nothing reads.

    Raises RaymarchError for shapes that disagree, numbers that are not finite or beyond 1e30, and a table in which a
    number is out of range, missing or there twice.

    Example:
        >>> fog = np.zeros((20, 16, 16), np.float32)
        >>> fog[:8] = 1
        >>> bricks = Bricks.of_dense(fog, np.zeros((*fog.shape, 3), np.float32), empty=0)
        >>> bricks.table.shape, bricks.count
        ((3, 2, 2), 4)
    """

    table: np.ndarray = checked_field(TABLE, None)
    density: np.ndarray = checked_field(SAMPLES, None)
    features: np.ndarray = checked_field(SAMPLES, None)

    def __post_init__(self) -> None:
        validate_fields(self, "bricks")
        if self.density.ndim != 4 or self.density.shape[1:] != BRICK_SHAPE:
            raise RaymarchError(f"bricks: density has shape {self.density.shape}, want (brick, 8, 8, 8)")
        if self.features.shape[:-1] != self.density.shape or not self.features.shape[-1]:
            want = f"{self.density.shape} and a number of features"
            raise RaymarchError(f"bricks: features have shape {self.features.shape}, want {want}")
        require_each_once(self.table, self.count)
        for name in ("table", "density", "features"):
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @property
    def count(self) -> int:
        """Count of bricks."""
        return len(self.density)

    def __repr__(self) -> str:
        return f"Bricks({self.count} of {' x '.join(map(str, self.table.shape))}, {self.features.shape[-1]} channels)"

    @property
    def nbytes(self) -> int:
        """Size [byte] of the arrays."""
        return self.table.nbytes + self.density.nbytes + self.features.nbytes

    @classmethod
    @checked(density=SAMPLES, features=SAMPLES, empty=number())
    def of_dense(cls, density: np.ndarray, features: np.ndarray, empty: float) -> Bricks:
        """Bricks of dense samples (x, y, z) and (x, y, z, channel), without those that show nothing.

        A brick shows nothing if its density is `empty` throughout and its features are 0, or are only read where
        density is empty too: then a sample beside the brick counts as well, for a cell reaches across.
        """
        require_three_axes(density)
        require_channels(density, features)
        shape = table_shape(density.shape)
        full = density != density.dtype.type(empty)
        kept = _blocked_any(full)
        beside = _blocked_any(full, margin=1) & ~kept
        for place in np.argwhere(beside):
            kept[tuple(place)] = features[_region(place)].any()
        table = np.full(shape, -1, np.int32)
        table[kept] = np.arange(kept.sum())
        cubes = np.full((int(kept.sum()), *BRICK_SHAPE), empty, density.dtype)
        colours = np.zeros((*cubes.shape, features.shape[-1]), features.dtype)
        for n, place in enumerate(np.argwhere(kept)):
            there = _region(place)
            x, y, z = density[there].shape
            cubes[n, :x, :y, :z], colours[n, :x, :y, :z] = density[there], features[there]
        return cls(table, cubes, colours)

    @checked(shape=SHAPE, empty=number())
    def dense(self, shape: Sequence[int], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Dense raw density (x, y, z) and features (x, y, z, channel): the inverse of `of_dense`."""
        require_table(self.table, shape)
        return spread_bricks(self.table, self.density, shape, empty), spread_bricks(
            self.table, self.features, shape, 0.0
        )

    def at(self, index: Sequence[np.ndarray], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Raw density (...) and features (..., channel) at three arrays i, j, k of indices that broadcast."""
        i, j, k = index  # as they are: of a whole grid of samples each is of one axis alone
        number = np.asarray(self.table[i // BRICK_SIDE, j // BRICK_SIDE, k // BRICK_SIDE])
        there = number >= 0
        density = np.full(number.shape, empty, self.density.dtype)
        features = np.zeros((*number.shape, self.features.shape[-1]), self.features.dtype)
        inside = (number[there], *(np.broadcast_to(n % BRICK_SIDE, number.shape)[there] for n in (i, j, k)))
        density[there], features[there] = self.density[inside], self.features[inside]
        return density, features


def held_samples(bricks: Bricks, shape: Sequence[int]) -> np.ndarray:
    """Samples (x, y, z) bool that a sparse volume has: the others are empty whatever happens.

    Example:
        >>> fog = np.zeros((16, 8, 8))
        >>> fog[0] = 1
        >>> int(held_samples(Bricks.of_dense(fog, fog[..., None] * np.ones(3), empty=0), fog.shape).sum())
        512
    """
    return spread_bricks(bricks.table, np.ones((bricks.count, *BRICK_SHAPE), bool), shape, False)


def table_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Count of bricks along each axis for so many samples.

    Example:
        >>> table_shape((16, 17, 2))
        (2, 3, 1)
    """
    return tuple(-(-int(n) // BRICK_SIDE) for n in shape)


def overhanging_samples(table: np.ndarray, shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers (n,) of the bricks that reach beyond a volume's shape, and which of their samples (n, 8, 8, 8) lie there.

    Example:
        >>> numbers, samples = overhanging_samples(np.array([[[0]], [[1]]]), (13, 8, 8))
        >>> numbers.tolist(), int(samples.sum())
        ([1], 192)
    """
    last = np.zeros(table.shape, bool)
    for axis, n in enumerate(shape):
        np.moveaxis(last, axis, 0)[-1] |= n % BRICK_SIDE > 0
    last &= table >= 0
    first = np.argwhere(last) * BRICK_SIDE
    i, j, k = (first[:, axis, None] + np.arange(BRICK_SIDE) >= n for axis, n in enumerate(shape))
    return table[last], i[:, :, None, None] | j[:, None, :, None] | k[:, None, None, :]


def require_table(table: np.ndarray, shape: Sequence[int]) -> None:
    """Shape check: RaymarchError unless the table covers so many samples, and no more."""
    if table.shape != (want := table_shape(shape)):
        beyond = any(m > n for m, n in zip(table.shape, want, strict=True))
        what = f"{'has bricks beyond' if beyond else 'does not cover'} {samples_text(shape)} samples"
        raise RaymarchError(f"bricks: table of shape {table.shape} {what}, want shape {want}")


def bricks_text(shape: Sequence[int], count: int) -> str:
    """Count of bricks of so many samples, in words.

    Example:
        >>> bricks_text((1024, 1024, 1024), 40000)
        '40,000 of 2,097,152'
    """
    return f"{count:,} of {math.prod(table_shape(shape)):,}"


def spread_bricks(table: np.ndarray, values: np.ndarray, shape: Sequence[int], fill: float) -> np.ndarray:
    """Dense array (x, y, z, ...) of the values (brick, 8, 8, 8, ...), `fill` where no brick is."""
    x, y, z = shape
    rest = values.shape[4:]
    require_dense((x, y, z), math.prod(rest) * values.itemsize)
    out = np.empty((x, y, z, *rest), values.dtype)
    for a, numbers in enumerate(table):  # a layer of bricks at a time, so that little is held twice
        layer = np.full((*numbers.shape, *BRICK_SHAPE, *rest), fill, values.dtype)
        layer[numbers >= 0] = values[numbers[numbers >= 0]]
        b, c = numbers.shape
        slab = np.moveaxis(layer, 2, 0).swapaxes(2, 3).reshape(BRICK_SIDE, b * BRICK_SIDE, c * BRICK_SIDE, *rest)
        out[a * BRICK_SIDE : (a + 1) * BRICK_SIDE] = slab[: x - a * BRICK_SIDE, :y, :z]
    return out


def require_dense(shape: Sequence[int], of_a_sample: int, cure: str = BRICK_CURE) -> None:
    """Memory check: RaymarchError where dense arrays of so many bytes a sample are more than is free."""
    require_free(math.prod(shape) * of_a_sample, f"dense arrays of {samples_text(shape)} samples", cure)


def _region(place: np.ndarray) -> tuple[slice, slice, slice]:
    """Slices of a brick's samples in dense arrays."""
    a, b, c = (slice(int(n) * BRICK_SIDE, (int(n) + 1) * BRICK_SIDE) for n in place)
    return a, b, c


def _blocked_any(full: np.ndarray, margin: int = 0) -> np.ndarray:
    """Whether any sample of each brick is full, those `margin` samples beside it included."""
    for axis in range(3):
        starts = np.arange(0, full.shape[axis], BRICK_SIDE)
        bricks = np.logical_or.reduceat(full, starts, axis=axis)
        if margin:
            first, last = (np.moveaxis(np.take(full, at, axis), axis, 0) for at in (starts[1:], starts[1:] - 1))
            moved = np.moveaxis(bricks, axis, 0)
            moved[:-1] |= first
            moved[1:] |= last
        full = bricks
    return full


def require_each_once(table: np.ndarray, count: int) -> None:
    """RaymarchError unless the table has each number of a brick once."""
    numbers = table[table >= 0]
    if numbers.size and (most := int(numbers.max())) >= count:
        at = tuple(np.argwhere(table == most)[0].tolist())
        raise RaymarchError(f"bricks: table is {most} at {at}, want numbers under {count}, the bricks there are")
    times = np.bincount(numbers, minlength=count)
    if (times > 1).any():
        twice = int(times.argmax())
        one, other = (tuple(place) for place in np.argwhere(table == twice)[:2].tolist())
        raise RaymarchError(
            f"bricks: table has number {twice} twice, at {one} and {other}, want each brick at one place"
        )
    if (times == 0).any():
        raise RaymarchError(
            f"bricks: table lacks number {int(times.argmin())} and places {numbers.size} of {count} bricks, want all"
        )


BRICKS = instance_of(Bricks, "a Bricks")

"""Volumes whose values stay in their file: what is asked of them is read when it is asked for, and no more."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import require_affine
from raymarch.volumes.activation import Activation
from raymarch.volumes.samples import COLOUR_CHANNELS
from raymarch.volumes.storage import Dense, Ends
from raymarch.volumes.volume import NO_PROVENANCE, Volume

KEPT_LATTICES = 3  # that were read last, of thinned samples
PLANES = 16  # that are copied at once: a line of the cache, where x is the fastest, and little in doubles
READ_SAMPLES = 1 << 24  # that are read at once where all are
IN_FILE_CURE = "rm.load reads all of it, rm.OutOfCoreRenderer renders it part by part"
Slices = tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class FileSamples:
    """Samples in a file: `read(slices)` gives the stored values (x, y, z) of slices along x, y, z.

    Attributes:
        shape: count of samples (x, y, z).
        dtype: as stored.
        read: raises RaymarchError for values that are no numbers.
        slope, intercept: from what is stored to the value.
        channels: count of features of a sample.
        read_features: of a fitted volume its features (x, y, z, channel), as `read`; None of values alone.
    """

    shape: tuple[int, int, int]
    dtype: np.dtype
    read: Callable[[Slices], np.ndarray]
    slope: float = 1.0
    intercept: float = 0.0
    channels: int = 3
    read_features: Callable[[Slices], np.ndarray] | None = None
    bricks: None = None
    _lattices: OrderedDict[bytes, tuple[np.ndarray, np.ndarray]] = field(default_factory=OrderedDict)

    @property
    def bytes_of_sample(self) -> int:
        """Size of a sample as stored [byte], unpacked."""
        return self.dtype.itemsize * (1 + (self.channels if self.coloured() else 0))

    @property
    def nbytes(self) -> int:
        """Size of all samples as stored [byte], unpacked."""
        return math.prod(self.shape) * self.bytes_of_sample

    def values(self, first: Sequence[int], last: Sequence[int], kind: Any) -> np.ndarray:
        """Values of a box of samples (x, y, z), from `first` to before `last`, as an array of one kind of float."""
        stored = self.read(tuple(slice(a, b) for a, b in zip(first, last, strict=True)))
        out = np.empty(stored.shape, kind)
        for i in range(0, len(out), PLANES):
            out[i : i + PLANES] = self._value(stored[i : i + PLANES])
        return out

    def features_of(self, first: Sequence[int], last: Sequence[int], kind: Any) -> np.ndarray:
        """Features (x, y, z, channel) of a box of samples, as `values`; 0 of values alone."""
        slices = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
        return np.ascontiguousarray(self._features(slices), kind)

    def _features(self, slices: Slices) -> np.ndarray:
        if self.read_features is not None:
            return self.read_features(slices)
        counts = [len(range(*one.indices(n))) for one, n in zip(slices, self.shape, strict=True)]
        return np.broadcast_to(np.float32(0), (*counts, self.channels))

    def at(self, index: Sequence[np.ndarray], empty: float) -> tuple[np.ndarray, np.ndarray]:
        """Values and features at three arrays of indices that span a lattice, as `np.ix_` makes them."""
        axes = [np.asarray(one).ravel() for one in index]
        if [np.shape(one) for one in index] != [np.shape(one) for one in np.ix_(*axes)]:
            raise RaymarchError(f"single samples are asked of a volume in its file; {IN_FILE_CURE}")
        key = b"".join(axis.astype(np.int64).tobytes() + b"|" for axis in axes)
        if key not in self._lattices:
            self._lattices[key] = self._lattice(axes)
            while len(self._lattices) > KEPT_LATTICES:
                self._lattices.popitem(last=False)
        return self._lattices[key]

    def _lattice(self, axes: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        shape = tuple(map(len, axes))
        values = np.empty(shape)
        features = np.empty((*shape, self.channels), np.float32) if self.coloured() else None
        runs = [list(_runs(axis)) for axis in axes]
        for i, x in runs[0]:
            for j, y in runs[1]:
                for k, z in runs[2]:
                    values[i, j, k] = self._value(self.read((x, y, z)))
                    if features is not None:
                        features[i, j, k] = self._features((x, y, z))
        return values, np.broadcast_to(np.float32(0), (*shape, self.channels)) if features is None else features

    def _value(self, stored: np.ndarray) -> np.ndarray:
        if (self.slope, self.intercept) == (1.0, 0.0):
            return stored
        return stored.astype(np.float64) * self.slope + self.intercept

    def ends(self, empty: float) -> Ends:
        """Least and greatest value, each with the index where its slab begins; all values are read for it."""
        thick = max(READ_SAMPLES // math.prod(self.shape[1:]), 1)
        found: Ends = []
        for begin in range(0, self.shape[0], thick):
            slab = self.values((begin, 0, 0), (min(begin + thick, self.shape[0]), *self.shape[1:]), np.float64)
            found += [(float(slab.min()), (begin, 0, 0)), (float(slab.max()), (begin, 0, 0))]
        return [min(found), max(found)]

    def coloured(self) -> bool:
        """Whether samples have features; any may be 0."""
        return self.read_features is not None

    def density(self, empty: float) -> np.ndarray:
        """RaymarchError: all values are not read at once."""
        raise RaymarchError(f"this volume is in its file, of {self.nbytes:,} bytes; {IN_FILE_CURE}")

    def features(self) -> np.ndarray:
        """RaymarchError: as `density`."""
        return self.density(0.0)

    def part(self, index: Sequence[np.ndarray], empty: float) -> Dense:
        """RaymarchError: as `density`."""
        return Dense(self.density(empty), self.features())

    def along_x(self, start: int, stop: int, empty: float) -> Dense:
        """RaymarchError: as `density`."""
        return Dense(self.density(empty), self.features())


def _runs(axis: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Slices by which indices that rise are read, each with the one that they fill: of the same step as far as it goes.

    Example:
        >>> list(_runs(np.array([0, 3, 6, 7])))
        [(slice(0, 3, None), slice(0, 7, 3)), (slice(3, 4, None), slice(7, 8, 1))]
    """
    begin = 0
    while begin < len(axis):
        step = int(axis[begin + 1] - axis[begin]) if begin + 1 < len(axis) else 1
        end = begin + 1
        while end < len(axis) and axis[end] - axis[end - 1] == step:
            end += 1
        yield slice(begin, end), slice(int(axis[begin]), int(axis[end - 1]) + 1, step)
        begin = end


class FileVolume(Volume):
    """Volume whose samples stay in their file: a default look and a camera are found of some of them.

    Attributes:
        unit, length_unit, world, name: as of `ScalarVolume`; "" of a fitted volume.
    """

    samples: FileSamples  # type: ignore[assignment]  # which stand for dense ones, but for the arrays
    unit: str
    length_unit: str
    world: str
    name: str

    def __init__(
        self,
        samples: FileSamples,
        world_from_index: np.ndarray,
        background: tuple[float, ...],
        activation: Activation = Activation("identity"),
        provenance: Mapping = NO_PROVENANCE,
        unit: str = "",
        length_unit: str = "",
        world: str = "",
        name: str = "",
    ) -> None:
        place = {"world_from_index": require_affine(world_from_index), "boxes": 1, "ndc_from_world": None}
        read = {"samples": samples, "activation": activation, "channels": COLOUR_CHANNELS}
        more = {"unit": unit, "length_unit": length_unit, "world": world, "name": name}
        for key, value in ({"background": background, "provenance": provenance} | place | read | more).items():
            object.__setattr__(self, key, value)

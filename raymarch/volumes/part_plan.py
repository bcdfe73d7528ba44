"""Parts of a volume larger than memory: boxes of cells, with the samples beside them that interpolation reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raymarch.errors import RaymarchError

MIN_SIDE = (
    16  # cells of a part along an axis, unless the volume has fewer: beside less, most of what is read is read again
)
CUT_MARGIN = 0.05  # cells: an eye nearer to a cut would have rounding say on which side of it rays begin


@dataclass(frozen=True)
class PartPlan:
    """Plan of parts: where the cells of a volume are cut, across each axis at the same distances.

    Attributes:
        shape: samples (x, y, z) of the whole.
        side: cells of a part along each axis.
        offset: cells by which the first part along each axis is shorter.
        beside: samples that a part has beyond those at the corners of its cells, where the volume has them.

    Example:
        >>> plan = PartPlan((9, 9, 9), (4, 4, 8), (0, 0, 0), 0)
        >>> plan.counts, plan.cells(1), plan.samples(1)
        ((2, 2, 1), ((0, 4, 0), (4, 8, 8)), ((0, 4, 0), (5, 9, 9)))
    """

    shape: tuple[int, int, int]
    side: tuple[int, int, int]
    offset: tuple[int, int, int]
    beside: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Count of parts (x, y, z)."""
        x, y, z = (-(-(n - 1 + o) // s) for n, s, o in zip(self.shape, self.side, self.offset, strict=True))
        return x, y, z

    @property
    def parts(self) -> int:
        """Count of all parts."""
        return int(np.prod(self.counts))

    @property
    def largest(self) -> tuple[int, int, int]:
        """Samples (x, y, z) that a part has at most."""
        x, y, z = (min(s + 1 + 2 * self.beside, n) for s, n in zip(self.side, self.shape, strict=True))
        return x, y, z

    def index(self, number: int) -> tuple[int, int, int]:
        """Place of a part among all, along x, y and z."""
        x, y, z = (int(i) for i in np.unravel_index(number, self.counts))
        return x, y, z

    def cells(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Cells of a part, the first and the one behind the last along each axis."""
        along = list(zip(self.index(number), self.side, self.offset, self.shape, strict=True))
        low = tuple(max(i * s - o, 0) for i, s, o, _ in along)
        return low, tuple(min((i + 1) * s - o, n - 1) for i, s, o, n in along)

    def samples(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Samples of a part, the first and the one behind the last along each axis."""
        low, high = self.cells(number)
        first = tuple(max(a - self.beside, 0) for a in low)
        return first, tuple(min(b + 1 + self.beside, n) for b, n in zip(high, self.shape, strict=True))

    def count_of_samples(self, number: int) -> int:
        """Count of the samples of a part."""
        first, last = self.samples(number)
        return int(np.prod(np.subtract(last, first)))

    def first_place(self, eye: np.ndarray | None, direction: np.ndarray) -> tuple[int | None, ...]:
        """Place, along x, y and z, of the part that rays come from: that of an `eye` (3,), or the first along the
        `direction` (3,) of parallel rays, both in index space; None along an axis that these do not go along."""
        counts = np.array(self.counts)
        if eye is None:
            return tuple(None if d == 0 else 0 if d > 0 else int(n) - 1 for d, n in zip(direction, counts, strict=True))
        own = np.floor((eye + self.offset) / self.side).clip(0, counts - 1).astype(int)
        return tuple(own.tolist())

    def order(self, eye: np.ndarray | None, direction: np.ndarray) -> np.ndarray:
        """Rank (part,) of each part: rays from an `eye` (3,), or parallel ones along a `direction` (3,), both in index
        space, come to parts of a lower rank first."""
        along = [
            np.zeros(n, int) if own is None else np.abs(np.arange(n) - own)
            for n, own in zip(self.counts, self.first_place(eye, direction), strict=True)
        ]
        x, y, z = np.ix_(*along)
        return (x + y + z).ravel()

    def open_parts(self, waiting: np.ndarray, first: tuple[int | None, ...]) -> np.ndarray:
        """Numbers of the parts that no ray comes to any more but those that wait for them, of `waiting` (part,), how
        many rays wait for each. Such parts do not depend on one another.

        A ray that waits for a part goes on to parts that are, along each axis, no nearer to the one it came from,
        `first_place`.

        Example:
            >>> plan = PartPlan((9, 9, 2), (4, 4, 1), (0, 0, 0), 0)
            >>> plan.open_parts(np.array([0, 5, 3, 2]), (0, 0, 0))
            array([1, 2])
        """
        before = (waiting > 0).astype(int).reshape(self.counts)
        for axis, own in enumerate(first):
            if own is not None:
                before = _sums_from(before, own, axis)
        return np.flatnonzero((waiting > 0) & (before.ravel() == 1))


def _sums_from(counts: np.ndarray, own: int, axis: int) -> np.ndarray:
    """Sums along an axis from place `own` to each.

    Example:
        >>> _sums_from(np.array([1, 2, 3, 4]), 1, 0)
        array([3, 2, 5, 9])
    """
    lower, upper = np.split(counts, [own], axis)
    here = upper.take([0], axis)
    below = np.flip(np.cumsum(np.concatenate([here, np.flip(lower, axis)], axis), axis), axis)
    return np.concatenate([below, np.cumsum(upper, axis).take(range(1, upper.shape[axis]), axis)], axis)


def plan_of(shape: Sequence[int], room: int, beside: int, eye: np.ndarray | None = None) -> PartPlan:
    """Plan of parts of at most `room` samples each, those `beside` their cells included; none of the cuts goes through
    an `eye` (3,), a point in index space.

    Raises RaymarchError where so little room is left that most samples would be read many times.

    Example:
        >>> plan_of((100, 100, 100), 40_000, 1).side
        (25, 25, 25)
    """
    more, low, high = 1 + 2 * beside, 1, max(shape)
    while low < high:  # the longest side by which parts have room
        middle = (low + high + 1) // 2
        if np.prod([min(middle + more, n) for n in shape], dtype=float) <= room:
            low = middle
        else:
            high = middle - 1
    if low < min(MIN_SIDE, max(shape) - 1):
        raise RaymarchError(f"parts of {max(room, 0):,} samples are all that there is room for, too small a part each")
    side, offset = [], []
    for axis, n in enumerate(shape):
        cells = n - 1
        count = 1 if n <= low + more else -(-(cells + 1) // low)  # one cell more, by which cuts may move
        along, moved = -(-(cells + (count > 1)) // count), 0
        if eye is not None and count > 1:
            near = eye[axis] / along
            moved = int(0 < round(near) < count and abs(near - round(near)) * along < CUT_MARGIN)
        side.append(along)
        offset.append(moved)
    x, y, z = shape
    return PartPlan((x, y, z), tuple(side), tuple(offset), beside)  # type: ignore[arg-type]  # three each

"""Selection of a volume file's samples: crop, stride, and which of several channels, times and levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, number, optional, whole
from raymarch.arguments.declared import checked_field, validate_fields
from raymarch.errors import RaymarchError

MAX_INDEX = 1 << 40


def _crop(value: Any) -> tuple[tuple[int, int], ...]:
    flat = np.asarray(value).ravel().tolist()
    ends = [whole(0, MAX_INDEX).read(n) for n in flat]
    if len(ends) != 6 or np.shape(value) not in ((6,), (3, 2)):
        raise ValueError
    pairs = tuple(zip(ends[::2], ends[1::2], strict=True))
    if not all(stop - start >= 2 for start, stop in pairs):
        raise ValueError
    return pairs


def _stride(value: Any) -> tuple[int, ...]:
    several = (value,) * 3 if np.ndim(value) == 0 else tuple(value)
    if len(several) != 3:
        raise ValueError
    return tuple(whole(1, MAX_INDEX).read(n) for n in several)


def _nan(value: Any) -> float | str:
    return value if isinstance(value, str) and value == "empty" else number().read(value)


INDEX = whole(0, MAX_INDEX)
NAN = Check("empty, or a number", _nan)
CROP = Check("three pairs of indices, first and one past the last, 2 or more apart", _crop)
STRIDE = Check("a whole number of 1 or more, or three", _stride)


@dataclass(frozen=True)
class Selection:
    """Selection of the samples that are read of a file.

    Attributes:
        crop: ((x0, x1), (y0, y1), (z0, z1)) indices of the samples, x1 not among them; all if not given.
        stride: every so many samples along each axis of the array, counted from the crop's first.
        channel, time, level: which of a file's channels, points in time and levels of a pyramid.
        nan: what takes the place of values that are NaN or infinite: a number as stored, or "empty", the least value.

    Example:
        >>> Selection(crop=((0, 4), (0, 5), (2, 6)), stride=2).shape((10, 10, 10))
        (2, 3, 2)
    """

    crop: Sequence[Sequence[int]] | None = checked_field(optional(CROP), None)
    stride: int | Sequence[int] = checked_field(STRIDE, (1, 1, 1))
    channel: int | None = checked_field(optional(INDEX), None)
    time: int | None = checked_field(optional(INDEX), None)
    level: int | None = checked_field(optional(INDEX), None)
    nan: float | str | None = checked_field(optional(NAN), None)

    def __post_init__(self) -> None:
        validate_fields(self)

    @property
    def is_all(self) -> bool:
        """Whether no sample is left out."""
        return self.crop is None and self.stride == (1, 1, 1)

    def slices(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """Slices along x, y and z of an array of `shape`; RaymarchError for a crop that it does not hold."""
        crop = tuple((0, n) for n in shape) if self.crop is None else self.crop
        if any(stop > n for (_, stop), n in zip(crop, shape, strict=True)):
            raise RaymarchError(f"crop {crop} ends beyond the shape {tuple(shape)}; choose a part of it")
        steps: Any = self.stride
        found = tuple(slice(a, b, step) for (a, b), step in zip(crop, steps, strict=True))
        if min(len(range(*one.indices(n))) for one, n in zip(found, shape, strict=True)) < 2:
            raise RaymarchError(f"stride {steps} leaves fewer than 2 samples an axis of {tuple(shape)}; lower it")
        return found

    def shape(self, shape: Sequence[int]) -> tuple[int, int, int]:
        """Count of samples (x, y, z) that are kept of an array of `shape`."""
        x, y, z = (len(range(*one.indices(n))) for one, n in zip(self.slices(shape), shape, strict=True))
        return x, y, z

    def index_from_part(self, shape: Sequence[int]) -> np.ndarray:
        """Affine (4, 4) that takes indices of what is kept to those of the array."""
        affine, slices = np.eye(4), self.slices(shape)
        for axis, one in enumerate(slices):
            affine[axis, axis], affine[axis, 3] = one.step, one.start
        return affine


EVERYTHING = Selection()

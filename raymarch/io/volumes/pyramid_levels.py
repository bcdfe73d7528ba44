"""Levels of an image pyramid: means over cubes of eight samples."""

from __future__ import annotations

import numpy as np


def halved(values: np.ndarray) -> np.ndarray:
    """Array of half as many samples an axis, means of eight; an odd last one is left out, whole numbers are rounded.

    Example:
        >>> halved(np.arange(8).reshape(2, 2, 2)).tolist()
        [[[4]]]
    """
    even = values[tuple(slice(n // 2 * 2) for n in values.shape)]
    x, y, z = (n // 2 for n in even.shape)
    mean = even.reshape(x, 2, y, 2, z, 2).mean((1, 3, 5), dtype=np.float64)
    if values.dtype.kind not in "iu":
        return mean.astype(values.dtype)
    ends = np.iinfo(values.dtype)
    whole, top = np.rint(mean), float(ends.max)
    with np.errstate(invalid="ignore"):  # the largest of 64 bits is no double: those that round to it are put back
        return np.where(whole >= top, ends.max, whole.astype(values.dtype)).astype(values.dtype)

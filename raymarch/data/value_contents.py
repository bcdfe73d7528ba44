"""Values of a scalar volume at a glance: range, mean, histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.data.scalar_volume import ScalarVolume

BINS = 16


@dataclass(frozen=True, eq=False)
class ValueContents:
    """Values at a glance.

    Attributes:
        low, high, mean: of the values, slope and intercept applied.
        edges: of the histogram's bins, one more than bins.
        counts: values of each bin.
    """

    low: float
    high: float
    mean: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


def contents_of(volume: ScalarVolume) -> ValueContents:
    """Range, mean and histogram of a scalar volume, in bins of one width.

    Example:
        >>> contents_of(ScalarVolume(np.arange(32).reshape(2, 4, 4))).counts
        (2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)
    """
    low, high = volume.range
    stored = (float(volume.values.min()), float(volume.values.max()))
    counts, edges = np.histogram(volume.values, BINS, stored if stored[0] < stored[1] else None)
    edges = volume.slope * edges + volume.intercept
    if volume.slope < 0:
        counts, edges = counts[::-1], edges[::-1]
    mean = volume.slope * float(volume.values.mean(dtype=np.float64)) + volume.intercept
    return ValueContents(low, high, mean, tuple(edges.tolist()), tuple(counts.tolist()))

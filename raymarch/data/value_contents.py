"""Values of a scalar volume at a glance: range, mean, histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.volumes.scalar_volume import ScalarVolume

BINS = 16
FINEST = 1e-5  # range of values, as a part of them, under which a table of 64 knots is finer than single precision
LEAST = 1e-290  # range that bins share: below it their number over it is infinite, and processors take it for 0
EXACT = 2**53  # whole numbers beyond it are not all doubles


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
    stored, plain = volume.values, (volume.slope, volume.intercept) == (1.0, 0.0)
    counts, edges = histogram_of(stored, BINS, float(stored.min()), float(stored.max()))
    edges = volume.slope * edges + volume.intercept
    if volume.slope < 0:
        counts, edges = counts[::-1], edges[::-1]
    mean = volume.slope * mean_of(stored) + volume.intercept
    if plain and stored.dtype.kind in "iu" and max(abs(low), abs(high)) > EXACT:
        low, high = int(stored.min()), int(stored.max())
    return ValueContents(low, high, mean, tuple(edges.tolist()), tuple(counts.tolist()))


def mean_of(stored: np.ndarray) -> float:
    """Mean of values of any type in double precision, within their ends.

    Example:
        >>> mean_of(np.full((4, 4), 65504, np.float16))
        65504.0
    """
    least, most = float(stored.min()), float(stored.max())
    return float(min(max(stored.mean(dtype=np.float64), least), most))


def bin_range(low: float, high: float, bins: int) -> tuple[float, float]:
    """Ends of bins for values from `low` to `high`: these, or ends about them that are far enough apart for so many
    bins in double precision, where all values are alike or nearly so.

    Example:
        >>> bin_range(0.0, 8.0, 4), bin_range(3.0, 3.0, 4)
        ((0.0, 8.0), (2.5, 3.5))
        >>> bin_range(1e17, 1e17, 4)
        (9.999999999999987e+16, 1.0000000000000013e+17)
    """
    least = max(2 * bins * float(np.spacing(max(abs(low), abs(high)))), LEAST)
    if high > low and high - low >= least:
        return low, high
    middle, half = low + (high - low) / 2, least
    if low == high:
        half = max(half, 0.5 if low == 0 or abs(low) >= 1 else abs(low) / 2)
    return middle - half, middle + half


def above(low: float) -> float:
    """Upper end of a window of values that are all alike: 1 over them, or what a table tells apart.

    Example:
        >>> above(3.0), above(1e17) > 1e17
        (4.0, True)
    """
    return low + max(1.0, 2 * FINEST * abs(low))


def apart(low: float, high: float) -> tuple[float, float]:
    """Range whose ends differ, of values that may be one: as `above` says.

    Example:
        >>> apart(0.0, 2.0), apart(3.0, 3.0), apart(1e17, 1e17)[1] > 1e17
        ((0.0, 2.0), (3.0, 4.0), True)
    """
    return low, high if high > low else above(low)


def histogram_of(values: np.ndarray, bins: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Counts and edges of a histogram between two values, or as `bin_range` widens them; in double precision.

    In the type that values are stored as, differences overflow and edges fall on one another.

    Example:
        >>> counts, edges = histogram_of(np.array([-65504, 0, 65504], np.float16), 2, -65504.0, 65504.0)
        >>> counts.tolist(), edges.tolist()
        ([1, 2], [-65504.0, 0.0, 65504.0])
    """
    ends = bin_range(low, high, bins)
    edges = np.linspace(*ends, bins + 1)
    counts: Any = np.zeros(bins, np.int64)
    for slab in values if values.ndim > 1 else [values]:  # a part at a time: doubles may take eight times the memory
        counts += np.histogram(np.asarray(slab, np.float64), bins, ends)[0]
    return counts, edges

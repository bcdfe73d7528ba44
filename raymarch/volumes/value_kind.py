"""Values of a scalar volume: their histogram at a glance, and the kind that it tells.

A kind says what is ground, what is signal, and between which values a default table goes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import Volume

MAX_VALUES = 1 << 20  # values that are looked at
MIDDLE_SIDE = 48  # samples along each edge of the block in the middle that tells how values change from one to the next
MIN_SPIKE_FRACTION = 0.01  # share of one value at the lower end that makes it padding, or a ground cut at zero
MIN_FILL_FRACTION = 1e-4  # share from which one value far from all others is a mark for "no value"
HISTOGRAM_BINS = 512
# Otsu's share of the variance between two classes: 0.64 of one Gaussian, 0.75 of a level spread
MIN_PEAK_SEPARATION = 0.72
MIN_CLEAR_SEPARATION = 0.8  # above it the classes above the padding are told apart on their own
THRESHOLD_DEVIATIONS = 4.0  # deviations of the ground above its mean at which a threshold parts it from all else
DIM_DEVIATIONS = 6.0  # deviations of the ground above its middle at which sparse signal begins
SIGNAL_DEVIATIONS = 5.0  # deviations from the ground at which a value is signal
MIN_SIGNAL_FRACTION = 2e-5  # least share of signal, ten times that of Gaussian noise at so many deviations
MAX_SPARSE_FRACTION = 0.03  # share of signal under which it is drawn as what shines: fluorescence, maps of density
MAX_LABELS = 64
AIR_HU, BODY_HU = (-1100.0, -900.0), (-200.0, 300.0)
CUT_HU = -300.0  # between lung and body
BONE_HU = 250.0
SOFT_WINDOW = (-160.0, 240.0)  # of soft tissue, level 40 and width 400
MIN_BONE_FRACTION = 0.01  # of the body, from which a CT is one of bones
COARSE_BINS = 16
# range of values, as a part of them, under which a table of 64 knots is finer than single precision
MIN_RELATIVE_RANGE = 1e-5
MIN_BIN_RANGE = 1e-290  # range that bins share: below it their number over it is infinite, and processors take it for 0
MAX_EXACT_WHOLE = 2**53  # whole numbers beyond it are not all doubles
KIND_WORDS = {
    "ct": "a CT in Hounsfield units",
    "soft ct": "a CT in Hounsfield units without bones",
    "object": "a bright object on a darker ground",
    "sparse": "sparse bright signal",
    "dark": "a dark object on a bright ground",
    "signed": "values on both sides of zero",
    "labels": "labels",
    "level": "noise without a ground that stands out",
    "constant": "one value",
}


@dataclass(frozen=True)
class ValueKind:
    """Kind of values.

    Attributes:
        name: "ct", "soft ct" without bones, "object", "sparse", "dark", "signed", "labels", "level" or
            "constant".
        low: value at which what is seen begins; in "dark" at which it ends.
        high: value at which it is brightest; in "dark" at which it is most opaque.
        ground, top: values that a window of grey goes from and to.
        labels: values (label,) of labels that are seen; of no others.
        iso: value of a surface around what is seen; None where there is none.
    """

    name: str
    low: float
    high: float
    ground: float
    top: float
    iso: float | None = None
    labels: tuple[float, ...] = ()


def kind_of(volume: Volume, unit: str = "") -> ValueKind:
    """Kind of a volume's values, its numbers to three figures; `unit` is what its file says, such as "HU".

    Padding and marks for "no value" are left out of the histogram, so that they move nothing.

    Example:
        >>> x = np.linspace(-1, 1, 16)
        >>> ball = x[:, None, None] ** 2 + x[:, None] ** 2 + x**2 < 0.5
        >>> kind_of(Volume(np.where(ball, 900.0, 20.0), np.zeros((16, 16, 16, 3)), np.eye(4))).name
        'object'
    """
    return _round_kind(_kind_of(volume, unit))


def lattice_indices(volume: Volume) -> tuple[np.ndarray, ...]:
    """Indices along each axis of every so many samples, the last included."""
    stride = math.ceil((math.prod(volume.shape) / MAX_VALUES) ** (1 / 3))
    return tuple(np.unique([*range(0, n, min(stride, max(n // 16, 1))), n - 1]) for n in volume.shape)


def values_at(volume: Volume, axes: tuple[np.ndarray, ...]) -> np.ndarray:
    """Values on a lattice of samples, in double precision."""
    values: np.ndarray = volume.activation.sigma(volume.at(np.ix_(*axes))[0])
    return values.astype(np.float64)


def _kind_of(volume: Volume, unit: str) -> ValueKind:
    lattice = values_at(volume, lattice_indices(volume))
    values = lattice.ravel()
    least, most = float(values.min()), float(values.max())
    if bin_range(least, most, HISTOGRAM_BINS) != (least, most):  # alike, or too near for a histogram to part them
        low, high = (0.0 - upper_end(-most), most) if most != 0 else (0.0, 1.0)
        return ValueKind("constant", low, high, low, high)
    kept = _drop_fill(values)
    if kept.min() == kept.max():
        kept = values
    if (found := _hounsfield(kept, unit)) is not None:
        return found
    block = values_at(volume, tuple(_middle(n) for n in volume.shape))
    if (found := _labels(kept, block)) is not None:
        return found
    if (found := _signed(kept, block)) is not None:
        return found
    return _object_kind(kept, lattice, values)


def _round_kind(kind: ValueKind) -> ValueKind:
    """A kind whose numbers people type: each to a hundredth of the span, or a thousandth."""
    span = abs(kind.high - kind.low)
    if kind.name in ("constant", "labels") or span < 1e-30:
        return kind
    digits = 2 - math.floor(math.log10(span))

    def short(value: float) -> float:
        return round(value, digits) + 0.0  # no -0

    iso = None if kind.iso is None else short(kind.iso)
    ends = short(kind.ground), short(kind.top)
    ends = ends if ends[0] < ends[1] else (kind.ground, kind.top)
    return replace(kind, low=short(kind.low), high=short(kind.high), ground=ends[0], top=ends[1], iso=iso)


def _middle(count: int) -> np.ndarray:
    first = max((count - MIDDLE_SIDE) // 2, 0)
    return np.arange(first, min(first + MIDDLE_SIDE, count))


def _drop_fill(values: np.ndarray) -> np.ndarray:
    """Values without marks for "no value": one number at either end, with a gap to all others."""
    for sign, most_share, gap in ((1.0, 0.98, 0.5), (-1.0, 0.02, 1e3)):  # what is high is an object, unless far off
        ordered = sign * values
        end = ordered.min()
        rest = ordered[ordered > end]
        if not rest.size or not MIN_FILL_FRACTION <= 1 - rest.size / values.size <= most_share:
            continue
        nearest, most = np.quantile(rest, [0.0, 0.999])
        if nearest - end > gap * max(most - nearest, 1e-12 * abs(end)) and np.unique(rest).size > 2:
            values = sign * rest
    return values


def _hounsfield(values: np.ndarray, unit: str) -> ValueKind | None:
    """CT in Hounsfield units, as its unit says, or its air near -1000 and a body near water."""
    body = float(np.mean(values > CUT_HU))
    said = unit.strip().upper() in ("HU", "[HU]", "HOUNSFIELD", "HOUNSFIELD UNITS")
    if not said:
        inside = values[values > AIR_HU[0]]
        if values.min() > AIR_HU[1] or values.min() < -40000 or inside.size < 0.1 * values.size:
            return None
        air = np.mean((inside >= AIR_HU[0]) & (inside <= AIR_HU[1]))
        tissue = np.mean((inside >= BODY_HU[0]) & (inside <= BODY_HU[1]))
        if air < 0.05 or tissue < 0.03 or np.quantile(inside, 0.999) > 8000:
            return None
    if body < 1e-3:  # air and lung alone, or no CT whatever the unit says
        return None
    least, most = (float(x) for x in np.quantile(values, [0.01, 0.998]))
    ground, top = max(SOFT_WINDOW[0], least), min(SOFT_WINDOW[1], most)
    ground, top = (ground, top) if ground < top else SOFT_WINDOW
    if np.mean(values > BONE_HU) > MIN_BONE_FRACTION * body:
        return ValueKind("ct", CUT_HU, 1200.0, ground, top, BONE_HU)
    return ValueKind("soft ct", CUT_HU, 400.0, ground, top, CUT_HU if values.min() < CUT_HU else None)


def _labels(values: np.ndarray, block: np.ndarray) -> ValueKind | None:
    """Whole numbers, few of them, each over a region of its own."""
    some = np.unique(values)
    if not 3 <= some.size <= MAX_LABELS or (some != np.round(some)).any() or abs(some).max() > 2**24:
        return None
    if some.size < 8 and some[-1] - some[0] > 8 * some.size:  # grey values of a phantom
        return None
    alike = [np.mean(np.diff(block, axis=axis) == 0) for axis in range(3)]
    if min(alike) < 0.8:
        return None
    clear = 0.0 if 0.0 in some else some[0]
    seen = tuple(float(x) for x in some if x != clear)
    low, high = float(some[0]), float(some[-1])
    return ValueKind("labels", low, high, low, high, clear + 0.5 if clear < seen[0] else None, seen)


def _signed(values: np.ndarray, block: np.ndarray) -> ValueKind | None:
    """Values on both sides of zero, alike in size, that change gently from sample to sample; not noise."""
    below, above = np.quantile(values, [0.002, 0.998])
    if not below < 0 < above or not 0.35 < -below / above < 1 / 0.35:
        return None
    spread = float(block.std())
    rough = min(float(np.diff(block, axis=axis).std()) for axis in range(3))
    if spread == 0 or rough > 0.7 * spread:
        return None
    most = float(max(-below, above))
    if np.mean(np.abs(values) < 0.2 * most) < 0.05:  # two classes, on either side of zero by chance
        return None
    return ValueKind("signed", 0.2 * most, most, -most, most, 0.3 * most)


def _object_kind(values: np.ndarray, lattice: np.ndarray, every: np.ndarray) -> ValueKind:
    """Ground and signal, by Otsu's threshold, or by the ground's deviation where one peak is all there is.

    One peak over much padding, of `every` value, is an object cut out of its ground, as a brain without its skull.
    """
    ground = values.min()
    rest = values[values > ground]
    spike = rest.size < (1 - MIN_SPIKE_FRACTION) * values.size
    at, parted = _otsu(values)
    if spike and np.unique(rest[: 1 << 16]).size > 2:
        second, apart = _otsu(rest)
        if apart > MIN_CLEAR_SEPARATION and 0.05 < np.mean(rest < second) < 0.99:
            at, parted = second, apart
    below, above = values[values <= at], values[values > at]
    one_peak = parted < MIN_PEAK_SEPARATION and at - below.mean() < THRESHOLD_DEVIATIONS * below.std()
    if one_peak and (out := every[every < ground]).size > MIN_SPIKE_FRACTION * every.size:
        least = float(out.max())
        at, top = (least + float(ground)) / 2, float(np.quantile(values, 0.99))
        return ValueKind("object", at, top, float(ground), top, at)
    if one_peak:
        return _one_peak_kind(rest if spike and rest.size > 0.05 * values.size else values)
    faces = np.concatenate([np.take(lattice, i, axis).ravel() for axis in range(3) for i in (0, -1)])
    if np.mean(faces > at) > 0.97 and 0.0005 < below.size / values.size < 0.6 and not spike:
        dark = float(np.quantile(below, 0.01))
        middle = float(np.median(above))
        start = at + 0.25 * (middle - at)
        return ValueKind("dark", start, dark, dark, middle, at)
    top = float(np.quantile(above, 0.98 if above.size < 0.05 * values.size else 0.99))
    floor = float(np.median(below))
    top = top if top > at else float(above.max())
    sparse = above.size < MAX_SPARSE_FRACTION * values.size
    if sparse:  # Otsu's threshold is far up where few values shine: dim ones are signal too
        spread = 1.4826 * float(np.median(np.abs(below - floor))) or float(below.std())
        at = min(at, max(floor + DIM_DEVIATIONS * spread, floor + 0.05 * (top - floor)))
    return ValueKind("sparse" if sparse else "object", at, top, floor, top, at + 0.1 * (top - at))


def _one_peak_kind(values: np.ndarray) -> ValueKind:
    """Values of one peak: what lies far above it, or far under it, is the signal; or there is none."""
    middle = float(np.median(values))
    off = values[values != middle] if np.mean(values == middle) > 0.3 else values
    spread = 1.4826 * float(np.median(np.abs(off - middle)))
    low, high = (float(x) for x in np.quantile(values, [0.01, 0.99]))
    above, below = (
        values[values > middle + SIGNAL_DEVIATIONS * spread],
        values[values < middle - SIGNAL_DEVIATIONS * spread],
    )
    if spread > 0 and above.size >= max(MIN_SIGNAL_FRACTION * values.size, 8) and above.size >= below.size:
        start, top = middle + SIGNAL_DEVIATIONS * spread, float(np.quantile(above, 0.95))
        top = top if top > start else float(above.max())
        return ValueKind("sparse", start, top, middle, top, start + 0.1 * (top - start))
    if spread > 0 and below.size >= max(MIN_SIGNAL_FRACTION * values.size, 8):
        start, least = middle - SIGNAL_DEVIATIONS * spread, float(np.quantile(below, 0.05))
        least = least if least < start else float(below.min())
        return ValueKind("dark", start, least, least, middle, start)
    if not low < high:
        low, high = float(values.min()), float(values.max())
    return ValueKind("level", low + 0.2 * (high - low), high, low, high, (low + high) / 2)


def _otsu(values: np.ndarray) -> tuple[float, float]:
    """Threshold between two classes (Otsu 1979), and the share of the variance that lies between them."""
    low, high = np.quantile(values, [0.0005, 0.9995])
    if low == high:
        low, high = float(values.min()), float(values.max())
    counts, edges = histogram_of(values.clip(low, high), HISTOGRAM_BINS, float(low), float(high))
    share, middle = counts / counts.sum(), (edges[:-1] + edges[1:]) / 2
    weight, sums = np.cumsum(share), np.cumsum(share * middle)
    mean = sums[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.nan_to_num((mean * weight - sums) ** 2 / (weight * (1 - weight)), posinf=0.0)
    best = np.flatnonzero(between >= between[:-1].max() * (1 - 1e-9))  # a gap has many, all of them as good
    variance = float((share * (middle - mean) ** 2).sum())
    at = float((edges[best[0] + 1] + edges[best[-1] + 1]) / 2)
    return at, float(between[:-1].max()) / variance if variance > 0 else 0.0


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
    counts, edges = histogram_of(stored, COARSE_BINS, float(stored.min()), float(stored.max()))
    edges = volume.slope * edges + volume.intercept
    if volume.slope < 0:
        counts, edges = counts[::-1], edges[::-1]
    mean = volume.slope * mean_of(stored) + volume.intercept
    if plain and stored.dtype.kind in "iu" and max(abs(low), abs(high)) > MAX_EXACT_WHOLE:
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


def bin_range(low: float, high: float, bins: int) -> tuple[float, float]:
    """Ends of bins for values from `low` to `high`: these, or ends about them that are far enough apart for so many
    bins in double precision, where all values are alike or nearly so.

    Example:
        >>> bin_range(0.0, 8.0, 4), bin_range(3.0, 3.0, 4)
        ((0.0, 8.0), (2.5, 3.5))
        >>> bin_range(1e17, 1e17, 4)
        (9.999999999999987e+16, 1.0000000000000013e+17)
    """
    least = max(2 * bins * float(np.spacing(max(abs(low), abs(high)))), MIN_BIN_RANGE)
    if high > low and high - low >= least:
        return low, high
    middle, half = low + (high - low) / 2, least
    if low == high:
        half = max(half, 0.5 if low == 0 or abs(low) >= 1 else abs(low) / 2)
    return middle - half, middle + half


def upper_end(low: float) -> float:
    """Upper end of a window of values that are all alike: 1 over them, or what a table tells apart.

    Example:
        >>> upper_end(3.0), upper_end(1e17) > 1e17
        (4.0, True)
    """
    return low + max(1.0, 2 * MIN_RELATIVE_RANGE * abs(low))


def distinct_range(low: float, high: float) -> tuple[float, float]:
    """Range whose ends differ, of values that may be one: as `upper_end` says.

    Example:
        >>> distinct_range(0.0, 2.0), distinct_range(3.0, 3.0), distinct_range(1e17, 1e17)[1] > 1e17
        ((0.0, 2.0), (3.0, 4.0), True)
    """
    return low, high if high > low else upper_end(low)

"""Transfer functions by name, and that of a volume for which none is asked, by the kind of its values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.errors import RaymarchError, distinct_figures
from raymarch.volumes.transfer_function import MAX_KNOTS, TransferFunction
from raymarch.volumes.value_kind import MIN_RELATIVE_RANGE, ValueKind, kind_of, lattice_indices, upper_end, values_at
from raymarch.volumes.volume import Volume

RANGE_PERCENTILES = (1.0, 99.9)  # percentiles that count as the range
CLEAR_FRACTION = 0.2  # of the range, from its lower end, is seen through
MAP_LENGTHS = 50  # unit lengths of a colour map along the longest side
# unit lengths of a named table along the longest side, at most and at least
MAX_TABLE_LENGTHS, MIN_TABLE_LENGTHS = 200, 25
MIN_RANGE = 1e-30  # range of values, under which a table's knots are not told apart
TOP_OPACITY = 0.5  # opacity of a colour map at the upper end over one of them
HALF_LABEL_WIDTH = 0.25  # half of the width in which a label is seen

# Value, or share of the way from LOW to HIGH; red, green, blue; opacity over a unit length.
Knots = Sequence[tuple[float, tuple[float, float, float], float]]
HOUNSFIELD_TABLES: dict[str, Knots] = {
    "ct": (
        (-300, (0.62, 0.34, 0.26), 0.0), (-120, (0.80, 0.52, 0.40), 0.06), (0, (0.75, 0.36, 0.28), 0.08),
        (120, (0.80, 0.34, 0.25), 0.13), (220, (0.90, 0.66, 0.48), 0.35), (400, (0.95, 0.86, 0.72), 0.75),
        (1200, (1.0, 0.99, 0.95), 0.95),
    ),
    "ct-skin": (
        (-400, (0.60, 0.38, 0.30), 0.0), (-200, (0.83, 0.58, 0.46), 0.6), (50, (0.88, 0.64, 0.52), 0.8),
        (400, (0.96, 0.90, 0.82), 0.95),
    ),
    "ct-bone": (
        (150, (0.70, 0.45, 0.32), 0.0), (300, (0.90, 0.78, 0.62), 0.6), (700, (0.97, 0.93, 0.84), 0.9),
        (1500, (1.0, 1.0, 1.0), 0.97),
    ),
    "ct-lung": (
        (-950, (0.25, 0.35, 0.55), 0.0), (-850, (0.35, 0.50, 0.75), 0.01), (-650, (0.75, 0.55, 0.60), 0.08),
        (-450, (0.90, 0.60, 0.55), 0.2), (-300, (0.85, 0.45, 0.40), 0.03), (-100, (0.80, 0.40, 0.35), 0.0),
        (250, (0.95, 0.90, 0.80), 0.0), (600, (1.0, 0.98, 0.94), 0.5),
    ),
}  # fmt: skip
FRACTION_TABLES: dict[str, Knots] = {
    "solid": (
        (0.0, (0.42, 0.27, 0.21), 0.0), (0.12, (0.66, 0.47, 0.37), 0.45), (0.35, (0.85, 0.68, 0.53), 0.75),
        (0.65, (0.95, 0.86, 0.72), 0.9), (1.0, (1.0, 0.98, 0.93), 0.97),
    ),
    "glow": (
        (0.0, (0.25, 0.05, 0.40), 0.0), (0.2, (0.55, 0.12, 0.45), 0.12), (0.45, (0.90, 0.35, 0.25), 0.4),
        (0.75, (0.99, 0.70, 0.20), 0.7), (1.0, (1.0, 0.98, 0.75), 0.9),
    ),
    "signed": (
        (-1.0, (0.55, 0.75, 1.0), 0.9), (-0.5, (0.20, 0.42, 0.95), 0.6), (0.0, (0.12, 0.20, 0.60), 0.0),
        (0.0, (0.60, 0.12, 0.12), 0.0), (0.5, (0.95, 0.32, 0.22), 0.6), (1.0, (1.0, 0.78, 0.55), 0.9),
    ),
}  # fmt: skip
TABLE_NAMES = (*HOUNSFIELD_TABLES, *FRACTION_TABLES, "labels")
TABLE_OF_KIND = {
    "ct": "ct", "soft ct": "ct-skin", "object": "solid", "sparse": "glow", "dark": "solid", "signed": "signed",
    "labels": "labels", "level": "glow", "constant": "solid",
}  # fmt: skip


def named_table(volume: Volume, name: str, low: float, high: float, labels: Sequence[float] = ()) -> TransferFunction:
    """Table of one of `TABLE_NAMES`, solid enough that its surface hides what is behind it, over a length of some
    voxels.

    In Hounsfield units "ct", "ct-skin", "ct-bone" and "ct-lung" are fixed; "solid" and "glow" go from `low`, which is
    clear, to `high`, which may be less; "signed" is clear between -`low` and `low`; "labels" has a colour a label.

    Raises RaymarchError for ends that single precision does not tell apart.
    """
    side = float(np.ptp(volume.corners, axis=0).max())
    knots: list[tuple[float, tuple[float, float, float], float]]
    length = float(np.clip(2 * volume.voxel, side / MAX_TABLE_LENGTHS, side / MIN_TABLE_LENGTHS))
    if name in HOUNSFIELD_TABLES:
        knots = list(HOUNSFIELD_TABLES[name])
    elif name == "labels":
        knots = _label_knots(labels)
    else:
        if abs(high - low) < MIN_RELATIVE_RANGE * max(abs(low), abs(high)) or low == high:
            raise RaymarchError(_too_fine(*sorted((low, high))))
        span, knots = high - low, []
        for i, (share, colour, opacity) in enumerate(FRACTION_TABLES[name]):
            begin = -low if name == "signed" and i < 3 else low
            knots.append((begin + share * span, colour, opacity))
    knots.sort(key=lambda knot: knot[0])
    values, colours, opacities = (np.array(column) for column in zip(*knots, strict=True))
    return TransferFunction(values, colours, opacities, length)


def _too_fine(low: float, high: float) -> str:
    """Message about values that single precision hardly tells apart."""
    least, most = distinct_figures(low, high, least=9)
    return f"values are from {least} to {most}, which single precision hardly tells apart; subtract the least"


def _check_fine(low: float, high: float, volume: Volume) -> None:
    """Raises RaymarchError for ends of a table of a volume's values that single precision does not tell apart."""
    if abs(high - low) < MIN_RELATIVE_RANGE * max(abs(low), abs(high)):
        raise RaymarchError(_too_fine(*range_of(volume)))
    if abs(high - low) < MIN_RANGE:
        least, most = distinct_figures(*range_of(volume), least=4)
        raise RaymarchError(
            f"values are from {least} to {most}, less than single precision holds; multiply them, so that they are"
            f" apart by {MIN_RANGE:g} or more"
        )


def _label_knots(labels: Sequence[float]) -> list[tuple[float, tuple[float, float, float], float]]:
    """Knots of labels, whole numbers: each is seen in a band about it, so that one is not seen on the way to others."""
    knots: list[tuple[float, tuple[float, float, float], float]] = []
    for i, label in enumerate(sorted(labels)[: MAX_KNOTS // 4]):
        colour = _colour(i)
        for off, opacity in (
            (-2 * HALF_LABEL_WIDTH + 0.01, 0.0),
            (-HALF_LABEL_WIDTH, 0.7),
            (HALF_LABEL_WIDTH, 0.7),
            (2 * HALF_LABEL_WIDTH - 0.01, 0.0),
        ):
            knots.append((label + off, colour, opacity))
    return knots


def _colour(i: int) -> tuple[float, float, float]:
    """Colour of the i-th label: hues by the golden angle, so that neighbours differ."""
    import colorsys

    red, green, blue = colorsys.hsv_to_rgb((0.09 + i * 0.381966) % 1, (0.35, 0.75, 0.6)[i % 3], (0.95, 0.9, 1.0)[i % 3])
    return round(red, 3), round(green, 3), round(blue, 3)


def table_of_kind(volume: Volume, kind: ValueKind) -> tuple[TransferFunction, str]:
    """Table of a kind of values, and what it is called: NAME, or NAME,LOW,HIGH.

    Raises RaymarchError for values that single precision hardly tells apart.
    """
    name = TABLE_OF_KIND[kind.name]
    low, high = kind.low, kind.high
    _check_fine(low, high, volume)
    made = named_table(volume, name, low, high, kind.labels)
    return made, name if name in HOUNSFIELD_TABLES or name == "labels" else f"{name},{low:.12g},{high:.12g}"


def default_table(
    volume: Volume,
    name: str | None = None,
    low: float | None = None,
    high: float | None = None,
    opacity: float = TOP_OPACITY,
) -> TransferFunction:
    """Table of a matplotlib colour map over a volume's values; without a name that of the kind of its values.

    Of a colour map opacity rises from 0 at `low` to `opacity` at `high`, over a fiftieth of the longest side; from a
    fifth of the range up to its 99.9th percentile where they are not given.

    Raises RaymarchError as `TransferFunction.of_colormap` does, and for values whose range is a small part of them.

    Example:
        >>> ramp = Volume(np.arange(64.0).reshape(4, 4, 4), np.zeros((4, 4, 4, 3)), np.eye(4))
        >>> len(default_table(ramp, "bone", 0, 60).values)
        64
    """
    if name is None:
        return table_of_kind(volume, kind_of(volume))[0]
    values = values_at(volume, lattice_indices(volume))
    least, most = np.percentile(values, RANGE_PERCENTILES)
    if most <= least:
        least, most = float(values.min()), float(values.max())
    if most <= least:  # one value everywhere, which is seen unless it is nothing
        least, most = (-upper_end(-most), most) if most != 0 else (0.0, 1.0)
    if low is None and high is None:
        _check_fine(float(least), float(most), volume)
    low = float(least + CLEAR_FRACTION * (most - least)) if low is None else low
    high = float(most) if high is None else high
    length = float(np.ptp(volume.corners, axis=0).max()) / MAP_LENGTHS
    return TransferFunction.of_colormap(name, low, high, (0.0, opacity), unit_length=length)


def has_values_alone(volume: Volume) -> bool:
    """Whether a volume is one of values, not of extinction and colour: read as they are, and without any colour."""
    return volume.activation.density_rule.signed and not volume.samples.coloured()


def range_of(volume: Volume) -> tuple[float, float]:
    """Least and greatest value of a volume's samples, those included where no brick is.

    Example:
        >>> range_of(ScalarVolume(np.arange(64).reshape(4, 4, 4)).as_volume())
        (0.0, 63.0)
    """
    ends = [end for end, _ in volume.samples.ends(volume.activation.empty)]
    low, high = volume.activation.sigma(np.array(ends)).tolist()
    return low, high

"""Default transfer function of a volume, by the range of its values and its size."""

from __future__ import annotations

import numpy as np

from raymarch.data.transfer_function import TransferFunction
from raymarch.data.volume import Volume
from raymarch.errors import RaymarchError, figures

FEW = 1 << 20  # values that are looked at
RANGE = (1.0, 99.9)  # percentiles that count as the range
CLEAR = 0.2  # of the range, from its lower end, is seen through
LENGTHS = 50  # unit lengths along the longest side
FINEST = 1e-5  # range of values, as a part of them, under which a table of 64 knots is finer than single precision
SMALLEST = 1e-30  # range of values, under which a table's knots are not told apart
MOST = 0.5  # opacity at the upper end over one of them


def default_table(
    volume: Volume, name: str = "viridis", low: float | None = None, high: float | None = None, opacity: float = MOST
) -> TransferFunction:
    """Table of a matplotlib colour map over the range of a volume's values, of a fiftieth of its longest side.

    Opacity rises from 0 at `low` to `opacity` at `high`; from a fifth of the range up to its 99.9th percentile where
    they are not given. What is below is air, or noise, in most scans.

    Raises RaymarchError as `TransferFunction.of_colormap` does, and for values whose range is a small part of them.

    Example:
        >>> ramp = Volume(np.arange(64.0).reshape(4, 4, 4), np.zeros((4, 4, 4, 3)), np.eye(4))
        >>> len(default_table(ramp, "bone", 0, 60).values)
        64
    """
    stride = max(int((np.prod(volume.shape) / FEW) ** (1 / 3)), 1)
    raw = volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0]
    values = volume.activation.sigma(raw)
    least, most = np.percentile(values, RANGE).tolist()
    if most <= least:
        least, most = float(values.min()), float(values.max())
    if most <= least:  # one value everywhere, which is seen unless it is nothing
        least, most = (most - max(1.0, 2 * FINEST * abs(most)), most) if most != 0 else (0.0, 1.0)
    if low is None and high is None and most - least < FINEST * max(abs(least), abs(most)):
        low_text, high_text = figures(least, most, least=9)
        raise RaymarchError(
            f"values are from {low_text} to {high_text}, which single precision hardly tells apart; subtract the least"
        )
    if low is None and high is None and most - least < SMALLEST:
        raise RaymarchError(
            f"values are from {least:.4g} to {most:.4g}, less than single precision holds; multiply them, so that they"
            f" are apart by {SMALLEST:g} or more"
        )
    low = float(least + CLEAR * (most - least)) if low is None else low
    high = float(most) if high is None else high
    length = float(np.ptp(volume.corners, axis=0).max()) / LENGTHS
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

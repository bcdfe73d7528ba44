"""Level of an isosurface: the value asked for or a good one, and the raw density where the volume takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.data.value_contents import histogram_of
from raymarch.errors import RaymarchError, figures
from raymarch.volumes.volume import Volume

VOXELS = 2  # in which a surface shall take half of the light
BINS = 256  # of the histogram


@dataclass(frozen=True)
class Level:
    """Level of an isosurface.

    Attributes:
        value: in the volume's own terms: sigma [1/world unit], or the number itself where the activation is "identity".
        raw: the raw density there; the trilinear field of raw densities has the surface where the march has it.
        words: how the value was chosen.
    """

    value: float
    raw: float
    words: str


def is_scalar(volume: Volume) -> bool:
    """Whether values are numbers as they are, and no extinction that was fitted."""
    return volume.activation.density_rule.signed


def level_of(volume: Volume, iso: float | None, values: tuple[float, float]) -> Level:
    """Level of a value, or of `default_level`; RaymarchError where no sample is on one of its sides.

    `values` are the least and greatest value there are.
    """
    found = default_level(volume, values) if iso is None else (float(iso), "asked for")
    value, words = found
    unit = "" if is_scalar(volume) else " [1/world unit]"
    low, high = values
    if low == high:
        raise RaymarchError(f"values are all {low:.6g}{unit}, so there is no surface; check the file")
    shown, least, most = figures(value, low, high)
    if not low < value <= high:
        raise RaymarchError(
            f"iso is {shown}{unit}, where values are from {least} to {most}: the surface is empty; choose one"
            " between them"
        )
    return Level(value, float(volume.activation.raw(value)), words)


def default_level(volume: Volume, values: tuple[float, float]) -> tuple[float, str]:
    """Default value of an isosurface, and how it was chosen.

    Of extinction that at which two voxels take half of the light, which is about where a surface is seen; where all is
    thinner than twice that, and of scalar volumes, the threshold that parts the values best (Otsu 1979).
    """
    if not is_scalar(volume):
        half = float(np.log(2)) / (VOXELS * volume.voxel)
        if values[1] >= 2 * half:
            return half, f"where {VOXELS} voxels take half of the light"
    return otsu(_values(volume), *values), "which parts the values best (Otsu)"


def otsu(values: np.ndarray, low: float, high: float) -> float:
    """Otsu's threshold of values: the one with the most variance between both sides; 1979, "A threshold selection
    method from gray-level histograms".

    Example:
        >>> 1 < otsu(np.repeat([0.0, 1.0, 9.0, 10.0], 50), 0.0, 10.0) < 9
        True
    """
    if high - low <= 4 * BINS * np.spacing(max(abs(low), abs(high))):
        return high  # values that are as good as equal have no bins between them
    count, edges = histogram_of(values, BINS, low, high)
    middle, below = (edges[1:] + edges[:-1]) / 2, np.cumsum(count)
    above, total = below[-1] - below, np.cumsum(count * middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = total / below - (total[-1] - total) / above
        between = np.nan_to_num(below * above * apart**2)
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))  # a plateau where bins are empty: its middle
    return float(edges[1:][best].mean())


def _values(volume: Volume) -> np.ndarray:
    """Values at the samples, at every so many of a large volume; of bricks those that there are."""
    if volume.bricks is not None:
        return volume.activation.sigma(volume.bricks.density)
    stride = max(1, round((np.prod(volume.box_shape) / 2**24) ** (1 / 3)))
    return volume.activation.sigma(volume.density[::stride, ::stride, ::stride])

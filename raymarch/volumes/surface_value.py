"""Value of a volume's surface where none is given: the same for meshes, pictures, pages and the viewer."""

from __future__ import annotations

import numpy as np

from raymarch.volumes.default_table import has_values_alone, range_of
from raymarch.volumes.value_kind import ValueKind, histogram_of, kind_of
from raymarch.volumes.volume import Volume

SURFACE_VOXELS = 2  # in which a surface shall take half of the light
HISTOGRAM_BINS = 256  # of the histogram


def surface_value(volume: Volume, kind: ValueKind | None = None) -> float | None:
    """Value of a surface about what is seen of a volume: of values alone by their kind, else as a mesh of it has it;
    None where no value is between others, and of nested boxes and NDC, which have no surface.

    Example:
        >>> ball = Volume.from_function(lambda p: 90.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(9, 9, 9))
        >>> bool(np.isclose(surface_value(ball), np.log(2) / (SURFACE_VOXELS * ball.voxel)))
        True
    """
    if volume.boxes > 1 or volume.ndc_from_world is not None:
        return None
    low, high = range_of(volume)
    if has_values_alone(volume):
        kind = kind or kind_of(volume)
        value = 0.5 * (kind.low + kind.high) if kind.iso is None else kind.iso
    else:
        value = default_level(volume, (low, high))[0] if low < high else high
    value = float(value) if low < value < high else 0.5 * low + 0.5 * high
    return value if low < value < high else None


def is_scalar(volume: Volume) -> bool:
    """Whether the values are plain numbers, not a fitted extinction."""
    return volume.activation.density_rule.signed


def default_level(volume: Volume, values: tuple[float, float]) -> tuple[float, str]:
    """Default value of an isosurface, and how it was chosen.

    Of extinction that at which two voxels take half of the light, which is about where a surface is seen; where all is
    thinner than twice that, and of scalar volumes, the threshold that parts the values best (Otsu 1979).
    """
    if not is_scalar(volume):
        half = float(np.log(2)) / (SURFACE_VOXELS * volume.voxel)
        if values[1] >= 2 * half:
            return half, f"where {SURFACE_VOXELS} voxels take half of the light"
    return otsu(_values(volume), *values), "which parts the values best (Otsu)"


def otsu(values: np.ndarray, low: float, high: float) -> float:
    """Otsu's threshold of values: the one with the most variance between both sides; 1979, "A threshold selection
    method from gray-level histograms".

    Example:
        >>> 1 < otsu(np.repeat([0.0, 1.0, 9.0, 10.0], 50), 0.0, 10.0) < 9
        True
    """
    if high - low <= 4 * HISTOGRAM_BINS * np.spacing(max(abs(low), abs(high))):
        return high  # values that are as good as equal have no bins between them
    count, edges = histogram_of(values, HISTOGRAM_BINS, low, high)
    middle, below = (edges[1:] + edges[:-1]) / 2, np.cumsum(count)
    above, total = below[-1] - below, np.cumsum(count * middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = total / below - (total[-1] - total) / above
        between = np.nan_to_num(below * above * apart**2)
    best = np.flatnonzero(between >= between.max() * (1 - 1e-9))  # a plateau where bins are empty: its middle
    return float(edges[1:][best].mean())


def _values(volume: Volume) -> np.ndarray:
    """Values at the samples: every so many-th of a large volume, and of bricks only the stored ones."""
    if volume.bricks is not None:
        return volume.activation.sigma(volume.bricks.density)
    stride = max(1, round((np.prod(volume.box_shape) / 2**24) ** (1 / 3)))
    return volume.activation.sigma(volume.density[::stride, ::stride, ::stride])

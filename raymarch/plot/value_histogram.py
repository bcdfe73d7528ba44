"""Histograms of a volume: of its values with a transfer function over it, and of the size of its isosurfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.arguments.arrays import Numbers, vector
from raymarch.arguments.checks import optional, whole
from raymarch.arguments.declared import checked
from raymarch.data.value_contents import bin_range
from raymarch.errors import RaymarchError
from raymarch.plot.panels import panels
from raymarch.plot.values import innermost, length_unit, slabs, some_values, values_label
from raymarch.volumes.scalar_volume import ANY_VOLUME, ScalarVolume
from raymarch.volumes.transfer_function import TRANSFER, TransferFunction
from raymarch.volumes.volume import AnyVolume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = whole(2, 100_000)
WINDOW = optional(vector(2))
FINEST = 1e-12  # of the values: half of an axis
STRIP = 0.075  # of the plot's height, that the colours of a table take


@checked(volume=ANY_VOLUME, transfer=optional(TRANSFER), bins=BINS, window=WINDOW)
def histogram(
    volume: AnyVolume,
    transfer: TransferFunction | None = None,
    ax: Axes | None = None,
    *,
    bins: int = 200,
    window: Numbers | None = None,
) -> Axes:
    """Histogram of a volume's values, with its transfer function over it: opacity as a line, colours as a strip.

    Args:
        volume: any; of more than four million samples, evenly spread ones are counted.
        transfer: table to draw; its knots are dots.
        ax: Axes.
        bins: how many; of whole numbers at most, for each has as many of them.
        window: (low, high) of the values to show; all of them, and all of the table's knots, if not given.

    Returns the Axes of the counts, logarithmic; the opacity has an axis of its own on the right.

    Example:
        >>> ramp = Volume.from_function(lambda p: 1 + p[..., 0], shape=(16, 16, 16))
        >>> ax = histogram(ramp, TransferFunction([0, 1, 2], [(0, 0, 0), (1, 0, 0), (1, 1, 0)], [0, 0, 0.8]))
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('sigma [1/world unit]', 'samples')
    """
    values = some_values(innermost(volume))
    low, high = _window(window, values, transfer, bins)
    (ax,) = panels(ax, 1, (6.6, 3.6))
    counts, edges = np.histogram(values.astype(float), _edges(volume, low, high, bins))
    ax.stairs(np.where(counts > 0, counts, np.nan), edges, fill=True, color="0.72", baseline=0.7)
    ax.set_yscale("log")
    ax.set(xlim=(low, high), ylim=(0.7, 2.0 * max(counts.max(), 1)), xlabel=values_label(volume), ylabel="samples")
    ax.grid(axis="x", alpha=0.25)
    if transfer is not None:
        _table(ax, transfer, low, high, length_unit(volume))
    return ax


def _edges(volume: AnyVolume, low: float, high: float, bins: int) -> np.ndarray:
    """Edges of bins: of whole numbers as stored each has as many, or a comb would show that is none of the data's."""
    large = isinstance(volume, ScalarVolume) and 4 * np.spacing(max(abs(low), abs(high))) > abs(volume.slope)
    if not isinstance(volume, ScalarVolume) or volume.values.dtype.kind not in "iu" or large:
        return np.linspace(low, high, bins + 1)
    step = abs(volume.slope)
    width = step * max(int(np.ceil((high - low) / step / bins)), 1)
    first = volume.intercept + step * (np.floor((low - volume.intercept) / step + 1e-9) - 0.5)
    return first + width * np.arange(int(np.ceil((high - first) / width)) + 1)


def _window(
    window: Numbers | None, values: np.ndarray, transfer: TransferFunction | None, bins: int
) -> tuple[float, float]:
    """Ends of the axis: those asked for, else of the values and the table, apart where all values are alike."""
    if window is not None:
        if not window[0] < window[1]:
            raise RaymarchError(f"window is {tuple(window)}, want (low, high), the first the less; turn it around")
        return float(window[0]), float(window[1])
    ends = values if transfer is None else np.concatenate([values, transfer.values])
    low, high = float(ends.min()), float(ends.max())
    low, high = bin_range(low, high, bins)
    apart = FINEST * max(abs(low), abs(high))  # Matplotlib takes ends that are nearer to each other for one
    return (low, high) if high - low > 2 * apart else (low - apart, high + apart)


def _table(ax: Axes, transfer: TransferFunction, low: float, high: float, unit: str) -> None:
    """Opacity as a line with an axis on the right, and colours as a strip above."""
    at = np.unique(np.concatenate([[low, high], transfer.values[(transfer.values > low) & (transfer.values < high)]]))
    right = ax.twinx()
    right.plot(at, transfer(at)[:, 3], color="k", linewidth=1.6)
    if len(transfer.values) <= 32:
        shown = (transfer.values >= low) & (transfer.values <= high)
        at, opacity, face = transfer.values[shown], transfer.opacities[shown], transfer.colours[shown]
        right.scatter(at, opacity, 34, face, edgecolors="k", zorder=3, clip_on=False)
    top = float(transfer.opacities.max())
    right.set(ylim=(0, 1.08 * top or 1.0), ylabel=f"opacity over {transfer.unit_length:.3g} {unit}")
    strip: Any = ax.inset_axes((0, 1.02, 1, STRIP))
    colours = transfer(np.linspace(low, high, 512))[None, :, :3]
    strip.imshow(colours, aspect="auto", extent=(low, high, 0, 1), interpolation="bilinear")
    strip.set(xticks=[], yticks=[], xlim=(low, high))


@checked(volume=ANY_VOLUME, bins=BINS, window=WINDOW)
def iso_histogram(volume: AnyVolume, ax: Axes | None = None, *, bins: int = 200, window: Numbers | None = None) -> Axes:
    """Isosurface histogram: how many cells the surface of each value crosses, which is near its area in voxels.

    A value whose surface is a boundary shows as a peak or a plateau; noise as a mountain (Carr, Duffy and Denby 2006,
    "On histograms and isosurface statistics").

    Args:
        volume: any; every cell is looked at.
        ax: Axes.
        bins: values that are asked for, evenly spread.
        window: (low, high) of the values; all if not given.

    Returns the Axes, logarithmic in the count.

    Example:
        >>> ball = Volume.from_function(lambda p: 5 - 5 * np.linalg.norm(p, axis=-1), shape=(24, 24, 24))
        >>> iso_histogram(ball).get_ylabel()
        'cells that the surface crosses'
    """
    inner = innermost(volume)
    low, high = _window(window, some_values(inner), None, bins)
    (ax,) = panels(ax, 1, (6.6, 3.6))
    at = np.linspace(low, high, bins)
    begins, ends = np.zeros(bins + 1, np.int64), np.zeros(bins + 1, np.int64)
    for _, slab in slabs(inner, overlap=1):
        least, most = _cell_ranges(slab)
        # A surface crosses the cells of least <= value < most: so many as have begun, less those that have ended.
        begins += np.bincount(np.searchsorted(at, least.ravel()), minlength=bins + 1)
        ends += np.bincount(np.searchsorted(at, most.ravel()), minlength=bins + 1)
    crossed = np.cumsum(begins - ends)[:bins]
    ax.fill_between(at, np.maximum(crossed, 0.7), 0.7, color="C0", alpha=0.25, linewidth=0)
    ax.plot(at, np.where(crossed > 0, crossed, np.nan), "C0", linewidth=1.4)
    ax.set_yscale("log")
    ax.set(xlim=(low, high), ylim=(0.7, 2.0 * max(crossed.max(), 1)))
    ax.set(xlabel=f"isosurface at {values_label(volume)}", ylabel="cells that the surface crosses")
    ax.grid(alpha=0.25)
    return ax


def _cell_ranges(slab: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest value of the eight corners of each cell of a slab (few, y, z)."""
    least = most = slab
    for axis in range(3):
        n = slab.shape[axis]
        first, second = np.arange(n - 1), np.arange(1, n)
        least = np.minimum(least.take(first, axis), least.take(second, axis))
        most = np.maximum(most.take(first, axis), most.take(second, axis))
    return least, most

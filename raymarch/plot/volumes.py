"""Plots of a volume: slices, projections, histograms and profiles, in world coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.arguments.checks import (
    MAX_COORDINATE,
    Check,
    Numbers,
    Wrong,
    array,
    number,
    numeric,
    one_of,
    optional,
    vector,
    whole,
)
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, distinct_figures
from raymarch.geometry.rays import Rays
from raymarch.plot.panels import panels
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.scalar_volume import ANY_VOLUME, ScalarVolume
from raymarch.volumes.transfer_function import COLORMAP, TRANSFER, TransferFunction
from raymarch.volumes.value_kind import bin_range, upper_end
from raymarch.volumes.volume import SHOWN_VOLUME, AnyVolume, Volume
from raymarch.volumes.world_axes import shown_right, shown_up

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SLICE_AXES = (2, 1, 0)  # world axes that the pictures are seen along
MAX_TICK_STEPS = 5  # steps of an axis at most; with more, labels grow while the layout is made, and are cut


LIMIT = optional(number(cure="leave it out to have it found"))


def scale_of(
    bottom: float, top: float, most: float, label: str, colormap: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Colour scale and bar of values up to `most`; RaymarchError where the scale's bottom is not below its top, which
    only ends that were given bring about (`upper_end`)."""
    if not bottom < top:
        raise RaymarchError(
            f"floor is {bottom:g} and limit {top:g}, want the floor less; leave one out to have it found"
        )
    bar = {"label": label, "extend": "max" if top < most else "neither"}
    return {"cmap": colormap, "vmin": bottom, "vmax": top}, bar


def _turn(ax: Axes, right: str, up: str) -> None:
    """Turn axes that point to two sides of a body, and name the sides at their ends."""
    turned, low, high = shown_right(right)
    if turned:
        ax.invert_xaxis()
    ax.set_xlabel(f"{low}    {ax.get_xlabel()}    {high}")
    turned, low, high = shown_up(up)
    if turned:
        ax.invert_yaxis()
    ax.set_ylabel(f"{low}    {ax.get_ylabel()}    {high}")


def draw_planes(
    volume: Volume,
    pictures: Sequence[np.ndarray],
    titles: Sequence[str],
    unit: str,
    scale: dict[str, Any],
    axes: Sequence[Axes] | np.ndarray | None,
    bar: dict[str, Any] | None,
    world: str = "",
) -> tuple[Axes, ...]:
    """Pictures (v, u) or (v, u, 3 or 4) of a volume across z, y and x, in its length unit, with a colour bar if any.

    In the world of a body they are turned as radiologists look at it, with its sides on the axes.

    Returns the Axes of x-y, x-z and y-z.
    """
    lower, upper = volume.box
    wide, deep, high = upper - lower
    tall = 1 + min(7.7 * max(deep, high) / (2 * wide + deep), 12)
    three = panels(axes, 3, (3.5, tall), width_ratios=[wide, wide, deep], layout="compressed")
    for ax, normal, picture, title in zip(three, SLICE_AXES, pictures, titles, strict=True):
        u, v = (a for a in range(3) if a != normal)
        half = 0.5 * (upper - lower)[[u, v]] / (np.array(picture.shape[1::-1]) - 1)
        extent = (lower[u] - half[0], upper[u] + half[0], lower[v] - half[1], upper[v] + half[1])
        shown = ax.imshow(picture, origin="lower", extent=extent, interpolation="nearest", **scale)
        ax.locator_params(nbins=MAX_TICK_STEPS)
        ax.set(title=title, xlabel=f"{'xyz'[u]} [{unit}]", ylabel=f"{'xyz'[v]} [{unit}]")
        if world:
            _turn(ax, world[u], world[v])
    if bar is not None:
        three[0].figure.colorbar(shown, ax=list(three), shrink=0.8, aspect=25, pad=0.02, **bar)
    return three


SLAB_VALUES = 1 << 21  # values at a time
MAX_QUANTILE_VALUES = 1 << 22  # values that tell how all are spread


def _plain_text(text: str) -> str:
    """Text with dollar signs escaped: Matplotlib reads text between two of them as a formula."""
    return text.replace("$", r"\$")


def values_label(volume: AnyVolume) -> str:
    """Name and unit of a volume's values, for an axis."""
    if isinstance(volume, ScalarVolume):
        return f"value [{_plain_text(volume.unit)}]" if volume.unit else "value"
    unit = "world unit" if volume.ndc_from_world is None else "NDC"
    return f"sigma [1/{unit}]"


def length_unit(volume: AnyVolume) -> str:
    """Unit of the world that a volume lies in, for an axis."""
    if isinstance(volume, ScalarVolume):
        return _plain_text(volume.length_unit) or "world unit"
    return "world unit" if volume.ndc_from_world is None else "NDC"


def world_of(volume: AnyVolume) -> str:
    """World that a volume lies in, as RAS or LPS; "" for one that says none."""
    return volume.world if isinstance(volume, ScalarVolume) else ""


def innermost_volume(volume: AnyVolume) -> Volume:
    """Volume whose values are plotted: the innermost of nested boxes. NDC are plotted as if they were the world."""
    return replace(SHOWN_VOLUME("volume", volume).nested(0), ndc_from_world=None)


def sample_values(volume: Volume) -> np.ndarray:
    """Values (n,) of evenly spread samples, at most some millions."""
    stride = max(int(np.ceil((np.prod(volume.shape) / MAX_QUANTILE_VALUES) ** (1 / 3))), 1)
    return volume.activation.sigma(volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0]).ravel()


def slabs(volume: Volume, overlap: int = 0) -> Iterator[tuple[int, np.ndarray]]:
    """Slabs (few, y, z) of a volume's values along x with the index of their first, `overlap` samples shared."""
    x, y, z = volume.shape
    count = max(SLAB_VALUES // (y * z), 1 + overlap)
    for first in range(0, x - overlap, count - overlap):
        index = np.ix_(np.arange(first, min(first + count, x)), np.arange(y), np.arange(z))
        yield first, volume.activation.sigma(volume.at(index)[0])


def is_upright(volume: Volume) -> bool:
    """Whether a volume's axes are the world's, in their direction."""
    linear = volume.world_from_index[:3, :3]
    return bool((np.diag(linear) > 0).all() and np.allclose(linear, np.diag(np.diag(linear)), atol=1e-9 * volume.voxel))


MAX_PIXELS = 2048  # of a picture's edge, unless the volume has more samples
MIN_VISIBLE_FRACTION = 0.01  # share of the greatest sigma below which a slice of colour is left blank


@checked(
    volume=ANY_VOLUME,
    what=one_of("sigma", "colour"),
    limit=LIMIT,
    floor=LIMIT,
    at=optional(vector(3, -MAX_COORDINATE, MAX_COORDINATE)),
    colormap=COLORMAP,
)
def slices(
    volume: AnyVolume,
    index: str | Sequence[int] | np.ndarray | None = "middle",
    what: str = "sigma",
    axes: Sequence[Axes] | np.ndarray | None = None,
    *,
    at: Numbers | None = None,
    limit: float | None = None,
    floor: float | None = None,
    colormap: str = "magma",
) -> tuple[Axes, ...]:
    """Slice plot: three orthogonal slices of a volume, in world coordinates; what is drawn are its samples.

    Args:
        volume: any; of one that is not upright in the world, the samples nearest to the upright planes; of nested boxes
            the innermost; of NDC, planes there.
        index: (i, j, k) of the sample through which the planes run; "middle" or None for the middle one.
        at: point (x, y, z) of the world, or of NDC, through which they run, in place of `index`.
        what: "sigma" [1/world unit], of a scan its values in their unit, or "colour" (its part that all views share)
            where sigma is over 1 % of its most.
        axes: three Axes.
        limit, floor: values at the top and the bottom of the colour scale, to compare volumes; the slices' greatest,
            and 0 if not given; of a scan its slices' least value, or 0 where that is more and a limit is given.
        colormap: a Matplotlib colour map, such as "gray".

    Returns the Axes of x-y, x-z and y-z.

    Example:
        >>> volume = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> [ax.get_title() for ax in slices(volume, index=(16, 16, 0))]
        ['z = -1', 'y = 0.0323', 'x = 0.0323']
    """
    words, scan = (length_unit(volume), world_of(volume), values_label(volume)), isinstance(volume, ScalarVolume)
    unit, world, label = words
    volume = innermost_volume(volume)
    point = _point_of(volume, index) if at is None else _point(volume, np.asarray(at))
    cuts = [cut_plane(volume, point, normal) for normal in SLICE_AXES]
    bottom, top, most = _ends([sigma for sigma, _ in cuts], scan, limit)
    visible = bottom + MIN_VISIBLE_FRACTION * (top - bottom)
    if limit is None and floor is not None and top <= floor:
        top = upper_end(floor)
    if scan and floor is None and limit is not None and bottom >= limit:  # extinction begins at 0, whatever is asked
        bottom = -upper_end(-limit)
    bottom, top = bottom if floor is None else floor, top if limit is None else limit
    scale, bar = scale_of(bottom, top, most, label, colormap)
    pictures = [sigma if what == "sigma" else np.dstack([colour, sigma >= visible]) for sigma, colour in cuts]
    wide = float(np.ptp(volume.box, axis=0)[0])
    places = [point[normal] if abs(point[normal]) > 1e-9 * wide else 0.0 for normal in SLICE_AXES]
    titles = [
        f"{'xyz'[normal]} = {distinct_figures(place, step=volume.voxel, least=3)[0]}"
        for normal, place in zip(SLICE_AXES, places, strict=True)
    ]
    return draw_planes(volume, pictures, titles, unit, scale, axes, bar if what == "sigma" else None, world)


def _ends(cuts: list[np.ndarray], scan: bool, limit: float | None) -> tuple[float, float, float]:
    """Bottom and top of the colour scale, and the greatest value, which may be an outlier."""
    values = np.concatenate([cut[np.isfinite(cut)] for cut in cuts])
    bottom = float(values.min()) if scan and values.size else 0.0
    bottom = bottom if limit is None else min(bottom, 0.0)
    every = values[values > bottom] - bottom
    most, usual = (float(every.max()), float(np.percentile(every, 99))) if every.size else (1.0, 1.0)
    top = bottom + (most if most < 5 * usual else usual)
    return bottom, top if top > bottom else upper_end(bottom), max(bottom + most, bottom)


def _point_of(volume: Volume, index: str | Sequence[int] | np.ndarray | None) -> np.ndarray:
    """Position of a sample; RaymarchError for an index outside the volume."""
    if index is None or (isinstance(index, str) and index == "middle"):
        index = np.array(volume.shape) // 2
    try:
        found = numeric(index)
    except Wrong:
        found = np.zeros(0)
    if found.shape != (3,) or found.dtype.kind not in "iu" or (found < 0).any() or (found >= volume.shape).any():
        raise RaymarchError(f"index is {index!r}, want 'middle' or three whole numbers within {volume.shape}")
    return volume.world_from_index[:3, :3] @ found + volume.world_from_index[:3, 3]


def _point(volume: Volume, at: np.ndarray) -> np.ndarray:
    """The point itself; RaymarchError if it lies outside the volume's box."""
    lower, upper = volume.box
    slack = 1e-6 * (upper - lower)
    if not ((at >= lower - slack) & (at <= upper + slack)).all():
        ends = " to ".join(" ".join(f"{x:.4g}" for x in corner) for corner in volume.box)
        raise RaymarchError(f"at is {' '.join(f'{x:g}' for x in at)}, want a point in the volume's box, {ends}")
    return np.clip(at, lower, upper)


def plane_ticks(volume: Volume) -> list[np.ndarray]:
    """Places along x, y and z at which upright planes of a volume are cut, a voxel apart; no more than a picture shows
    where its voxels are very long."""
    lower, upper = volume.box
    counts = np.rint(np.minimum((upper - lower) / volume.voxel, max(MAX_PIXELS, *volume.shape))).astype(int) + 1
    return [np.linspace(low, high, n) for low, high, n in zip(lower, upper, counts, strict=True)]


def cut_plane(volume: Volume, point: np.ndarray, normal: int) -> tuple[np.ndarray, np.ndarray]:
    """Sigma (v, u), NaN outside, and colour (v, u, 3) in the plane through a point across the world axis `normal`."""
    ticks = plane_ticks(volume)
    ticks[normal] = point[normal : normal + 1]
    world = np.squeeze(np.stack(np.meshgrid(*ticks, indexing="ij"), -1), axis=normal).swapaxes(0, 1)
    affine = volume.world_from_index
    index = np.rint((world - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T).astype(int)
    inside = ((index >= 0) & (index < volume.shape)).all(-1)
    i, j, k = np.moveaxis(np.where(inside[..., None], index, 0), -1, 0)
    density, features = volume.at((i, j, k))
    linear = Y00 * features[..., :3].astype(float)
    colour = np.clip(volume.activation.colour_rule.forward(linear), 0, 1)
    return np.where(inside, volume.activation.sigma(density), np.nan), colour


@checked(volume=ANY_VOLUME, limit=LIMIT, floor=LIMIT, colormap=COLORMAP)
def projections(
    volume: AnyVolume,
    axes: Sequence[Axes] | np.ndarray | None = None,
    *,
    limit: float | None = None,
    floor: float | None = None,
    colormap: str = "magma",
) -> tuple[Axes, ...]:
    """Maximum intensity projections (MIP) of a volume: its greatest values along z, y and x, in world coordinates.

    Args:
        volume: any; of one that is not upright in the world, the samples nearest to upright planes; of nested boxes
            the innermost; of NDC, there.
        axes: three Axes.
        limit, floor: values at the top and the bottom of the colour scale, to compare volumes; the greatest that
            there is, and 0 or what is least of the pictures, if not given.
        colormap: a Matplotlib colour map, such as "gray".

    Returns the Axes of x-y, x-z and y-z, with one colour bar.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> [ax.get_title() for ax in projections(ball)]
        ['maximum along z', 'maximum along y', 'maximum along x']
    """
    inner, unit = innermost_volume(volume), length_unit(volume)
    along = _along_axes(inner)
    every = np.concatenate([each[np.isfinite(each)] for each in along])
    top = float(every.max()) if limit is None else limit
    bottom = min(0.0, float(every.min())) if floor is None else floor
    if limit is None and top <= bottom:  # one value everywhere, or a floor over all of them
        top = upper_end(bottom)
    if floor is None and limit is not None and bottom >= top:  # a limit under all of them
        bottom = -upper_end(-top)
    scale, bar = scale_of(bottom, top, float(every.max()), values_label(volume), colormap)
    titles = [f"maximum along {'xyz'[normal]}" for normal in SLICE_AXES]
    return draw_planes(inner, along, titles, unit, scale, axes, bar, world_of(volume))


def _along_axes(volume: Volume) -> list[np.ndarray]:
    """Greatest values along z (y, x), along y (z, x) and along x (z, y); NaN where no sample is."""
    if is_upright(volume):
        x, y, z = volume.shape
        down, through, across = np.empty((x, y)), np.empty((x, z)), np.full((y, z), -np.inf)
        for first, slab in slabs(volume):
            rows = slice(first, first + len(slab))
            down[rows], through[rows] = slab.max(2), slab.max(1)
            across = np.maximum(across, slab.max(0))
        return [down.T, through.T, across.T]
    x, y, z = (len(ticks) for ticks in plane_ticks(volume))
    down, through, across = np.full((y, x), np.nan), np.full((z, x), np.nan), np.full((z, y), np.nan)
    for k, height in enumerate(plane_ticks(volume)[2]):
        plane = cut_plane(volume, np.array([0.0, 0.0, height]), 2)[0]
        down = np.fmax(down, plane)
        through[k], across[k] = np.fmax.reduce(plane, axis=0), np.fmax.reduce(plane, axis=1)
    return [down, through, across]


BINS = whole(2, 100_000)
WINDOW = optional(vector(2))
MIN_AXIS_EXTENT = 1e-12  # of the values: half of an axis
STRIP_HEIGHT = 0.075  # of the plot's height, that the colours of a table take


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
    values = sample_values(innermost_volume(volume))
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
    """Edges of bins. Each bin has equally many of the stored whole numbers, or a false comb would show."""
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
    """Ends of the axis: the given ones, else those of the values and the table; they always differ."""
    if window is not None:
        if not window[0] < window[1]:
            raise RaymarchError(f"window is {tuple(window)}, want (low, high), the first the less; turn it around")
        return float(window[0]), float(window[1])
    ends = values if transfer is None else np.concatenate([values, transfer.values])
    low, high = float(ends.min()), float(ends.max())
    low, high = bin_range(low, high, bins)
    apart = MIN_AXIS_EXTENT * max(abs(low), abs(high))  # Matplotlib takes ends that are nearer to each other for one
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
    strip: Any = ax.inset_axes((0, 1.02, 1, STRIP_HEIGHT))
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
    inner = innermost_volume(volume)
    low, high = _window(window, sample_values(inner), None, bins)
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


PROFILE_STEP = 0.25  # of a voxel, between points of the profile
POINTS = array(2, 3, low=-MAX_COORDINATE, high=MAX_COORDINATE)


def _line(value: object) -> object:
    if isinstance(value, Rays):
        if len(value) != 1:
            raise ValueError
        return value
    return POINTS.read(value)


LINE = Check("one ray, as camera.rays([pixel]) gives, or two points (2, 3) [world unit]", _line)


@checked(volume=ANY_VOLUME, line=LINE, transfer=optional(TRANSFER))
def profile(
    volume: AnyVolume, line: Rays | Numbers, transfer: TransferFunction | None = None, ax: Axes | None = None
) -> Axes:
    """Profile along a ray: values of a volume, trilinear between samples, and the share of light that comes so far.

    Args:
        volume: any; of nested boxes the innermost, NDC as if it were the world.
        line: one ray (`camera.rays([pixel])`), drawn through the volume's box; or two points (2, 3) [world unit].
        transfer: table by which values stop light; without one they are extinction (sigma) themselves.
        ax: Axes.

    Returns the Axes of the values over the distance from the ray's origin, or from the first point; the light that is
    left (transmittance) has an axis of its own on the right.

    Raises RaymarchError for a ray that misses the volume.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 0.5), shape=(8, 8, 8))
        >>> ax = profile(fog, Camera.look_at((0, -4, 0), width=9, height=9).rays([40]))
        >>> [round(float(x), 2) for x in ax.get_xlim()], round(float(ax.figure.axes[1].lines[0].get_ydata()[-1]), 3)
        ([3.0, 5.0], 0.368)
    """
    inner = innermost_volume(volume)
    origin, direction, near, far = _span(inner, line)
    (ax,) = panels(ax, 1, (6.6, 3.2))
    count = int(np.clip((far - near) / (PROFILE_STEP * inner.voxel), 2, 100_000)) + 1
    s = np.linspace(near, far, count)
    values = trilinear(inner, origin + s[:, None] * direction)
    sigma = np.clip(np.nan_to_num(values), 0, None) if transfer is None else transfer.sigma(np.nan_to_num(values))
    sigma = np.where(np.isnan(values), 0.0, sigma)
    depth = np.append(0.0, np.cumsum(0.5 * (sigma[1:] + sigma[:-1]) * np.diff(s)))
    ax.plot(s, values, "C0", linewidth=1.5)
    ax.fill_between(s, values, color="C0", alpha=0.15, linewidth=0)
    ax.set(xlim=(near, far), xlabel=f"distance [{length_unit(volume)}]")
    ax.set_ylabel(values_label(volume), color="C0")
    ax.grid(alpha=0.25)
    right = ax.twinx()
    right.plot(s, np.exp(-depth), "C1--", linewidth=1.4)
    right.set_ylim(0, 1.03)
    right.set_ylabel("light that is left (transmittance)", color="C1")
    return ax


def _span(volume: Volume, line: Rays | np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Origin, unit direction, and the ends of what is drawn [world unit]."""
    if not isinstance(line, Rays):
        length = float(np.linalg.norm(line[1] - line[0]))
        if length == 0:
            raise RaymarchError(f"line is from {line[0].tolist()} to itself, want two points that differ; move one")
        return line[0], (line[1] - line[0]) / length, 0.0, length
    origin, direction = (np.asarray(each[0], float) for each in (line.origin, line.direction))
    direction = direction / np.linalg.norm(direction)
    lower, upper = volume.box
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = (np.stack([lower, upper]) - origin) / direction
    near = max(float(np.nanmax(ends.min(0))), 0.0)
    far = float(np.nanmin(ends.max(0)))
    if not near < far:
        raise RaymarchError("line is a ray that misses the volume's box; take a pixel that shows it")
    return origin, direction, near, far


def trilinear(volume: Volume, points: np.ndarray) -> np.ndarray:
    """Values (n,) at points (n, 3) of the world, trilinear in the raw samples; NaN outside of the box.

    Example:
        >>> ramp = Volume.from_function(lambda p: 2 + p[..., 0], shape=(3, 3, 3))
        >>> trilinear(ramp, np.array([[0.25, 0.1, 0.0], [0, 0, 9]])).tolist()
        [2.25, nan]
    """
    affine, most = volume.world_from_index, np.array(volume.shape) - 1
    place = (points - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T
    inside = ((place >= -1e-6) & (place <= most + 1e-6)).all(1)
    place = np.clip(place, 0, most)
    low = np.minimum(place.astype(int), most - 1)
    part, raw = place - low, np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        weight = np.where(corner, part, 1 - part).prod(1)
        raw += weight * volume.at(tuple((low + corner).T))[0]
    return np.where(inside, volume.activation.sigma(raw), np.nan)

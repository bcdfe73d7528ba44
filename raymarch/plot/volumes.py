"""Slice plot of a volume: orthogonal slices in world coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, numeric, vector
from raymarch.arguments.checks import WORLD, Wrong, one_of, optional
from raymarch.arguments.declared import checked
from raymarch.data.colormaps import COLORMAP
from raymarch.data.value_contents import above
from raymarch.errors import RaymarchError, figures
from raymarch.plot.three_planes import LIMIT, NORMALS, draw_planes, scale_of
from raymarch.plot.values import innermost, length_unit, values_label, world_of
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.scalar_volume import ANY_VOLUME, ScalarVolume
from raymarch.volumes.volume import AnyVolume, Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 2048  # of a picture's edge, unless the volume has more samples
VISIBLE = 0.01  # share of the greatest sigma below which a slice of colour is left blank


@checked(
    volume=ANY_VOLUME,
    what=one_of("sigma", "colour"),
    limit=LIMIT,
    floor=LIMIT,
    at=optional(vector(3, -WORLD, WORLD)),
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
    volume = innermost(volume)
    point = _point_of(volume, index) if at is None else _point(volume, np.asarray(at))
    cuts = [cut_plane(volume, point, normal) for normal in NORMALS]
    bottom, top, most = _ends([sigma for sigma, _ in cuts], scan, limit)
    visible = bottom + VISIBLE * (top - bottom)
    if limit is None and floor is not None and top <= floor:
        top = above(floor)
    if scan and floor is None and limit is not None and bottom >= limit:  # extinction begins at 0, whatever is asked
        bottom = -above(-limit)
    bottom, top = bottom if floor is None else floor, top if limit is None else limit
    scale, bar = scale_of(bottom, top, most, label, colormap)
    pictures = [sigma if what == "sigma" else np.dstack([colour, sigma >= visible]) for sigma, colour in cuts]
    wide = float(np.ptp(volume.box, axis=0)[0])
    places = [point[normal] if abs(point[normal]) > 1e-9 * wide else 0.0 for normal in NORMALS]
    titles = [
        f"{'xyz'[normal]} = {figures(place, step=volume.voxel, least=3)[0]}"
        for normal, place in zip(NORMALS, places, strict=True)
    ]
    return draw_planes(volume, pictures, titles, unit, scale, axes, bar if what == "sigma" else None, world)


def _ends(cuts: list[np.ndarray], scan: bool, limit: float | None) -> tuple[float, float, float]:
    """Bottom and top of the colour scale, and the greatest value, which may lie far above what else there is."""
    values = np.concatenate([cut[np.isfinite(cut)] for cut in cuts])
    bottom = float(values.min()) if scan and values.size else 0.0
    bottom = bottom if limit is None else min(bottom, 0.0)
    every = values[values > bottom] - bottom
    most, usual = (float(every.max()), float(np.percentile(every, 99))) if every.size else (1.0, 1.0)
    top = bottom + (most if most < 5 * usual else usual)
    return bottom, top if top > bottom else above(bottom), max(bottom + most, bottom)


def _point_of(volume: Volume, index: str | Sequence[int] | np.ndarray | None) -> np.ndarray:
    """Place of a sample; RaymarchError for an index that the volume does not have."""
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
    """A point; RaymarchError for one beside the volume's box."""
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
    counts = np.rint(np.minimum((upper - lower) / volume.voxel, max(MOST_TICKS, *volume.shape))).astype(int) + 1
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

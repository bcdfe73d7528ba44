"""Maximum intensity projections of a volume along the world's three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.declared import checked
from raymarch.data.colormaps import COLORMAP
from raymarch.data.value_contents import above
from raymarch.plot.three_planes import LIMIT, NORMALS, draw_planes, scale_of
from raymarch.plot.values import innermost, length_unit, slabs, upright, values_label, world_of
from raymarch.plot.volumes import cut_plane, plane_ticks
from raymarch.volumes.scalar_volume import ANY_VOLUME
from raymarch.volumes.volume import AnyVolume, Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    inner, unit = innermost(volume), length_unit(volume)
    along = _along_axes(inner)
    every = np.concatenate([each[np.isfinite(each)] for each in along])
    top = float(every.max()) if limit is None else limit
    bottom = min(0.0, float(every.min())) if floor is None else floor
    if limit is None and top <= bottom:  # one value everywhere, or a floor over all of them
        top = above(bottom)
    if floor is None and limit is not None and bottom >= top:  # a limit under all of them
        bottom = -above(-top)
    scale, bar = scale_of(bottom, top, float(every.max()), values_label(volume), colormap)
    titles = [f"maximum along {'xyz'[normal]}" for normal in NORMALS]
    return draw_planes(inner, along, titles, unit, scale, axes, bar, world_of(volume))


def _along_axes(volume: Volume) -> list[np.ndarray]:
    """Greatest values along z (y, x), along y (z, x) and along x (z, y); NaN where no sample is."""
    if upright(volume):
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

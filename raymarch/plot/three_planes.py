"""Three pictures of a volume beside one another, along the world's z, y and x, with one colour scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.arguments.checks import number, optional
from raymarch.data.world_axes import shown_right, shown_up
from raymarch.errors import RaymarchError
from raymarch.plot.panels import panels
from raymarch.volumes.volume import Volume

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NORMALS = (2, 1, 0)  # world axes that the pictures are seen along
TICKS = 5  # steps of an axis at most; with more, labels grow while the layout is made, and are cut


LIMIT = optional(number(cure="leave it out to have it found"))


def scale_of(
    bottom: float, top: float, most: float, label: str, colormap: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Colour scale and bar of values up to `most`; RaymarchError where the scale's bottom is not below its top, which
    only ends that were given bring about (`above`)."""
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
    for ax, normal, picture, title in zip(three, NORMALS, pictures, titles, strict=True):
        u, v = (a for a in range(3) if a != normal)
        half = 0.5 * (upper - lower)[[u, v]] / (np.array(picture.shape[1::-1]) - 1)
        extent = (lower[u] - half[0], upper[u] + half[0], lower[v] - half[1], upper[v] + half[1])
        shown = ax.imshow(picture, origin="lower", extent=extent, interpolation="nearest", **scale)
        ax.locator_params(nbins=TICKS)
        ax.set(title=title, xlabel=f"{'xyz'[u]} [{unit}]", ylabel=f"{'xyz'[v]} [{unit}]")
        if world:
            _turn(ax, world[u], world[v])
    if bar is not None:
        three[0].figure.colorbar(shown, ax=list(three), shrink=0.8, aspect=25, pad=0.02, **bar)
    return three

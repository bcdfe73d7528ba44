"""Coverage: how many views see each part of a box."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.diagnosis.extent import VIEWED
from raymarch.diagnosis.extent import coverage as count_of_views
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import BOX
from raymarch.plot.panels import panels
from raymarch.views.focus import focus
from raymarch.views.views import VIEWS, Views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

AXES = "xyz"


@checked(views=VIEWS, box=optional(BOX))
def coverage(
    views: Views, box: Numbers | None = None, axes: Sequence[Axes] | np.ndarray | None = None
) -> tuple[Axes, ...]:
    """Coverage plot: how many views see each place of a box's three middle planes, whatever stands in their way.

    Args:
        views: the set.
        box: lower and upper corner (2, 3) [world unit]; the set's own, or what all cameras look at, if not given.
        axes: three Axes.

    Returns the Axes of x-y, x-z and y-z, with one colour bar from 0 to the count of all views.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> axes = coverage(Views(ring, np.full((6, 8, 8, 3), 99, np.uint8)))
        >>> [ax.get_title() for ax in axes]
        ['z = 0', 'y = 0', 'x = 0']
    """
    about = box_of_views(views) if box is None else np.asarray(box)
    wide, deep, high = about[1] - about[0]
    tall = 1 + min(7.7 * max(deep, high) / (2 * wide + deep), 12)
    three = panels(axes, 3, (3.5, tall), width_ratios=[wide, wide, deep])
    count = count_of_views(views, about)
    for normal, ax in zip((2, 1, 0), three, strict=True):
        shown = middle_plane(ax, count, about, normal, len(views))
        place = about[:, normal].mean()
        u, v = (a for a in range(3) if a != normal)
        ax.set(title=f"{AXES[normal]} = {place if abs(place) > 1e-9 * wide else 0:.3g}")
        ax.set(xlabel=f"{AXES[u]} [world unit]", ylabel=f"{AXES[v]} [world unit]")
    few = f"views that see it\n({(count < 2).mean():.0%} of the box by fewer than two)"
    three[0].figure.colorbar(shown, ax=list(three), shrink=0.8, aspect=25, pad=0.02, label=few)
    return three


def middle_plane(ax: Axes, count: np.ndarray, box: np.ndarray, normal: int, most: int) -> AxesImage:
    """Counts of views in the middle plane of a box across an axis, drawn into Axes."""
    u, v = (a for a in range(3) if a != normal)
    plane, extent = count.take(VIEWED // 2, normal), (box[0, u], box[1, u], box[0, v], box[1, v])
    return ax.imshow(plane.T, origin="lower", extent=extent, vmin=0, vmax=most, cmap="viridis")


def box_of_views(views: Views, points: np.ndarray | None = None) -> np.ndarray:
    """A box (2, 3) to draw: the set's own, about sparse points, else what all cameras look at."""
    if views.box is not None:
        return views.box
    if points is not None and len(points) > 50:
        low, high = np.quantile(points, [0.05, 0.95], axis=0)
        return np.stack([low - 0.1 * (high - low) - 1e-6, high + 0.1 * (high - low) + 1e-6])
    try:
        centre, half = focus(views.cameras)
    except RaymarchError:
        eyes = np.array([camera.position for camera in views.cameras])
        centre, half = eyes.mean(0), float(np.ptp(eyes, axis=0).max()) or 1.0
    return np.stack([centre - half, centre + half])

"""Plot of an image set: cameras with their images, the box, and how many views see each part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, array
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.diagnosis.extent import coverage
from raymarch.geometry.pose import BOX
from raymarch.plot.camera_pyramids import cameras, pyramid_length
from raymarch.plot.cameras import LENGTH, add_images
from raymarch.plot.figure_pictures import picture_of
from raymarch.plot.view_coverage import AXES, box_of_views, middle_plane
from raymarch.views.views import VIEWS, Views

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = optional(array("point", 3))


@checked(views=VIEWS, box=optional(BOX), points=POINTS)
def image_set(views: Views, box: Numbers | None = None, points: Numbers | None = None) -> Figure:
    """Image-set plot: cameras with their images and the box in 3-D, and its coverage from three sides.

    Args:
        views: the set.
        box: lower and upper corner (2, 3) [world unit]; that of the points, or what all cameras see, if not given.
        points: (point, 3) of the scene to draw along, or None.

    Returns the figure: coverage counts the views that see the middle plane of the box, whatever stands in their way.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> len(image_set(Views(ring, np.full((6, 8, 8, 3), 99, np.uint8))).axes)
        5
    """
    from matplotlib.figure import Figure

    cloud = np.zeros((0, 3)) if points is None else np.asarray(points)
    about = box_of_views(views, cloud) if box is None else np.asarray(box)
    figure = Figure(figsize=(13, 9), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(3.2, 1))
    space = figure.add_subplot(grid[:, 0], projection="3d")
    cameras(views, about, space, colour="none")
    space.set_box_aspect(np.ptp([space.get_xlim(), space.get_ylim(), space.get_zlim()], axis=1), zoom=0.95)
    corners = np.stack(np.meshgrid(*about.T, indexing="ij"), -1).reshape(8, 3)
    add_images(space, views, LENGTH * pyramid_length(views.cameras, corners))
    if len(cloud):
        some = cloud[:: max(len(cloud) // 2000, 1)]
        near = (np.abs(some - about.mean(0)) < 1.5 * (about[1] - about[0])).all(1)
        space.scatter(*some[near].T, s=1, c="C3", depthshade=False)
    count = coverage(views, about)
    sides = [figure.add_subplot(grid[k, 1]) for k in range(3)]
    for axis, side in enumerate(sides):
        shown = middle_plane(side, count, about, axis, len(views))
        a, b = (AXES[k] for k in range(3) if k != axis)
        side.set(xlabel=f"{a} [world unit]", ylabel=b, title=f"views, mid {AXES[axis]}")
    figure.colorbar(shown, ax=sides, label="views that see it", shrink=0.6)
    few = (count < 2).mean()
    space.set_title(f"{len(views)} views; {few:.0%} of the box is seen by fewer than two")
    return figure


def picture(views: Views, box: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    """Image-set plot as an image (height, width, 3) uint8."""
    return picture_of(lambda: image_set(views, box, points if len(points) else None))

"""Plot of an image set: cameras with their images, the box, and how many views see each part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, array
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.data.focus import focus
from raymarch.data.views import VIEWS, Views
from raymarch.diagnosis.extent import VIEWED, coverage
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import BOX
from raymarch.plot.camera_pyramids import cameras, pyramid, pyramid_length

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from mpl_toolkits.mplot3d import Axes3D

POINTS = optional(array("point", 3))
SHOWN = 64  # images at most, evenly spread, on their cameras
SIDE = 20  # pixels of an image's longer side there
AXES = "xyz"


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
    about = _box(views, cloud) if box is None else np.asarray(box)
    figure = Figure(figsize=(13, 9), layout="constrained")
    grid = figure.add_gridspec(3, 2, width_ratios=(3.2, 1))
    space = figure.add_subplot(grid[:, 0], projection="3d")
    cameras(views, about, space, colour="none")
    space.set_box_aspect(np.ptp([space.get_xlim(), space.get_ylim(), space.get_zlim()], axis=1), zoom=1.15)
    corners = np.stack(np.meshgrid(*about.T, indexing="ij"), -1).reshape(8, 3)
    _images(space, views, 1.6 * pyramid_length(views.cameras, corners))
    if len(cloud):
        some = cloud[:: max(len(cloud) // 2000, 1)]
        near = (np.abs(some - about.mean(0)) < 1.5 * (about[1] - about[0])).all(1)
        space.scatter(*some[near].T, s=1, c="C3", depthshade=False)
    count = coverage(views, about)
    sides = [figure.add_subplot(grid[k, 1]) for k in range(3)]
    for axis, side in enumerate(sides):
        shown = _slice(side, count, about, axis, len(views))
    figure.colorbar(shown, ax=sides, label="views that see it", shrink=0.6)
    few = (count < 2).mean()
    space.set_title(f"{len(views)} views; {few:.0%} of the box is seen by fewer than two")
    return figure


def picture(views: Views, box: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    """Image-set plot as an image (height, width, 3) uint8."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = image_set(views, box, points if len(points) else None)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _box(views: Views, points: np.ndarray) -> np.ndarray:
    """A box to draw: about the points, else what all cameras look at."""
    if views.box is not None:
        return views.box
    if len(points) > 50:
        low, high = np.quantile(points, [0.05, 0.95], axis=0)
        return np.stack([low - 0.1 * (high - low) - 1e-6, high + 0.1 * (high - low) + 1e-6])
    try:
        centre, half = focus(views.cameras)
    except RaymarchError:
        eyes = np.array([camera.position for camera in views.cameras])
        centre, half = eyes.mean(0), float(np.ptp(eyes, axis=0).max()) or 1.0
    return np.stack([centre - half, centre + half])


def _images(space: Axes3D, views: Views, length: float) -> None:
    """The images on the open ends of the cameras' pyramids."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    lines = [pyramid(camera, length) for camera in views.cameras]
    space.add_collection3d(Line3DCollection(lines, colors="0.55", linewidths=0.6), autolim=False)
    faces, colours = [], []
    for i in sorted(set(np.linspace(0, len(views) - 1, min(len(views), SHOWN)).astype(int).tolist())):
        camera, image = views.cameras[i], views.rgb(i)
        step = max(max(image.shape[:2]) // SIDE, 1)
        small = image[step // 2 :: step, step // 2 :: step]
        rows, columns = small.shape[:2]
        v, u = np.meshgrid(
            np.linspace(0, camera.height, rows + 1), np.linspace(0, camera.width, columns + 1), indexing="ij"
        )
        plane = (np.stack([u, v], -1) - camera.principal) / camera.focal * [1, -1]
        across = 1.0 if camera.lens.parallel else length
        local = np.concatenate([across * plane, np.full_like(plane[..., :1], -length)], -1)
        corners = local @ camera.world_from_camera[:3, :3].T + camera.position
        quads = np.stack([corners[:-1, :-1], corners[:-1, 1:], corners[1:, 1:], corners[1:, :-1]], 2)
        faces.append(quads.reshape(-1, 4, 3))
        colours.append(small.reshape(-1, 3))
    shades = np.clip(np.concatenate(colours), 0, 1)
    mesh = Poly3DCollection(np.concatenate(faces), facecolors=shades, edgecolors=shades, linewidths=0.2)
    space.add_collection3d(mesh, autolim=False)


def _slice(side: Axes, count: np.ndarray, box: np.ndarray, axis: int, most: int) -> AxesImage:
    """Coverage of the middle plane across an axis."""
    a, b = (k for k in range(3) if k != axis)
    plane = count.take(VIEWED // 2, axis)
    shown = side.imshow(
        plane.T, origin="lower", extent=(box[0, a], box[1, a], box[0, b], box[1, b]), vmin=0, vmax=most, cmap="viridis"
    )
    side.set(xlabel=f"{AXES[a]} [world unit]", ylabel=AXES[b], title=f"views, mid {AXES[axis]}")
    return shown

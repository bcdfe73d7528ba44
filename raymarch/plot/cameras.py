"""Plots of cameras: pyramids, frusta with their images, and how many views see each part of a box."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.checks import Check, Numbers, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import ray_starts, unproject
from raymarch.matching.points import COVERAGE_SIDE
from raymarch.matching.points import coverage as count_of_views
from raymarch.plot.panels import panels
from raymarch.views.focus import focus
from raymarch.views.views import CAMERAS, SHOWN_VIEWS, Views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.typing import ColorType
    from mpl_toolkits.mplot3d import Axes3D


def _line_colour(value: ColorType) -> ColorType:
    from matplotlib.colors import to_rgba_array

    to_rgba_array(value)
    return value


LINE_COLOUR = Check("a colour that Matplotlib knows", _line_colour)


@checked(views=CAMERAS, box=optional(BOX), colour=LINE_COLOUR)
def cameras(
    views: Views | Camera | Iterable[Camera],
    box: Numbers | None = None,
    ax: Axes3D | None = None,
    *,
    colour: str = "C0",
) -> Axes3D:
    """Camera plot: pyramids (frustums) that open where the cameras look, a roof on the image's upper edge.

    Args:
        views: views, a camera or several; their pyramids' length follows the scene's, not the focal length.
        box: lower and upper corner (2, 3) [world unit] of a box to draw, as `Fit.box`.
        ax: Axes with `projection="3d"`; draw twice into the same ones to compare.
        colour: of the pyramids, any that Matplotlib knows.

    Returns the Axes; z is up and a unit is as long on every axis.

    Example:
        >>> cameras([Camera.look_at((0, -4, 0)), Camera.look_at((4, 0, 0))], box=[(-1, -1, -1), (1, 1, 1)]).name
        '3d'
    """
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    given: list = list(views)  # type: ignore[arg-type]  # as CAMERAS reads them
    corners = np.empty((0, 3))
    if box is not None:
        corners = np.stack(np.meshgrid(*box.T, indexing="ij"), -1).reshape(8, 3)
    (ax,) = panels(ax, 1, (6.4, 5.6), projection="3d")
    if ax.name != "3d":
        raise RaymarchError(f"Axes are {ax.name}, want 3-D ones; make them with plt.axes(projection='3d')")
    length = pyramid_length(given, corners)
    lines = [pyramid(camera, length) for camera in given]
    fresh = not ax.collections
    ax.add_collection3d(Line3DCollection(lines, colors=colour, linewidths=0.9), autolim=False)
    if box is not None:
        edges = [pair for pair in combinations(corners, 2) if np.count_nonzero(pair[0] - pair[1]) == 1]
        ax.add_collection3d(Line3DCollection(edges, colors="0.25", linewidths=1.2), autolim=False)
    x, y, z = np.concatenate([*lines, corners]).T
    ax.auto_scale_xyz(x, y, z, had_data=not fresh)
    ax.set_box_aspect([np.ptp(ends) for ends in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())], zoom=0.88)
    ax.set(xlabel="x [world unit]", ylabel="y [world unit]", zlabel="z [world unit]")
    ax.locator_params(nbins=5)
    return ax


def pyramid_length(cameras: Iterable[Camera], corners: np.ndarray) -> float:
    """Length of the cameras' pyramids: a share of how far they and the box's corners (8, 3) spread."""
    spread = np.ptp([*(camera.position for camera in cameras), *corners], axis=0)
    return 0.05 * float(np.linalg.norm(spread)) or 1.0


def pyramid(camera: Camera, length: float) -> np.ndarray:
    """One line (point, 3) in the world along the edges of a camera's pyramid and the roof on its upper edge.

    Parallel rays have a box in its place, as wide as the image.
    """
    w, h = camera.width, camera.height
    pixels = np.array([(0, 0), (w, 0), (w, h), (0, h)])
    seen = pixels, camera.focal, camera.principal, camera.lens
    near = ray_starts(*seen)
    a, b, c, d = near + length * unproject(*seen)
    roof = 0.65 * (a + b) - 0.15 * (c + d)
    line = np.array([d, 0 * d, a, b, 0 * d, c, b, roof, a, d, c])
    if camera.lens.parallel:
        p, q, s, t = near
        line = np.array([d, t, p, a, b, q, s, c, b, roof, a, d, c])
    return line @ camera.world_from_camera[:3, :3].T + camera.position


MAX_IMAGES = 64  # images at most, evenly spread, on their cameras
IMAGE_SIDE = 20  # pixels of an image's longer side there
PYRAMID_FACTOR = 2.0  # times as long as pyramids without images


@checked(views=SHOWN_VIEWS, box=optional(BOX), count=whole(1, 10**6), length=optional(number(0, above=True)))
def frusta(
    views: Views,
    box: Numbers | None = None,
    ax: Axes3D | None = None,
    *,
    count: int = MAX_IMAGES,
    length: float | None = None,
) -> Axes3D:
    """Camera frusta with their images: pyramids that open where the cameras look, the image on their open ends.

    Args:
        views: cameras and images.
        box: lower and upper corner (2, 3) [world unit] of a box to draw.
        ax: Axes with `projection="3d"`.
        count: images at most, evenly spread over the views; all cameras are drawn.
        length: of the pyramids [world unit]; a share of the scene's size if not given.

    Returns the Axes; z is up and a unit is as long on every axis.

    Example:
        >>> from raymarch.geometry.orbit import orbit
        >>> ring = orbit((0, 0, 0), 4.0, 6, like=Camera.look_at((4, 0, 0), width=8, height=8))
        >>> ax = frusta(Views(ring, np.full((6, 8, 8, 3), 99, np.uint8)))
        >>> ax.name, ax.get_zlabel()
        ('3d', 'z [world unit]')
    """
    ax = cameras(views, box, ax, colour="none")
    corners = np.empty((0, 3)) if box is None else np.stack(np.meshgrid(*box.T, indexing="ij"), -1).reshape(8, 3)
    add_images(ax, views, PYRAMID_FACTOR * pyramid_length(views.cameras, corners) if length is None else length, count)
    return ax


def add_images(space: Axes3D, views: Views, length: float, count: int = MAX_IMAGES) -> None:
    """Draw the pyramids of all cameras, and the images of up to `count` of them on their open ends."""
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    lines = [pyramid(camera, length) for camera in views.cameras]
    space.add_collection3d(Line3DCollection(lines, colors="0.55", linewidths=0.6), autolim=False)
    faces, colours = [], []
    for i in sorted(set(np.linspace(0, len(views) - 1, min(len(views), count)).astype(int).tolist())):
        quads, small = _pixels(views.cameras[i], views.rgb(i), length)
        faces.append(quads)
        colours.append(small)
    shades = np.clip(np.concatenate(colours), 0, 1)
    mesh = Poly3DCollection(np.concatenate(faces), facecolors=shades, edgecolors=shades, linewidths=0.2)
    space.add_collection3d(mesh, autolim=False)


def _pixels(camera: Camera, image: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Squares (n, 4, 3) in the world of an image made small, and their colours (n, 3)."""
    step = max(max(image.shape[:2]) // IMAGE_SIDE, 1)
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
    return quads.reshape(-1, 4, 3), small.reshape(-1, 3)


AXIS_NAMES = "xyz"


@checked(views=SHOWN_VIEWS, box=optional(BOX))
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
        ax.set(title=f"{AXIS_NAMES[normal]} = {place if abs(place) > 1e-9 * wide else 0:.3g}")
        ax.set(xlabel=f"{AXIS_NAMES[u]} [world unit]", ylabel=f"{AXIS_NAMES[v]} [world unit]")
    few = f"views that see it\n({(count < 2).mean():.0%} of the box by fewer than two)"
    three[0].figure.colorbar(shown, ax=list(three), shrink=0.8, aspect=25, pad=0.02, label=few)
    return three


def middle_plane(ax: Axes, count: np.ndarray, box: np.ndarray, normal: int, most: int) -> AxesImage:
    """Counts of views in the middle plane of a box across an axis, drawn into Axes."""
    u, v = (a for a in range(3) if a != normal)
    plane, extent = count.take(COVERAGE_SIDE // 2, normal), (box[0, u], box[1, u], box[0, v], box[1, v])
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

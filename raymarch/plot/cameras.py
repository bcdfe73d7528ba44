"""Camera frusta with the images that they took, in the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import BOX
from raymarch.plot.camera_pyramids import cameras, pyramid, pyramid_length
from raymarch.views.views import VIEWS, Views

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

SHOWN = 64  # images at most, evenly spread, on their cameras
SIDE = 20  # pixels of an image's longer side there
LENGTH = 2.0  # times as long as pyramids without images


@checked(views=VIEWS, box=optional(BOX), count=whole(1, 10**6), length=optional(number(0, above=True)))
def frusta(
    views: Views, box: Numbers | None = None, ax: Axes3D | None = None, *, count: int = SHOWN,
    length: float | None = None,
) -> Axes3D:  # fmt: skip
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
    add_images(ax, views, LENGTH * pyramid_length(views.cameras, corners) if length is None else length, count)
    return ax


def add_images(space: Axes3D, views: Views, length: float, count: int = SHOWN) -> None:
    """The pyramids of all cameras, and on the open ends of up to `count` of them their images."""
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
    return quads.reshape(-1, 4, 3), small.reshape(-1, 3)

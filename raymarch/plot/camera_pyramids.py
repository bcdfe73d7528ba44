"""Camera plot: frustums in the world, as pyramids."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.checks import Check, optional
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.pixels import starts, unproject
from raymarch.geometry.pose import BOX
from raymarch.plot.panels import panels
from raymarch.views.views import CAMERAS, Views

if TYPE_CHECKING:
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
    near = starts(*seen)
    a, b, c, d = near + length * unproject(*seen)
    roof = 0.65 * (a + b) - 0.15 * (c + d)
    line = np.array([d, 0 * d, a, b, 0 * d, c, b, roof, a, d, c])
    if camera.lens.parallel:
        p, q, s, t = near
        line = np.array([d, t, p, a, b, q, s, c, b, roof, a, d, c])
    return line @ camera.world_from_camera[:3, :3].T + camera.position

"""Pictures of volumes, cameras, fits and images with Matplotlib.

Every function draws into the Axes it is given, or into a new figure, and returns them. None shows or saves anything:
`axes[0].figure.savefig("slices.png")` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.arguments import checked
from raymarch.arrays import display, numeric
from raymarch.checks import Check, Wrong, number, one_of, optional, shown, whole
from raymarch.data.views import CAMERAS, VIEWS, Views
from raymarch.data.volume import VOLUME, Y00, Volume
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import psnr
from raymarch.fitting.report import Report
from raymarch.geometry.camera import Camera
from raymarch.geometry.pose import BOX

if TYPE_CHECKING:
    from raymarch.fitting.fitter import Fit, Fitter


def _line_colour(value):
    from matplotlib.colors import to_rgba_array

    to_rgba_array(value)
    return value


LINE_COLOUR = Check("a colour that Matplotlib knows", _line_colour)
LIMIT = number(0, above=True, unit="1/world unit", cure="leave it out to have it found")
VISIBLE = 0.01  # share of the greatest sigma below which a slice of colour is left blank


@checked(volume=VOLUME, what=one_of("sigma", "colour"), limit=optional(LIMIT))
def slices(volume: Volume, index="middle", what: str = "sigma", axes=None, *, limit: float | None = None):
    """Three slices of a volume at right angles, in world coordinates; what is drawn are its samples.

    Args:
        volume: any; of one that is not upright in the world, the samples nearest to the upright planes.
        index: (i, j, k) of the sample through which the planes run; "middle" or None for the middle one.
        what: "sigma" [1/world unit], or "colour" (its part that all views share) where sigma is over 1 % of its most.
        axes: three Axes.
        limit: sigma at the top of the colour scale, to compare volumes; the slices' greatest if not given.

    Returns the Axes of x-y, x-z and y-z.

    Example:
        >>> volume = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> [ax.get_title() for ax in slices(volume, index=(16, 16, 0))]
        ['z = -1', 'y = 0.0323', 'x = 0.0323']
    """
    middle = index is None or isinstance(index, str) and index == "middle"
    at = np.array(volume.shape) // 2 if middle else _index(index)
    if at.shape != (3,) or at.dtype.kind not in "iu" or (at < 0).any() or (at >= volume.shape).any():
        raise RaymarchError(f"index is {index!r}, want 'middle' or three whole numbers within {volume.shape}")
    point = volume.world_from_index[:3, :3] @ at + volume.world_from_index[:3, 3]
    lower, upper = volume.box
    wide, deep, high = upper - lower
    tall = 1 + min(7.7 * max(deep, high) / (2 * wide + deep), 12)
    three = _panels(axes, 3, (3.5, tall), width_ratios=[wide, wide, deep])
    cuts = [_cut(volume, point, normal) for normal in (2, 1, 0)]
    every = np.concatenate([sigma[np.isfinite(sigma) & (sigma > 0)] for sigma, _ in cuts])
    most = float(every.max()) if every.size else 1.0
    top = most if most < 5 * (usual := float(np.percentile(every, 99)) if every.size else 1.0) else usual
    for ax, normal, (sigma, colour) in zip(three, (2, 1, 0), cuts, strict=True):
        u, v = (a for a in range(3) if a != normal)
        half = 0.5 * (upper - lower)[[u, v]] / (np.array(sigma.shape[::-1]) - 1)
        extent = (lower[u] - half[0], upper[u] + half[0], lower[v] - half[1], upper[v] + half[1])
        picture = sigma if what == "sigma" else np.dstack([colour, sigma >= VISIBLE * top])
        scale: dict[str, Any] = {"cmap": "magma", "vmin": 0, "vmax": limit or top, "interpolation": "nearest"}
        shown = ax.imshow(picture, origin="lower", extent=extent, **scale)
        place = point[normal] if abs(point[normal]) > 1e-9 * wide else 0.0
        across, along, fixed = "xyz"[u], "xyz"[v], f"{'xyz'[normal]} = {place:.3g}"
        ax.set(title=fixed, xlabel=f"{across} [world unit]", ylabel=f"{along} [world unit]")
    if what == "sigma":
        bar: dict[str, Any] = {"label": "sigma [1/world unit]", "extend": "max" if (limit or top) < most else "neither"}
        three[0].figure.colorbar(shown, ax=list(three), shrink=0.8, aspect=25, pad=0.02, **bar)
    return three


def _index(value) -> np.ndarray:
    try:
        return numeric(value)
    except Wrong:
        return np.zeros(0)


def _cut(volume: Volume, point: np.ndarray, normal: int) -> tuple[np.ndarray, np.ndarray]:
    """Sigma (v, u), NaN outside, and colour (v, u, 3) in the plane through a point across the world axis `normal`."""
    lower, upper = volume.box
    counts = np.rint((upper - lower) / volume.voxel).astype(int) + 1
    ticks = [np.linspace(low, high, n) for low, high, n in zip(lower, upper, counts, strict=True)]
    ticks[normal] = point[normal : normal + 1]
    world = np.squeeze(np.stack(np.meshgrid(*ticks, indexing="ij"), -1), axis=normal).swapaxes(0, 1)
    affine = volume.world_from_index
    index = np.rint((world - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T).astype(int)
    inside = ((index >= 0) & (index < volume.shape)).all(-1)
    i, j, k = np.moveaxis(np.where(inside[..., None], index, 0), -1, 0)
    linear = Y00 * volume.features[i, j, k, :3].astype(float)
    colour = np.clip(volume.activation.colour_rule.forward(linear), 0, 1)
    return np.where(inside, volume.activation.sigma(volume.density[i, j, k]), np.nan), colour


@checked(views=CAMERAS, box=optional(BOX), colour=LINE_COLOUR)
def cameras(views: Views | Camera | Iterable[Camera], box=None, ax=None, *, colour: str = "C0"):
    """Cameras in the world as pyramids that open where they look, a roof on the image's upper edge.

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
    (ax,) = _panels(ax, 1, (6.4, 5.6), projection="3d")
    if ax.name != "3d":
        raise RaymarchError(f"Axes are {ax.name}, want 3-D ones; make them with plt.axes(projection='3d')")
    length = 0.05 * np.linalg.norm(np.ptp([*(camera.position for camera in given), *corners], axis=0)) or 1.0
    lines = np.array([_pyramid(camera, float(length)) for camera in given])
    fresh = not ax.collections
    ax.add_collection3d(Line3DCollection(list(lines), colors=colour, linewidths=0.9), autolim=False)
    if box is not None:
        edges = [pair for pair in combinations(corners, 2) if np.count_nonzero(pair[0] - pair[1]) == 1]
        ax.add_collection3d(Line3DCollection(edges, colors="0.25", linewidths=1.2), autolim=False)
    x, y, z = np.concatenate([lines.reshape(-1, 3), corners]).T
    ax.auto_scale_xyz(x, y, z, had_data=not fresh)
    ax.set_box_aspect([np.ptp(ends) for ends in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())], zoom=0.88)
    ax.set(xlabel="x [world unit]", ylabel="y [world unit]", zlabel="z [world unit]")
    ax.locator_params(nbins=5)
    return ax


def _pyramid(camera: Camera, length: float) -> np.ndarray:
    """One line (11, 3) in the world along all edges of a camera's pyramid and the roof on its upper edge."""
    (fx, fy), (px, py), w, h = camera.focal, camera.principal, camera.width, camera.height
    pixels = np.array([(0, 0), (w, 0), (w, h), (0, h), (w / 2, -0.3 * h)])
    x, y = ((pixels - (px, py)) / (fx, fy)).T
    a, b, c, d, roof = length * np.stack([x, -y, -np.ones(5)], axis=1)
    line = np.array([d, 0 * d, a, b, 0 * d, c, b, roof, a, d, c])
    return line @ camera.world_from_camera[:3, :3].T + camera.position


@checked(against=one_of("steps", "seconds"))
def history(fit: Fit | Fitter | Sequence[Report], axes=None, *, against: str = "steps"):
    """Loss and PSNR over a fit, as it measured them on its own rays; dotted lines where the grid became finer.

    Args:
        fit: a `Fit`, a `Fitter` under way, or their reports.
        axes: two Axes.
        against: "steps" or "seconds".

    Returns the Axes of the loss, logarithmic, and of the PSNR [dB].

    Example:
        >>> reports = [Report(25 * n, 0.1 / n, 10.0 + n, 1e6, (32, 32, 32), 1.0, 0.5 * n, n / 8, 1) for n in (1, 2, 3)]
        >>> [ax.get_ylabel() for ax in history(reports, against="seconds")]
        ['loss', 'PSNR of the rays [dB]']
    """
    reports = getattr(fit, "history", fit)
    if not isinstance(reports, (list, tuple)) or not all(isinstance(report, Report) for report in reports or [0]):
        raise RaymarchError(f"fit is {shown(fit)}, want a Fit with at least one Report; let it run 25 steps first")
    x = [report.step if against == "steps" else report.seconds for report in reports]
    two = _panels(axes, 2, (5.25, 3.2))
    two[0].semilogy(x, [report.loss for report in reports], "C0.-", markersize=3)
    two[1].plot(x, [report.psnr for report in reports], "C2.-", markersize=3)
    finer = [i for i in range(1, len(x)) if reports[i].shape != reports[i - 1].shape]
    for ax, label in zip(two, ("loss", "PSNR of the rays [dB]"), strict=True):
        ax.set(xlabel="step" if against == "steps" else "time [s]", ylabel=label)
        ax.grid(alpha=0.3)
    for i in finer:
        for ax in two:
            ax.axvline(x[i], color="0.5", linestyle=":", linewidth=1)
        name, place = " × ".join(map(str, reports[i].shape)), two[0].get_xaxis_transform()
        two[0].text(x[i], 0.03, name, transform=place, rotation=90, size="x-small", color="0.3")
    return two


@checked(image=display, truth=display)
def comparison(image, truth, axes=None):
    """An image, the true one and how far they are apart.

    Args:
        image, truth: (height, width, 3) or (height, width), display values; shown clipped to 0..1.
        axes: three Axes.

    Returns the Axes of the image, the truth and the absolute difference, mean over the channels, with its colour bar.

    Example:
        >>> axes = comparison(np.full((8, 8, 3), 0.6), np.full((8, 8, 3), 0.5))
        >>> axes[2].get_title()
        'difference, PSNR 20.00 dB'
    """
    if image.ndim not in (2, 3) or image.ndim == 3 and image.shape[2] != 3:
        raise RaymarchError(f"image is {image.shape}, want (height, width, 3) or (height, width); take alpha off first")
    decibel = psnr(image, truth)
    difference = np.abs(np.clip(image, 0, 1) - truth).reshape(*image.shape[:2], -1).mean(axis=-1)
    three = _panels(axes, 3, (3.5, 3.3 * image.shape[0] / image.shape[1] + 0.3))
    for ax, picture, title in zip(three, (image, truth), ("rendered", "true"), strict=False):
        ax.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    shown = three[2].imshow(difference, cmap="magma", vmin=0, vmax=float(difference.max()) or 1.0)
    three[2].set(title=f"difference, PSNR {decibel:.2f} dB", xticks=[], yticks=[])
    three[2].figure.colorbar(shown, ax=three[2], shrink=0.9, aspect=25, pad=0.02, label="absolute difference")
    return three


@checked(views=VIEWS, count=whole(1, 10**6))
def images(views: Views, count: int = 8, axes=None):
    """A sheet of images, spread evenly over the views, over their background.

    Args:
        views: cameras and images.
        count: how many at most; as many as there are Axes if those are given.
        axes: Axes, at most as many as there are views.

    Returns the Axes, one an image, with the view's name.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=8)], np.zeros((1, 8, 8, 3), np.uint8), ["first"])
        >>> [ax.get_title() for ax in images(views)]
        ['first']
    """
    count = min(count, len(views)) if axes is None else np.size(axes)
    if not 1 <= count <= len(views):
        raise RaymarchError(f"{count} images asked for, want 1 to {len(views)}, one a view; change count or the Axes")
    panels = _panels(axes, count, (2.4, 2.4 * views.images.shape[1] / views.images.shape[2] + 0.25))
    for ax, i in zip(panels, np.linspace(0, len(views) - 1, count).round().astype(int), strict=True):
        ax.imshow(np.clip(views.rgb(i), 0, 1))
        ax.set(title=views.names[i], xticks=[], yticks=[])
    return panels


def _panels(given, count: int, size: tuple[float, float], *, width_ratios=None, projection=None) -> tuple[Any, ...]:
    """`count` Axes: those given, or new ones of `size` [inch], up to four a row."""
    from matplotlib.axes import Axes

    if given is None:
        import matplotlib.pyplot as plt

        rows, columns = -(-count // 4), min(count, 4)
        figure = plt.figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
        grid = figure.add_gridspec(rows, columns, width_ratios=width_ratios)
        return tuple(figure.add_subplot(grid[divmod(i, columns)], projection=projection) for i in range(count))
    axes = tuple(np.ravel(np.asarray(given, dtype=object)))
    if len(axes) != count or not all(isinstance(ax, Axes) for ax in axes):
        raise RaymarchError(f"axes are {given!r:.60}, want {count} Axes; make them with plt.subplots(1, {count})")
    return axes

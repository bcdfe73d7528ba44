"""Plots of images: an image set with its cameras, comparisons with the true image, and contact sheets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.checks import Check, Numbers, Wrong, array, display, numeric, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import psnr
from raymarch.geometry.boxes import BOX
from raymarch.matching.points import coverage
from raymarch.plot.cameras import (
    AXIS_NAMES,
    PYRAMID_FACTOR,
    add_images,
    box_of_views,
    cameras,
    middle_plane,
    pyramid_length,
)
from raymarch.plot.panels import panels, picture_of
from raymarch.views.views import SHOWN_VIEWS, VIEW_NAMES, Views

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = optional(array("point", 3))


def _channel_image(value: object) -> np.ndarray:
    image = numeric(value)
    if image.ndim != 3 or not image.size:
        raise Wrong(f"has shape {image.shape}", "of one channel pass it[..., None]" if image.ndim == 2 else "")
    return image.astype(float)


CHANNEL_IMAGE = Check("numbers (height, width, channel)", _channel_image)


@checked(views=SHOWN_VIEWS, box=optional(BOX), points=POINTS)
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
    add_images(space, views, PYRAMID_FACTOR * pyramid_length(views.cameras, corners))
    if len(cloud):
        some = cloud[:: max(len(cloud) // 2000, 1)]
        near = (np.abs(some - about.mean(0)) < 1.5 * (about[1] - about[0])).all(1)
        space.scatter(*some[near].T, s=1, c="C3", depthshade=False)
    count = coverage(views, about)
    sides = [figure.add_subplot(grid[k, 1]) for k in range(3)]
    for axis, side in enumerate(sides):
        shown = middle_plane(side, count, about, axis, len(views))
        a, b = (AXIS_NAMES[k] for k in range(3) if k != axis)
        side.set(xlabel=f"{a} [world unit]", ylabel=b, title=f"views, mid {AXIS_NAMES[axis]}")
    figure.colorbar(shown, ax=sides, label="views that see it", shrink=0.6)
    few = (count < 2).mean()
    space.set_title(f"{len(views)} views; {few:.0%} of the box is seen by fewer than two")
    return figure


def picture(views: Views, box: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    """Image-set plot as an image (height, width, 3) uint8."""
    return picture_of(lambda: image_set(views, box, points if len(points) else None))


@checked(image=display, truth=display)
def comparison(image: Numbers, truth: Numbers, axes: Sequence[Axes] | np.ndarray | None = None) -> tuple[Axes, ...]:
    """Comparison plot: an image, the true one and their absolute difference.

    Args:
        image, truth: (height, width, 3) or (height, width), display values; shown clipped to 0..1.
        axes: three Axes.

    Returns the Axes of the image, the truth and the absolute difference, mean over the channels, with its colour bar.

    Example:
        >>> axes = comparison(np.full((8, 8, 3), 0.6), np.full((8, 8, 3), 0.5))
        >>> axes[2].get_title()
        'difference, PSNR 20.00 dB'
    """
    if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] != 3):
        raise RaymarchError(f"image is {image.shape}, want (height, width, 3) or (height, width); take alpha off first")
    decibel = psnr(image, truth)
    difference = np.abs(np.clip(image, 0, 1) - truth).reshape(*image.shape[:2], -1).mean(axis=-1)
    three = panels(axes, 3, (3.5, 3.3 * image.shape[0] / image.shape[1] + 0.3))
    for ax, picture, title in zip(three, (image, truth), ("rendered", "true"), strict=False):
        ax.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    shown = three[2].imshow(difference, cmap="magma", vmin=0, vmax=float(difference.max()) or 1.0)
    three[2].set(title=f"difference, PSNR {decibel:.2f} dB", xticks=[], yticks=[])
    three[2].figure.colorbar(shown, ax=three[2], shrink=0.9, aspect=25, pad=0.02, label="absolute difference")
    return three


@checked(views=SHOWN_VIEWS, count=whole(1, 10**6))
def images(views: Views, count: int = 8, axes: Sequence[Axes] | np.ndarray | None = None) -> tuple[Axes, ...]:
    """Contact sheet of images, spread evenly over the views, over their background.

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
    count = min(count, len(views)) if axes is None else np.size(axes)  # type: ignore[arg-type]  # of any objects
    if not 1 <= count <= len(views):
        raise RaymarchError(f"{count} images asked for, want 1 to {len(views)}, one a view; change count or the Axes")
    sheet = panels(axes, count, (2.4, 2.4 * max(height / width for width, height in views.sizes) + 0.25))
    for ax, i in zip(sheet, np.linspace(0, len(views) - 1, count).round().astype(int), strict=True):
        ax.imshow(np.clip(views.rgb(i), 0, 1))
        ax.set_title(views.names[i], parse_math=False)
        ax.set(xticks=[], yticks=[])
    return sheet


CHANNEL_COLOURS = "viridis"


@checked(image=CHANNEL_IMAGE, names=VIEW_NAMES, ranges=optional(array("channel", 2)))
def channels(
    image: Numbers,
    names: Sequence[str] = (),
    ranges: Numbers | None = None,
    axes: Sequence[Axes] | np.ndarray | None = None,
) -> tuple[Axes, ...]:
    """Channels of an image, each through a colour map over its own range, with a bar of its numbers.

    Args:
        image: (height, width, channel), as `rm.render` gives of a volume of channels, or `views.values(0)`; NaN, what
            is not known, is blank.
        names: of the channels, as `volume.channels`.
        ranges: low and high (channel, 2) of the colours, as `views.ranges`; those of the image if not given.
        axes: Axes, one a channel.

    Returns the Axes. Raises RaymarchError for names, ranges or Axes that are not as many as the channels.

    Example:
        >>> [ax.get_title() for ax in channels(np.random.rand(6, 8, 2), ["thermal", "nir"])]
        ['thermal', 'nir']
    """
    values = np.asarray(image)
    count = values.shape[2]
    names = list(names) or [f"channel {c}" for c in range(count)]
    for what, several in (("names", names), ("ranges", ranges)):
        if several is not None and len(several) != count:  # type: ignore[arg-type]
            raise RaymarchError(f"{what} are {len(several)}, the image has {count} channels; give one for each")  # type: ignore[arg-type]
    sheet = panels(axes, count, (3.0, 2.4 * values.shape[0] / values.shape[1] + 0.4))
    for c, ax in enumerate(sheet):
        known = values[..., c][np.isfinite(values[..., c])]
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        if ranges is not None:
            low, high = np.asarray(ranges)[c]
        shown = ax.imshow(values[..., c], cmap=CHANNEL_COLOURS, vmin=float(low), vmax=float(high))
        ax.set_title(names[c], parse_math=False)
        ax.set(xticks=[], yticks=[])
        ax.figure.colorbar(shown, ax=ax, shrink=0.9, aspect=25, pad=0.02)
    return sheet

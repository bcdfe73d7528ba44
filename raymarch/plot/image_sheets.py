"""Image plots: comparison with the true one, and contact sheets of a set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, display
from raymarch.arguments.checks import whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import psnr
from raymarch.plot.panels import panels
from raymarch.views.views import VIEWS, Views

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


@checked(views=VIEWS, count=whole(1, 10**6))
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

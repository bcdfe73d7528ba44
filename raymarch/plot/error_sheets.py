"""Error pictures: what a volume shows wrong, as a picture a view and as a contact sheet of truth, image and error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from raymarch.arguments.arrays import Numbers, display
from raymarch.arguments.checks import Check, number
from raymarch.arguments.declared import checked
from raymarch.data.views import NAMES
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import psnr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = "magma"
LIMIT = 0.25  # absolute error that is the end of the colours, the same for all views: pictures can be compared
WIDTH = 3.0  # of a picture of the sheet [inch]
LARGEST = 400  # pixels a side that a picture of the sheet keeps
LIMITS = number(0, 1, above=True)


def _pictures(value: Sequence[Numbers]) -> list[Numbers]:
    if isinstance(value, str):
        raise TypeError
    return list(value)


PICTURES = Check("a list of images", _pictures)


def _error(image: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Absolute error (height, width), mean over channels."""
    if image.shape != truth.shape or image.ndim != 3 or image.shape[2] != 3:
        raise RaymarchError(f"images are {image.shape} and {truth.shape}, want (height, width, 3) of one size")
    return np.abs(np.clip(image, 0, 1) - truth).mean(axis=-1)


@checked(image=display, truth=display, limit=LIMITS)
def error_picture(image: Numbers, truth: Numbers, limit: float = LIMIT) -> np.ndarray:
    """Error picture (height, width, 3) uint8: absolute difference, mean over channels, black for 0, pale for `limit`.

    Example:
        >>> error_picture(np.full((4, 4, 3), 0.5), np.full((4, 4, 3), 0.5))[0, 0].tolist()
        [0, 0, 3]
    """
    from matplotlib import colormaps

    return colormaps[COLOURS](np.clip(_error(image, truth) / limit, 0, 1), bytes=True)[..., :3]


@checked(images=PICTURES, truths=PICTURES, names=NAMES, limit=LIMITS)
def error_sheet(
    images: Sequence[Numbers], truths: Sequence[Numbers], names: Sequence[str] = (), limit: float = LIMIT
) -> Figure:
    """Contact sheet of an evaluation: a row a view, with the true image, the rendered one and the absolute difference.

    Args:
        images, truths: (height, width, 3) each, display values; as many of each.
        names: one a row; numbers if not given.
        limit: error that is the end of the colours, one scale for all rows.

    Returns a new figure; a row's name and PSNR stand at its left.

    Example:
        >>> figure = error_sheet([np.full((8, 8, 3), 0.6)], [np.full((8, 8, 3), 0.5)], ["first"])
        >>> figure.axes[0].get_ylabel().splitlines()
        ['first', '20.00 dB']
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not len(images) == len(truths) == len(names or images) or len(images) == 0:
        raise RaymarchError(
            f"{len(images)} images, {len(truths)} truths and {len(names)} names; want one or more, as many of each"
        )
    pairs = [(display("image", a), display("truth", b)) for a, b in zip(images, truths, strict=True)]
    heights = [WIDTH * b.shape[0] / b.shape[1] for _, b in pairs]
    layout = ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0, hspace=0)
    figure = Figure(figsize=(3 * WIDTH + 1.2, sum(heights) + 0.08 * len(pairs) + 0.9), layout=layout)
    axes = figure.subplots(len(pairs), 3, squeeze=False, height_ratios=heights)
    for ax, title in zip(axes[0], ("true", "rendered", "absolute error"), strict=True):
        ax.set_title(title)
    for row, (image, truth), name in zip(axes, pairs, names or range(len(pairs)), strict=True):
        shown = row[2].imshow(_reduced(_error(image, truth)), cmap=COLOURS, vmin=0, vmax=limit)
        row[0].imshow(_reduced(truth))
        row[1].imshow(_reduced(np.clip(image, 0, 1)))
        row[0].set_ylabel(f"{name!s:.40}\n{psnr(image, truth):.2f} dB", rotation=0, ha="right", va="center")
        for ax in row:
            ax.set(xticks=[], yticks=[])
    figure.colorbar(shown, ax=axes[-1, 2], location="bottom", fraction=0.08, pad=0.02, extend="max")
    return figure


def _reduced(picture: np.ndarray) -> np.ndarray:
    """A picture at most `LARGEST` pixels a side: means over squares of pixels, so that no error is stepped over."""
    factor = -(-max(picture.shape[:2]) // LARGEST)
    if factor == 1:
        return picture
    height, width = (n // factor * factor for n in picture.shape[:2])
    cut = picture[:height, :width]
    return cut.reshape(height // factor, factor, width // factor, factor, *picture.shape[2:]).mean((1, 3))

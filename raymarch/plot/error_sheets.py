"""Error pictures: what a volume shows wrong, as a picture a view and as a contact sheet of image, truth and error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from raymarch.arguments.arrays import Numbers, display
from raymarch.arguments.checks import Check, number, optional
from raymarch.arguments.declared import checked
from raymarch.data.masked_picture import GREY, without
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import inside_mask, psnr
from raymarch.views.image_arrays import MASKS, Masks
from raymarch.views.views import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

COLOURS = "magma"
LIMIT = 0.25  # absolute error that is the end of the colours, the same for all views: pictures can be compared
WIDTH, HEIGHT = 3.0, 4.0  # of a picture of the sheet, at most [inch]
GAP, TITLE, BAR, EDGE = 0.06, 0.3, 0.55, 0.1  # between pictures, above them, below them, around all [inch]
TALL = 1.8  # times as high as wide a sheet may be; else its views stand in two columns
LONGEST = 40  # letters of a name
TITLES = "rendered", "true", "absolute error"
LARGEST = 400  # pixels a side that a picture of the sheet keeps
LIMITS = number(0, 1, above=True)


def _pictures(value: Sequence[Numbers]) -> list[Numbers]:
    if isinstance(value, str):
        raise TypeError
    return list(value)


PICTURES = Check("a list of images", _pictures)


def _error(image: np.ndarray, truth: np.ndarray, mask: np.ndarray | None) -> np.ma.MaskedArray:
    """Absolute error (height, width), mean over channels, without what a mask takes out."""
    if image.shape != truth.shape or image.ndim != 3 or image.shape[2] != 3:
        raise RaymarchError(f"images are {image.shape} and {truth.shape}, want (height, width, 3) of one size")
    error = np.abs(np.clip(image, 0, 1) - truth).mean(axis=-1)
    return np.ma.array(error, mask=np.zeros(error.shape, bool) if mask is None else ~inside_mask(mask, image))


@checked(image=display, truth=display, limit=LIMITS)
def error_picture(image: Numbers, truth: Numbers, limit: float = LIMIT, mask: np.ndarray | None = None) -> np.ndarray:
    """Error picture (height, width, 3) uint8: absolute difference, mean over channels, black for 0, pale for `limit`.

    Of a `mask` (height, width) what is False is grey.

    Example:
        >>> error_picture(np.full((4, 4, 3), 0.5), np.full((4, 4, 3), 0.5))[0, 0].tolist()
        [0, 0, 3]
    """
    return _colours()(_error(image, truth, mask) / limit, bytes=True)[..., :3]


def _colours() -> Colormap:
    from matplotlib import colormaps

    return colormaps[COLOURS].with_extremes(bad=(GREY,) * 3)


@checked(images=PICTURES, truths=PICTURES, names=NAMES, limit=LIMITS, masks=optional(MASKS))
def error_sheet(
    images: Sequence[Numbers],
    truths: Sequence[Numbers],
    names: Sequence[str] = (),
    limit: float = LIMIT,
    masks: Masks = None,
) -> Figure:
    """Contact sheet of an evaluation: a row a view, with the rendered image, the true one and the absolute difference.

    Args:
        images, truths: (height, width, 3) each, display values; as many of each.
        names: one a row; numbers if not given.
        limit: error that is the end of the colours, one scale for all rows.
        masks: (height, width) booleans or None for each; what is False is grey, and no part of the PSNR.

    Returns a new figure; a row's name and PSNR stand at its left. Rows of high images stand in two columns.

    Example:
        >>> figure = error_sheet([np.full((8, 8, 3), 0.6)], [np.full((8, 8, 3), 0.5)], ["first"])
        >>> figure.axes[0].get_ylabel().splitlines()
        ['first', '20.00 dB']
    """
    masks = [None] * len(images) if masks is None else masks
    if not len(images) == len(truths) == len(names or images) == len(masks) or len(images) == 0:
        raise RaymarchError(
            f"{len(images)} images, {len(truths)} truths, {len(names)} names and {len(masks)} masks; want one or more,"
            " as many of each"
        )
    rows = []
    for image, truth, name, mask in zip(images, truths, names or range(len(images)), masks, strict=True):
        image, truth = display("image", image), display("truth", truth)
        error = _error(image, truth, mask)
        label = f"{name!s:.{LONGEST}}\n{psnr(image, truth, mask):.2f} dB"
        rows.append(_Row(label, (np.clip(image, 0, 1), without(truth, mask), error)))
    return _drawn(rows, limit)


class _Row(NamedTuple):
    """Row of a sheet: its label, and the rendered image, the true one and the error."""

    label: str
    pictures: tuple[np.ndarray, np.ndarray, np.ma.MaskedArray]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a picture on the sheet [inch]."""
        height, width = self.pictures[0].shape[:2]
        scale = min(WIDTH / width, HEIGHT / height)
        return width * scale, height * scale


def _drawn(rows: Sequence[_Row], limit: float) -> Figure:
    """Figure of rows, each picture at a place of its own: engines of layout leave gaps around a colour bar."""
    from matplotlib.figure import Figure

    wide, left = max(row.size[0] for row in rows), max(_width(row.label) for row in rows) + 2 * EDGE
    group = left + 3 * (wide + GAP)
    count = len(rows) if _height(rows) <= TALL * group else -(-len(rows) // 2)
    columns = [rows[i : i + count] for i in range(0, len(rows), count)]
    across, high = group * len(columns) + EDGE, TITLE + max(map(_height, columns)) + BAR + 2 * EDGE
    figure = Figure(figsize=(across, high))

    def place(x: float, y: float, width: float, height: float) -> Axes:
        """Axes whose upper left corner is at x from the left and y from the top [inch]."""
        return figure.add_axes((x / across, 1 - (y + height) / high, width / across, height / high))

    for i, column in enumerate(columns):
        y = TITLE + EDGE
        for j, row in enumerate(column):
            width, height = row.size
            for k, (picture, title) in enumerate(zip(row.pictures, TITLES, strict=True)):
                ax = place(left + i * group + k * (wide + GAP) + (wide - width) / 2, y, width, height)
                shown = ax.imshow(reduced(picture), cmap=_colours(), vmin=0, vmax=limit, aspect="auto")
                ax.set(xticks=[], yticks=[], title=title if j == 0 else "")
                if k == 0:
                    ax.set_ylabel(row.label, rotation=0, ha="right", va="center", parse_math=False)
            y += height + GAP
    bar = place(across - EDGE - GAP - wide, high - EDGE - BAR + 0.1, wide, 0.14)
    figure.colorbar(shown, cax=bar, orientation="horizontal", extend="max")
    return figure


def _height(rows: Sequence[_Row]) -> float:
    """Height of so many rows on the sheet [inch]."""
    return sum(row.size[1] + GAP for row in rows)


def _width(label: str) -> float:
    """Width of a label [inch]."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=rcParams["font.size"])
    lines = (TextToPath().get_text_width_height_descent(line, font, False)[0] for line in label.splitlines())
    return max(lines) / 72


def reduced(picture: np.ndarray) -> np.ndarray:
    """A picture at most `LARGEST` pixels a side: means over squares of pixels, so that no error is stepped over."""
    factor = -(-max(picture.shape[:2]) // LARGEST)
    for axis in (0, 1) if factor > 1 else ():
        begins = np.arange(0, picture.shape[axis], factor)
        sizes = np.diff(np.append(begins, picture.shape[axis]))  # the last may be smaller
        sums = np.add.reduceat(picture, begins, axis, dtype=float)
        picture = sums / np.expand_dims(sizes, [a for a in range(picture.ndim) if a != axis])
    return picture

"""Plots of a fit: its loss and PSNR, the errors of its pictures, and its residuals by view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raymarch.arguments.checks import Check, Numbers, describe_value, display, number, one_of, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.evaluation.metrics import psnr, require_mask
from raymarch.plot.panels import panels
from raymarch.views.display_values import MASKED_GREY, mask_out
from raymarch.views.image_arrays import MASKS, Masks
from raymarch.views.views import VIEW_NAMES

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from raymarch.evaluation.held_out import Evaluation
    from raymarch.fitting.fitter import Fitter
    from raymarch.fitting.report import Fit, Report


@checked(against=one_of("steps", "seconds"))
def history(
    fit: Fit | Fitter | Sequence[Report], axes: Sequence[Axes] | np.ndarray | None = None, *, against: str = "steps"
) -> tuple[Axes, ...]:
    """Convergence plot: loss and PSNR over a fit, on its own rays; dotted lines where the grid became finer.

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
    from raymarch.fitting.report import Report  # here, as it brings Taichi

    reports = getattr(fit, "history", fit)
    if not isinstance(reports, (list, tuple)) or not all(isinstance(report, Report) for report in reports or [0]):
        raise RaymarchError(
            f"fit is {describe_value(fit)}, want a Fit with at least one Report; let it run 25 steps first"
        )
    x = [report.step if against == "steps" else report.seconds for report in reports]
    two = panels(axes, 2, (5.25, 3.2))
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


ERROR_COLOURS = "magma"
ERROR_LIMIT = 0.25  # absolute error that is the end of the colours, the same for all views: pictures can be compared
MAX_PICTURE_WIDTH, MAX_PICTURE_HEIGHT = 3.0, 4.0  # of a picture of the sheet, at most [inch]
# between pictures, above them, below them, around all [inch]
GAP_WIDTH, TITLE_HEIGHT, BAR_HEIGHT, EDGE_WIDTH = 0.06, 0.3, 0.55, 0.1
MAX_SHEET_RATIO = 1.8  # times as high as wide a sheet may be; else its views stand in two columns
MAX_NAME_LENGTH = 40  # letters of a name
COLUMN_TITLES = "rendered", "true", "absolute error"
MAX_KEPT_SIDE = 400  # pixels a side that a picture of the sheet keeps
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
    return np.ma.array(error, mask=np.zeros(error.shape, bool) if mask is None else ~require_mask(mask, image))


@checked(image=display, truth=display, limit=LIMITS)
def error_picture(
    image: Numbers, truth: Numbers, limit: float = ERROR_LIMIT, mask: np.ndarray | None = None
) -> np.ndarray:
    """Error picture (height, width, 3) uint8: absolute difference, mean over channels, black for 0, pale for `limit`.

    Of a `mask` (height, width) what is False is grey.

    Example:
        >>> error_picture(np.full((4, 4, 3), 0.5), np.full((4, 4, 3), 0.5))[0, 0].tolist()
        [0, 0, 3]
    """
    return _colours()(_error(image, truth, mask) / limit, bytes=True)[..., :3]


def _colours() -> Colormap:
    from matplotlib import colormaps

    return colormaps[ERROR_COLOURS].with_extremes(bad=(MASKED_GREY,) * 3)


@checked(images=PICTURES, truths=PICTURES, names=VIEW_NAMES, limit=LIMITS, masks=optional(MASKS))
def error_sheet(
    images: Sequence[Numbers],
    truths: Sequence[Numbers],
    names: Sequence[str] = (),
    limit: float = ERROR_LIMIT,
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
        label = f"{name!s:.{MAX_NAME_LENGTH}}\n{psnr(image, truth, mask):.2f} dB"
        rows.append(_Row(label, (np.clip(image, 0, 1), mask_out(truth, mask), error)))
    return _draw_rows(rows, limit)


class _Row(NamedTuple):
    """Row of a sheet: its label, and the rendered image, the true one and the error."""

    label: str
    pictures: tuple[np.ndarray, np.ndarray, np.ma.MaskedArray]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of a picture on the sheet [inch]."""
        height, width = self.pictures[0].shape[:2]
        scale = min(MAX_PICTURE_WIDTH / width, MAX_PICTURE_HEIGHT / height)
        return width * scale, height * scale


def _draw_rows(rows: Sequence[_Row], limit: float) -> Figure:
    """Figure of rows, each picture at a place of its own: engines of layout leave gaps around a colour bar."""
    from matplotlib.figure import Figure

    wide, left = max(row.size[0] for row in rows), max(_width(row.label) for row in rows) + 2 * EDGE_WIDTH
    group = left + 3 * (wide + GAP_WIDTH)
    count = len(rows) if _height(rows) <= MAX_SHEET_RATIO * group else -(-len(rows) // 2)
    columns = [rows[i : i + count] for i in range(0, len(rows), count)]
    across, high = (
        group * len(columns) + EDGE_WIDTH,
        TITLE_HEIGHT + max(map(_height, columns)) + BAR_HEIGHT + 2 * EDGE_WIDTH,
    )
    figure = Figure(figsize=(across, high))

    def place(x: float, y: float, width: float, height: float) -> Axes:
        """Axes whose upper left corner is at x from the left and y from the top [inch]."""
        return figure.add_axes((x / across, 1 - (y + height) / high, width / across, height / high))

    for i, column in enumerate(columns):
        y = TITLE_HEIGHT + EDGE_WIDTH
        for j, row in enumerate(column):
            width, height = row.size
            for k, (picture, title) in enumerate(zip(row.pictures, COLUMN_TITLES, strict=True)):
                ax = place(left + i * group + k * (wide + GAP_WIDTH) + (wide - width) / 2, y, width, height)
                drawn = ax.imshow(reduce_picture(picture), cmap=_colours(), vmin=0, vmax=limit, aspect="auto")
                ax.set(xticks=[], yticks=[], title=title if j == 0 else "")
                if k == 0:
                    ax.set_ylabel(row.label, rotation=0, ha="right", va="center", parse_math=False)
            y += height + GAP_WIDTH
    bar = place(across - EDGE_WIDTH - GAP_WIDTH - wide, high - EDGE_WIDTH - BAR_HEIGHT + 0.1, wide, 0.14)
    figure.colorbar(drawn, cax=bar, orientation="horizontal", extend="max")
    return figure


def _height(rows: Sequence[_Row]) -> float:
    """Height of so many rows on the sheet [inch]."""
    return sum(row.size[1] + GAP_WIDTH for row in rows)


def _width(label: str) -> float:
    """Width of a label [inch]."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(size=rcParams["font.size"])
    lines = (TextToPath().get_text_width_height_descent(line, font, False)[0] for line in label.splitlines())
    return max(lines) / 72


def reduce_picture(picture: np.ndarray) -> np.ndarray:
    """A picture at most `MAX_KEPT_SIDE` pixels a side: means over squares of pixels, so that no error is stepped
    over.
    """
    factor = -(-max(picture.shape[:2]) // MAX_KEPT_SIDE)
    for axis in (0, 1) if factor > 1 else ():
        begins = np.arange(0, picture.shape[axis], factor)
        sizes = np.diff(np.append(begins, picture.shape[axis]))  # the last may be smaller
        sums = np.add.reduceat(picture, begins, axis, dtype=float)
        picture = sums / np.expand_dims(sizes, [a for a in range(picture.ndim) if a != axis])
    return picture


MAX_NAMED_VIEWS = 16  # views, of which each has its name under it
LABELS = {
    "psnr": "PSNR [dB]",
    "ssim": "SSIM",
    "psnr_halves": "PSNR by halves [dB]",
    "psnr_masked": "PSNR of the object [dB]",
    "ssim_masked": "SSIM of the object",
    "lpips": "LPIPS",
}


def _evaluation(value: object) -> Evaluation:
    from raymarch.evaluation.held_out import Evaluation as Kind  # here, as it brings Taichi

    if not isinstance(value, Kind):
        raise TypeError
    return value


EVALUATION = Check("an Evaluation, as rm.evaluate gives", _evaluation)


@checked(evaluation=EVALUATION, score=one_of(*LABELS), worst=whole(0, 100))
def residuals(evaluation: Evaluation, ax: Axes | None = None, *, score: str = "psnr", worst: int = 3) -> Axes:
    """Residuals by view: the score of each view as a dot over their mean, the worst in colour and named.

    Args:
        evaluation: as `rm.evaluate` gives.
        ax: Axes.
        score: "psnr" [dB], "ssim", "psnr_halves", "psnr_masked", "ssim_masked" or "lpips".
        worst: how many are named; the lowest, of LPIPS the highest.

    Returns the Axes, views in their order, those left out whose PSNR is infinite, as they are in an evaluation's mean.
    Raises RaymarchError for a score that no view has.

    Up to 16 views have their names on the axis, of more the worst alone.

    Example:
        >>> from raymarch.evaluation.held_out import Evaluation, ViewScore
        >>> scores = tuple(ViewScore(name, psnr, 0.9) for name, psnr in (("a", 30.0), ("b", 21.0), ("c", 28.0)))
        >>> ax = residuals(Evaluation(26.3, 0.9, scores, 0.1), worst=1)
        >>> [text.get_text() for text in ax.texts]
        ['21.00', 'mean\\n26.33']
    """
    known = [(i, view.name, getattr(view, score)) for i, view in enumerate(evaluation.views)]
    known = [each for each in known if each[2] is not None and np.isfinite(each[2])]
    if not known:
        raise RaymarchError(f"score is {score!r}, which none of {len(evaluation.views)} views has; take another")
    at, names, values = np.array([i for i, _, _ in known]), [n for _, n, _ in known], np.array([v for *_, v in known])
    (ax,) = panels(ax, 1, (max(min(0.16 * len(at), 11), 5.2), 3.4))
    order = np.argsort(-values if score == "lpips" else values)[: min(worst, len(values))]
    mean, digits = float(values.mean()), 2 if score.startswith("psnr") else 3
    colours = np.full(len(values), "0.45", object)
    colours[order] = "C3"
    ax.axhline(mean, color="k", linewidth=1, linestyle="--")
    ax.vlines(at, mean, values, colors=list(colours), linewidth=1.3)
    ax.scatter(at, values, 24, list(colours), zorder=3)
    spread = float(np.ptp(values)) or 0.1 * abs(mean) or 1.0
    below, many = score != "lpips", len(at) > MAX_NAMED_VIEWS
    away = (0.6 if many else 0.2) * spread
    ends = (values.min() - (away if below else 0.1 * spread), values.max() + (0.1 * spread if below else away))
    ax.set(xlim=(at[0] - 0.8, at[-1] + 0.8), ylim=ends)
    beside: dict[str, Any] = {"va": "top" if below else "bottom", "ha": "center", "color": "C3"}
    beside["rotation"] = 90 if many else 0
    how: dict[str, Any] = {"textcoords": "offset points", "size": "small", "parse_math": False}
    for i in order:
        text = f"{names[i]} {values[i]:.{digits}f}" if many else f"{values[i]:.{digits}f}"
        ax.annotate(text, (at[i], values[i]), (0, -6 if below else 6), **beside, **how)
    ax.annotate(f"mean\n{mean:.{digits}f}", (1, mean), (5, 0), xycoords=("axes fraction", "data"), va="center", **how)
    ax.set(xlabel="view", ylabel=LABELS[score])
    if len(at) <= MAX_NAMED_VIEWS:
        ax.set_xticks(at, names, rotation=35, ha="right", rotation_mode="anchor", size="small", parse_math=False)
    ax.grid(axis="y", alpha=0.25)
    ax.set_axisbelow(True)
    return ax

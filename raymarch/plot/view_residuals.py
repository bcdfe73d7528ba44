"""Residuals by view: the score of each, with the worst named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.arguments.checks import Check, one_of, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.plot.panels import panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from raymarch.evaluation.held_out import Evaluation

NAMED = 16  # views, of which each has its name under it
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
    below, many = score != "lpips", len(at) > NAMED
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
    if len(at) <= NAMED:
        ax.set_xticks(at, names, rotation=35, ha="right", rotation_mode="anchor", size="small", parse_math=False)
    ax.grid(axis="y", alpha=0.25)
    ax.set_axisbelow(True)
    return ax

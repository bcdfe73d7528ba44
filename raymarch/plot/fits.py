"""Convergence plot: loss and PSNR over a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raymarch.arguments.checks import one_of, shown
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.plot.panels import panels

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

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
        raise RaymarchError(f"fit is {shown(fit)}, want a Fit with at least one Report; let it run 25 steps first")
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

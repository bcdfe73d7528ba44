"""Reports of a fit on its way, its result, and the volume that comes of its grid, with its provenance."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch import engine
from raymarch.arguments.declared import checked
from raymarch.device.grid import Grid
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import Evaluation, evaluate
from raymarch.fitting.photometry import Photometry
from raymarch.fitting.plan.plan import Plan
from raymarch.fitting.settings.settings import FitSettings
from raymarch.fitting.table_activation import clear_raws, march_of
from raymarch.html.card import card_html, html_of, numbers_text
from raymarch.html.picture import curve
from raymarch.system.versions import version_of
from raymarch.views.identity import record_of
from raymarch.views.views import MASK_MEANINGS, VIEWS, Views
from raymarch.volumes.channels import unscaled_channels
from raymarch.volumes.volume import Volume, volume_picture

INTERRUPTED = "interrupted"
NOT_FINITE = "loss or gradient not finite"


@dataclass(frozen=True)
class Report:
    """Fit report: loss and PSNR on the rays of the last step, occupancy, time left, nested boxes."""

    step: int
    loss: float
    psnr: float
    rays_per_second: float
    shape: tuple[int, int, int]
    occupied: float
    seconds: float
    progress: float
    seconds_left: float
    boxes: int = 1


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a fit.

    Attributes:
        volume, settings, box: as fitted; settings with what they left open.
        history: reports on the way.
        ended: "done", or what else is to be known of its end.
        seconds: of its steps, without what compiling took.
        resumed_from: step that it went on from, or None.
        preparation: seconds of loading, planning and compiling; most of it is compiling, once a machine.
    """

    volume: Volume
    settings: FitSettings
    history: tuple[Report, ...]
    box: np.ndarray
    ended: str
    seconds: float
    resumed_from: int | None = None
    preparation: float = 0.0

    def __repr__(self) -> str:
        steps = self.volume.provenance["steps"]
        return f"Fit({self.volume!r}, {steps} steps in {self.seconds:.0f} s, ended={self.ended!r})"

    def _repr_html_(self) -> str | None:
        return html_of(fit_card, self)

    @checked(views=VIEWS)
    def evaluate(self, views: Views) -> Evaluation:
        """PSNR and SSIM against views, best ones the fit has not seen, in the fit's mode."""
        return evaluate(self.volume, views, march=march_of(self.settings))


def fit_card(fit: Fit) -> str:
    """HTML of a fit's result for a notebook: how it ended, how well, and the curves of loss and PSNR."""
    rows = [
        ("ended", fit.ended),
        ("steps", fit.volume.provenance.get("steps")),
        ("seconds", f"{fit.seconds:.1f}, after {fit.preparation:.1f} of loading and compiling"),
        *rows_of(fit.history[-1] if fit.history else None, fit.box),
        ("resumed from step", fit.resumed_from),
    ]
    return card_html("Fit", rows, [volume_picture(fit.volume), *curves(fit.history)])


def rows_of(last: Report | None, box: np.ndarray) -> list[tuple[str, object]]:
    """Rows of the last `Report`, or None: samples, box, PSNR, loss, occupancy."""
    where = ("box", f"{numbers_text(box[0])} to {numbers_text(box[1])}")
    if last is None:
        return [where]
    return [
        ("samples (x, y, z)", " x ".join(map(str, last.shape))),
        where,
        ("PSNR of its rays", f"{last.psnr:.2f} dB"),
        ("loss", f"{last.loss:.4g}"),
        ("occupied", f"{100 * last.occupied:.1f} % of the cells"),
    ]


def curves(history: Sequence[Report]) -> list[str]:
    """Curves of loss and PSNR over the steps; none with under two reports."""
    steps = [report.step for report in history]
    drawn = [curve(steps, [np.log10(max(report.loss, 1e-30)) for report in history], "log10 of the loss")]
    return [each for each in [*drawn, curve(steps, [report.psnr for report in history], "PSNR [dB]")] if each]


def volume_of(grid: Grid, plan: Plan, photometry: Photometry, told: Mapping[str, Any]) -> Volume:
    """Volume of a fit's grid; samples that the fit skipped as empty are made empty for every reader."""
    about: dict[str, Any] = {
        "activation": plan.activation,
        "background": photometry.background,
        "provenance": provenance(plan.settings, plan.views, {**told, **photometry.record()}),
    }
    table = plan.settings.transfer
    empty = None if table is None else clear_raws(table, grid.activation)
    samples = grid.carved_samples(empty)
    if plan.views.channels:
        names, ranges = plan.views.shown, plan.views.ranges
        about["provenance"]["ranges"] = dict(zip(names, ranges.tolist(), strict=True))
        about |= {"activation": replace(plan.activation, colour="identity"), "channels": names}
        samples = unscaled_channels(samples, ranges)
    return Volume(world_from_index=grid.world_from_index, samples=samples, **about, **plan.lies)


def provenance(settings: FitSettings, views: Views, told: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance of a fitted volume: settings, views, versions and what is told."""
    source = {"source": views.source, "count": len(views), "downscale": views.downscale, "holdout": views.holdout}
    source |= {} if views.masks_as == MASK_MEANINGS[0] else {"masks": views.masks_as}
    source |= {} if views.origin is None else {"origin": list(views.origin)}
    return {"settings": settings.record(), "views": source | record_of(views), **told, "versions": versions()}


def versions() -> dict[str, str]:
    """Versions of the software that made a volume, for its provenance."""
    packages = {package: version_of(package) for package in ("raymarch", engine.NAME, "numpy")}
    return {**packages, "python": platform.python_version()}


def cut_short(ended: object) -> bool:
    """Test of an ending, as in a volume's provenance: whether the fit is less than what was asked for.

    Example:
        >>> cut_short("interrupted at step 16"), cut_short("done"), cut_short(None)
        (True, False, False)
    """
    return isinstance(ended, str) and ended.startswith((INTERRUPTED, NOT_FINITE))


class NoStep(RaymarchError):
    """Error of a fit that was stopped before its first step, so that there is no volume."""


class NotFinite(RaymarchError):
    """Error of a loss or gradient that is not finite; the fitter's grid keeps the values from before."""


def require_finite(loss: float, nonfinite_step: int, steps: int) -> None:
    """Divergence check: NotFinite, with the step, where loss or gradient (noted as its step + 2) is not finite."""
    if nonfinite_step or not math.isfinite(loss):
        step = nonfinite_step - 2 if nonfinite_step else steps - 1
        raise NotFinite(f"{NOT_FINITE} at step {step}; the volume from before it is kept; lower the learning rates")

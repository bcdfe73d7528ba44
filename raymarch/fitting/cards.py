"""Cards of fits in a notebook: how far, how well, and the curves of loss and PSNR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from raymarch.fitting.settings.settings import FitSettings
from raymarch.html.card import Shown, card, numbers
from raymarch.html.picture import curve
from raymarch.views.views import Views
from raymarch.volumes.transfer_function import TransferFunction
from raymarch.volumes.volume import Volume


class FitterCard(Shown):
    """Fit that shows itself in a notebook while it can be stepped, without a look at the device; `Fitter` has the rest.

    It may be asked for between two steps, from whatever thread, so it draws nothing.
    """

    views: Views
    settings: FitSettings
    history: list[Any]
    box: np.ndarray
    steps_done: int

    @property
    def seconds(self) -> float:
        """Seconds of the fit."""
        raise NotImplementedError

    @property
    def progress(self) -> float:
        """Fraction of the fit that is done, 0..1."""
        raise NotImplementedError

    def _card(self) -> str:
        last = self.history[-1] if self.history else None
        of = f" of {self.settings.steps}" if self.settings.steps else ""
        rows = [
            ("steps", f"{self.steps_done}{of}, {100 * self.progress:.0f} % of the fit"),
            ("images", self.views.count_in_words()),
            *rows_of(last, self.box),
            ("seconds", f"{self.seconds:.1f}" if last is None else f"{last.seconds:.1f}, left {last.seconds_left:.0f}"),
        ]
        return card("Fitter", rows, curves(self.history))


class FitCard(Shown):
    """Result of a fit that shows itself in a notebook; `Fit` has the fields."""

    volume: Volume
    history: tuple[Any, ...]
    box: np.ndarray
    ended: str
    seconds: float
    resumed_from: int | None
    preparation: float

    def _card(self) -> str:
        rows = [
            ("ended", self.ended),
            ("steps", self.volume.provenance.get("steps")),
            ("seconds", f"{self.seconds:.1f}, after {self.preparation:.1f} of loading and compiling"),
            *rows_of(self.history[-1] if self.history else None, self.box),
            ("resumed from step", self.resumed_from),
        ]
        return card("Fit", rows, [self.volume.thumbnail_html(), *curves(self.history)])


class TableFitCard(Shown):
    """Result of a fit of a table that shows itself in a notebook; `TableFit` has the fields."""

    table: TransferFunction
    loss: np.ndarray
    seconds: float

    def _card(self) -> str:
        rows = [
            ("steps", len(self.loss)),
            ("loss", f"{self.loss[0]:.4g} to {self.loss[-1]:.4g}" if len(self.loss) else None),
            ("seconds", f"{self.seconds:.1f}"),
        ]
        drawn = curve(range(len(self.loss)), np.log10(np.maximum(self.loss, 1e-30)).tolist(), "log10 of the loss")
        return card("TableFit", rows, [self.table.picture_html(), drawn])


def rows_of(last: Any, box: np.ndarray) -> list[tuple[str, object]]:
    """Rows of the last `Report`, or None: samples, box, PSNR, loss, occupancy."""
    where = ("box", f"{numbers(box[0])} to {numbers(box[1])}")
    if last is None:
        return [where]
    return [
        ("samples (x, y, z)", " x ".join(map(str, last.shape))),
        where,
        ("PSNR of its rays", f"{last.psnr:.2f} dB"),
        ("loss", f"{last.loss:.4g}"),
        ("occupied", f"{100 * last.occupied:.1f} % of the cells"),
    ]


def curves(history: Sequence[Any]) -> list[str]:
    """Curves of loss and PSNR over the steps; none with under two reports."""
    steps = [report.step for report in history]
    drawn = [curve(steps, [np.log10(max(report.loss, 1e-30)) for report in history], "log10 of the loss")]
    return [each for each in [*drawn, curve(steps, [report.psnr for report in history], "PSNR [dB]")] if each]

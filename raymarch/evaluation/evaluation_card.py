"""Card of an evaluation in a notebook: the means, and the scores of each view."""

from __future__ import annotations

from typing import Any

from raymarch.html.card import Shown, card, listing

NAMES = {
    "psnr": "PSNR [dB]",
    "ssim": "SSIM",
    "lpips": "LPIPS",
    "psnr_halves": "PSNR by halves [dB]",
    "psnr_masked": "PSNR of the object [dB]",
    "ssim_masked": "SSIM of the object",
}
MOST = 40  # views that are listed, worst first


class EvaluationCard(Shown):
    """Scores that show themselves in a notebook; `Evaluation` has the fields."""

    psnr: float
    views: tuple[Any, ...]
    seconds_per_image: float
    masked_by: str
    lpips_missing: str

    def _card(self) -> str:
        known = [name for name in NAMES if getattr(self, name) is not None]
        rows: list[tuple[str, object]] = [(NAMES[name], _short(getattr(self, name))) for name in known]
        rows += [
            ("views", len(self.views)),
            ("seconds an image", f"{self.seconds_per_image:.3g}"),
            ("object told by", self.masked_by),
            ("no LPIPS as", self.lpips_missing),
        ]
        worst = sorted(self.views, key=lambda view: view.psnr)[:MOST]
        lines = [[view.name, *(_short(getattr(view, name)) for name in known)] for view in worst]
        heads = ["view, worst first", *(NAMES[name] for name in known)]
        return card("Evaluation", rows) + listing(heads, lines)


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"

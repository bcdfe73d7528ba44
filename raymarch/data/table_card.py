"""Card of a transfer function in a notebook: its colours, and its opacity as a curve over them."""

from __future__ import annotations

import numpy as np

from raymarch.html.card import Shown, card
from raymarch.html.picture import as_bytes, data_uri, png
from raymarch.html.sketch import sketch

SIZE = 240, 80  # CSS pixel
COLUMNS = 256


class TableCard(Shown):
    """Transfer function that shows itself in a notebook; `TransferFunction` has the fields."""

    values: np.ndarray
    colours: np.ndarray
    opacities: np.ndarray
    unit_length: float

    def _card(self) -> str:
        low, high = float(self.values[0]), float(self.values[-1])
        rows = [
            ("knots", len(self.values)),
            ("values", f"{low:.5g} to {high:.5g}"),
            ("opacities", f"{self.opacities.min():.3g} to {self.opacities.max():.3g}"),
            ("unit length", f"{self.unit_length:.4g} world units"),
        ]
        return card("TransferFunction", rows, [self.picture_html()])

    def picture_html(self) -> str:
        """Colours from the first knot to the last, and the opacity over them, as HTML."""
        width, height = SIZE
        at = np.linspace(self.values[0], self.values[-1], COLUMNS)
        colours = np.stack([np.interp(at, self.values, column) for column in self.colours.T], -1)
        strip = data_uri(png(as_bytes(colours[None])))
        band = f'<image href="{strip}" x="0" y="{height - 16}" width="{width}" height="16" preserveAspectRatio="none"/>'
        u = width * (self.values - self.values[0]) / (self.values[-1] - self.values[0])
        line = np.stack([u, (height - 18) * (1 - self.opacities) + 1], axis=1)
        return sketch([line], "opacity 0 to 1 over the colours", SIZE, under=band)

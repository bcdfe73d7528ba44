"""Card of a camera registration in a notebook: what is left of the difference, and the camera."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.html.card import Shown, card, numbers


class RegistrationCard(Shown):
    """Registration that shows itself in a notebook; `Registration` has the fields."""

    camera: Camera
    exposure: np.ndarray
    error: float
    steps: int
    converged: bool

    def _card(self) -> str:
        rows = [
            ("error", f"{self.error:.4g} root mean square, colours in 0..1"),
            ("converged", "yes" if self.converged else "no"),
            ("linear systems", self.steps),
            ("exposure", numbers(self.exposure)),
        ]
        return card("Registration", rows, [self.camera._card()])

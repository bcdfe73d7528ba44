"""Card of a camera registration in a notebook: what is left of the difference, and the camera."""

from __future__ import annotations

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.html.card import Shown, card, numbers
from raymarch.html.sketch import curve
from raymarch.views.views import Views


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


class RefinementCard(Shown):
    """Refinement that shows itself in a notebook; `Refinement` has the fields."""

    views: Views
    degrees: np.ndarray
    share: np.ndarray
    errors: tuple[float, ...]

    def _card(self) -> str:
        rows = [
            ("cameras turned", f"{self.degrees.mean():.3g} degrees in the mean, {self.degrees.max():.3g} at most"),
            ("cameras moved", f"{self.share.mean():.2%} of their distance in the mean, {self.share.max():.2%} at most"),
            ("error", f"{self.errors[-1]:.4g} root mean square, colours in 0..1" if self.errors else None),
        ]
        drawn = curve(range(len(self.errors)), self.errors, "error after each move")
        return card("Refinement", rows, [drawn]) + self.views._card()

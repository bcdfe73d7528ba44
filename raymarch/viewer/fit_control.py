"""What pages ask of a running fit: pause, go on, other learning rates, stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from raymarch.arguments.checks import number
from raymarch.data.volume import Volume
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter

ACTIONS = ("pause", "go", "rate", "stop")
RATE = number(1e-3, 1e3)


class FitControl:
    """Control of a running fit.

    Attributes:
        paused, stopped: as a page has asked for, or Ctrl-C in a pause, which `interrupted` says.
        rate: what the learning rates are multiplied by.
        rates: (step, rate) of each change.
    """

    def __init__(self, fitter: Fitter) -> None:
        self.fitter, self._given = fitter, fitter.settings.optimiser
        self.paused = self.stopped = self.interrupted = False
        self.rate, self.rates = 1.0, list[tuple[int, float]]()

    @property
    def state(self) -> str:
        """ "running" or "paused"."""
        return "paused" if self.paused else "running"

    @property
    def stopped_by_page(self) -> bool:
        """Whether a page has ended the fit, who then looks at what came of it."""
        return self.stopped and not self.interrupted

    def act(self, message: Mapping[str, Any]) -> None:
        """Do what a page's message asks for; RaymarchError for what cannot be."""
        action = message.get("action")
        if action not in ACTIONS:
            raise RaymarchError(f"fit: action is {str(action)[:40]!r}, want one of {', '.join(ACTIONS)}; choose one")
        if action == "rate":
            self.multiply_rates(RATE("fit: value", message.get("value")))
        elif action == "stop":
            self.stopped = True
        else:
            self.paused = action == "pause"

    def multiply_rates(self, by: float) -> None:
        """Multiply the learning rates that the fit was given, from the next step on."""
        given, fitter = self._given, self.fitter
        optimiser = replace(given, lr_density=given.lr_density * by, lr_colour=given.lr_colour * by)
        fitter.settings = replace(fitter.settings, optimiser=optimiser)
        self.rate = by
        self.rates.append((fitter.steps_done, by))

    def noted(self, volume: Volume) -> Volume:
        """Volume of the fit with what its pages changed in its provenance."""
        if not self.rates:
            return volume
        return replace(volume, provenance={**volume.provenance, "rates_multiplied": list(map(list, self.rates))})

"""What pages ask of a running fit: pause, go on, other learning rates, stop."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.rates import FACTOR

log = logging.getLogger(__name__)

GONE = 10.0  # seconds without any page after which a fit that one paused goes on: a page loaded again takes fewer
ACTIONS = ("pause", "go", "rate", "stop")


class FitControl:
    """Control of a running fit.

    Attributes:
        paused, stopped: as a page has asked for, or Ctrl-C in a pause, which `interrupted` says.
    """

    def __init__(self, fitter: Fitter) -> None:
        self.fitter = fitter
        self.paused = self.stopped = self.interrupted = False
        self._by_page, self._seen = False, time.perf_counter()

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
            self.fitter.rates.multiply(self.fitter.steps_done, FACTOR("fit: value", message.get("value")))
        elif action == "stop":
            self.stopped = True
        else:
            self.paused = self._by_page = action == "pause"
            self._seen = time.perf_counter()

    def look_for_pages(self, count: int) -> None:
        """Have a fit that a page has paused go on once all pages have been gone for a while, as nobody can let it."""
        now = time.perf_counter()
        if count or not (self.paused and self._by_page):
            self._seen = now
        elif now - self._seen > GONE:
            log.warning("the last page has gone, so the fit goes on")
            self.paused = self._by_page = False

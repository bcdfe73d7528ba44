"""Clock of a fit: its seconds since the start, and how many of them went by until all was compiled."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)

STOPPED = 30.0  # seconds in a step that no processor was at work, at least, if the process was stopped in it


class Clock:
    """Clock of a fit, which stands while the fit is paused, and goes on where a checkpoint's stopped.

    Attributes:
        ready: seconds that no step can be blamed for: until the first step was done, and what the first one took after
            each time that the fit went on, for it compiles. From then on time counts.

    Example:
        >>> clock = Clock(time.perf_counter() - 60)
        >>> clock.stand(20)
        >>> round(clock.seconds)
        40
    """

    def __init__(self, started: float | None = None) -> None:
        self._started = time.perf_counter() if started is None else started
        self._stands_at: float | None = None
        self.ready = self.seconds
        self._compiles_from: float | None = self.ready
        self._began = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those that the clock stood."""
        return time.perf_counter() - self._started if self._stands_at is None else self._stands_at

    def prepared(self) -> None:
        """Note that all is there for the first step, and no time of it has gone by; the clock stands until it begins,
        for a notebook's user may take it any time."""
        self.ready = self._compiles_from = self._stands_at = time.perf_counter() - self._started

    def stand(self, seconds: float) -> None:
        """Leave out seconds that just went by."""
        if self._stands_at is None:
            self._started += seconds

    def go_on(self, seconds: float, ready: float) -> None:
        """Set the clock to what it was when the fit was left; the next step compiles, until when it stands."""
        self.ready, self._compiles_from, self._stands_at = ready, seconds, seconds

    def begin_step(self) -> None:
        """Note that a step begins."""
        self._began = time.perf_counter(), time.process_time()
        if self._stands_at is not None:
            self._started, self._stands_at = self._began[0] - self._stands_at, None

    def stepped(self) -> None:
        """Note that the step was made; time in which the process was stopped, as by Ctrl-Z, is left out."""
        took, worked = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        if (idle := took - worked) > max(STOPPED, took / 2):
            log.warning("the process was stopped for %.0f s, which are no time of the fit", idle)
            self.stand(idle)
        if self._compiles_from is not None:
            self.ready, self._compiles_from = self.ready + self.seconds - self._compiles_from, None

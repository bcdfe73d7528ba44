"""Clock of a fit: its seconds since the start, and how many of them went by until all was compiled."""

from __future__ import annotations

import time


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
        self.prepared()

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those that the clock stood."""
        return time.perf_counter() - self._started

    def prepared(self) -> None:
        """Note that all is there for the first step, and no time of it has gone by."""
        self.ready = self.seconds
        self._compiles_from: float | None = self.ready

    def stand(self, seconds: float) -> None:
        """Leave out seconds that just went by."""
        self._started += seconds

    def go_on(self, seconds: float, ready: float) -> None:
        """Set the clock to what it was when the fit was left; the next step compiles."""
        self._started, self.ready = time.perf_counter() - seconds, ready
        self._compiles_from = seconds

    def stepped(self) -> None:
        """Note that a step was made."""
        if self._compiles_from is not None:
            self.ready, self._compiles_from = self.ready + self.seconds - self._compiles_from, None

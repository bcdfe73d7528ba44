"""Clock of a fit: seconds of its steps, and beside them the seconds of loading, planning and compiling."""

from __future__ import annotations

import logging
import time

from raymarch.runtime.compiler import seconds_compiling

log = logging.getLogger(__name__)

MIN_STOPPED_TIME = 30.0  # seconds in a step that no processor was at work, at least, if the process was stopped in it


class Clock:
    """Clock of a fit. It counts from the end of the first step that a process makes, because that step compiles; it
    leaves out what compiling takes later, as at a new level, and stands while the fit is paused.

    Example:
        >>> clock = Clock()
        >>> clock.prepared()
        >>> clock.begin_step()
        >>> clock.stepped()
        >>> clock.seconds < 1
        True
    """

    def __init__(self, started: float | None = None) -> None:
        self._started = time.perf_counter() if started is None else started
        self._shown, self._counts_from = 0.0, float("nan")
        self._stands = True
        self._earlier, self._prepared, self._compiled = 0.0, time.perf_counter() - self._started, 0.0
        self._began = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds of the fit, in all processes that it went on in."""
        return self._shown if self._stands else _seconds() - self._counts_from

    @property
    def preparation(self) -> float:
        """Seconds of loading, planning and compiling, the first step included, in all processes."""
        later = 0.0 if self._stands else seconds_compiling() - self._compiled
        return self._earlier + self._prepared + later

    def prepared(self) -> None:
        """Note that all is there for the first step: what goes by until that begins is nobody's, because a notebook's
        user may take it any time."""
        self._prepared = time.perf_counter() - self._started

    def set_back(self, seconds: float) -> None:
        """Set the clock to what it showed before a pause."""
        if not self._stands:
            self._counts_from = _seconds() - seconds

    def go_on(self, seconds: float, preparation: float) -> None:
        """Set the clock to what it was when the fit was left; the next step compiles, until whose end it stands."""
        self._shown, self._stands, self._earlier = seconds, True, preparation

    def begin_step(self) -> None:
        """Note that a step begins."""
        self._began = time.perf_counter(), time.process_time()

    def stepped(self) -> None:
        """Note that the step was made; time in which the process was stopped, as by Ctrl-Z, is left out."""
        took, worked = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        if (idle := took - worked) > max(MIN_STOPPED_TIME, took / 2):
            log.warning(
                "a step stood still for %.0f s, as after Ctrl-Z, while the computer slept or other programs had the"
                " processors; the fit's seconds leave that out",
                idle,
            )
            self.set_back(self.seconds - idle)
            took -= idle
        if self._stands:
            self._prepared += took
            self._stands, self._counts_from, self._compiled = False, _seconds() - self._shown, seconds_compiling()


def _seconds() -> float:
    """Seconds of this computer's clock without those of compiling."""
    return time.perf_counter() - seconds_compiling()

"""Share of a fit's time that its pictures may have: what they took is paid back by steps before there are more."""

from __future__ import annotations

import time

RESTING, MOVING = 0.10, 0.35  # of all the time, while nobody moves and while somebody does
MOST_CREDIT, MOST_DEBT = 0.1, 0.6  # seconds; what compiles may take longer, once


class Share:
    """Share of time: seconds that steps take are credited in part, seconds that pictures take are taken off.

    Example:
        >>> share = Share()
        >>> share.of(False), share.of(True), share.due
        (0.1, 0.35, False)
    """

    def __init__(self) -> None:
        self._credit, self._since = 0.0, time.perf_counter()

    def begin(self) -> None:
        """Count steps from now on."""
        self._since = time.perf_counter()

    @staticmethod
    def of(moving: bool) -> float:
        """Share of all the time."""
        return MOVING if moving else RESTING

    @property
    def due(self) -> bool:
        """Whether pictures have time now."""
        return self._credit > 0

    def stepped(self, moving: bool) -> None:
        """Credit the steps since pictures last had time."""
        now, share = time.perf_counter(), self.of(moving)
        self._credit = min(self._credit + (now - self._since) * share / (1 - share), MOST_CREDIT)
        self._since = now

    def spent(self) -> None:
        """Take off what went by since steps were credited."""
        now = time.perf_counter()
        self._credit = max(self._credit - (now - self._since), -MOST_DEBT)
        self._since = now

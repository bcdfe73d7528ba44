"""Newest messages of pages: of cameras, and of looks of the same keys, the last alone waits to be taken."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

MOST = 64  # messages of a page that wait; what comes then is dropped, but for cameras


class Newest:
    """Messages of pages that wait for who is busy; one thread puts, another takes.

    A message is a mapping with the number of its page, "page", and its "type".

    Example:
        >>> waiting = Newest()
        >>> for n in (1, 2):
        ...     waiting.put({"page": 0, "type": "camera", "id": n})
        >>> [each["id"] for each in waiting.take()]
        [2]
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[dict[str, Any]] = deque()
        self._closed = False

    def put(self, message: dict[str, Any]) -> None:
        """Put a message behind those that wait, in the place of an older one that it makes idle."""
        with self._changed:
            same = [each for each in self._waiting if each["page"] == message["page"]]
            others = [each for each in same if each["type"] != "camera"]
            last = others[-1] if others else None
            for each in same:
                idle = message["type"] == "camera" == each["type"] or (
                    each is last and message["type"] == "look" == each["type"] and message.keys() == each.keys()
                )
                if idle:
                    self._waiting.remove(each)
            if len(same) < MOST or message["type"] in ("camera", "open", "close"):
                self._waiting.append(message)
            self._changed.notify_all()

    def close(self) -> None:
        """Say that nothing will come any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether nothing will come any more."""
        return self._closed

    def take(self, seconds: float = 0.0) -> list[dict[str, Any]]:
        """All that waits, in order; where nothing does, what comes first within some seconds."""
        until = time.monotonic() + seconds
        with self._changed:
            while not self._waiting and not self._closed and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            taken = list(self._waiting)
            self._waiting.clear()
            return taken

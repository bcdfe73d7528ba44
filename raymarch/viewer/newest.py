"""Newest messages of pages: of cameras, and of looks that say the same things, the last alone waits to be taken."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import takewhile
from typing import Any

MOST = 256  # messages of a page that wait; what comes then is dropped, but for cameras


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
            for each in _made_idle(same, message):
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


def _made_idle(waiting: list[dict[str, Any]], message: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a page's waiting messages that a new one makes idle: other cameras; looks that say no more than it, as
    far back as nothing else but cameras stands between."""
    if message["type"] == "camera":
        return [each for each in waiting if each["type"] == "camera"]
    if message["type"] != "look":
        return []
    others = reversed([each for each in waiting if each["type"] != "camera"])
    return [each for each in takewhile(lambda each: each["type"] == "look", others) if each.keys() <= message.keys()]

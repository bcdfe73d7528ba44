"""Viewer: serves pages that show a volume or a running fit. The thread that owns the device draws their pictures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from raymarch.device.pool import Closing
from raymarch.errors import RaymarchError
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.page_pictures import Page
from raymarch.viewer.server.wire import Wire

SLICES_A_PAGE = 4  # slices of one page before another's: looks that differ mark empty space anew at each change
PICTURES_A_PACK = 5  # slices of pictures and one of what pages draw themselves, while both wait
IDLE_TIMEOUT = 0.25  # seconds between looks at what else there is, while no page says anything
MAX_LOG_LINES = 5  # of what pages said wrong, in the time below; the others are counted
LOG_INTERVAL = 60.0  # seconds
log = logging.getLogger("raymarch")


class Complaints:
    """Log of the pages' wrong messages: each line once, a few a minute, the others counted.

    Args:
        say: called with a line.
        clock: seconds.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._said: dict[str, None] = {}
        self._since, self._lines, self._unsaid = -LOG_INTERVAL, 0, 0

    def add(self, text: str) -> None:
        """Log a line, or count it."""
        now = self._clock()
        if now - self._since >= LOG_INTERVAL:
            self.flush()
            self._since, self._lines = now, 0
        if text in self._said or self._lines >= MAX_LOG_LINES:
            self._unsaid += 1
            return
        self._lines += 1
        self._said[text] = None
        if len(self._said) > 10 * MAX_LOG_LINES:
            del self._said[next(iter(self._said))]
        last = "; more are counted, and said in a minute" if self._lines == MAX_LOG_LINES else ""
        self._say(f"{text}{last}")

    def flush(self) -> None:
        """Log how many lines were only counted."""
        if self._unsaid:
            self._say(f"{self._unsaid:,} more messages of pages were refused")
        self._unsaid = 0


class Viewer(Closing):
    """Viewer of what a frame maker shows, at `url`; pages are answered while `run` or `work` does.

    Each page has an eye and a look of its own. `close` it, or use it in a `with`.

    Attributes:
        other: called with a page's number and message of a type that no page of a volume has.
        often: called between slices of work, to see whether anything else has changed.
    """

    def __init__(self, server: Wire, maker: FrameMaker) -> None:
        self.server, self.maker = server, maker
        self.pages: dict[int, Page] = {}
        self.other: Callable[[int, dict[str, Any]], bool] = lambda number, message: False
        self.opened: Callable[[int], None] = lambda number: None
        self.often: Callable[[], None] = lambda: None
        self._complaints = Complaints(lambda text: log.warning("viewer: %s", text))
        self._turn = 0
        self._greet()

    @property
    def url(self) -> str:
        """Address of the page, with its token."""
        return self.server.url

    def close(self) -> None:
        """End the server and free the device memory."""
        self._complaints.flush()
        self.server.close()
        self.maker.close()

    @property
    def moving(self) -> bool:
        """Whether the camera of any page moves."""
        return any(page.moving for page in self.pages.values())

    @property
    def drawing(self) -> bool:
        """Whether a page waits for a picture."""
        return any(page.busy for page in self.pages.values())

    @property
    def busy(self) -> bool:
        """Whether a page waits for a picture, or for what it draws itself."""
        return self.drawing or self.maker.atlas.busy

    def _greet(self) -> None:
        """Say to all pages, and to those that come, what is shown."""
        self.maker.atlas.max_bytes = self.server.atlas_bytes
        self.server.send(self.maker.scene(), hello=True)

    def say(self, header: dict[str, Any], to: int | None = None) -> None:
        """Send a message to one page, or to all."""
        self.server.send(header, to=to)

    def show(self, maker: FrameMaker) -> None:
        """Show another volume on all pages."""
        before, self.maker = self.maker, maker
        before.close()
        self._greet()
        for page in self.pages.values():
            page.show(maker)

    def take(self, seconds: float = 0.0) -> None:
        """Process the pages' messages; if there are none, wait for one."""
        for message in self.server.inbox.take(seconds):
            number, kind = message["page"], message["type"]
            if kind == "open":
                self.pages[number] = Page(self.maker, partial(self._send, number), self._complaints.add)
                self.opened(number)
            elif kind == "close":
                if page := self.pages.pop(number, None):
                    page.drop()
            elif number in self.pages and not self.other(number, message):
                self.pages[number].take(message)

    def work(self, seconds: float = 0.0) -> float:
        """Process messages and draw for some seconds, at least one slice; returns the seconds that it took."""
        begun = time.perf_counter()
        while True:
            self.take()
            waiting = [number for number, page in self.pages.items() if page.busy]
            packs = self.maker.atlas.busy
            if not waiting and not packs:
                break
            self._turn += 1
            if packs and (not waiting or self._turn % PICTURES_A_PACK == 0):
                self._pack()
            else:
                self.pages[waiting[self._turn // SLICES_A_PAGE % len(waiting)]].work()
            if time.perf_counter() - begun >= seconds:
                break
        return time.perf_counter() - begun

    def _pack(self) -> None:
        """Pack a slice of what pages draw themselves."""
        for header in self.maker.atlas.work():
            for number, page in self.pages.items():
                if page.wants_atlas:
                    self.say(header, to=number)

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Serve until `stop()` returns True; RaymarchError if the server's process has ended."""
        while not stop():
            if not self.server.running:
                raise RaymarchError("the viewer's server process has ended; start the viewer again")
            self.often()
            self.take(0.0 if self.busy else IDLE_TIMEOUT)
            self.work()

    def _send(self, number: int, header: dict[str, Any], data: bytes | None) -> None:
        self.server.send(header, data, to=number)

"""Pages in a notebook's kernel: their messages come on the thread that owns the device, and pictures are made there.

Between two slices of work the kernel's loop runs, so that a move that came meanwhile cuts a fine picture short.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from raymarch.errors import RaymarchError, one_line
from raymarch.viewer.frame_maker import FrameMaker
from raymarch.viewer.page import Page

Post = Callable[[str, dict[str, Any], "bytes | None"], None]
TURNS = 10  # of the kernel's loop between slices of work: a message takes some on its way through the kernel
MOST_PAGES = 8  # of one view, as where its output is shown twice
log = logging.getLogger("raymarch")


class KernelPages:
    """Pages that show what a frame maker makes, by messages of a notebook; each has an eye and a look of its own.

    Args:
        make: frame maker, when one is needed: at first, and after `rest`.
        post: called with a page's name, a header and bytes or None, to be sent to it.
        other: called with a page's message of a type that is not of a picture; whether it was one of those known.
    """

    def __init__(
        self, make: Callable[[], FrameMaker], post: Post, other: Callable[[Mapping[str, Any]], bool] = lambda _: False
    ) -> None:
        self.make, self.post, self.other = make, post, other
        self.pages: dict[str, Page] = {}
        self.newest: Page | None = None
        self._maker: FrameMaker | None = None
        self._task: asyncio.Task | None = None
        self._turn = 0

    @property
    def maker(self) -> FrameMaker:
        """Frame maker, made where there is none."""
        if self._maker is None:
            self._maker = self.make()
            for page in self.pages.values():
                page.maker = self._maker
        return self._maker

    def rest(self) -> None:
        """Free the device memory until a page says something again."""
        if self._maker is not None:
            for page in self.pages.values():
                page.drop()
            maker, self._maker = self._maker, None
            maker.close()

    @property
    def busy(self) -> bool:
        """Whether a picture is to be made."""
        return any(page.busy for page in self.pages.values())

    @property
    def moving(self) -> bool:
        """Whether somebody moves."""
        return any(page.moving for page in self.pages.values())

    def say(self, header: dict[str, Any]) -> None:
        """Say something to all pages."""
        for name in self.pages:
            self.post(name, header, None)

    def take(self, content: Any) -> None:
        """Take what a page has said; whatever is wrong with it is one line to the page, and no cell breaks."""
        name = content.get("view") if isinstance(content, Mapping) else None
        message = content.get("message") if isinstance(content, Mapping) else None
        if not isinstance(name, str) or not isinstance(message, Mapping):
            return
        try:
            self._take(name, message)
        except RaymarchError as error:
            self.post(name, {"type": "error", "text": str(error)}, None)
        except Exception as error:  # a fault of ours must not end in the kernel's log alone
            log.exception("viewer")
            self.post(name, {"type": "error", "text": f"the kernel could not do that: {one_line(error)}"}, None)

    def _take(self, name: str, message: Mapping[str, Any]) -> None:
        match message.get("type"):
            case "open":
                maker = self.maker
                self.pages[name] = Page(maker, lambda header, data: self.post(name, header, data))
                if len(self.pages) > MOST_PAGES:
                    self.pages.pop(next(iter(self.pages)))
                self.post(name, maker.scene(), None)
                self.other({"type": "open", "view": name})
            case "close":
                self.pages.pop(name, None)
            case _ if name in self.pages and not self.other(message):
                self.newest = self.pages[name]
                self.newest.maker = self.maker
                self.newest.take(message)
        self.wake()

    def work(self) -> bool:
        """Slice of work for the next page that waits for a picture; whether there is more to do."""
        waiting = [page for page in self.pages.values() if page.busy]
        if waiting:
            self._turn += 1
            waiting[self._turn % len(waiting)].work()
        return self.busy

    def wake(self) -> None:
        """Have the work done in slices, on the loop that runs here; at once where there is none."""
        if self._task is not None and not self._task.done():
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            while self.work():
                pass
            return
        self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        while self.busy:
            try:
                self.work()
            except Exception as error:
                log.exception("viewer")
                self.say({"type": "error", "text": f"a picture could not be made: {one_line(error)}"})
                for page in self.pages.values():
                    page.drop()
            await breathe()


async def breathe() -> None:
    """Some turns of the loop, in which the kernel takes messages that have come."""
    for _ in range(TURNS):
        await asyncio.sleep(0)

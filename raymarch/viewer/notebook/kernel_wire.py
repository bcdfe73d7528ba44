"""Wire between a viewer and a notebook's outputs: the comm of a widget, without any server.

A kernel hands on what pages say on its main thread, or on one of their own (subshells), while only the thread that
started raymarch may draw: so messages wait in an inbox, and that thread's loop is woken.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.viewer.server.wire import Mailbox

# of bricks that outputs draw themselves, before they are packed: Jupyter drops messages over 1 MB a second
ATLAS_BYTES = 8 << 20
Post = Callable[[dict[str, Any], "bytes | None"], None]
MAX_PAGES = 16  # outputs of one view
MAX_FRAMES_AHEAD = 3  # frames on their way to a page: more would be old when they come, as over a slow line
FRAME_TIMEOUT = 1.0  # seconds after which a page that does not say that it has a frame is not waited for


class KernelWire:
    """Wire of one widget, whose outputs are pages. What they say is `{"view": name, "message": {...}}`; what they are
    told is posted as `{"view": name, "header": {...}}`, with bytes or None.

    Args:
        post: sends content with bytes or None to all outputs of the widget.
        wake: called, on whatever thread, when something waits in the inbox.

    Example:
        >>> wire = KernelWire(lambda content, data: print(content), lambda: None)
        >>> wire.take({"view": "a", "message": {"type": "open"}})
        >>> wire.inbox.take(), wire.send({"type": "note", "text": "here"}, to=1)
        {'view': 'a', 'header': {'type': 'note', 'text': 'here'}}
        ([{'type': 'open', 'page': 1}], None)
    """

    url = url_once = ""
    atlas_bytes = ATLAS_BYTES

    def __init__(self, post: Post, wake: Callable[[], None]) -> None:
        self.inbox, self.post, self.wake = Mailbox(), post, wake
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._hello: dict[str, Any] | None = None
        self._ahead: dict[int, int] = {}
        self._posted = 0.0

    @property
    def running(self) -> bool:
        """Whether the wire is open."""
        return not self.inbox.closed

    @property
    def behind(self) -> bool:
        """Whether a page has not yet received what was sent to it. More pictures would only arrive late."""
        if time.monotonic() - self._posted > FRAME_TIMEOUT:
            self._ahead.clear()
        return any(count >= MAX_FRAMES_AHEAD for count in list(self._ahead.values()))

    def take(self, content: Any) -> None:
        """Put a page's message into the inbox; anything else is ignored."""
        if not isinstance(content, Mapping) or not isinstance(view := content.get("view"), str):
            return
        number, message = self._numbers.get(view), content.get("message")
        if not isinstance(message, Mapping):
            return
        kind = message.get("type")
        if kind == "open" and number is None:
            if len(self._numbers) >= MAX_PAGES:  # outputs whose page was reloaded never said that they went
                self.take({"view": next(iter(self._numbers)), "message": {"type": "close"}})
            self._count += 1
            self._numbers[view] = number = self._count
        elif number is None or kind == "open":
            return
        if kind == "got":
            self._ahead[number] = max(self._ahead.get(number, 0) - 1, 0)
            return
        self.inbox.put({**message, "type": kind if isinstance(kind, str) else "", "page": number})
        if kind == "close":
            self._numbers.pop(view)
            self._ahead.pop(number, None)
        self.wake()

    def greet(self, number: int) -> None:
        """Send the first message to a page that has just connected."""
        if self._hello is not None:
            self.send(self._hello, to=number)

    def send(
        self, header: dict[str, Any], data: bytes | None = None, to: int | None = None, hello: bool = False
    ) -> None:
        """Send a message to one page, or to all; `hello` is what pages get first that come later."""
        self._hello = header if hello else self._hello
        for view, number in list(self._numbers.items()):
            if to not in (None, number):
                continue
            if header.get("type") == "frame":
                self._ahead[number] = self._ahead.get(number, 0) + 1
                self._posted = time.monotonic()
            self.post({"view": view, "header": header}, data)

    def close(self) -> None:
        """End it."""
        self.inbox.close()


# A viewer in a notebook works on the kernel's event loop, in slices. Messages arrive and cells run between two slices.

LOOP_TURNS = 4  # of the loop between slices of work: a message takes some on its way through the kernel
RETRY_DELAY = 0.01  # seconds until a page that is behind is looked at again
log = logging.getLogger("raymarch")


class KernelLoop:
    """Loop of the thread that made this, on which work goes on after a cell has returned.

    `wake` has it call `work` in slices until that says that there is no more to do; it may be called on any thread.

    Raises RaymarchError where no loop runs, as in a script.
    """

    def __init__(self, work: Callable[[], bool], late: Callable[[], bool] = lambda: False) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RaymarchError("no notebook's kernel runs this; call rm.view in a cell of one") from None
        self._thread, self._work, self._late = threading.get_ident(), work, late
        self._task: asyncio.Task | None = None

    def wake(self) -> None:
        """Start the work on the loop."""
        if threading.get_ident() == self._thread:
            self._begin()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begin)

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task:
        """Task on the loop."""
        return self._loop.create_task(work)

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = self.start(self._run())

    async def _run(self) -> None:
        while True:
            if self._late():
                await asyncio.sleep(RETRY_DELAY)
                continue
            if not self._work():
                return
            await breathe()


async def breathe(turns: int = LOOP_TURNS) -> None:
    """Some turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)

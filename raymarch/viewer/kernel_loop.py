"""Work of a viewer on the loop of a notebook's kernel: in slices, between which messages come in and cells run."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from raymarch.errors import RaymarchError

TURNS = 4  # of the loop between slices of work: a message takes some on its way through the kernel
LATER = 0.01  # seconds until a page that is behind is looked at again
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
        """Have the work done."""
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
                await asyncio.sleep(LATER)
                continue
            if not self._work():
                return
            await breathe()


async def breathe(turns: int = TURNS) -> None:
    """Some turns of the loop."""
    for _ in range(turns):
        await asyncio.sleep(0)

"""The one thread of a process that touches the device, whichever thread a task comes in.

Taichi belongs to the thread that started it, and writes what it compiled when that thread ends it. Executors call from
threads of their own: Dask makes an actor in one thread and calls it in another, and its workers end without the one
that Taichi was started in. So tasks run in the main thread where they come in that, else in a thread kept for them,
which ends Taichi as the process ends.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from raymarch import runtime
from raymarch.device.pool import forget

T = TypeVar("T")
END_SECONDS = 20.0  # that the end of a process waits for its kernels to be written


class DeviceThread:
    """A thread that calls one function after another; it begins with the first."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[tuple[Future, Callable, tuple]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._beginning = threading.Lock()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function returns, or raises, in that thread; before there is one the main thread will do."""
        current = threading.current_thread()
        if current is self._thread or (self._thread is None and current is threading.main_thread()):
            return function(*arguments)
        with self._beginning:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="raymarch device", daemon=True)
                self._thread.start()
                atexit.register(self._end)
        answer: Future = Future()
        self._asked.put((answer, function, arguments))
        return answer.result()

    def _serve(self) -> None:
        while True:
            answer, function, arguments = self._asked.get()
            try:
                answer.set_result(function(*arguments))
            except BaseException as error:  # who asked has it
                answer.set_exception(error)

    def _end(self) -> None:
        """End Taichi in its thread: no daemon runs any more once Python has ended."""
        answer: Future = Future()
        self._asked.put((answer, runtime.end, ()))
        answer.exception(timeout=END_SECONDS)


DEVICE_THREAD = DeviceThread()
_at_hand: list[Callable[[], None]] = []


def close_at_stop(close: Callable[[], None]) -> None:
    """Have a function called before `stop_device`, which closes what this process keeps for the next task."""
    if close not in _at_hand:
        _at_hand.append(close)


def stop_device() -> None:
    """Hand back all that tasks keep on the device, and end Taichi, which writes what it compiled to the cache.

    Of workers that end as Dask's do, without a word, nothing would be written, and each compiled anew.
    """
    if runtime.started() is not None:
        DEVICE_THREAD.call(_stop)


def _stop() -> None:
    for close in _at_hand:
        close()
    runtime.stop()
    forget()

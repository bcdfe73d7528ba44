"""Ctrl-C as a question instead of an exception, so that work stops between two steps and nothing is lost."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Within it the first Ctrl-C only makes the yielded function return True; the second raises KeyboardInterrupt.

    Outside the main thread, where signals cannot be caught, the function always returns False.
    """
    asked = threading.Event()

    def note(number, frame):
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)

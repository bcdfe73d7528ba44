"""Interruption by Ctrl-C or a scheduler's SIGTERM, so that work stops between two steps and nothing is lost."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

END_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextlib.contextmanager
def catch_first_interrupt() -> Iterator[Callable[[], bool]]:
    """Context in which the first Ctrl-C makes the yielded function return True; the second raises KeyboardInterrupt.

    SIGTERM and SIGHUP, which batch schedulers and closing terminals send, do so too, however often they come. Where the
    program ignores one of the three, as a job in the background does Ctrl-C, or handles one of these two itself, that
    stays. Within another such block what that was asked counts too. Outside the main thread, where signals cannot be
    caught, the function returns False.

    Example:
        >>> with catch_first_interrupt() as asked:
        ...     signal.raise_signal(signal.SIGINT)
        ...     asked()
        True
    """
    came: list[int] = []
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, *END_SIGNALS)]
    heard = handlers[0] != signal.SIG_IGN
    outer = [getattr(handler, "asked", lambda: False) for handler in handlers]
    for handler in handlers:
        getattr(handler, "answer", lambda: None)()

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if number == signal.SIGINT and came.count(number) > 1:
            raise KeyboardInterrupt

    def asked() -> bool:
        return bool(came) or any(each() for each in outer)

    note.asked = asked  # type: ignore[attr-defined]
    with _handle_signals(note, *[signal.SIGINT][:heard], *filter(_free, END_SIGNALS)):
        yield asked


@contextlib.contextmanager
def interrupt_on_end_signals() -> Iterator[None]:
    """Context in which SIGTERM and SIGHUP raise KeyboardInterrupt, unless ignored, so that all is tidied up.

    Ctrl-C does so anyway; but libraries lose exceptions, as Taichi does while it reads kernels, and h5py as it closes
    what it wrote. So one that came counts in the next `catch_first_interrupt` too, and until then `io.files.atomic`
    asks by the handler's `lost` before a file gets its name. Python prints none that nobody can catch.
    """
    raised, came, lost = [-math.inf], list[int](), list[int]()

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        lost.append(number)
        # They come in pairs, to a process and to its group, or by an impatient hand: the second shall not disturb the
        # tidying up.
        if time.monotonic() - raised[0] > 1:
            raised[0] = time.monotonic()
            raise KeyboardInterrupt

    end.asked = lambda: bool(came)  # type: ignore[attr-defined]
    end.lost = lambda: bool(lost)  # type: ignore[attr-defined]
    end.answer = lost.clear  # type: ignore[attr-defined]
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with _handle_signals(end, *[signal.SIGINT][:usual], *filter(_free, END_SIGNALS)), _silence():
        yield


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Context in which Ctrl-C, SIGTERM and SIGHUP wait until it ends; Ctrl-C is blocked in processes that begin in it.

    A terminal sends it to all processes, those too that have just begun and do not ignore it yet.
    """
    came: list[int] = []
    known = [number for number in (signal.SIGINT, *END_SIGNALS) if signal.getsignal(number) is not None]
    try:
        with _handle_signals(lambda number, frame: came.append(number), *known), _blocked(signal.SIGINT):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextlib.contextmanager
def _blocked(number: int) -> Iterator[None]:
    """Context in which this thread, and what it begins, does not get a signal, where the system can do that."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """Have this process, which ends, ignore Ctrl-C, for nothing can answer it any more; SIGTERM ends it at once."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def leave_interrupts_to_parent() -> None:
    """Have this process, which another began within `hold_interrupts`, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # for what it begins itself


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Within it nothing is printed of interrupts that nobody can catch, as in a weak reference's callback."""
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if not (unraisable.exc_type and issubclass(unraisable.exc_type, KeyboardInterrupt)):
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _free(number: int) -> bool:
    """Whether nobody but this module handles the signal."""
    handler = signal.getsignal(number)
    return handler == signal.SIG_DFL or getattr(handler, "__module__", None) == __name__


@contextlib.contextmanager
def _handle_signals(handler: Callable, *numbers: int) -> Iterator[None]:
    """Within it `handler` gets these signals, in the main thread; then whoever had them before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            if former is not None:  # one that was not set from Python cannot be set again
                signal.signal(number, former)

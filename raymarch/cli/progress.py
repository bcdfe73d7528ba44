"""Progress bars on stderr, and the time that is left; plain lines now and then where stderr is no terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

if TYPE_CHECKING:
    from raymarch.fitting.report import Report

MIN_WIDTH = 110  # columns from which there is room for a bar
LINE_INTERVAL = 10.0  # seconds between plain lines
MIN_LEFT = 5.0  # seconds that are left, up to which nothing is said of them


def time_text(seconds: float) -> str:
    """Time in one unit, or minutes and hours, as rough as a forecast is.

    Example:
        >>> time_text(42), time_text(200), time_text(9000)
        ('42 s', '3 min', '2 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Pace:
    """Time left of work of equal parts, by those after the first, which compiles or warms up."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def left(self, done: int, total: int) -> float | None:
        """Seconds left once so many parts are done; None while nothing tells."""
        now = time.monotonic()
        if self._first is None or done < self._first[1]:
            self._first = now, done
            return None
        then, before = self._first
        return (now - then) / (done - before) * (total - done) if done > before else None

    def in_words(self, done: int, total: int) -> str:
        """As ", about 3 min left", or nothing where that is soon or not known."""
        left = self.left(done, total)
        return f", about {time_text(left)} left" if left is not None and left > MIN_LEFT else ""


def _stop(live: Progress) -> None:
    """End of a bar, also where its terminal is gone: what was made is still to be kept."""
    with contextlib.suppress(OSError):
        live.stop()


class FitProgress:
    """Progress of a fit: step, loss, PSNR, rays a second, resolution, time left."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns: list[str | ProgressColumn] = [
            "fit",
            *([BarColumn(bar_width=16)] if console.width >= MIN_WIDTH else []),
            "{task.percentage:3.0f}%",
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        ]
        self._live, self._wide = Progress(*columns, console=console), console.width >= MIN_WIDTH
        self._terminal = console.is_terminal
        self._task = self._live.add_task("starting: finding the box, compiling (once a machine)", total=1.0)
        self._last = 0.0

    def __enter__(self) -> FitProgress:
        if self._terminal:
            self._live.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._terminal:
            _stop(self._live)

    def __call__(self, report: Report) -> None:
        from raymarch.volumes.samples import samples_text

        size = samples_text(report.shape, report.boxes, "x")
        text = (
            f"step {report.step}  loss {report.loss:.1e}  {report.psnr:.2f} dB (rays)  "
            f"{report.rays_per_second / 1e3:.0f} krays/s  {size}  {report.seconds_left:.0f} s left"
        )
        if self._terminal:
            if not self._wide:
                text = text.replace("  loss ", "  ").replace(" (rays)", "")
            self._live.update(self._task, completed=report.progress, description=text)
        elif time.monotonic() - self._last > LINE_INTERVAL or report.progress >= 1:
            self._last = time.monotonic()
            with contextlib.suppress(OSError):  # nobody reads any more: the fit goes on
                print(f"{100 * report.progress:3.0f}%  {text}", file=sys.stderr, flush=True)


class CountProgress:
    """Progress of a count of images."""

    def __init__(self, what: str, total: int) -> None:
        console = Console(stderr=True)
        columns: list[str | ProgressColumn] = [
            what,
            BarColumn(bar_width=24),
            "{task.completed}/{task.total}",
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(),
        ]
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._live.add_task(what, total=total)
        self._terminal, self._what, self._total = console.is_terminal, what, total
        self._done, self._last, self._pace = 0, time.monotonic() - LINE_INTERVAL, Pace()

    def __enter__(self) -> CountProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._live)

    def advance(self) -> None:
        """Count of one more as done."""
        self._live.advance(self._task)
        self._done += 1
        left = self._pace.in_words(self._done, self._total)
        if not self._terminal and left and time.monotonic() - self._last > LINE_INTERVAL:
            self._last = time.monotonic()
            with contextlib.suppress(OSError):  # nobody reads any more: the work goes on
                print(f"{self._what} {self._done} of {self._total}{left}", file=sys.stderr, flush=True)


class StageProgress:
    """Progress of work in stages, each a count of its own: a bar a stage, or plain lines now and then."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns: list[str | ProgressColumn] = [
            TextColumn("{task.description:12}"),
            BarColumn(bar_width=24),
            "{task.completed}/{task.total}",
            TimeElapsedColumn(),
            "left",
            TimeRemainingColumn(),
        ]
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._terminal, self._last, self._stage = console.is_terminal, 0.0, ""
        self._pace, self._said = Pace(), False
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> StageProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._live)

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._terminal:
            if what not in self._tasks:
                self._tasks[what] = self._live.add_task(what, total=total)
            self._live.update(self._tasks[what], completed=done, total=total)
            return
        now, new = time.monotonic(), what != self._stage
        self._pace = Pace() if new else self._pace
        left = self._pace.in_words(done, total)
        first = bool(left) and not self._said
        self._said = not new and (self._said or first)
        if new or first or done == total or now - self._last > LINE_INTERVAL:
            self._last, self._stage = now, what
            with contextlib.suppress(OSError):  # nobody reads any more: the work goes on
                print(f"{what} {done} of {total}{left}", file=sys.stderr, flush=True)

"""Progress bar on stderr; plain lines now and then where stderr is no terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

if TYPE_CHECKING:
    from raymarch.fitting.report import Report

WIDE = 110  # columns from which there is room for a bar
LINE_EVERY = 10.0  # seconds between plain lines


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
            *([BarColumn(bar_width=16)] if console.width >= WIDE else []),
            "{task.percentage:3.0f}%",
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        ]
        self._live, self._wide = Progress(*columns, console=console), console.width >= WIDE
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
        from raymarch.data.samples import samples_in_words

        size = samples_in_words(report.shape, report.boxes, "x")
        text = (
            f"step {report.step}  loss {report.loss:.1e}  {report.psnr:.2f} dB (rays)  "
            f"{report.rays_per_second / 1e3:.0f} krays/s  {size}  {report.seconds_left:.0f} s left"
        )
        if self._terminal:
            if not self._wide:
                text = text.replace("  loss ", "  ").replace(" (rays)", "")
            self._live.update(self._task, completed=report.progress, description=text)
        elif time.monotonic() - self._last > LINE_EVERY or report.progress >= 1:
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
        ]
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._live.add_task(what, total=total)

    def __enter__(self) -> CountProgress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self._live)

    def advance(self) -> None:
        """Count of one more as done."""
        self._live.advance(self._task)


class StageProgress:
    """Progress of work in stages, each a count of its own: a bar a stage, or plain lines now and then."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        columns: list[str | ProgressColumn] = [
            TextColumn("{task.description:12}"),
            BarColumn(bar_width=24),
            "{task.completed}/{task.total}",
            TimeElapsedColumn(),
        ]
        self._live = Progress(*columns, console=console, disable=not console.is_terminal)
        self._terminal, self._last, self._stage = console.is_terminal, 0.0, ""
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
        if new or done == total or now - self._last > LINE_EVERY:
            self._last, self._stage = now, what
            with contextlib.suppress(OSError):  # nobody reads any more: the work goes on
                print(f"{what} {done} of {total}", file=sys.stderr, flush=True)

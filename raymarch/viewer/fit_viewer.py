"""Viewer of a running fit: draws pictures in a fraction of its time, reports progress, passes on commands."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from raymarch.device.pool import Closing
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.report import INTERRUPTED
from raymarch.fitting.settings.optimiser import FACTOR
from raymarch.system.interrupt import catch_first_interrupt
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.server.wire import Wire
from raymarch.viewer.viewer import IDLE_TIMEOUT, Viewer
from raymarch.volumes.volume import Volume

# seconds without any page after which a fit that one paused goes on: a page loaded again takes fewer
MAX_ABSENCE = 10.0
ACTIONS = ("pause", "go", "rate", "stop")


class FitControl:
    """Control of a running fit.

    Attributes:
        paused, stopped: what a page asked for. Ctrl-C during a pause stops the fit too, and sets `interrupted`.
    """

    def __init__(self, fitter: Fitter) -> None:
        self.fitter = fitter
        self.paused = self.stopped = self.interrupted = False
        self._by_page, self._seen = False, time.perf_counter()

    @property
    def state(self) -> str:
        """ "running" or "paused"."""
        return "paused" if self.paused else "running"

    @property
    def stopped_by_page(self) -> bool:
        """Whether a page ended the fit; that page then shows the result."""
        return self.stopped and not self.interrupted

    def act(self, message: Mapping[str, Any]) -> None:
        """Execute the command in a page's message; RaymarchError for one that cannot be executed."""
        action = message.get("action")
        if action not in ACTIONS:
            raise RaymarchError(f"fit: action is {str(action)[:40]!r}, want one of {', '.join(ACTIONS)}; choose one")
        if action == "rate":
            self.fitter.rates.multiply(self.fitter.steps_done, FACTOR("fit: value", message.get("value")))
        elif action == "stop":
            self.stopped = True
        else:
            self.paused = self._by_page = action == "pause"
            self._seen = time.perf_counter()

    def look_for_pages(self, count: int) -> None:
        """Resume a paused fit when all pages have been gone for a while: no page is left that could resume it."""
        now = time.perf_counter()
        if count or not (self.paused and self._by_page):
            self._seen = now
        elif now - self._seen > MAX_ABSENCE:
            log.warning("the last page has gone, so the fit goes on")
            self.paused = self._by_page = False


# Pictures take a fraction of a fit's time. Steps pay back the time of a picture before the next one is drawn.

RESTING_FRACTION, MOVING_FRACTION = 0.10, 0.35  # of all the time, while nobody moves and while somebody does
MAX_CREDIT, MAX_DEBT = 0.1, 0.6  # seconds; what compiles may take longer, once


class TimeShare:
    """Time budget of pictures: a fraction of the seconds of steps is credited, and the seconds of pictures are debited.

    Example:
        >>> share = TimeShare()
        >>> share.of(False), share.of(True), share.due
        (0.1, 0.35, False)
    """

    def __init__(self) -> None:
        self._credit, self._since = 0.0, time.perf_counter()

    def begin(self) -> None:
        """Start to credit the time of steps."""
        self._since = time.perf_counter()

    @staticmethod
    def of(moving: bool) -> float:
        """Fraction of the time that pictures may take."""
        return MOVING_FRACTION if moving else RESTING_FRACTION

    @property
    def due(self) -> bool:
        """Whether the budget has time for a picture."""
        return self._credit > 0

    def stepped(self, moving: bool) -> None:
        """Credit the time of the steps since the last picture."""
        now, share = time.perf_counter(), self.of(moving)
        self._credit = min(self._credit + (now - self._since) * share / (1 - share), MAX_CREDIT)
        self._since = now

    def spent(self) -> None:
        """Debit the time since the last credit."""
        now = time.perf_counter()
        self._credit = max(self._credit - (now - self._since), -MAX_DEBT)
        self._since = now


log = logging.getLogger(__name__)

REPORT_INTERVAL = 0.5  # seconds between the fit's numbers
REDRAW_INTERVAL = 1.0  # seconds between pictures of it while nobody moves


class FitViewer(Closing):
    """Viewer of a running fit; `close` it, or use it in a `with`.

    `between` is called between two steps and spends a share of the time on pages: 10 % while nobody moves there, or
    pages draw themselves what moves, 35 % while the server draws that. What the fit reads or writes is not touched, so
    it ends with the same bytes as one that nobody looked at, unless its learning rates are changed.

    Attributes:
        control: what pages have asked of the fit, once `attach` has said which.
        done: whether the fit has come to its end.
        file: that the volume will be saved to; "" of none.
    """

    file = ""
    control: FitControl
    viewer: Viewer

    def __init__(self, server: Wire) -> None:
        self.server, self.done, self.attached = server, False, False
        self._ends: Callable[[], bool] = lambda: False
        self._share, self._told, self._drawn, self._seen = TimeShare(), 0.0, 0.0, dict[int, int]()

    @property
    def url(self) -> str:
        """Address of the page, with its token."""
        return self.server.url

    def close(self) -> None:
        """End the server and free the device memory; the fitter stays."""
        self.server.close()
        if self.attached:
            self.viewer.maker.close()

    def attach(self, fitter: Fitter) -> None:
        """Show a fit before its first step; RaymarchError if its fitter is closed."""
        _ = fitter.buffer.fields
        self.control = FitControl(fitter)
        self.viewer = Viewer(self.server, FrameMaker.of_fitter(fitter))
        self.viewer.other, self.viewer.opened = self._take, self._opened
        self.attached = True
        self._share.begin()

    def between(self, fitter: Fitter) -> bool:
        """Serve pages between two steps of the fit. Returns whether a page asked to end it."""
        viewer, control, now = self.viewer, self.control, time.perf_counter()
        if not self.server.running:
            return control.stopped
        self._share.stepped(viewer.moving)
        viewer.take()
        if not viewer.drawing and now - self._drawn > REDRAW_INTERVAL and fitter.steps_done > 0:
            self._drawn = now
            for page in viewer.pages.values():
                page.draw()
        self._tell()
        viewer.maker.hurried, viewer.maker.share = True, self._share.of(viewer.moving)
        self._share.spent()
        while viewer.busy and self._share.due:
            viewer.work()
            self._share.spent()
        if control.paused and not control.stopped:
            self._wait(viewer, fitter)
        return control.stopped

    def _wait(self, viewer: Viewer, fitter: Fitter) -> None:
        """Serve pages while the fit is paused. Its clock stops, and pictures are as fine as those of a volume."""
        shown, control = fitter.seconds, self.control
        viewer.maker.hurried, viewer.maker.share = False, 1.0
        self._tell(at_once=True)
        for page in viewer.pages.values():
            page.draw()
        log.warning("a page has paused the fit at step %d; Go on there, or Ctrl-C here ends it", fitter.steps_done)
        with catch_first_interrupt() as asked:
            while control.paused and not (control.stopped or asked() or self._ends()) and self.server.running:
                viewer.take(0.0 if viewer.busy else IDLE_TIMEOUT)
                viewer.work()
                control.look_for_pages(len(viewer.pages))
            control.interrupted = asked()
        control.stopped = control.stopped or control.interrupted
        fitter.clock.set_back(shown)
        self._share.begin()
        self._tell(at_once=True)

    def _opened(self, number: int) -> None:
        self._seen[number] = 0
        self._told = 0.0

    def _take(self, number: int, message: Mapping[str, Any]) -> bool:
        """Execute a page's message about the fit."""
        if message.get("type") != "fit":
            return False
        try:
            self.control.act(message)
        except RaymarchError as error:
            self.viewer.pages[number].refuse(error)
        self._told = 0.0
        return True

    def _tell(self, at_once: bool = False) -> None:
        """Send the fit's state to the pages. Each page gets the reports that it does not have yet."""
        now = time.perf_counter()
        if now - self._told < REPORT_INTERVAL and not at_once:
            return
        self._told = now
        self._say(self.control.state)

    def _say(self, state: str, ended: str = "") -> None:
        fitter = self.control.fitter
        for page in self.viewer.pages:
            first, self._seen[page] = self._seen.get(page, 0), len(fitter.history)
            self.viewer.say(state_of(fitter, first, fitter.rates.factor, state, ended), to=page)

    def finish(self, volume: Volume, ended: str) -> None:
        """Show the volume that the fit produced. The fitter may be closed now."""
        self.done = True
        self._say("done", ended)
        self.viewer.other = lambda number, message: message.get("type") == "fit"
        self.viewer.opened = lambda number: None
        maker = FrameMaker(volume, self.control.fitter.views, self.viewer.maker.name)
        maker.file = self.file
        self.viewer.show(maker)

    def run(self, stop: Callable[[], bool] = lambda: False) -> Volume:
        """Step the fit to its end, or until a page, Ctrl-C or `stop()` ends it, and serve; its volume."""
        fitter = self.control.fitter
        self._ends = stop
        with catch_first_interrupt() as asked:
            for _ in fitter.run(lambda: asked() or stop() or self.between(fitter)):
                continue
            cut = fitter.progress < 1
        ended = f"{INTERRUPTED} at step {fitter.steps_done}" if cut else fitter.ending()
        volume = fitter.volume(ended)
        self.finish(volume, ended)
        return volume


def state_of(fitter: Fitter, first: int, rate: float, state: str, ended: str = "") -> dict[str, Any]:
    """State of a fit for a page: its progress, and its reports from number `first` on."""
    new = fitter.history[first:]
    last = fitter.history[-1] if fitter.history else None
    return {
        "type": "fit",
        "step": fitter.steps_done,
        "steps": fitter.settings.steps,
        "progress": fitter.progress,
        "seconds": fitter.seconds,
        "seconds_left": None if last is None else last.seconds_left,
        "loss": [[report.step, report.loss] for report in new],
        "psnr": [[report.step, report.psnr] for report in new],
        "rate": rate,
        "shape": list(map(int, fitter.plan.shape if last is None else last.shape)),
        "state": state,
        "ended": ended,
    }

"""View of a running fit in a notebook: a task on the kernel's event loop. Messages arrive between its steps."""

from __future__ import annotations

import asyncio
import time

from raymarch.errors import RaymarchError, one_line
from raymarch.fitting.fitter import REPORT_INTERVAL, Fitter
from raymarch.fitting.report import INTERRUPTED, Fit, NotFinite
from raymarch.viewer.fit_viewer import FitViewer, state_of
from raymarch.viewer.notebook.kernel_wire import breathe
from raymarch.viewer.notebook.notebook_view import NotebookView
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.viewer import Viewer

POLL_INTERVAL = 0.02  # seconds between looks at messages in a pause
OPENING_TIMEOUT = 1.0  # seconds that the first step waits for a page
STEP_TURNS = 2  # of the loop between two steps
MIN_FOREIGN_TURN = 0.1  # seconds from which on a turn of the loop was another cell's, and none of the fit's time


class _FitViewer(FitViewer):
    """Viewer of a fit whose task does the waiting: a pause never blocks the kernel."""

    def _wait(self, viewer: Viewer, fitter: Fitter) -> None:
        return None

    def pausing(self) -> None:
        """Tell the pages that the fit is paused. Pictures are then as fine as those of a volume."""
        self.viewer.maker.hurried, self.viewer.maker.share = False, 1.0
        self._tell(at_once=True)
        for page in self.viewer.pages.values():
            page.draw()

    def going_on(self) -> None:
        """Tell the pages that the fit resumes."""
        self._share.begin()
        self._tell(at_once=True)


class NotebookFit(NotebookView):
    """View of a fit in a notebook, as `rm.view(fitter)` gives it there: the cell returns at once, and the fit goes on.

    Its steps are those of `rm.fit`, to the same bytes; while another cell runs it stands still, and so does its clock.
    In the page it can be paused, stopped and kept, and its learning rates changed. The fitter stays the caller's: close
    it when the fit is done.

    Example:
        >>> view = rm.view(fitter)  # doctest: +SKIP
        >>> fitted = await view.done()  # doctest: +SKIP
    """

    def __init__(self, fitter: Fitter) -> None:
        self._begin()
        self.fitter, self.fitting = fitter, _FitViewer(self.wire)
        self.fitting.attach(fitter)
        self._show(self.fitting.viewer)
        self._task = self._loop.start(self._run())
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # else asyncio logs it too

    async def done(self) -> Fit:
        """Result of the fit, once it is at its end or stopped; an interrupt while this waits stops it.

        Raises RaymarchError where the fit could not go on, as after its fitter was closed.
        """
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            self.stop()
            raise

    def pause(self) -> None:
        """Pause the fit, as the page does."""
        self.fitting.control.paused = True

    def go(self) -> None:
        """Resume a paused fit."""
        self.fitting.control.paused = False

    def stop(self) -> None:
        """End the fit after this step, and keep its volume."""
        self.fitting.control.stopped = True

    def close(self) -> None:
        """End the fit and the widget."""
        self.stop()
        super().close()

    def _still(self) -> bytes | None:
        """No still picture while the fit runs: a saved notebook would show its start."""
        return super()._still() if self.fitting.done else None

    def _instead(self, still: bytes | None) -> str:
        return super()._instead(still) or self.fitter._repr_html_() or ""

    def _work(self) -> bool:
        """No work while the fit runs: it reads messages itself between two steps."""
        return self.fitting.done and super()._work()

    async def _run(self) -> Fit:
        try:
            ended = await self._steps()
        except NotFinite as error:
            ended = str(error)
        except RaymarchError as error:
            self.viewer.say({"type": "error", "text": f"the fit cannot go on: {one_line(error)}"})
            raise
        fitter, fitting = self.fitter, self.fitting
        volume = fitter.volume(ended)
        fitted = Fit(
            volume, fitter.settings, tuple(fitter.history), fitter.box, ended, fitter.seconds, None, fitter.preparation
        )
        if self.wire.running:
            self._make = lambda: FrameMaker(volume, fitter.views, self.viewer.maker.name)
            fitting.finish(volume, ended)
            told = state_of(fitter, 0, fitter.rates.factor, "done", ended)
            self.viewer.opened = lambda number: self.viewer.say(told, to=number)
            self._show(self.viewer)
            self._only_so_many()
            self._loop.wake()
        return fitted

    async def _steps(self) -> str:
        """Step to the end, with a look at messages and turns of the kernel's loop between two steps; how it ended."""
        fitter, fitting = self.fitter, self.fitting
        await self._first_page()
        since, drawn = fitter.seconds, 0
        while fitter.progress < 1 and not fitting.between(fitter):
            if fitting.control.paused:
                await self._pause()
                continue
            fitter.step()
            drawn += fitter.rays_a_step
            if fitter.steps_done % REPORT_INTERVAL == 0 or fitter.progress >= 1 or fitting.control.stopped:
                fitter.report(drawn / max(fitter.seconds - since, 1e-9))
                since, drawn = fitter.seconds, 0
            await self._breathe()
        if fitting.control.stopped and fitter.progress < 1:
            return f"{INTERRUPTED} at step {fitter.steps_done}"
        return fitter.ending()

    async def _first_page(self) -> None:
        """Wait a moment for the page, which a first step that compiles would keep waiting."""
        begun = time.perf_counter()
        while self.widget is not None and not self.viewer.pages and time.perf_counter() - begun < OPENING_TIMEOUT:
            self.viewer.take()
            await asyncio.sleep(POLL_INTERVAL)

    async def _breathe(self) -> None:
        begun, shown = time.perf_counter(), self.fitter.seconds
        await breathe(STEP_TURNS)
        if time.perf_counter() - begun > MIN_FOREIGN_TURN:
            self.fitter.clock.set_back(shown)

    async def _pause(self) -> None:
        """Draw while the fit is paused, whose clock stands still."""
        shown, viewer = self.fitter.seconds, self.viewer
        self.fitting.pausing()
        while self.fitting.control.paused and not self.fitting.control.stopped:
            viewer.work()
            self.fitting.control.look_for_pages(len(viewer.pages))
            await (breathe() if viewer.busy else asyncio.sleep(POLL_INTERVAL))
        self.fitter.clock.set_back(shown)
        self.fitting.going_on()

"""Viewer of a running fit: pictures in a share of its time, pause, learning rates, and its numbers as it goes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from raymarch.arguments.checks import number
from raymarch.data.volume import Volume
from raymarch.device.owner import Closing
from raymarch.errors import RaymarchError
from raymarch.fitting.fitter import Fitter
from raymarch.fitting.interrupt import asked_to_stop
from raymarch.fitting.report import INTERRUPTED
from raymarch.fitting.schedule import ending
from raymarch.viewer.frame_maker import FrameMaker
from raymarch.viewer.share import Share
from raymarch.viewer.viewer import IDLE, Viewer
from raymarch.viewer.wire import Wire

TELL_EVERY = 0.5  # seconds between the fit's numbers
REDRAW_EVERY = 1.0  # seconds between pictures of it while nobody moves
ACTIONS = ("pause", "go", "rate", "stop")
RATE = number(1e-3, 1e3)


class FitViewer(Closing):
    """Viewer of a running fit; `close` it, or use it in a `with`.

    `between` is called between two steps and spends a share of the time on pages: 10 % while nobody moves there, 35 %
    while somebody does. What the fit reads or writes is not touched, so it ends with the same bytes as one that nobody
    looked at, unless its learning rates are changed.

    Attributes:
        paused, stopped: as a page has asked for, or Ctrl-C in a pause, which `interrupted` says.
        done: whether the fit has come to its end.
        rate: what the learning rates are multiplied by.
        rates: (step, rate) of each change.
    """

    def __init__(self, server: Wire) -> None:
        self.server = server
        self.fitter: Fitter | None = None
        self.viewer: Viewer | None = None
        self.paused = self.stopped = self.interrupted = self.done = False
        self.rate, self.rates = 1.0, list[tuple[int, float]]()
        self._given: Any = None
        self._share, self._told, self._drawn, self._seen = Share(), 0.0, 0.0, dict[int, int]()

    @property
    def url(self) -> str:
        """Address of the page, with its token."""
        return self.server.url

    @property
    def stopped_by_page(self) -> bool:
        """Whether a page has ended the fit, who then looks at what came of it."""
        return self.stopped and not self.interrupted

    def close(self) -> None:
        """End the server and free the device memory; the fitter stays."""
        self.server.close()
        if self.viewer is not None:
            self.viewer.maker.close()

    def attach(self, fitter: Fitter) -> None:
        """Show a fit that is about to begin."""
        self.fitter, self._given = fitter, fitter.settings.optimiser
        self.viewer = Viewer(self.server, FrameMaker.of_fitter(fitter))
        self.viewer.other, self.viewer.opened = self._take, self._opened
        self._share.begin()

    def between(self, fitter: Fitter) -> bool:
        """Work for pages between two steps of the fit; whether one of them has asked to end it."""
        if self.viewer is None or not self.server.running:
            return self.stopped
        viewer, now = self.viewer, time.perf_counter()
        self._share.stepped(viewer.moving)
        viewer.take()
        if not viewer.busy and now - self._drawn > REDRAW_EVERY and fitter.steps_done > 0:
            self._drawn = now
            for page in viewer.pages.values():
                page.draw()
        self._tell()
        viewer.maker.hurried, viewer.maker.share = True, self._share.of(viewer.moving)
        if viewer.busy and self._share.due:
            viewer.work()
        self._share.spent()
        if self.paused and not self.stopped:
            self._wait(viewer, fitter)
        return self.stopped

    def _wait(self, viewer: Viewer, fitter: Fitter) -> None:
        """Serve while the fit is paused, whose clock stands still; pictures are as fine as a volume's."""
        begun = time.perf_counter()
        viewer.maker.hurried, viewer.maker.share = False, 1.0
        self._tell(at_once=True)
        for page in viewer.pages.values():
            page.draw()
        with asked_to_stop() as asked:
            while self.paused and not (self.stopped or asked()) and self.server.running:
                viewer.take(0.0 if viewer.busy else IDLE)
                viewer.work()
            self.interrupted = asked()
        self.stopped = self.stopped or self.interrupted
        fitter.started += time.perf_counter() - begun
        self._share.begin()
        self._tell(at_once=True)

    def _opened(self, number: int) -> None:
        self._seen[number] = 0
        self._told = 0.0

    def _take(self, number: int, message: Mapping[str, Any]) -> bool:
        """Take a message about the fit."""
        if message.get("type") != "fit":
            return False
        try:
            self._act(message)
        except RaymarchError as error:
            assert self.viewer is not None
            self.viewer.pages[number].refuse(error)
        self._told = 0.0
        return True

    def _act(self, message: Mapping[str, Any]) -> None:
        action = message.get("action")
        if action not in ACTIONS:
            raise RaymarchError(f"fit: action is {str(action)[:40]!r}, want one of {', '.join(ACTIONS)}; choose one")
        if action == "rate":
            self.multiply_rates(RATE("fit: value", message.get("value")))
        elif action == "stop":
            self.stopped = True
        else:
            self.paused = action == "pause"

    def multiply_rates(self, by: float) -> None:
        """Multiply the learning rates that the fit was given, from the next step on."""
        assert self.fitter is not None
        given, fitter = self._given, self.fitter
        optimiser = replace(given, lr_density=given.lr_density * by, lr_colour=given.lr_colour * by)
        fitter.settings = replace(fitter.settings, optimiser=optimiser)
        self.rate = by
        self.rates.append((fitter.steps_done, by))

    def _tell(self, at_once: bool = False) -> None:
        """Tell pages the fit's numbers, of which each has those that it was not told before."""
        now = time.perf_counter()
        if self.viewer is None or self.fitter is None or (now - self._told < TELL_EVERY and not at_once):
            return
        self._told = now
        for page in self.viewer.pages:
            first = self._seen.get(page, 0)
            self._seen[page] = len(self.fitter.history)
            self.viewer.say(state_of(self.fitter, first, self.rate, "paused" if self.paused else "running"), to=page)

    def noted(self, volume: Volume) -> Volume:
        """Volume of the fit with what its pages changed in its provenance."""
        if not self.rates:
            return volume
        return replace(volume, provenance={**volume.provenance, "rates_multiplied": list(map(list, self.rates))})

    def finish(self, volume: Volume, ended: str) -> None:
        """Show the volume that came of the fit, whose fitter may be closed now."""
        self.done = True
        if self.viewer is None or self.fitter is None:
            return
        for page in self.viewer.pages:
            said = state_of(self.fitter, self._seen.get(page, 0), self.rate, "done", ended)
            self.viewer.say(said, to=page)
        self.viewer.other = lambda number, message: message.get("type") == "fit"
        self.viewer.opened = lambda number: None
        self.viewer.show(FrameMaker(volume, self.fitter.views, self.viewer.maker.name))

    def run(self) -> Volume:
        """Step the fit to its end, or until a page or Ctrl-C stops it, and serve meanwhile; the volume of it."""
        fitter = self.fitter
        assert fitter is not None
        with asked_to_stop() as asked:
            for _ in fitter.run(lambda: asked() or self.between(fitter)):
                continue
            cut = (asked() or self.stopped) and fitter.progress < 1
        ended = f"{INTERRUPTED} at step {fitter.steps_done}" if cut else ending(fitter.steps_done, fitter.settings)
        volume = self.noted(fitter.volume(ended))
        self.finish(volume, ended)
        return volume


def state_of(fitter: Fitter, first: int, rate: float, state: str, ended: str = "") -> dict[str, Any]:
    """A fit's numbers for a page: where it is, and its reports from the `first` on."""
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

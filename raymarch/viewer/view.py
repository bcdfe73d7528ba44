"""View of a volume or of a fit in the browser, from Python."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from weakref import finalize

from raymarch.arguments.checks import Check, callback, flag, optional, text, whole
from raymarch.arguments.declared import checked
from raymarch.device.pool import Closing
from raymarch.errors import one_line
from raymarch.fitting.fitter import Fitter
from raymarch.io.volumes.volume_file import load
from raymarch.rendering.default_look import DefaultLook
from raymarch.system.interrupt import catch_first_interrupt
from raymarch.viewer.fit_viewer import FitViewer
from raymarch.viewer.notebook.notebook_fit import NotebookFit
from raymarch.viewer.notebook.notebook_view import NotebookView, runs_in_kernel
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.server.open_browser import announce
from raymarch.viewer.server.server_process import LOOPBACK_ADDRESS, ServerProcess
from raymarch.viewer.server.wire import Wire
from raymarch.viewer.viewer import Viewer
from raymarch.views.views import SHOWN_VIEWS, Views
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import AnyVolume, Volume


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _seen(value: object) -> Any:
    if not isinstance(value, (Volume, ScalarVolume, Fitter)):
        raise TypeError
    return value


VIEWABLE = Check("a Volume, a ScalarVolume or a Fitter", _seen, "call rm.view(volume), or rm.view(fitter).run()")


def _hosts(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(each, str) for each in value):
        raise TypeError
    return tuple(value)


HOSTS = Check("a list of names", _hosts, "give hosts=['lab.example.org']")
PORT = whole(0, 65535, cure="leave it out for a free one")


class View(Closing):
    """View of a volume or of a fit in the browser, as `rm.view` gives it; `close` it, or use it in a `with`.

    Pages are drawn while `run` is: kernels are launched by the thread that started raymarch alone.

    Attributes:
        url: address of the page, with its token.
    """

    def __init__(self, server: Wire, seen: Viewer | FitViewer) -> None:
        self._server, self._seen, self.url = server, seen, server.url
        finalize(self, server.close)  # of a view that is dropped no process stays

    def __repr__(self) -> str:
        return f"View({self.url})"

    @checked(stop=callback)
    def run(self, stop: Callable[[], bool] = lambda: False) -> Volume | None:
        """Serve the page of a volume until Ctrl-C, or until `stop()` says so; of a fitter step it to its end meanwhile.

        Of a fitter the volume as it is then, which the page goes on showing in a second `run`.
        """
        if isinstance(self._seen, FitViewer) and not self._seen.done:
            return self._seen.run(stop)
        viewer = self._seen.viewer if isinstance(self._seen, FitViewer) else self._seen
        with catch_first_interrupt() as asked:
            viewer.run(lambda: asked() or stop())
        return None

    def step(self) -> None:
        """Answer the pages' messages and draw one slice of their pictures, in a loop of one's own."""
        viewer = self._seen.viewer if isinstance(self._seen, FitViewer) else self._seen
        viewer.work()

    def close(self) -> None:
        """End the page's server and free the device memory; a fitter stays."""
        self._seen.close()


@checked(seen=VIEWABLE, views=optional(SHOWN_VIEWS), port=PORT, browser=flag, name=text, bind=text, hosts=HOSTS)
def view(
    seen: AnyVolume | Fitter,
    views: Views | None = None,
    *,
    port: int = 0,
    browser: bool = True,
    name: str = "",
    bind: str = LOOPBACK_ADDRESS,
    hosts: Sequence[str] = (),
) -> View | NotebookView:
    """View of a volume, or of a fit as it runs, in the browser: `rm.view(volume).run()`, `rm.view(fitter).run()`.

    In a notebook it is a widget: the last line of a cell shows it, a fit goes on as the cell has returned, and
    `await view.done()` gives its result; with a `port` it is a page there too.

    Args:
        seen: `Volume`, `ScalarVolume` or `Fitter`.
        views: whose cameras and photographs the page shows; those of a fitter are its own.
        port: where to listen on the loopback interface; a free one if 0.
        browser: whether a browser is opened, where there is one, and the URL printed.
        name: shown in the page.
        bind: address to listen on; this machine alone reaches the page at the first one. In a container that publishes
            its port "0.0.0.0", all addresses; whoever reaches them and has the URL can look.
        hosts: names that the page answers to beside 127.0.0.1 and localhost, as those of a proxy: ["lab.example.org"].

    Raises RaymarchError where the extra `viewer` is not installed, for a port that is taken, an address that is not
    this machine's, and names that are none.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(8, 8, 8))
        >>> with view(ball, browser=False) as page:
        ...     page.url[:17]
        'http://127.0.0.1:'
    """
    if port == 0 and runs_in_kernel():
        return NotebookFit(seen) if isinstance(seen, Fitter) else NotebookView(lambda: FrameMaker(seen, views, name))
    server = ServerProcess(port, bind, hosts)
    try:
        if browser or os.environ.get("SSH_CONNECTION"):
            announce(server, print, _note, browser=browser)
        if isinstance(seen, Fitter):
            fitting = FitViewer(server)
            fitting.attach(seen)
            return View(server, fitting)
        return View(server, Viewer(server, FrameMaker(seen, views, name)))
    except BaseException:
        server.close()
        raise


# A volume file is read again when it is replaced on disk.

POLL_INTERVAL = 1.0  # seconds between looks at the disk; what has not changed between two of them is written to its end
FileMark = tuple[int, ...]
log = logging.getLogger("raymarch")


class WatchedFile:
    """Volume file, read, as `format` if given, and read again when another file replaces it; `shown` makes what is seen
    of what was read.

    Raises RaymarchError if it cannot be read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        shown: Callable[[AnyVolume], AnyVolume] = lambda volume: volume,
    ) -> None:
        self.path, self._format, self._shown = path, format, shown
        self._read = self._before = self._mark()
        self.volume: AnyVolume = shown(load(path, format=format))
        self._looked = time.monotonic()

    def _mark(self) -> FileMark:
        try:
            found = Path(self.path).stat()
        except OSError:  # between the old one and the new
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def replaced(self) -> bool:
        """Whether the file was replaced since it was read, and the new one is complete."""
        if time.monotonic() - self._looked < POLL_INTERVAL:
            return False
        self._looked, now = time.monotonic(), self._mark()
        settled, self._before = now == self._before, now
        return bool(now) and settled and now != self._read

    def again(self) -> AnyVolume:
        """Volume of the new file; RaymarchError if it cannot be read."""
        self._read = self._mark()
        self.volume = self._shown(load(self.path, format=self._format))
        return self.volume


def view_file(
    server: ServerProcess,
    watched: WatchedFile,
    views: Views | None,
    stop: Callable[[], bool] = lambda: False,
    begin: Callable[[AnyVolume], DefaultLook] | None = None,
    window: tuple[float, float] | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve a volume file, and files that replace it, until `stop()` returns True. `begin` is the first look.

    `ready` is called once it is known that the volume can be shown.
    """
    name = Path(watched.path).name

    def made(volume: AnyVolume) -> FrameMaker:
        maker = FrameMaker(volume, views, name, None if begin is None else begin(volume), window)
        maker.file = os.fspath(watched.path)
        return maker

    def look() -> None:
        if not watched.replaced():
            return
        try:
            viewer.show(made(watched.again()))
            text = f"{name} was replaced on disk; this is the new one"
        except Exception as error:  # memory, or whatever a file that changes meanwhile does to its reader
            text = f"{name} was replaced on disk, and the new one is not shown: {one_line(error)}"
        viewer.say({"type": "note", "text": text})
        log.warning("viewer: %s", text)

    with Viewer(server, made(watched.volume)) as viewer:
        ready()
        viewer.often = look
        viewer.run(stop)

"""View of a volume or of a fit in the browser, from Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import finalize

from raymarch.arguments.checks import Check, callback, flag, optional, text, whole
from raymarch.arguments.declared import checked
from raymarch.device.owner import Closing
from raymarch.fitting.fitter import Fitter
from raymarch.system.interrupt import asked_to_stop
from raymarch.viewer.fit_viewer import FitViewer
from raymarch.viewer.notebook.notebook_fit import NotebookFit
from raymarch.viewer.notebook.notebook_view import NotebookView, in_kernel
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.server.browser import announce
from raymarch.viewer.server.server_process import LOOPBACK, ServerProcess
from raymarch.viewer.server.wire import Wire
from raymarch.viewer.viewer import Viewer
from raymarch.views.views import VIEWS, Views
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.volume import AnyVolume, Volume


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _seen(value: object) -> Any:
    if not isinstance(value, (Volume, ScalarVolume, Fitter)):
        raise TypeError
    return value


SEEN = Check("a Volume, a ScalarVolume or a Fitter", _seen, "call rm.view(volume), or rm.view(fitter).run()")


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
        with asked_to_stop() as asked:
            viewer.run(lambda: asked() or stop())
        return None

    def step(self) -> None:
        """Answer what pages have said and make one slice of their pictures, for a loop of one's own."""
        viewer = self._seen.viewer if isinstance(self._seen, FitViewer) else self._seen
        viewer.work()

    def close(self) -> None:
        """End the page's server and free the device memory; a fitter stays."""
        self._seen.close()


@checked(seen=SEEN, views=optional(VIEWS), port=PORT, browser=flag, name=text, bind=text, hosts=HOSTS)
def view(
    seen: AnyVolume | Fitter, views: Views | None = None, *, port: int = 0, browser: bool = True, name: str = "",
    bind: str = LOOPBACK, hosts: Sequence[str] = (),
) -> View | NotebookView:  # fmt: skip
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
    if port == 0 and in_kernel():
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

"""View of a volume in a notebook: a widget if anywidget is installed, else a still picture."""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from raymarch import runtime
from raymarch.device.pool import Closing
from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.camera import Camera
from raymarch.html.card import safe_text
from raymarch.html.picture import data_uri
from raymarch.rendering.march_settings import March
from raymarch.viewer.notebook.kernel_wire import KernelLoop, KernelWire
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.page_pictures import Page
from raymarch.viewer.pictures.viewer_camera import Look, ViewerCamera, camera_of_message
from raymarch.viewer.server.client_files import client_css, widget_js
from raymarch.viewer.viewer import Viewer

# The widget runs the page's client in an output cell. Its messages go through the kernel's comm, without a server.

MISSING_WIDGET = 'anywidget is not installed, so that this is a still picture; pip install "raymarch[notebook]"'


class Widget:
    """Widget in output cells, by anywidget.

    Args:
        take: called with what a page says, on whatever thread the kernel has for that.

    Raises RaymarchError where anywidget is missing.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self.model = _widget_class()()
        self.model.on_msg(lambda _, content, buffers: take(content))

    def post(self, content: dict[str, Any], data: bytes | None) -> None:
        """Send a message to all outputs."""
        self.model.send(content, buffers=[] if data is None else [data])

    def mime_bundle(self) -> dict[str, Any]:
        """Output of the notebook cell, by content type."""
        made = self.model._repr_mimebundle_()
        return dict(made[0] if isinstance(made, tuple) else made or {})

    def close(self) -> None:
        """End it."""
        self.model.close()


@lru_cache(1)
def _widget_class() -> type:
    """Widget class, made once. It brings the client's script to the browser."""
    try:
        from anywidget import AnyWidget
    except ImportError as error:
        raise RaymarchError(MISSING_WIDGET) from error
    return type("RaymarchView", (AnyWidget,), {"_esm": widget_js(), "_css": client_css(), "__module__": __name__})


STILL_SIZE = 480, 360  # pixels
MAX_OPEN = 3  # volumes of views on the device; others are put there again when somebody turns them
log = logging.getLogger("raymarch")


def runs_in_kernel() -> bool:
    """Whether a notebook's kernel runs this; a terminal's IPython has none."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


class NotebookView(Closing):
    """View in a notebook, as `rm.view` gives it there: the last line of a cell shows it, and `display` does.

    It turns as the page of `raymarch view` does, without any server: the kernel draws, while no cell runs. Where
    anywidget is missing it is a still picture, and says so. `close` it, or use it in a `with`.
    """

    def __init__(self, make: Callable[[], FrameMaker]) -> None:
        self._begin()
        self._make = make
        self._show(Viewer(self.wire, make()))
        self._only_so_many()

    def _begin(self) -> None:
        """Make the wire, the loop and the widget."""
        runtime.start()
        runtime.require_owner()
        self._loop = KernelLoop(self._work, lambda: self.wire.behind)
        self.wire = KernelWire(lambda content, data: None, self._loop.wake)
        self.widget: Widget | None = None
        self.missing, self._resting = "", False
        try:
            self.widget = Widget(self.wire.take)
            self.wire.post = self.widget.post
        except RaymarchError as error:
            self.missing = str(error)

    def _show(self, viewer: Viewer) -> None:
        """Show a viewer's picture. A page that connects gets the scene first."""
        self.viewer, opened = viewer, viewer.opened

        def greet(number: int) -> None:
            self.wire.greet(number)
            opened(number)

        viewer.opened = greet

    def _only_so_many(self) -> None:
        """Free the device memory of the oldest views."""
        _open[:] = [view for view in _open if view is not self] + [self]
        for old in _open[:-MAX_OPEN]:
            old.rest()

    def _work(self) -> bool:
        """Do a slice of work. Returns whether there is more to do. An error becomes a line on the page."""
        viewer = self.viewer
        if not self.wire.running:
            return False
        try:
            if self._resting:
                again = self._make()
                again.atlas.follow(viewer.maker.atlas)
                viewer.show(again)
                self._resting = False
                self._only_so_many()
            viewer.work()
        except Exception as error:  # else it would end in the kernel's log, and the page would wait
            log.debug("view", exc_info=True)
            for page in viewer.pages.values():
                page.drop()
            viewer.say({"type": "error", "text": f"the picture could not be made: {one_line(error)}"})
        return viewer.busy

    def rest(self) -> None:
        """Free the device memory until the next message of a page."""
        for page in self.viewer.pages.values():
            page.drop()
        self._resting = True
        self.viewer.maker.close()
        if self in _open:
            _open.remove(self)

    def close(self) -> None:
        """End the widget and free the device memory."""
        self.rest()
        self.viewer.close()
        if self.widget is not None:
            self.widget.close()

    @property
    def maker(self) -> FrameMaker:
        """Frame maker, on the device."""
        if self._resting:
            self._work()
        return self.viewer.maker

    @property
    def page(self) -> Page | None:
        """Page that sent the last message."""
        return max(self.viewer.pages.values(), key=lambda page: page.said, default=None)

    @property
    def eye(self) -> ViewerCamera:
        """Camera of the page that was turned last; until then the start camera."""
        page = self.page
        if page is not None and page.eye is not None:
            return page.eye
        return camera_of_message(
            {"id": 0, **self.maker.scene()["camera"], "width": STILL_SIZE[0], "height": STILL_SIZE[1]}
        )

    @property
    def look(self) -> Look:
        """Look of the page that was turned last; until then the start look."""
        return self.maker.look() if self.page is None else self.page.look

    @property
    def camera(self) -> Camera:
        """Camera as it was turned: `rm.render(volume, view.camera, march=view.march)` is the picture at rest."""
        return self.maker.camera(self.eye)

    @property
    def march(self) -> March:
        """March of what is shown."""
        return self.maker.source.prepare(self.look)

    def picture(self) -> bytes:
        """PNG of the shown picture, as `rm.write_png` writes it."""
        return self.maker.picture(self.eye, self.look)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.viewer.maker.name!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The widget, and a still picture for where none is, as in a saved notebook that is read without a kernel."""
        shown: dict[str, Any] = {"text/plain": repr(self)}
        try:
            still = self._still()
        except RaymarchError as error:
            return {"text/plain": f"{self!r}: {error}"}
        if still is not None:
            shown["image/png"] = base64.b64encode(still).decode()
        if self.widget is not None:
            return {**self.widget.mime_bundle(), **shown}
        return {**shown, "text/html": f"{self._instead(still)}<div>{safe_text(self.missing)}</div>"}

    def _still(self) -> bytes | None:
        """PNG for readers without a widget."""
        return self.picture()

    def _instead(self, still: bytes | None) -> str:
        """HTML for readers without a widget."""
        return "" if still is None else f'<img alt="{safe_text(self)}" src="{data_uri(still)}">'


_open: list[NotebookView] = []

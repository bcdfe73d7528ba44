"""View of a volume or a fit in a notebook: a widget where there is one, else a still picture."""

from __future__ import annotations

import base64
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any

from raymarch import runtime
from raymarch.data.views import Views
from raymarch.data.volume import AnyVolume
from raymarch.device.owner import Closing
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.html.card import safe
from raymarch.html.picture import data_uri
from raymarch.rendering.march import March
from raymarch.viewer.eye import Eye, eye_of
from raymarch.viewer.frame_maker import FrameMaker
from raymarch.viewer.kernel_pages import KernelPages
from raymarch.viewer.look import Look
from raymarch.viewer.widget import Widget

STILL = 480, 360  # pixels
HEIGHT = 480  # CSS pixels of the widget
MOST_OPEN = 3  # views whose volumes are on the device; others put them there again when somebody turns them
log = logging.getLogger("raymarch")


def in_kernel() -> bool:
    """Whether a notebook's kernel runs this; a terminal's IPython has none."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


class NotebookView(Closing):
    """View of a volume in a notebook, as the last line of a cell or by `display`.

    It turns, as `raymarch view`'s page does, without any server: the kernel draws. Where there is no widget
    (anywidget is missing) it is a still picture, and says so.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(8, 8, 8))
        >>> with NotebookView(ball) as view:
        ...     view.camera.width, view.march.mode
        (480, 'emission-absorption')
    """

    def __init__(self, volume: AnyVolume, views: Views | None = None, name: str = "") -> None:
        self._begin(lambda: FrameMaker(volume, views, name))

    def _begin(self, make: Callable[[], FrameMaker], other: Callable[[Mapping[str, Any]], bool] | None = None) -> None:
        runtime.start()
        runtime.require_owner()
        self.widget: Widget | None = None
        self.missing = ""
        self.pages = KernelPages(make, self._post, other or (lambda message: False))
        try:
            self.widget = Widget(self.pages.take, HEIGHT)
        except RaymarchError as error:
            self.missing = str(error)
            log.warning("view: %s", error)
        _open.append(self)
        for old in _open[:-MOST_OPEN]:
            old.pages.rest()
        del _open[:-MOST_OPEN]

    def _post(self, page: str, header: dict[str, Any], data: bytes | None) -> None:
        if self.widget is not None:
            self.widget.post(page, header, data)

    def close(self) -> None:
        """End the widget and free the device memory."""
        self.pages.rest()
        if self in _open:
            _open.remove(self)
        if self.widget is not None:
            self.widget.close()
            self.widget = None

    @property
    def eye(self) -> Eye:
        """Eye of the page that was turned last; that of the start until then."""
        page = self.pages.newest
        if page is not None and page.eye is not None:
            return page.eye
        width, height = STILL
        return eye_of({"id": 0, **self.pages.maker.scene()["camera"], "width": width, "height": height})

    @property
    def look(self) -> Look:
        """Look of the page that was turned last."""
        page = self.pages.newest
        return self.pages.maker.look() if page is None else page.look

    @property
    def camera(self) -> Camera:
        """Camera as it was turned to: `rm.render(volume, view.camera, march=view.march)` is the picture at rest."""
        return self.pages.maker.camera(self.eye)

    @property
    def march(self) -> March:
        """March of what is shown."""
        return self.pages.maker.source.prepare(self.look)

    def picture(self) -> bytes:
        """PNG of what is shown, as `rm.write_png` writes it."""
        return self.pages.maker.picture(self.eye, self.look)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.pages.maker.name or 'volume'!r})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """The widget, and a still picture for where none is, as in a saved notebook that is read without a kernel."""
        shown: dict[str, Any] = {"text/plain": repr(self)}
        try:
            still = self.picture()
        except RaymarchError as error:  # as where the output is shown from another thread
            return {**shown, "text/plain": f"{self!r}: {error}"}
        shown["image/png"] = base64.b64encode(still).decode()
        if self.widget is not None:
            return {**self.widget.mime_bundle(), **shown}
        html = f'<img alt="{safe(self)}" src="{data_uri(still)}"><div>{safe(self.missing)}</div>'
        return {**shown, "text/html": html}


_open: list[NotebookView] = []

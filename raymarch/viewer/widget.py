"""Widget of a notebook: the page's own client in an output cell, its messages by the kernel's comm, no server."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.viewer.server.client_files import client_css, widget_js

MISSING = 'anywidget is not installed, so that this is a still picture; pip install "raymarch[notebook]"'


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
        """Send something to all outputs."""
        self.model.send(content, buffers=[] if data is None else [data])

    def mime_bundle(self) -> dict[str, Any]:
        """What a notebook shows of it, by type of content."""
        made = self.model._repr_mimebundle_()
        return dict(made[0] if isinstance(made, tuple) else made or {})

    def close(self) -> None:
        """End it."""
        self.model.close()


@lru_cache(1)
def _widget_class() -> type:
    """Class of the models, made once: with it goes the client's script to the browser."""
    try:
        from anywidget import AnyWidget
    except ImportError as error:
        raise RaymarchError(MISSING) from error
    return type("RaymarchView", (AnyWidget,), {"_esm": widget_js(), "_css": client_css(), "__module__": __name__})

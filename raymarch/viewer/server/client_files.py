"""Files of the viewer's page. The client's parts are joined into one module for pages and notebooks."""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePosixPath

HTML_TYPE, SCRIPT_TYPE, STYLE_TYPE = (
    "text/html; charset=utf-8",
    "text/javascript; charset=utf-8",
    "text/css; charset=utf-8",
)


def _text(name: str) -> str:
    return files("raymarch.viewer").joinpath("client", name).read_text(encoding="utf-8")


def client_js() -> str:
    """One ES module that exports `mount(root, channel)`: the parts in the order that `order.txt` lists."""
    return "\n".join(_text(name) for name in _text("order.txt").split())


def widget_js() -> str:
    """The same for a notebook: a module that exports by default what anywidget renders."""
    return client_js() + "\n" + _text("widget.js")


def client_css() -> str:
    """Style sheet of page and widget."""
    return _text("client.css")


def serve_file(path: str) -> tuple[str, str]:
    """Content type and text of a path that the guard lets through.

    Example:
        >>> serve_file("/client.css")[0]
        'text/css; charset=utf-8'
    """
    if path == "/":
        return HTML_TYPE, _text("index.html")
    if path == "/client.js":
        return SCRIPT_TYPE, client_js()
    return (STYLE_TYPE if path.endswith(".css") else SCRIPT_TYPE), _text(PurePosixPath(path).name)

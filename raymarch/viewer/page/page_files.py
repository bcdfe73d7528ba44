"""Files of a page: its template, style and scripts, some of them the viewer's, joined into one text."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import Any

OF_VIEWER = (
    "vectors.js", "view_camera.js", "dom.js", "sliders.js", "colour_maps.js", "histogram.js", "table.js",
    "table_drawing.js", "table_rows.js", "table_hand.js", "table_editor.js", "pointer.js", "camera_path.js",
    "shader.js", "raymarcher.js", "march_camera.js", "drawing_pace.js",
)  # fmt: skip
OWN = ("page_camera.js", "drawing_loop.js", "page_panel.js", "page_keys.js", "page.js")
TITLE = "A volume"


def _text(folder: str, name: str) -> str:
    return files("raymarch.viewer").joinpath(*folder.split("/"), name).read_text(encoding="utf-8")


def page_script() -> str:
    """Script of a page, the viewer's parts first."""
    viewer = [_text("client", name) for name in OF_VIEWER]
    return "\n".join([*viewer, *(_text("page/client", name) for name in OWN)])


def page_html(page: dict[str, Any], packed: str) -> str:
    """A page of its record and the packed volume, in one text that names no other file.

    Example:
        >>> "<script" in page_html({"title": "a < b", "still": ""}, "")
        True
    """
    parts = {
        "@title@": html.escape(page.get("title") or TITLE),
        "@still@": page["still"],
        "@style@": _text("client", "client.css") + _text("page/client", "page.css"),
        "@record@": _script_json(page),
        "@volume@": packed,
        "@script@": page_script(),
    }
    whole, *rest = _text("page/client", "page.html").split("@")
    for i, piece in enumerate(rest):
        whole += parts[f"@{piece}@"] if i % 2 == 0 else piece
    return whole


def _script_json(record: dict[str, Any]) -> str:
    """A record as JSON that may stand within a script element."""
    kept = {name: value for name, value in record.items() if name != "still"}
    return json.dumps(_rounded(kept), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _rounded(value: Any) -> Any:
    """Numbers with as many figures as double precision needs for single: nine."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value

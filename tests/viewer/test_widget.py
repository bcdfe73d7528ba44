"""Law: the widget is the page's client, its channel the kernel's comm: what comes is taken, what is posted is sent."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.viewer.notebook import notebook_view
from raymarch.viewer.notebook.notebook_view import Widget, _widget_class
from raymarch.viewer.pictures.frame_maker import FrameMaker

pytestmark = pytest.mark.extra
require_extra("anywidget", "notebook")
VIEW = "application/vnd.jupyter.widget-view+json"


def test_messages_go_both_ways(monkeypatch):
    taken, sent = [], []
    made = Widget(taken.append)
    monkeypatch.setattr(made.model, "send", lambda content, buffers: sent.append((content, buffers)))
    made.model._handle_custom_msg({"view": "a", "message": {"type": "open"}}, [])  # as the comm hands it on
    made.post({"view": "a", "header": {"type": "frame"}}, b"png")
    made.post({"view": "a", "header": {"type": "note"}}, None)
    assert taken == [{"view": "a", "message": {"type": "open"}}]
    assert [buffers for _, buffers in sent] == [[b"png"], []]
    assert VIEW in made.mime_bundle()
    made.close()


def test_the_script_is_one_module_that_asks_for_nothing():
    own = _widget_class()
    script, style = str(own._esm), str(own._css)
    assert script.count("export default") == 1 and "import " not in script.replace("import {", "")
    assert "function mount(" in script and ".rm-viewer" in style
    assert "http://" not in script.replace("http://www.w3.org/", "") + style and "https://" not in script + style


def test_a_notebook_keeps_a_still_picture_beside_the_widget(monkeypatch):
    monkeypatch.setattr(notebook_view, "STILL_SIZE", (24, 18))
    ball = rm.Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.6), shape=(12, 13, 14))

    async def cell():
        with notebook_view.NotebookView(lambda: FrameMaker(ball)) as view:
            return view._repr_mimebundle_()

    bundle = asyncio.run(cell())
    assert set(bundle) >= {VIEW, "image/png", "text/plain"} and "text/html" not in bundle

"""Law: what docs/notebooks.md shows runs, cell after cell, as a notebook's kernel runs it."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import drive

import raymarch as rm
from raymarch.viewer import view
from raymarch.viewer.notebook import notebook_view

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "notebooks.md").read_text()
CELLS = re.findall(r"(?ms)^```python\n(.*?)^```$", TEXT)
SMALLER = {"48j": "13j", "steps=60, resolution=24": "resolution=16, steps=40, rays=512, sh_degree=0, slots=1"}
SMALLER |= {'rm.load_views("scenes/tower")': "views"}


async def run(cells, names):
    """Run cells one after the other; what their last lines are."""
    shown = []
    for cell in cells:
        for large, small in SMALLER.items():  # kinds that other tests have compiled
            cell = cell.replace(large, small)
        tree = ast.parse(cell)
        last = ast.Interactive([tree.body.pop()]) if isinstance(tree.body[-1], ast.Expr) else None
        for part in (tree, last and ast.Expression(last.body[0].value)):
            if part is None:
                continue
            kind = "eval" if isinstance(part, ast.Expression) else "exec"
            value = eval(compile(part, "cell", kind, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            value = await value if inspect.iscoroutine(value) else value
        shown.append(value)
    return shown


def test_the_cells_run(monkeypatch):
    monkeypatch.setattr(view, "runs_in_kernel", lambda: True)
    assert all(large in "".join(CELLS) for large in SMALLER)
    monkeypatch.setattr(notebook_view, "STILL_SIZE", (40, 30))
    names = {"views": drive.ball_views()}
    shown = asyncio.run(run(CELLS, names))
    volume, turned, image, watched, fitted = shown
    assert volume is names["volume"] and "<img" in volume._repr_html_()
    assert isinstance(turned, notebook_view.NotebookView) and image is None
    assert names["image"].shape == (30, 40, 3)
    assert isinstance(watched, notebook_view.NotebookView) and isinstance(fitted, rm.fitting.report.Fit)
    assert fitted.ended == "done" and fitted.volume.provenance["steps"] == 40
    for each in list(notebook_view._open):
        each.close()

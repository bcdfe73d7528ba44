"""Law: in JupyterLab, in a browser, a view shows the kernel's picture and turns by a drag, and nothing complains."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import SCREENSHOTS, chromium, pixels
from skips import require_extra

pytestmark = pytest.mark.extra
require_extra("anywidget", "notebook", load=False)
require_extra("jupyterlab", "notebook", load=False)
require_extra("playwright", "all", load=False)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60_000  # ms, of a machine that is busy
VIEW = """import io, numpy as np, raymarch as rm
from PIL import Image
sigma, colour = lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.8), lambda p: (p + 1) / 2
ball = rm.Volume.from_function(sigma, colour, shape=(24,) * 3)
view = rm.view(ball)
view"""
SUM = "print('sum', np.asarray(Image.open(io.BytesIO(view.picture()))).astype(int).sum(), view.camera.width)"
CANVAS = ".rm-viewer canvas.rm-picture"
REST = ".rm-stage[data-settled=true]"


@pytest.fixture
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def lab(tmp_path):
    """URL of a JupyterLab of its own, with its token, in a folder with one notebook."""
    bare = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**bare, "id": f"c{i}", "source": source} for i, source in enumerate([VIEW, SUM])]
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    (work := tmp_path / "work").mkdir()
    notebook = {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 5}
    (work / "view.ipynb").write_text(json.dumps(notebook))
    token, own = secrets.token_hex(16), {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR"):
        own[f"JUPYTER_{name}"] = str(tmp_path / name)
    own |= {"IPYTHONDIR": str(tmp_path / "ipython"), "JUPYTERLAB_WORKSPACES_DIR": str(tmp_path / "workspaces")}
    options = ["--no-browser", "--ip=127.0.0.1", "--port=0", f"--IdentityProvider.token={token}", "--allow-root"]
    options += [f"--ServerApp.root_dir={work}", "--LabApp.news_url=None"]
    options += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    said = tmp_path / "said.txt"
    with said.open("w") as out:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = subprocess.Popen(command, env={**os.environ, **own}, cwd=work, stdout=out, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + PATIENCE / 1000
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/lab", said.read_text())):
            assert server.poll() is None and time.monotonic() < until, said.read_text()[-2000:]
            time.sleep(0.1)
        yield f"http://127.0.0.1:{found[1]}/lab/tree/view.ipynb?token={token}"
    finally:
        server.terminate()
        server.wait(20)


def run_cell(page, number):
    """Run a cell; its session may be there a moment later than the page says."""
    cell = page.locator(".jp-Notebook .jp-Cell").nth(number)
    for _ in range(10):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        try:
            page.wait_for_function(
                f"() => /[0-9*]/.test(document.querySelectorAll('.jp-Notebook .jp-InputPrompt')[{number}].innerText)",
                timeout=3000,
            )
            return cell
        except Exception:  # not taken yet
            continue
    raise AssertionError("the cell was never run")


def checksum(page):
    return int(pixels(page.locator(CANVAS))[..., :3].sum())


def turned(page):
    """Checksums of the picture before, while and after it is dragged."""
    page.wait_for_selector(REST, timeout=PATIENCE)
    sums = [checksum(page)]
    box = page.locator(CANVAS).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(1, 31):
        page.mouse.move(x + 5 * i, y + i)
        page.wait_for_timeout(30)
        sums.append(checksum(page))
    page.mouse.up()
    page.wait_for_timeout(400)
    page.wait_for_selector(REST, timeout=PATIENCE)
    return [*sums, checksum(page)]


def test_a_view_in_a_notebook_turns(lab, browser):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    complaints, hosts = [], set()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: hosts.add(urlsplit(asked.url).hostname))
    page.goto(lab)
    try:
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE)
        page.wait_for_selector("#jp-main-statusbar >> text=Idle", timeout=PATIENCE)
        run_cell(page, 0)
        sums = turned(page)
        assert len(set(sums)) > 3 and sums[-1] != sums[0], "the picture changes while it is dragged"
        printed = run_cell(page, 1).locator(".jp-OutputArea-output >> text=sum")
        printed.wait_for(timeout=PATIENCE)
        assert int(printed.inner_text().split()[1]) == sums[-1], "the canvas has the pixels of the kernel's picture"
        assert complaints == [] and hosts <= {"127.0.0.1", None}
    except BaseException:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / "lab.png")
        raise

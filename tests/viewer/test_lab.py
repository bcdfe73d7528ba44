"""Law: in JupyterLab, in a browser, a view shows the kernel's picture and turns by a drag, and nothing complains."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from skips import require_extra

pytestmark = pytest.mark.extra

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60_000  # ms, of a machine that is busy
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VIEW = """import io, numpy as np, raymarch as rm
from PIL import Image
sigma, colour = lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.8), lambda p: (p + 1) / 2
ball = rm.Volume.from_function(sigma, colour, shape=(24,) * 3)
view = rm.view(ball)
view"""
SUM = "print('sum', np.asarray(Image.open(io.BytesIO(view.picture()))).astype(int).sum(), view.camera.width)"
CANVAS = """() => {
  const canvas = document.querySelector(".rm-viewer canvas.rm-picture");
  if (!canvas || canvas.width < 9) return 0;
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 0;
  for (let i = 0; i < pixels.length; i += 4) sum += pixels[i] + pixels[i + 1] + pixels[i + 2];
  return sum;
}"""
AT_REST = "() => document.querySelector('.rm-viewer .rm-status, .rm-viewer')?.textContent.includes('at rest')"


@pytest.fixture
def browser():
    """Chromium of the system, headless."""
    for module in ("anywidget", "jupyterlab"):
        require_extra(module, "notebook")
    require_extra("playwright", "all")
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no browser")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


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


def test_a_view_in_a_notebook_turns(lab, browser, tmp_path):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    complaints, hosts = [], set()
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: hosts.add(re.match(r"\w+://([^:/]*)|data:|blob:", asked.url)[1]))
    page.goto(lab)
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=PATIENCE)
    page.wait_for_selector("#jp-main-statusbar >> text=Idle", timeout=PATIENCE)
    run_cell(page, 0)
    page.wait_for_selector(".rm-viewer canvas.rm-picture", timeout=PATIENCE)
    page.wait_for_function(AT_REST, timeout=PATIENCE)
    before = page.evaluate(CANVAS)
    box = page.locator(".rm-viewer canvas.rm-picture").bounding_box()
    x, y, seen = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, {before}
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(1, 31):
        page.mouse.move(x + 5 * i, y + i)
        time.sleep(0.03)
        seen.add(page.evaluate(CANVAS))
    page.mouse.up()
    page.wait_for_timeout(400)
    page.wait_for_function(AT_REST, timeout=PATIENCE)
    after = page.evaluate(CANVAS)
    page.screenshot(path=str(tmp_path / "turned.png"))
    assert len(seen) > 3 and after != before, "the picture changes while it is dragged"
    cell = run_cell(page, 1)
    printed = cell.locator(".jp-OutputArea-output >> text=sum")
    printed.wait_for(timeout=PATIENCE)
    assert int(printed.inner_text().split()[1]) == after, "the canvas has the pixels of the kernel's picture"
    assert complaints == [] and hosts <= {"127.0.0.1", None}

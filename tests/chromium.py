"""Chromium for tests of pages: found, started headless, and what goes wrong in its pages kept.

Playwright's own browser is taken where `playwright install chromium` has brought it, else the system's. Where a test
fails its pages are kept as pictures in build/screenshots.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

SCREENSHOTS = Path(__file__).resolve().parent.parent / "build" / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
HOW = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"]
# WebGL2 on the processor, where there is no GPU.
SOFTWARE_GRAPHICS = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def system_chromium() -> str | None:
    """Path of a Chromium that the system has; CHROMIUM names another."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium(how=()):
    """Headless Chromium of Playwright; the test that wants it is skipped where there is none."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = system_chromium() or (own if Path(own).exists() else None)
        if path is None:
            pytest.skip("no browser: Chromium is not installed, from the system or by playwright install chromium")
        browser = playwright.chromium.launch(executable_path=path, args=[*HOW, *how])
        yield browser
        browser.close()


def is_wrong(said) -> bool:
    """Whether what a page says on its console is a fault; that software reads pixels slowly is none."""
    return said.type in ("error", "warning") and "GL Driver Message (OpenGL, Performance" not in said.text


class Watched:
    """Context of a browser whose pages are watched: errors that they say, and the hosts that they ask."""

    def __init__(self, browser, **how):
        self.context = browser.new_context(viewport={"width": 1100, "height": 700}, accept_downloads=True, **how)
        self.context.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.hosts: set[str] = set()

    def open(self, url):
        """A new page at an address."""
        page = self.context.new_page()
        page.on("console", lambda said: is_wrong(said) and self.wrong.append(said.text))
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on(
            "request", lambda request: self.hosts.add(urlsplit(request.url).hostname or urlsplit(request.url).scheme)
        )
        page.on("websocket", lambda socket: self.hosts.add(urlsplit(socket.url).hostname))
        page.goto(url)
        return page

    @property
    def strangers(self) -> set[str]:
        """Hosts that were asked and are not this machine; what a page holds itself is no host."""
        return self.hosts - {*LOOPBACK, "data", "blob"}

    def keep(self, name):
        """Pictures of all pages in build/screenshots."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        for i, page in enumerate(self.context.pages):
            page.screenshot(path=SCREENSHOTS / f"{re.sub(r'[^-a-zA-Z0-9]+', '_', name)}-{i}.png")


PIXELS = """canvas => {
    const {width, height} = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
    copy.drawImage(canvas, 0, 0);
    const {data} = copy.getImageData(0, 0, width, height);
    let text = "";
    for (let i = 0; i < data.length; i += 8192) text += String.fromCharCode(...data.subarray(i, i + 8192));
    return [width, height, btoa(text)];
}"""


def pixels(canvas) -> np.ndarray:
    """Pixels (height, width, 4) of a canvas of a page."""
    width, height, text = canvas.evaluate(PIXELS)
    return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4).astype(int)

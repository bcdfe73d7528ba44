"""Laws of the viewer's page in a browser: it shows, turns, is edited and saved; it says no error, and asks nobody.

One server and one browser serve the file: a fit that runs until a page stops it, then the volume that came of it.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from chromium import Watched, chromium, pixels
from painted_room import ball
from PIL import Image
from skips import require_extra

import raymarch as rm
from raymarch.io.image_sets.hdf5.writing import write_views

pytestmark = pytest.mark.extra
require_extra("websockets", "viewer")
require_extra("playwright", "all")

FIT = ("--resolution", "20", "--sh-degree", "0", "--seconds", "900", "--arch", "cpu", "--view", "--no-browser")
REST = ".rm-stage[data-settled=true]"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def url(browser, tmp_path_factory):
    """Address of the page of a fit that runs until it is stopped there."""
    folder = tmp_path_factory.mktemp("page")
    write_views([("train", ball(6))], folder / "ball.h5")
    verb = [sys.executable, "-m", "raymarch", "fit", "ball.h5", "--out", "volume.h5", *FIT]
    log = (folder / "log").open("w")
    with log, subprocess.Popen(verb, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def watched(browser):
    return Watched(browser)


@pytest.fixture(scope="module")
def page(url, watched):
    """The page of the fit, from when a first picture is there."""
    opened = watched.open(url)
    opened.wait_for_selector(".rm-stage[data-frames]")
    return opened


@pytest.fixture(scope="module")
def volume(page):
    """The page when its fit was stopped, which shows what came of it."""
    page.get_by_role("button", name="Stop and keep").click()
    page.wait_for_selector(".rm-fitline:has-text('done')")
    page.wait_for_function("() => document.querySelector('[aria-label=Mode]').options.length > 1")
    page.wait_for_selector(REST)
    return page


@pytest.fixture(autouse=True)
def fine(request, watched):
    """No page said an error, nor asked another machine; else its picture is kept."""
    failed = request.session.testsfailed
    yield
    if watched.wrong or watched.strangers or request.session.testsfailed > failed:
        watched.keep(request.node.name)
    assert not watched.wrong, watched.wrong
    assert not watched.strangers


def frames(page):
    return int(page.locator(".rm-stage").get_attribute("data-frames"))


def drawn(page):
    """Count of pictures that were seen: the server's, and those that the page drew itself."""
    return frames(page) + int(page.locator(".rm-stage").get_attribute("data-here") or 0)


def picture(page):
    return pixels(page.locator(".rm-picture"))


def drag(page, dx, dy, moves=12):
    """Drag over the picture, as slowly as a hand."""
    box = page.locator(".rm-stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for i in range(1, moves + 1):
        page.mouse.move(x + dx * i / moves, y + dy * i / moves)
        page.wait_for_timeout(40)
    page.mouse.up()


def changed(page, act):
    """Pictures at rest before and after something is done."""
    before = picture(page)
    act()
    page.wait_for_selector(REST)
    return before, picture(page)


def test_a_fit_goes_on_and_is_seen_to(page):
    page.wait_for_selector(".rm-fitline:has-text('Step')")
    step, seen = page.locator(".rm-fitline").inner_text(), frames(page)
    page.wait_for_function("before => document.querySelector('.rm-fitline').textContent !== before", arg=step)
    page.wait_for_function("before => +document.querySelector('.rm-stage').dataset.frames > before + 1", arg=seen)
    assert pixels(page.locator(".rm-curve").first)[..., :3].max() > 200  # its line


def test_a_paused_fit_stands_still_until_it_goes_on(page):
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".rm-fitline:has-text('paused')")
    page.wait_for_selector(REST)
    step, seen = page.locator(".rm-fitline").inner_text(), picture(page)
    page.wait_for_timeout(600)
    assert page.locator(".rm-fitline").inner_text() == step
    assert np.array_equal(picture(page), seen)
    page.get_by_role("button", name="Go on").click()
    page.wait_for_function("before => document.querySelector('.rm-fitline').textContent !== before", arg=step)
    assert "paused" not in page.locator(".rm-fitline").inner_text()


def test_its_learning_rate_is_that_of_all_pages(page, url, watched):
    rate = page.get_by_label("Rate, number")
    rate.fill("0.5")
    rate.press("Enter")
    other = watched.open(url)
    other.wait_for_selector(".rm-fitline:has-text('Step')")
    assert other.get_by_label("Rate, number").input_value() == "0.5"
    other.close()


def test_a_drag_turns_the_picture_and_frames_keep_coming(volume):
    seen, begun = drawn(volume), time.monotonic()
    before, after = changed(volume, lambda: drag(volume, 160, 40))
    assert drawn(volume) - seen >= 3, time.monotonic() - begun
    assert np.abs(before - after).mean() > 1


def test_pages_turn_each_for_itself(volume, url, watched):
    other = watched.open(url)
    other.wait_for_selector(REST)
    mine, (before, after) = picture(volume), changed(other, lambda: drag(other, -120, 0))
    assert np.abs(before - after).mean() > 1
    volume.wait_for_selector(REST)
    assert np.array_equal(picture(volume), mine)
    other.close()


def test_a_saved_picture_is_what_rests_on_the_page(volume):
    with volume.expect_download() as saved:
        volume.get_by_label("Save the picture (S)").click()
    image = np.asarray(Image.open(saved.value.path()).convert("RGB"))
    assert np.array_equal(image, picture(volume)[..., :3])


def test_a_photograph_is_compared_where_it_was_taken(volume):
    volume.locator(".rm-shot").nth(2).click()
    volume.get_by_role("button", name="Compare").click()
    volume.wait_for_selector(".rm-photo:visible")
    volume.wait_for_selector(REST)
    while not (photo := pixels(volume.locator(".rm-photo")))[..., 3].all():
        volume.wait_for_timeout(50)
    seen = picture(volume)
    top, left = (np.array(seen.shape[:2]) - photo.shape[:2]) // 2
    seen = seen[top : top + photo.shape[0], left : left + photo.shape[1], :3]
    object = (photo[..., :3] < 250).any(-1)
    assert np.abs(seen.astype(float) - photo[..., :3])[object].mean() < 80  # as far as a few steps bring a fit
    volume.locator(".rm-stage").press("Escape")
    assert volume.locator(".rm-photo:visible").count() == 0


def test_another_mode_is_another_picture(volume):
    mode = volume.get_by_label("Mode", exact=True)
    before, after = changed(volume, lambda: mode.select_option("transfer"))
    assert np.abs(before - after).mean() > 1


def test_the_table_that_is_edited_is_what_is_seen(volume, tmp_path):
    volume.get_by_label("Mode", exact=True).select_option("transfer")
    volume.wait_for_selector(REST)
    maps = volume.get_by_label("Colour map")
    before, after = changed(volume, lambda: maps.select_option("inferno"))
    assert np.abs(before - after).mean() > 0.5
    box = volume.locator(".rm-table").bounding_box()
    place = box["x"] + 0.7 * box["width"], box["y"] + 30
    before, after = changed(volume, lambda: volume.mouse.click(*place))
    assert np.abs(before - after).mean() > 0.1
    with volume.expect_download() as saved:
        volume.get_by_title("Save as table.json").click()
    table = rm.TransferFunction.of_record(json.loads(saved.value.path().read_text()))
    assert table.opacities.max() > 0.6 and len(table.values) > 10


def test_the_page_was_shown_without_an_error(volume, watched):
    volume.set_viewport_size({"width": 1280, "height": 800})
    volume.wait_for_selector(REST)
    shot = np.asarray(Image.open(io.BytesIO(volume.screenshot())).convert("RGB"))
    assert shot.shape == (800, 1280, 3) and shot.std() > 10
    assert volume.locator(".rm-message:visible.rm-error").count() == 0

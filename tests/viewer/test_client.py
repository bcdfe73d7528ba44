"""Laws of the viewer's client in a browser: cameras that it sends, pictures that it shows; the test is its server."""

from __future__ import annotations

import io

import numpy as np
import pytest
from chromium import Watched, pixels
from PIL import Image
from played import ADDRESS, EYE, SCENE, TARGET, VIEWS, answer, dragged, middle, rest, wait
from skips import require_extra

import raymarch as rm

pytestmark = pytest.mark.extra
require_extra("playwright", "all")


def test_it_begins_with_the_scenes_camera_in_the_pictures_own_pixels(page, server):
    said = server.of("camera")[0]
    assert said["position"] == list(EYE) and said["target"] == list(TARGET)
    width, height = pixels(page.locator(".rm-picture")).shape[1::-1]
    assert (said["width"], said["height"]) == (width, height)
    shorter = 2 * np.degrees(np.arctan(np.tan(np.radians(said["fov"]) / 2) * min(width, height) / width))
    assert shorter == pytest.approx(40)


def test_a_drag_orbits_a_right_drag_pans_a_ctrl_drag_rolls(page, server):
    said = rest(page, server, lambda: dragged(page, 80, 30))
    assert [m["moving"] for m in said][-1] is False and sum(m["moving"] for m in said) >= 2
    ids = [m["id"] for m in server.of("camera")]
    assert ids == sorted(set(ids))
    away = [np.subtract(m["position"], m["target"]) for m in said]
    assert said[-1]["target"] == list(TARGET)
    assert np.linalg.norm(away[-1]) == pytest.approx(np.linalg.norm(np.subtract(EYE, TARGET)))
    assert np.dot(away[-1], np.subtract(EYE, TARGET)) < 0.99 * np.linalg.norm(away[-1]) ** 2
    before = said[-1]
    after = rest(page, server, lambda: dragged(page, 60, 0, button="right"))[-1]
    move = np.subtract(after["target"], before["target"])
    assert np.allclose(move, np.subtract(after["position"], before["position"])) and np.linalg.norm(move) > 0.1
    page.keyboard.down("Control")
    rolled = rest(page, server, lambda: (page.mouse.move(*middle(page)), dragged(page, 80, 60)))[-1]
    page.keyboard.up("Control")
    assert rolled["position"] == after["position"]
    assert not np.allclose(np.cross(rolled["up"], after["up"]), 0)


def test_the_wheel_zooms_to_what_lies_under_the_pointer(page, server):
    x, y = (side - 90 for side in middle(page))
    page.mouse.move(x, y)
    before = server.camera
    ray = before.rays([int(y) * before.width + int(x)])
    axis = -before.world_from_camera[:3, 2]
    place = ray.origin + ray.direction * ((TARGET - ray.origin) @ axis / (ray.direction @ axis))[:, None]
    rest(page, server, lambda: page.mouse.wheel(0, -240))
    after = server.camera
    assert np.linalg.norm(after.position - place) < 0.9 * np.linalg.norm(before.position - place)
    assert np.abs(after.project(place)[0] - before.project(place)[0]).max() < 1.0


def test_a_picture_at_rest_is_shown_pixel_by_pixel_and_tiles_where_they_lie(page, server):
    server.answers = False
    height, width = pixels(page.locator(".rm-picture")).shape[:2]
    noise = np.random.default_rng(4).integers(0, 256, (height, width, 3), np.uint8)
    number = server.of("camera")[-1]["id"]
    server.show(noise, number)
    wait(page, lambda: np.array_equal(pixels(page.locator(".rm-picture"))[..., :3], noise))
    server.show(np.zeros((20, 30, 3), np.uint8), number, of=[width, height], x=7, y=50, final=False)
    noise[50:70, 7:37] = 0
    wait(page, lambda: np.array_equal(pixels(page.locator(".rm-picture"))[..., :3], noise))
    server.show(np.full((9, 9, 3), 90, np.uint8), number - 1)  # older than what is seen
    server.show(np.full((height // 4, width // 4, 3), 70, np.uint8), number, final=False)
    wait(page, lambda: (pixels(page.locator(".rm-picture"))[..., :3] == 70).all())
    assert page.locator(".rm-stage").get_attribute("data-settled") == "false"


def test_a_camera_of_the_set_is_marked_where_it_is_seen(page, server):
    place, depth = server.camera.project(np.stack([camera.position for camera in VIEWS]))
    assert (depth > 0).all()
    box = page.locator(".rm-stage").bounding_box()
    page.mouse.move(box["x"] + place[1, 0], box["y"] + place[1, 1])
    page.wait_for_selector(".rm-thumb:visible")
    assert page.locator(".rm-thumb span").inner_text() == "r_1"


def test_a_flight_ends_in_the_camera_and_a_comparison_asks_for_it(page, server):
    page.locator(".rm-shot").nth(2).click()
    said = rest(page, server, lambda: page.get_by_role("button", name="Compare").click())
    flown = next(m for m in said if m["type"] == "camera" and not m["moving"])
    assert np.allclose(flown["position"], VIEWS[2].position)
    place, _ = server.camera.project(np.zeros((1, 3)))
    assert np.allclose(place, [server.camera.width / 2, server.camera.height / 2])
    wait(page, lambda: server.of("camera")[-1].get("view") == 2)
    page.wait_for_selector(".rm-photo:visible")
    page.locator(".rm-split").press("ArrowLeft")
    assert page.locator(".rm-split").get_attribute("aria-valuenow") == "48"
    rest(page, server, lambda: dragged(page, 90, 60, left=150))
    assert "view" not in server.of("camera")[-1]
    assert page.locator(".rm-photo:visible").count() == 0


def test_a_camera_of_parallel_rays_is_marked_and_flown_to_as_such(page, server):
    """It sees as much at any depth: `size` across, and its frustum is as wide where it begins."""
    size, (first, given, last) = 0.4, SCENE["cameras"]
    flat = {**given, "orthographic": True, "fov": float(np.degrees(2 * np.arctan(size / 2)))}
    server.say({**SCENE, "cameras": [first, flat, last]})
    page.locator(".rm-stage").focus()
    for key in "ba":
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    across, up = (np.array(given[name]) * size / 2 for name in ("right", "up"))
    corners = [given["position"] + x * across + y * up * 30 / 40 for x in (-1, 1) for y in (-1, 1)]
    marks = pixels(page.locator(".rm-overlay"))[..., 3]
    for x, y in np.round(server.camera.project(corners)[0]).astype(int):
        assert marks[y - 2 : y + 3, x - 2 : x + 3].any()
    page.locator(".rm-shot").nth(1).click()
    said = rest(page, server, lambda: page.get_by_role("button", name="Fly to").click())[-1]
    away = np.linalg.norm(np.subtract(said["target"], said["position"]))
    frame = min(said["width"], said["height"] * 40 / 30) / said["width"]
    assert said["orthographic"] and 2 * away * np.tan(np.radians(said["fov"]) / 2) * frame == pytest.approx(size)
    flat_button = page.get_by_label("Orthographic (O)")
    assert flat_button.get_attribute("aria-pressed") == "true"
    page.locator(".rm-shot").nth(0).click()
    assert not rest(page, server, lambda: page.get_by_role("button", name="Fly to").click())[-1]["orthographic"]
    assert flat_button.get_attribute("aria-pressed") == "false"


def test_marks_are_shown_and_hidden_by_their_keys(page, server):
    def marked():
        page.wait_for_timeout(100)
        return pixels(page.locator(".rm-overlay"))[..., 3].any()

    assert marked()
    page.locator(".rm-stage").focus()
    for key in "bac":
        page.keyboard.press(key)
    assert not marked()
    for key in "bac":
        page.keyboard.press(key)
        assert marked()
        page.keyboard.press(key)


@pytest.mark.parametrize(("key", "end"), [("1", (1, 0, 0)), ("Shift+2", (0, -1, 0)), ("3", (0, 0, 1))])
def test_keys_look_from_the_ends_of_the_axes(page, server, key, end):
    page.locator(".rm-stage").focus()
    rest(page, server, lambda: page.keyboard.press(key))
    camera = server.camera
    assert np.allclose(-camera.world_from_camera[:3, 2], np.negative(end), atol=1e-6)
    corners, depth = camera.project(np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, 8).T)
    assert (depth > 0).all() and (corners > 0).all() and (corners < (camera.width, camera.height)).all()


@pytest.mark.parametrize("orthographic", [False, True])
def test_the_camera_that_is_copied_as_python_is_that_of_the_picture(page, server, watched, orthographic):
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    if orthographic:
        rest(page, server, lambda: page.get_by_label("Orthographic (O)").click())
    page.locator("summary", has_text="Picture, path, video").click()
    page.get_by_role("button", name="Copy as Python").click()
    page.wait_for_selector(".rm-message:has-text('in the clipboard'):visible")
    copied, said = eval(page.evaluate("() => navigator.clipboard.readText()"), {"rm": rm}), server.of("camera")[-1]
    assert said["orthographic"] == orthographic
    assert np.allclose(copied.world_from_camera, server.camera.world_from_camera, atol=1e-6)
    size = 2 * np.linalg.norm(np.subtract(EYE, TARGET)) * np.tan(np.radians(said["fov"]) / 2)
    focal = copied.width / size if orthographic else server.camera.focal[0]
    assert copied.focal[0] == pytest.approx(focal) and copied.lens.parallel == orthographic


def test_two_fingers_zoom_by_how_far_they_part(page, server, watched):
    touch = watched.context.new_cdp_session(page)
    x, y = middle(page)

    def fingers(kind, half):
        points = [{"x": x - half, "y": y, "id": 0}, {"x": x + half, "y": y, "id": 1}] if half else []
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.wait_for_timeout(30)

    def pinch():
        fingers("touchStart", 60)
        for half in (75, 95, 120):
            fingers("touchMove", half)
        fingers("touchEnd", 0)

    away = np.linalg.norm(server.camera.position - TARGET)
    rest(page, server, pinch)
    assert np.linalg.norm(server.camera.position - TARGET) == pytest.approx(away / 2, rel=1e-3)
    assert np.allclose(server.of("camera")[-1]["target"], TARGET, atol=1e-6)


def test_pixels_at_rest_are_those_of_a_sharp_screen(watched, server):
    sharp = Watched(watched.context.browser, device_scale_factor=1.5)
    sharp.context.route(f"{ADDRESS}/**", answer)
    sharp.context.route_web_socket("**/ws?token=t", server.open)
    server.answers = False
    page = sharp.open(f"{ADDRESS}/?token=t")
    wait(page, lambda: server.of("camera"))
    said = server.of("camera")[-1]
    box = page.locator(".rm-stage").bounding_box()
    assert (said["width"], said["height"]) == (round(1.5 * box["width"]), round(1.5 * box["height"]))
    noise = np.random.default_rng(5).integers(0, 256, (said["height"], said["width"], 3), np.uint8)
    server.show(noise, said["id"])
    page.wait_for_selector(".rm-stage[data-settled=true]")
    page.locator(".rm-stage").focus()
    for key in "bac":
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    shot = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
    part = slice(120, said["height"] - 200), slice(30, said["width"] - 200)  # beside what lies over the picture
    assert np.array_equal(shot[part], noise[part])
    sharp.context.close()

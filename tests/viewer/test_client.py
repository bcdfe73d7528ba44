"""Laws of the viewer's client in a browser: what it sends, and what it shows of what it is sent. The test is its server."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest
from chromium import Watched, chromium, pixels
from PIL import Image
from skips import require_extra

import raymarch as rm
from raymarch.viewer.client_files import served
from raymarch.viewer.guard import headers_of

pytestmark = pytest.mark.extra
require_extra("playwright", "all")

ADDRESS = "http://127.0.0.1:8"
EYE, TARGET = (3.0, -4.0, 2.0), (0.1, 0.2, -0.3)
VIEWS = [rm.Camera.look_at((0.5, -1.5, 0.3 * i), width=40, height=30, fov=0.8) for i in range(3)]
TABLE = rm.TransferFunction([0, 0.3, 0.7, 1], [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)], [0, 0, 0.4, 0.9], 0.05)


def mode(name, **has):
    return {"name": name, **dict.fromkeys(("table", "iso", "values", "shading", "normals"), False), **has}


def listed(i, camera):
    turn = camera.world_from_camera[:3, :3]
    return {
        "name": f"r_{i}", "position": camera.position.tolist(), "forward": (-turn[:, 2]).tolist(),
        "up": turn[:, 1].tolist(), "right": turn[:, 0].tolist(), "fov": float(np.degrees(0.8)), "aspect": 40 / 30,
        "width": 40, "height": 30, "split": "",
    }  # fmt: skip


SCENE = {
    "type": "scene", "name": "a & <b>", "shape": [8, 8, 8], "box": [[-1, -1, -1], [1, 1, 1]], "unit": "mm",
    "value_unit": "HU", "values": True, "slices": True, "fit": False, "video": False, "range": [0, 1],
    "modes": [mode("transfer", table=True, shading=True), mode("isosurface", iso=True, shading=True, normals=True)],
    "histogram": {"edges": [0, 0.25, 0.5, 0.75, 1], "counts": [900, 40, 7, 0]},
    "look": {
        "mode": "transfer", "step": 0.5, "exposure": 0, "background": None, "table": TABLE.record(), "iso": 0.5,
        "clip": None, "shading": False, "slice": None, "window": None, "extras": "image",
    },
    "camera": {"position": EYE, "target": TARGET, "up": [0, 0, 1], "fov": 40, "orthographic": False},
    "cameras": [listed(i, camera) for i, camera in enumerate(VIEWS)],
}  # fmt: skip


def png(image):
    out = io.BytesIO()
    Image.fromarray(image).save(out, "PNG")
    return out.getvalue()


class Played:
    """Server that a test plays: it says the scene, answers cameras with pictures, and keeps what it was sent."""

    def __init__(self):
        self.sent, self.link, self.links, self.answers = [], None, 0, True

    def open(self, link):
        self.link, self.links = link, self.links + 1
        link.on_message(self.take)
        self.say(SCENE)

    def take(self, text):
        message = json.loads(text)
        if message["type"] == "ping":
            return self.say({"type": "pong", "id": message["id"]})
        self.sent.append(message)
        if message["type"] == "camera" and self.answers:
            self.show(np.full((message["height"], message["width"], 3), 40, np.uint8), message["id"])
        if message["type"] == "photo":
            self.say({"type": "photo", "index": message["index"], "width": 40, "height": 30}, PHOTO)

    def say(self, header, data=None):
        text = json.dumps(header)
        self.link.send(text if data is None else struct.pack("<I", len(text)) + text.encode() + data)

    def show(self, image, number, of=None, x=0, y=0, final=True):
        height, width = image.shape[:2]
        place = {"x": x, "y": y, "width": width, "height": height, "of": of or [width, height]}
        header = {"type": "frame", "id": number, "format": "png", **place, "final": final, "moving": False}
        self.say(header, png(image))

    def of(self, kind):
        return [message for message in self.sent if message["type"] == kind]

    @property
    def camera(self):
        """Camera that was said last."""
        said = self.of("camera")[-1]
        place = said["position"], said["target"], said["up"]
        return rm.Camera.look_at(*place, fov=np.radians(said["fov"]), width=said["width"], height=said["height"])


PHOTO = png(np.full((30, 40, 3), 200, np.uint8))


@pytest.fixture(scope="module")
def watched():
    with chromium() as running:
        found = Watched(running)
        found.context.route(f"{ADDRESS}/**", answer)
        yield found


def answer(route):
    place = route.request.url.removeprefix(ADDRESS).partition("?")[0]
    kind, text = served(place)
    route.fulfill(headers=headers_of(kind, ADDRESS.removeprefix("http://")), body=text)


@pytest.fixture
def server():
    return Played()


@pytest.fixture
def page(watched, server, request):
    watched.context.route_web_socket("**/ws?token=t", server.open)
    opened = watched.open(f"{ADDRESS}/?token=t")
    opened.wait_for_selector(".rm-stage[data-settled=true]")
    yield opened
    if request.session.testsfailed or watched.wrong:
        watched.keep(request.node.name)
    opened.close()
    assert not watched.wrong
    assert not watched.strangers


def rest(page, server, act):
    """Do something, and wait until a camera at rest was said."""
    before = len(server.sent)
    act()
    wait(page, lambda: any(m["type"] == "camera" and not m["moving"] for m in server.sent[before:]))
    return server.sent[before:]


def wait(page, true):
    for _ in range(200):
        if true():
            return
        page.wait_for_timeout(25)
    raise AssertionError("it did not come to be")


def middle(page):
    box = page.locator(".rm-stage").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def dragged(page, dx, dy, left=0, **how):
    x, y = np.subtract(middle(page), (left, 0))
    page.mouse.move(x, y)
    page.mouse.down(**how)
    for i in range(1, 5):
        page.mouse.move(x + dx * i / 4, y + dy * i / 4)
        page.wait_for_timeout(20)
    page.mouse.up(**how)


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


def test_a_table_that_is_loaded_is_what_is_sent(page, server, tmp_path):
    table = rm.TransferFunction([0.1, 0.4, 0.8], [(0, 0, 1), (0, 1, 0), (1, 0, 0)], [0, 0.5, 0.25], 0.2)
    (tmp_path / "table.json").write_text(json.dumps(table.record()))
    with page.expect_file_chooser() as chooser:
        page.get_by_title("Load a table from a JSON file").click()
    said = rest(page, server, lambda: chooser.value.set_files(tmp_path / "table.json"))
    sent = rm.TransferFunction.of_record(next(m for m in said if m["type"] == "look")["table"])
    values = np.linspace(-0.2, 1.2, 200)
    assert np.allclose(sent(values), table(values), atol=1e-3) and sent.unit_length == 0.2


@pytest.mark.parametrize("text", ["{", "[]", '{"values": [1, 0], "colours": [], "opacities": []}', '{"values": null}'])
def test_a_file_that_is_no_table_is_said_and_changes_nothing(page, server, tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with page.expect_file_chooser() as chooser:
        page.get_by_title("Load a table from a JSON file").click()
    chooser.value.set_files(tmp_path / "bad.json")
    page.wait_for_selector(".rm-message.rm-error:visible")
    assert "bad.json" in page.locator(".rm-message.rm-error:visible").inner_text()
    assert not server.of("look")


def test_knots_are_added_dragged_and_removed(page, server):
    box = page.locator(".rm-table").bounding_box()
    x, y = box["x"] + 0.5 * box["width"], box["y"] + 20

    def last():
        return rm.TransferFunction.of_record(server.of("look")[-1]["table"])

    rest(page, server, lambda: page.mouse.click(x, y))
    assert last()(0.5)[3] > 0.85
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 20, y + 60, steps=4)
    rest(page, server, page.mouse.up)
    assert last()(0.5)[3] < 0.6
    page.wait_for_timeout(700)
    rest(page, server, lambda: page.mouse.click(x + 20, y + 60, button="right"))
    assert np.allclose(last()(np.linspace(0, 1, 99)), TABLE(np.linspace(0, 1, 99)), atol=3e-3)


def test_what_the_owner_says_is_shown_until_it_is_dismissed(page, server):
    for _ in range(2):
        server.say({"type": "error", "text": "step is <b>-1</b>, want a number over 0"})
    page.wait_for_selector(".rm-message.rm-error:visible")
    wait(page, lambda: "× 2" in page.locator(".rm-message.rm-error:visible").inner_text())
    assert "<b>-1</b>" in page.locator(".rm-message.rm-error:visible").inner_text()
    page.locator(".rm-message.rm-error:visible").get_by_label("Dismiss").click()
    assert page.locator(".rm-message.rm-error:visible").count() == 0


def test_a_lost_connection_is_said_and_made_anew_with_what_was_chosen(page, server):
    rest(page, server, lambda: page.get_by_label("Mode", exact=True).select_option("isosurface"))
    rest(page, server, lambda: dragged(page, 80, 30))
    seen = server.camera
    server.sent.clear()
    server.link.close()
    page.wait_for_selector(".rm-message:has-text('connection is lost'):visible")
    wait(page, lambda: server.links == 2 and server.of("camera"))
    assert server.of("look")[0]["mode"] == "isosurface"
    assert np.allclose(server.camera.world_from_camera, seen.world_from_camera)
    page.wait_for_selector(".rm-message:has-text('connection is lost')", state="hidden")


def test_a_fit_is_told_what_its_buttons_say(page, server):
    numbers = {"steps": None, "progress": 0.1, "seconds": 5, "seconds_left": 45, "shape": [8, 8, 8], "ended": ""}
    for i, state in ((10, "running"), (20, "paused")):
        curves = {"loss": [[i - 5, 0.1], [i, 0.05]], "psnr": [[i, 20]]}
        server.say({"type": "fit", "step": i, **numbers, **curves, "rate": 1, "state": state})
    page.wait_for_selector(".rm-fitline:has-text('Step 20')")
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("Rate, number").fill("0.25")
    page.get_by_label("Rate, number").press("Enter")
    page.get_by_role("button", name="Stop and keep").click()
    wait(page, lambda: len(server.of("fit")) == 3)
    assert [m["action"] for m in server.of("fit")] == ["go", "rate", "stop"]
    assert server.of("fit")[1]["value"] == 0.25


TWICE = """async () => {
    const {mount} = await import("./client.js");
    const globals = Object.keys(window).length;
    document.querySelector("main").hidden = true;
    window.made = [0, 1].map(() => {
        const root = document.body.appendChild(document.createElement("div"));
        const channel = {sent: [], send(message) { this.sent.push(message); }, onmessage() {}};
        return {root, channel, viewer: mount(root, channel)};
    });
    return Object.keys(window).length - globals;
}"""


def test_two_viewers_live_on_one_page_and_go_without_a_trace(page, server):
    assert page.evaluate(TWICE) == 1  # the test's own
    page.evaluate("scene => made.forEach(({channel}) => channel.onmessage(scene, null))", SCENE)
    page.wait_for_function("() => made.every(({channel}) => channel.sent.some(message => message.type === 'camera'))")
    assert page.locator("[id]").count() == 0
    page.evaluate("() => made[0].root.querySelector('[title^=\"Orthographic\"]').click()")
    page.wait_for_function("() => made[0].channel.sent.at(-1).orthographic")
    assert not page.evaluate("() => made[1].channel.sent.some(message => message.orthographic)")
    stopped = (
        "([i]) => !made[i].root.querySelector('.rm-stage').dispatchEvent(new WheelEvent('wheel', {cancelable: true}))"
    )
    assert not page.evaluate(stopped, [1])  # the notebook scrolls
    page.evaluate("() => made[1].root.querySelector('.rm-stage').focus()")
    assert page.evaluate(stopped, [1])
    page.evaluate("() => made.forEach(({viewer}) => viewer.end())")
    assert page.evaluate("() => made.every(({root}) => root.childElementCount === 0)")

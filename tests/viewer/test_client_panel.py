"""Laws of the viewer's panel in a browser: tables, messages, a lost connection, a fit, two on one page."""

from __future__ import annotations

import json

import numpy as np
import pytest
from played import SCENE, TABLE, dragged, middle, rest, wait
from skips import require_extra

import raymarch as rm

pytestmark = pytest.mark.extra
require_extra("playwright", "all")


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


STOPPED = """([i]) => {
    const stage = made[i].root.querySelector(".rm-stage");
    return !stage.dispatchEvent(new WheelEvent("wheel", {cancelable: true}));
}"""
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
    assert not page.evaluate(STOPPED, [1])  # the notebook scrolls
    page.evaluate("() => made[1].root.querySelector('.rm-stage').focus()")
    assert page.evaluate(STOPPED, [1])
    page.evaluate("() => made.forEach(({viewer}) => viewer.end())")
    assert page.evaluate("() => made.every(({root}) => root.childElementCount === 0)")


def test_a_clip_is_sent_by_its_corners_and_the_whole_box_is_none(page, server):
    page.locator("summary", has_text="Clipping box").click()
    side = page.get_by_label("y from, number")
    side.fill("-0.25")
    rest(page, server, lambda: side.press("Enter"))
    assert server.of("look")[-1]["clip"] == {"lower": [-1, -0.25, -1], "upper": [1, 1, 1]}
    rest(page, server, lambda: page.get_by_label("z to", exact=True).press("ArrowLeft"))
    assert server.of("look")[-1]["clip"] == {"lower": [-1, -0.25, -1], "upper": [1, 1, pytest.approx(0.998)]}
    rest(page, server, lambda: page.get_by_role("button", name="Whole box").click())
    assert server.of("look")[-1]["clip"] is None


def test_the_wheel_moves_a_slice_and_leaves_the_camera(page, server):
    page.locator("summary", has_text="Slice").click()
    rest(page, server, lambda: page.get_by_label("Slice", exact=True).select_option("0"))
    assert server.of("look")[-1]["slice"] == {"axis": 0, "position": 0}
    seen = server.camera
    page.mouse.move(*middle(page))
    rest(page, server, lambda: page.mouse.wheel(0, -200))
    assert 0 < server.of("look")[-1]["slice"]["position"] < 0.2
    assert np.array_equal(server.camera.world_from_camera, seen.world_from_camera)
    rest(page, server, lambda: page.get_by_label("Slice", exact=True).select_option(""))
    assert server.of("look")[-1]["slice"] is None


def test_a_path_of_views_is_saved_as_it_is_loaded(page, server):
    page.locator(".rm-stage").focus()
    for key in ("k", "ArrowLeft", "k", "+", "k"):
        rest(page, server, lambda key=key: (page.keyboard.press(key), page.keyboard.press("ArrowUp")))
    with page.expect_download() as first:
        page.get_by_role("button", name="Save path").click()
    keys = json.loads(first.value.path().read_text())
    assert len(keys) == 3 and [key["time"] for key in keys] == [0, 3, 6]
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Load path").click()
    chooser.value.set_files(first.value.path())
    page.wait_for_timeout(200)
    with page.expect_download() as second:
        page.get_by_role("button", name="Save path").click()
    for old, new in zip(keys, json.loads(second.value.path().read_text()), strict=True):
        assert all(np.allclose(old[name], new[name]) for name in old)


def test_a_path_that_loops_is_saved_closed(page, server):
    """A file has no box to tick: played to its end it is where it began."""
    page.locator(".rm-stage").focus()
    page.keyboard.press("k")  # which opens its section
    page.get_by_role("button", name="Turntable").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save path").click()
    keys = json.loads(saved.value.path().read_text())
    assert len(keys) == 9 and keys[-1] == {**keys[0], "time": 6}


def test_what_is_typed_of_a_knot_leaves_its_other_number_alone(page, server):
    """A box shows four figures of it."""
    box = page.locator(".rm-table").bounding_box()
    rest(page, server, lambda: page.mouse.click(box["x"] + 0.4321 * box["width"], box["y"] + 20))
    before = server.of("look")[-1]["table"]["values"]
    opacity = page.get_by_label("Opacity of the knot")
    rest(page, server, lambda: (opacity.fill("0.25"), opacity.press("Enter")))
    after = server.of("look")[-1]["table"]
    assert after["values"] == before and min(abs(one - 0.25) for one in after["opacities"]) < 1e-12


def test_a_picture_of_another_shape_shows_as_much_of_its_shorter_side(page, server):
    page.locator(".rm-stage").focus()
    page.keyboard.press("k")  # which opens its section
    page.locator("select[aria-label='Size of pictures and videos']").select_option("1920x1080")
    page.get_by_role("button", name="Save picture").click()
    wait(page, lambda: server.of("save"))
    said, shown = server.of("save")[-1], server.of("camera")[-1]
    half = [
        np.tan(np.radians(one["fov"]) / 2) * min(one["width"], one["height"]) / one["width"] for one in (said, shown)
    ]
    assert half[0] == pytest.approx(half[1])


@pytest.mark.parametrize(("knots", "taken"), [(1000, True), (1100, False)])
def test_a_table_of_as_many_knots_as_there_may_be_is_taken_and_one_of_more_is_said(
    page, server, tmp_path, knots, taken
):
    """None of which a line replaces, be it in opacity or colour: they share their values."""
    odd = (np.arange(knots) % 2).astype(float)
    record = {"values": np.linspace(0, 1, knots).tolist(), "colours": [[x, 1 - x, x] for x in odd]}
    (tmp_path / "many.json").write_text(json.dumps({**record, "opacities": (odd / 2).tolist(), "unit_length": 0.2}))
    with page.expect_file_chooser() as chooser:
        page.get_by_title("Load a table from a JSON file").click()
    chooser.value.set_files(tmp_path / "many.json")
    if taken:
        wait(page, lambda: server.of("look"))
        assert len(server.of("look")[-1]["table"]["values"]) == knots
    else:
        page.wait_for_selector(".rm-message.rm-error:visible")
        assert "1024 knots" in page.locator(".rm-message.rm-error:visible").inner_text() and not server.of("look")

"""Laws of the viewer's page in a browser: what is up, presets, the legend, the value under the pointer, the view as a
command, numbers that are refused in words, lines that what is opaque hides; the test is its server."""

from __future__ import annotations

import base64
import re

import numpy as np
import pytest
from chromium import pixels
from played import SCENE, middle, png, rest, wait
from skips import require_extra

import raymarch as rm

pytestmark = pytest.mark.extra
require_extra("playwright", "all")


def typed(page, label, text):
    box = page.get_by_label(label, exact=True)
    box.fill(text)
    box.press("Enter")


UPS = {"+x": (1, 0, 0), "−x": (-1, 0, 0), "+y": (0, 1, 0), "−y": (0, -1, 0), "−z": (0, 0, -1), "+z": (0, 0, 1)}


def test_another_axis_is_up_and_the_volume_is_seen_from_as_high_above(page, server):
    before = server.of("camera")[-1]
    way = np.subtract(before["position"], before["target"])
    for name, up in UPS.items():
        said = rest(page, server, lambda name=name: page.get_by_label("Up", exact=True).select_option(label=name))[-1]
        now = np.subtract(said["position"], said["target"])
        assert np.allclose(said["up"], up) and np.allclose(said["target"], before["target"])
        assert np.linalg.norm(now) == pytest.approx(np.linalg.norm(way)) and now @ up == pytest.approx(way[2], abs=1e-6)
        assert page.get_by_label("Up", exact=True).evaluate("box => box.selectedOptions[0].text") == name
    home = rest(page, server, lambda: page.get_by_label("Up", exact=True).select_option(label="−y"))[-1]
    page.locator(".rm-stage").focus()
    again = rest(page, server, lambda: page.keyboard.press("r"))[-1]
    assert np.allclose(again["up"], home["up"])
    along = rest(page, server, lambda: page.keyboard.press("1"))[-1]
    assert np.allclose(along["up"], home["up"])


def test_presets_are_looks_that_the_volume_has(page, server):
    box = page.get_by_label("Preset")
    names = box.evaluate("box => [...box.options].map(each => each.text)")[1:]
    assert {"As it began", "Solid, lit", "Surface, lit"} <= set(names) and "Maximum (MIP)" not in names
    modes = {mode["name"] for mode in SCENE["modes"]}
    for name in names:
        before = len(server.of("look"))
        rest(page, server, lambda name=name: box.select_option(name))
        said = {key: value for look in server.of("look")[before:] for key, value in look.items()}
        assert said["mode"] in modes and page.get_by_label("Mode", exact=True).input_value() == said["mode"]
        if said["mode"] == "transfer":
            table = rm.TransferFunction.of_record(said["table"])
            assert 0 < table.opacities.max() <= 1
    page.get_by_label("Mode", exact=True).select_option("isosurface")
    assert box.input_value() == ""


def test_scans_in_hounsfield_units_have_the_tables_of_radiology(page, server):
    server.say({**SCENE, "range": [-1024, 2000]})
    names = page.get_by_label("Preset").evaluate("box => [...box.options].map(each => each.text)")
    assert {"CT: bone", "CT: lung", "CT: vessels with contrast"} <= set(names)
    before = len(server.of("look"))
    rest(page, server, lambda: page.get_by_label("Preset").select_option("CT: bone"))
    said = {key: value for look in server.of("look")[before:] for key, value in look.items()}
    assert rm.TransferFunction.of_record(said["table"])(np.array([0.0, 1200.0]))[:, 3].tolist() == [0, 0.75]


def answered(server, **about):
    """A final picture of the camera that was said last."""
    said = server.of("camera")[-1]
    place = {"x": 0, "y": 0, "width": said["width"], "height": said["height"], "of": [said["width"], said["height"]]}
    header = {"type": "frame", "id": said["id"], "format": "png", **place, "final": True, "moving": False, **about}
    server.say(header, png(np.full((said["height"], said["width"], 3), 40, np.uint8)))


def test_the_legend_says_what_greys_and_colours_stand_for(page, server):
    legend = page.locator(".rm-legend")
    wait(page, lambda: legend.get_attribute("aria-label") == "Legend: value [HU], 0 to 1")
    assert pixels(legend)[..., :3].max() > 200
    rest(page, server, lambda: page.get_by_label("Output").select_option("depth"))
    answered(server, depth=[2.5, 7.0])
    wait(page, lambda: legend.get_attribute("aria-label") == "Legend: depth [mm], 2.5 to 7")
    bar = pixels(legend)[30:-20, 12, :3].mean(-1)
    assert bar[0] < bar[-1] - 100  # far is dark, above
    rest(page, server, lambda: page.get_by_label("Output").select_option("opacity"))
    wait(page, lambda: legend.get_attribute("aria-label") == "Legend: opacity, 0 to 1")
    page.get_by_label("Output").select_option("image")
    rest(page, server, lambda: page.get_by_label("Mode", exact=True).select_option("isosurface"))
    wait(page, lambda: legend.get_attribute("aria-label") == "Legend: surface at 0.5 HU")
    page.locator(".rm-stage").focus()
    page.keyboard.press("l")
    assert not legend.is_visible()


def test_the_value_under_the_pointer_is_asked_at_rest_and_shown_with_its_unit(page, server):
    x, y = middle(page)
    page.mouse.move(x - 60, y - 70)
    wait(page, lambda: server.of("probe"))
    asked, said = server.of("probe")[-1], server.of("camera")[-1]
    box = page.locator(".rm-stage").bounding_box()
    assert asked["x"] == pytest.approx((x - 60 - box["x"]) * said["width"] / box["width"], abs=1.5)
    assert asked["y"] == pytest.approx((y - 70 - box["y"]) * said["height"] / box["height"], abs=1.5)
    answer = {"type": "probe", "id": asked["id"], "what": "value", "value": 312.5, "unit": "HU", "depth": 4.25}
    server.say({**answer, "point": [1, 2, 3.5]})
    page.wait_for_selector(".rm-chip:visible")
    assert page.locator(".rm-chip").inner_text().split("\n") == ["312.5 HU", "depth 4.25 mm", "at 1, 2, 3.5"]
    page.mouse.move(x - 65, y - 70)
    assert not page.locator(".rm-chip").is_visible()
    wait(page, lambda: server.of("probe")[-1]["id"] != asked["id"])
    server.say({**answer, "point": None})  # late, of where the pointer was
    server.say({**answer, "id": server.of("probe")[-1]["id"], "value": None, "point": None})
    page.wait_for_timeout(100)
    assert not page.locator(".rm-chip").is_visible()


def test_the_view_is_copied_as_the_command_that_the_server_says(page, server, watched):
    watched.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rest(page, server, lambda: page.get_by_role("button", name="Copy as a command").click())
    wait(page, lambda: server.of("command"))
    asked = server.of("command")[-1]
    assert {"width", "height", "fov"} <= set(asked)
    server.say({"type": "command", "text": "raymarch render 'a b.h5' --iso 1", "notes": ["exposure is left out"]})
    page.wait_for_selector(".rm-message:has-text('The command is in the clipboard')")
    page.wait_for_selector(".rm-message:has-text('Exposure is left out.')")
    assert page.evaluate("navigator.clipboard.readText()") == "raymarch render 'a b.h5' --iso 1"


def test_where_the_clipboard_is_kept_the_command_is_there_to_be_copied_by_hand(page, server):
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    server.say({"type": "command", "text": "raymarch render a.h5", "notes": []})
    box = page.locator(".rm-copy")
    box.wait_for()
    assert box.input_value() == "raymarch render a.h5"
    selected = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    box.focus()
    assert box.evaluate(selected) == "raymarch render a.h5"


REFUSED = [
    ("Step, number", "0.0001", "0.0001 is too small; the least is 0.05, which is taken", "0.05"),
    ("Step, number", "99", "99 is too large; the most is 8, which is taken", "8"),
    ("Step, number", "fine", "“fine” is no number; want one such as 0.5", "0.5"),
    ("Exposure, number", "-7", "-7 is too small; the least is -5, which is taken", "-5"),
    ("Unit length, number", "-1", "-1 is too small; want a number over 0", "0.05"),
    ("Unit length, number", "", "“” is no number; want a number over 0", "0.05"),
]


@pytest.mark.parametrize(("label", "text", "why", "taken"), REFUSED)
def test_a_number_that_is_not_taken_is_answered_in_words(page, server, label, text, why, taken):
    typed(page, label, text)
    line = page.locator(".rm-why:visible")
    line.wait_for()
    assert line.inner_text() == why
    page.locator(".rm-stage").focus()
    assert page.get_by_label(label, exact=True).input_value() == taken
    typed(page, label, "2,5" if "Step" in label else "1,5")  # a comma is as good
    wait(page, lambda: not page.locator(".rm-why:visible").count())
    name = {"Step, number": "step", "Exposure, number": "exposure"}.get(label)
    if name:
        wait(page, lambda: server.of("look") and server.of("look")[-1].get(name) in (2.5, 1.5))


def test_small_numbers_that_can_be_are_taken_and_a_value_beyond_the_volume_s_is_doubted(page, server):
    rest(page, server, lambda: page.get_by_label("Mode", exact=True).select_option("isosurface"))
    for text, value, doubt in (
        ("1e-7", 1e-7, ""),
        ("0,25", 0.25, ""),
        ("−3", -3, "the values are 0 to 1"),
        ("5", 5, "5"),
    ):
        rest(page, server, lambda text=text: typed(page, "Value, number", text))
        assert server.of("look")[-1]["iso"] == value
        line = page.locator(".rm-why:visible")
        assert (doubt in line.inner_text()) if doubt else not line.count()


def test_ends_of_a_range_that_cross_are_refused_in_words(page, server):
    page.get_by_text("Clipping box", exact=True).click()
    rest(page, server, lambda: typed(page, "x from, number", "0.5"))
    before = server.of("look")[-1]["clip"]
    typed(page, "x to, number", "0.25")
    page.wait_for_selector(".rm-why:has-text('0.25 is not over the other end, 0.5; want a range')")
    page.wait_for_timeout(300)
    assert server.of("look")[-1]["clip"] == before
    typed(page, "x to, number", "7")
    page.wait_for_selector(".rm-why:has-text('7 is too large; the most is 1, which is taken')")


def drawn(page):
    """How much ink of the box is in the middle of the marks, where its back edges are."""
    marks = pixels(page.locator(".rm-overlay"))
    height, width = marks.shape[:2]
    return marks[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3, 3].sum()


def test_lines_of_the_box_are_faint_where_the_volume_covers_them(page, server):
    page.locator(".rm-stage").focus()
    for key in "ac":
        page.keyboard.press(key)
    found = {}
    for name, value in (("clear", 0), ("opaque", 255)):
        data = base64.b64encode(bytes([value]) * 12).decode()
        answered(server, cover={"width": 4, "height": 3, "data": data})
        page.wait_for_timeout(200)
        found[name] = drawn(page)
    assert found["clear"] > 1000 and found["opaque"] < 0.5 * found["clear"]


def test_a_page_whose_connection_is_refused_says_what_the_server_says(watched, server):
    """The page comes, its WebSocket does not, as through a proxy that passes none on."""
    from played import ADDRESS

    watched.context.route(
        "**/ws?token=no", lambda route: route.fulfill(status=426, body="raymarch: pass WebSockets on; see the manual\n")
    )
    watched.context.route_web_socket("**/ws?token=no", lambda link: link.close(code=1008))
    opened = watched.open(f"{ADDRESS}/?token=no")
    try:
        opened.wait_for_selector(".rm-message.rm-error:has-text('pass WebSockets on; see the manual')")
    finally:
        opened.close()
        said = [each for each in watched.wrong if not re.search(r"426|WebSocket", each)]
        watched.wrong[:] = said

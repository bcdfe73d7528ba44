"""Law: what pages say is read by rules, the newest counts, and nothing that is refused changes anything."""

from __future__ import annotations

import gc
import io
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from wires import CAMERA, FakeWire, around

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.viewer import view
from raymarch.viewer.fit_viewer import MAX_DEBT, TimeShare
from raymarch.viewer.pictures.frame_maker import RaySpeed, moving_scale, resting_levels
from raymarch.viewer.pictures.page_pictures import Page
from raymarch.viewer.pictures.viewer_camera import Look, camera_of_message
from raymarch.viewer.server import wire as pipe
from raymarch.viewer.server.wire import MAX_WAITING_MESSAGES, Mailbox
from raymarch.viewer.view import View

NAN = math.nan
TABLE = {"values": [0, 1], "colours": [[0, 0, 0], [1, 1, 1]], "opacities": [0, 1], "unit_length": 1}
LOOKS = [
    {"mode": "mip"}, {"mode": None}, {"mode": 3}, {"step": 0}, {"step": NAN}, {"step": "long"}, {"exposure": NAN},
    {"exposure": 99}, {"background": "blue"}, {"background": [1, 2, 3]}, {"table": {**TABLE, "values": [0, NAN]}},
    {"table": {**TABLE, "values": [1, 0]}}, {"table": {**TABLE, "opacities": [0, 2]}}, {"table": {**TABLE, "more": 1}},
    {"table": {**TABLE, "colours": [[0, 0]]}}, {"table": {"values": [0, 1]}}, {"table": [1]}, {"table": "bone"},
    {"table": {**TABLE, "values": [0, None]}}, {"iso": "high"}, {"iso": NAN}, {"clip": [0, 1]},
    {"clip": {"lower": [0, 0, 0]}}, {"clip": {"lower": [1, 1, 1], "upper": [0, 0, 0]}}, {"shading": 1},
    {"slice": {"axis": 3, "position": 0}}, {"slice": {"axis": 0}}, {"slice": {"axis": 0, "position": NAN}},
    {"window": [1, 0]}, {"window": [NAN, 1]}, {"window": 3}, {"extras": "heat"}, {"other": 1}, {"\n": 1},
]  # fmt: skip
EYES = [
    {"position": [0, 0]}, {"position": None}, {"position": [NAN, 0, 0]}, {"target": [0, -4, 0]}, {"up": [0, 1, 0]},
    {"up": [0, 0, 0]}, {"fov": 0}, {"fov": 180}, {"fov": NAN}, {"width": 0}, {"width": 1e9}, {"height": 2.5},
    {"moving": "yes"}, {"id": -1}, {"id": "x"}, {"view": -1}, {"orthographic": 1}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("said", LOOKS, ids=json.dumps)
def test_a_wrong_look_is_one_line_and_changes_nothing(said):
    look = Look()
    with pytest.raises(RaymarchError) as error:
        look.changed({"type": "look", "exposure": 1.0, **said})
    assert "\n" not in str(error.value) and look == Look()


@pytest.mark.parametrize("said", EYES, ids=json.dumps)
def test_a_wrong_camera_is_one_line(said):
    with pytest.raises(RaymarchError) as error:
        camera_of_message({**CAMERA, **said})
    assert "\n" not in str(error.value)


def test_a_look_is_what_its_record_says():
    said = {"mode": "transfer", "table": TABLE, "clip": {"lower": [0, 0, 0], "upper": [1, 1, 1]}, "iso": 2,
            "slice": {"axis": 1, "position": 0.5}, "window": [0, 1], "background": "black"}  # fmt: skip
    look = Look().changed({"type": "look", "page": 3, **said})
    record = json.loads(json.dumps(look.record()))
    assert {name: record[name] for name in said} == {**said, "background": [0, 0, 0]}
    assert Look().changed(record).record() == look.record()


@pytest.mark.parametrize("orthographic", [False, True])
def test_both_kinds_of_camera_are_as_wide_at_the_target(orthographic):
    eye = camera_of_message({**CAMERA, "orthographic": orthographic, "fov": 60})
    half = 4 * math.tan(math.radians(30))
    edges = eye.camera().project([(-half, 0, 0), (half, 0, 0)])[0]
    np.testing.assert_allclose(edges, [(0, 18), (40, 18)], atol=1e-6)


def test_a_view_is_its_camera_as_large_as_fits():
    cameras = [Camera.look_at((0, -4, 0), width=100, height=50, fov=0.5)]
    seen = camera_of_message({**CAMERA, "view": 0}).camera(cameras)
    assert (seen.width, seen.height) == (40, 20) and seen.focal[0] == pytest.approx(0.4 * cameras[0].focal[0])
    with pytest.raises(RaymarchError, match="view is 1, but there are 1 views"):
        camera_of_message({**CAMERA, "view": 1}).camera(cameras)


def test_the_newest_camera_waits_alone_and_looks_in_their_order():
    waiting = Mailbox()
    for n in range(200):
        waiting.put({"page": 1, "type": "camera", "id": n})
        waiting.put({"page": 1, "type": "look", "step": n})
    waiting.put({"page": 1, "type": "look", "iso": 1})
    waiting.put({"page": 2, "type": "camera", "id": 7})
    waiting.put({"page": 1, "type": "look", "step": 5})
    taken = waiting.take()
    assert [(m["page"], m.get("id")) for m in taken if m["type"] == "camera"] == [(1, 199), (2, 7)]
    looks = [m for m in taken if m["type"] == "look"]
    assert looks == [{"page": 1, "type": "look", "iso": 1}, {"page": 1, "type": "look", "step": 5}]
    assert waiting.take() == [] and not waiting.closed


def test_a_look_before_a_picture_that_is_saved_waits_with_it():
    waiting, saving = Mailbox(), {"page": 1, "type": "save", "what": "picture"}
    for message in ({"page": 1, "type": "look", "iso": 1}, saving, {"page": 1, "type": "look", "iso": 2}):
        waiting.put(message)
    assert [message.get("iso") for message in waiting.take()] == [1, None, 2]


def test_a_page_that_floods_is_bounded_but_not_its_camera_nor_its_end():
    waiting = Mailbox()
    for n in range(10 * MAX_WAITING_MESSAGES):
        waiting.put({"page": 1, "type": "photo", "index": n})
    waiting.put({"page": 1, "type": "camera"})
    waiting.put({"page": 1, "type": "close"})
    assert len(waiting.take()) == MAX_WAITING_MESSAGES + 2


@pytest.mark.parametrize("cut", [0, 3, 8, 12, -1])
def test_a_pipe_gives_whole_messages_or_none(cut):
    whole = pipe.pack_message({"to": 1}, b"picture")
    assert pipe.read_message(io.BytesIO(whole)) == ({"to": 1}, b"picture")
    assert pipe.read_message(io.BytesIO(whole[:cut])) is None


@pytest.mark.parametrize("rate", [1e3, 1e5, 1e7])
def test_a_picture_in_motion_is_as_large_as_the_speed_allows(rate):
    scale = moving_scale(800, 600, rate, 0.08)
    assert scale == 1 or scale * scale * 480_000 <= rate * 0.08 or scale < 1.001 * 2**-6
    assert scale == 1 or 2 * scale * scale * 480_000 > rate * 0.08


def test_levels_end_with_the_whole_and_compiling_is_no_speed():
    assert resting_levels(800, 600, 1e5) == (0.25, 0.5, 1.0) and resting_levels(10, 10, 1e5) == (1.0,)
    speed = RaySpeed()
    for seconds in (100.0, 0.01, 0.01):
        speed.measured("a", 1000, seconds)
    assert speed.of("a") == pytest.approx(1e5)


@pytest.mark.parametrize(("moving", "most"), [(False, 0.10), (True, 0.35)])
def test_pictures_keep_to_their_share(moving, most, monkeypatch):
    """A fit of steps of 20 ms and pictures that take 30 ms a slice, by a clock of the test's own."""
    now = [0.0]
    monkeypatch.setattr("raymarch.viewer.fit_viewer.time.perf_counter", lambda: now[0])
    share, spent = TimeShare(), 0.0
    for _ in range(2000):
        now[0] += 0.02
        share.stepped(moving)
        if share.due:
            took = 0.03 if spent else 2.0  # the first compiles
            now[0] += took
            spent += took
        share.spent()
    assert 0.8 * most < (spent - 2.0 + MAX_DEBT) / now[0] <= 1.02 * most


class Maker:
    """A frame maker whose pictures take five slices of time, the last of them a picture."""

    def look(self):
        return Look()

    def changed(self, look, message):
        return look.changed(message)

    def camera(self, eye):
        return None

    def frames(self, eye, look):
        yield from [None] * 4
        if look.step == 8:
            raise RaymarchError("nothing to see")
        if look.step == 7:
            raise ZeroDivisionError("by\nnothing")
        yield FakeFrame(eye, look)


class FakeFrame:
    def __init__(self, eye, look):
        self.header, self.data = {"type": "frame", "id": eye.id, "exposure": look.exposure}, b"data"


def worked(page, slices=100):
    for n in range(slices):
        if not page.work():
            return n
    return slices


@pytest.fixture
def page():
    said = []
    made = Page(Maker(), lambda header, data: said.append(header), lambda text: said.append(text))
    made.heard = said
    return made


def test_a_picture_at_rest_is_cancelled_by_a_move(page):
    page.take(around(1))
    page.work()
    page.take(around(2, moving=True))
    assert worked(page) < 10 and [h["id"] for h in page.heard] == [2]


def test_a_picture_in_motion_is_finished_and_then_the_newest_is_made(page):
    for n in range(1, 40):
        page.take(around(n, moving=True))
        page.work()
    worked(page)
    ids = [h["id"] for h in page.heard]
    assert ids == sorted(ids) and ids[-1] == 39 and 5 < len(ids) < 12


def test_a_look_is_drawn_with_the_last_camera(page):
    page.take({"type": "look", "exposure": 2})
    assert not page.busy
    page.take(around(1))
    worked(page)
    page.take({"type": "look", "exposure": 3})
    worked(page)
    assert [(h["id"], h["exposure"]) for h in page.heard] == [(1, 2.0), (1, 3.0)]


@pytest.mark.parametrize(
    "said", [{"type": "look", "step": NAN}, {"type": "dance"}, {"type": "camera"}, {"type": "save", "what": "all"}, {}]
)
def test_what_is_refused_is_said_in_the_page_and_the_terminal_and_pictures_go_on(page, said):
    page.take(around(1))
    page.take(said)
    assert page.heard[0] == {"type": "error", "text": page.heard[1]} and "\n" not in page.heard[1]
    worked(page)
    assert page.heard[2]["id"] == 1


def test_what_cannot_be_drawn_is_said_once(page):
    page.take(around(1))
    page.take({"type": "look", "step": 8})
    worked(page)
    assert page.heard == [{"type": "error", "text": "nothing to see"}, "nothing to see"] and not page.busy


def test_a_fault_of_ours_is_a_line_in_the_page_and_ends_nothing(page):
    page.take(around(1))
    page.take({"type": "look", "step": 7})
    worked(page)
    assert page.heard[0]["type"] == "error" and "made: by nothing" in page.heard[0]["text"]
    page.take({"type": "look", "step": 1})
    worked(page)
    assert page.heard[-1]["type"] == "frame"


class Lost:
    """A file that was replaced by one that cannot be read."""

    path, volume = "lost.h5", None

    def __init__(self, error):
        self.error = error

    def replaced(self):
        return True

    def again(self):
        raise self.error


class Nothing:
    """A frame maker that shows nothing."""

    def __init__(self, *_):
        self.closed, self.atlas = False, SimpleNamespace(busy=False, max_bytes=0)

    def scene(self):
        return {"type": "scene"}

    def close(self):
        self.closed = True


@pytest.mark.parametrize("error", [RaymarchError("is cut"), MemoryError(), OSError(5, "is cut"), KeyError("a\nb")])
def test_a_new_file_that_cannot_be_read_leaves_the_old_one_in_sight(error, monkeypatch):
    monkeypatch.setattr(view, "FrameMaker", Nothing)
    wire, turns = FakeWire(), iter([False, True])
    view.view_file(wire, Lost(error), None, lambda: next(turns))
    ((note, _),) = wire.told("note")
    assert note["text"].startswith("lost.h5 was replaced on disk, and the new one is not shown: ")
    assert "\n" not in note["text"] and len(wire.told("scene")) == 1


def test_of_a_view_that_is_dropped_no_server_stays():
    wire = FakeWire()
    View(wire, None)
    gc.collect()
    assert not wire.running


@pytest.mark.parametrize("stop", [3, "now", None, int], ids=str)
def test_a_view_is_stopped_by_a_function(stop):
    with pytest.raises(RaymarchError, match="stop is .*, want a function"):
        View(FakeWire(), None).run(stop)

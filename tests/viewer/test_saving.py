"""Law: what a page asks to have as a file is made between its pictures: a PNG, a path that loads, a clip."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from skips import require_extra
from wires import CAMERA, around

import raymarch as rm
from raymarch.viewer.pictures.frame_maker import png
from raymarch.viewer.pictures.page_pictures import Page
from raymarch.viewer.pictures.viewer_camera import Look


class StillMaker:
    """A frame maker of flat pictures."""

    name = "flat"

    def look(self):
        return Look()

    def changed(self, look, message):
        return look.changed(message)

    def camera(self, eye):
        return eye.camera()

    def frames(self, eye, look):
        yield from self.whole(eye, look)

    def whole(self, eye, look):
        yield None
        yield StillFrame(png(np.full((eye.height, eye.width, 3), eye.fov / 80)))

    def still(self, camera, look):
        yield None
        yield np.full((camera.height, camera.width, 3), np.clip(camera.position[0] / 8 + 0.5, 0, 1))

    def photo(self, message):
        return {"type": "photo", "index": message["index"]}, b"jpeg"


class StillFrame:
    final = True
    header = {"type": "frame"}  # noqa: RUF012

    def __init__(self, data):
        self.data = data


@pytest.fixture
def page():
    heard = []
    made = Page(StillMaker(), lambda header, data: heard.append((header, data)))
    made.heard = heard
    made.take(CAMERA)
    return made


def files(page, slices=5000):
    while page.work() and slices:
        slices -= 1
    return {header["name"]: data for header, data in page.heard if header["type"] == "file"}


KEYS = [{name: around(9 * n)[name] for name in ("position",)} for n in range(3)]


def test_a_picture_has_the_size_that_is_asked_for(page):
    page.take({"type": "save", "what": "picture", "width": 64, "height": 48})
    assert files(page) == {"raymarch.png": png(np.full((48, 64, 3), 0.5))}


def test_a_picture_of_another_shape_has_the_field_of_view_that_is_said(page):
    """The page's own, of the shorter side: a picture that is wider shows no less of the height."""
    page.take({"type": "save", "what": "picture", "width": 64, "height": 48, "fov": 60.0})
    assert files(page) == {"raymarch.png": png(np.full((48, 64, 3), 0.75))}


def test_a_path_is_one_that_loads(page, tmp_path):
    page.take({"type": "save", "what": "path", "cameras": KEYS, "width": 64, "height": 48, "seconds": 2})
    (tmp_path / "path.json").write_bytes(files(page)["path.json"])
    path = rm.load_camera_path(tmp_path / "path.json", 5)
    np.testing.assert_allclose([path[0].position, path[-1].position], [KEYS[0]["position"], KEYS[-1]["position"]])
    assert (path[0].width, path[0].height) == (64, 48) and json.loads(files(page)["path.json"])[0]["fov"] == 40


@pytest.mark.extra
def test_a_clip_has_its_frames_and_its_progress(page, tmp_path):
    av = require_extra("av", "video")
    page.take({"type": "save", "what": "video", "cameras": KEYS, "width": 64, "height": 48, "seconds": 0.5, "fps": 24})
    (tmp_path / "clip.mp4").write_bytes(files(page)["clip.mp4"])
    with av.open(str(tmp_path / "clip.mp4")) as clip:
        frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]
    assert len(frames) == 12 and frames[0].shape == (48, 64, 3)
    np.testing.assert_allclose(
        [frames[0].mean() / 255, frames[-1].mean() / 255], [0.5, 0.5 + 0.5 * np.sin(2)], atol=0.03
    )
    done = [header["done"] for header, _ in page.heard if header["type"] == "progress"]
    assert done == [*range(12), 12]


@pytest.mark.extra
@pytest.mark.parametrize("end", [{"type": "save", "what": "cancel"}, None])
def test_a_clip_that_is_not_wanted_any_more_leaves_nothing(page, end):
    require_extra("av", "video")
    page.take({"type": "save", "what": "video", "cameras": KEYS, "width": 64, "height": 48, "seconds": 60})
    threads = threading.active_count()
    for _ in range(20):
        page.work()
    assert threading.active_count() == threads + 1
    page.take(end) if end else page.drop()
    assert not page.busy and threading.active_count() == threads


WRONG = [
    {"what": "video"}, {"what": "video", "cameras": KEYS[:1]}, {"what": "video", "cameras": [1, 2]},
    {"what": "video", "cameras": KEYS, "fps": 0}, {"what": "video", "cameras": KEYS, "seconds": float("nan")},
    {"what": "video", "cameras": [KEYS[0]] * 3}, {"what": "path", "cameras": []}, {"what": "path", "cameras": 3},
    {"what": "picture", "width": 0}, {"what": "picture", "width": 10**6}, {"what": "path", "cameras": [{"x": 1}]},
    {"what": "path", "cameras": [3]},
]  # fmt: skip


@pytest.mark.extra
@pytest.mark.parametrize("said", WRONG, ids=str)
def test_what_cannot_be_saved_is_one_line(page, said):
    require_extra("av", "video")
    page.take({"type": "save", **said})
    assert [header["type"] for header, _ in page.heard] == ["error"] and "\n" not in page.heard[0][0]["text"]
    assert not files(page)


def test_photographs_come_when_pictures_are_done(page):
    for n in range(3):
        page.take({"type": "photo", "index": n})
    files(page)
    assert [header["type"] for header, _ in page.heard] == ["frame", "photo", "photo", "photo"]


@pytest.mark.extra
def test_a_clip_of_a_volume_that_gives_way_to_another_is_said_to_be_given_up(page):
    require_extra("av", "video")
    page.take({"type": "save", "what": "video", "cameras": KEYS, "width": 64, "height": 48, "seconds": 60})
    page.work()
    page.show(StillMaker())
    told = [header for header, _ in page.heard]
    assert {"type": "progress", "done": 1, "of": 1} in told and any(
        "is given up" in str(one.get("text")) for one in told
    )
    files(page)
    assert not any(one["type"] == "file" for one in told)

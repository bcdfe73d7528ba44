"""Law: each message of the viewer has a cure, and the cure cures: the mistake is made, what it is answered is read, and
what the answer says is done."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from painted_room import ball
from skips import require_extra

import raymarch as rm
from raymarch.cli import cli
from raymarch.cli.fit import view_options
from raymarch.errors import RaymarchError
from raymarch.viewer.pictures.frame_maker import FrameMaker, set_name
from raymarch.viewer.pictures.page_pictures import Page

pytestmark = pytest.mark.extra
require_extra("websockets", "viewer")

CAMERA = {"type": "camera", "id": 1, "position": [0, -4, 0], "width": 24, "height": 20, "moving": False}
KNOTS = {"colours": [[0, 0, 0], [1, 1, 1]], "opacities": [0, 0.5], "unit_length": 0.1}
KEY = {"position": [0, -4, 0], "target": [0, 0, 0]}


def look(**said):
    return {"type": "look", **said}


# What a page says wrong, a part of the answer, and the message that the answer asks for, or None for none.
MISTAKES = {
    "a type that is none": ({"type": "lock"}, "leave it out", None),
    "a look's name that is none": (look(expsure=1), "some of mode, step, exposure", look(exposure=1)),
    "a step of nothing": (look(step=0), "number from 0.05 to 8", look(step=0.05)),
    "a step that is small": (look(step=1e-9), "number from 0.05 to 8", look(step=0.05)),
    "a mode that is none": (look(mode="mip"), "maximum", look(mode="maximum")),
    "an exposure of words": (look(exposure="bright"), "number from -10 to 10", look(exposure=10)),
    "a window upside down": (look(window=[3, 1]), "the first the less", look(window=[1, 3])),
    "a window of one value": (look(window=[1, 1]), "the first the less", look(window=[1, 2])),
    "a background of words": (look(background="pink"), "background", look(background=[1, 0.5, 0.5])),
    "half a clip": (
        look(clip={"lower": [0, 0, 0]}), "lower and upper",
        look(clip={"lower": [0] * 3, "upper": [1] * 3}),
    ),
    "a clip without a depth": (
        look(clip={"lower": [0] * 3, "upper": [0] * 3}), "", look(clip={"lower": [0] * 3, "upper": [1e-3] * 3}),
    ),
    "a slice without a place": (look(slice={"axis": 1}), "axis and position", look(slice={"axis": 1, "position": 0})),
    "a slice across a fourth axis": (
        look(slice={"axis": 3, "position": 0}), "0 to 2", look(slice={"axis": 2, "position": 0}),
    ),
    "a table that falls": (look(table={"values": [1, 0], **KNOTS}), "rising", look(table={"values": [0, 1], **KNOTS})),
    "a table that lacks": (look(table={"values": [0, 1]}), "no colours", look(table={"values": [0, 1], **KNOTS})),
    "an output that is none": (look(extras="alpha"), "opacity", look(extras="opacity")),
    "a camera's name that is none": ({**CAMERA, "zoom": 2}, "leave it out", CAMERA),
    "a camera of no size": ({**CAMERA, "width": 0}, "from 1 to 4096", {**CAMERA, "width": 1}),
    "a camera in what it looks at": ({**CAMERA, "position": [0, 0, 0]}, "", CAMERA),
    "a camera that sees all around": ({**CAMERA, "fov": 180}, "between 0 and 180", {**CAMERA, "fov": 179}),
    "a view of a set that is not shown": ({**CAMERA, "view": 9}, "there are 3 views", {**CAMERA, "view": 2}),
    "a photograph that is none": ({"type": "photo", "index": 3}, "from 0 to 2", {"type": "photo", "index": 2}),
    "a file that is none": (
        {"type": "save", "what": "mesh"}, "picture, path or video", {"type": "save", "what": "picture"},
    ),
    "a path without keys": (
        {"type": "save", "what": "path", "cameras": []}, "add views first",
        {"type": "save", "what": "path", "cameras": [KEY]},
    ),
    "a probe beside the picture": (
        {"type": "probe", "x": -3, "y": 0}, "number from 0", {"type": "probe", "x": 0, "y": 0},
    ),
    "a command of a huge picture": (
        {"type": "command", "width": 9999}, "from 1 to 4096", {"type": "command", "width": 4096},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def maker():
    place = np.linalg.norm(np.stack(np.meshgrid(*[np.linspace(-1, 1, 8)] * 3, indexing="ij"), -1), axis=-1)
    affine = np.diag([2 / 7, 2 / 7, 2 / 7, 1])
    affine[:3, 3] = -1
    with FrameMaker(rm.ScalarVolume(2 - place, affine), ball(3), "ball") as made:
        yield made


def said_to(maker, *messages):
    """What a page is told that says these, in slices of work until there is none left."""
    told = []
    page = Page(maker, lambda header, data: told.append(header))
    for message in messages:
        page.take(message)
    while page.work():
        pass
    return told


@pytest.mark.parametrize("name", MISTAKES)
def test_what_a_page_says_wrong_is_answered_by_what_cures_it(maker, name):
    mistake, said, cure = MISTAKES[name]
    first = () if mistake["type"] == "camera" else (CAMERA,)
    errors = [each["text"] for each in said_to(maker, *first, mistake) if each["type"] == "error"]
    assert len(errors) == 1 and said in errors[0] and "\n" not in errors[0], errors
    again = said_to(maker, *first, *([] if cure is None else [cure]))
    assert not [each for each in again if each["type"] == "error"]


@pytest.mark.parametrize(
    "message", [{"type": "probe", "x": 1, "y": 1}, {"type": "command"}, {"type": "save", "what": "picture"}]
)
def test_what_needs_a_camera_says_so_and_works_after_one(maker, message):
    (error,) = said_to(maker, message)
    assert "look at something first" in error["text"]
    assert not [each for each in said_to(maker, CAMERA, message) if each["type"] == "error"]


def test_a_photograph_without_a_set_is_there_when_one_is_given():
    volume = rm.ScalarVolume(np.ones((4, 4, 4)) * np.arange(4))
    with FrameMaker(volume) as plain:
        (error,) = said_to(plain, {"type": "photo", "index": 0})
    assert "rm.view(volume, views)" in error["text"]
    with FrameMaker(volume, ball(2)) as cured:
        assert [each["type"] for each in said_to(cured, {"type": "photo", "index": 0})] == ["photo"]


# Words of `raymarch view`, a part of the answer, and the words that it says to write.
LINES = [
    (["--allow-host", "http://lab.example.org/viewer"], "give lab.example.org", ["--allow-host", "lab.example.org"]),
    (["--allow-host", "*"], "--bind", ["--bind", "0.0.0.0"]),
    (["--allow-host", "0.0.0.0"], "--bind", ["--bind", "0.0.0.0"]),
    (["--bind", "192.0.2.7"], "give 0.0.0.0", ["--bind", "0.0.0.0"]),
    (["--bind", "no such name"], "leave bind out", []),
    (["--port", "99999"], "65535", ["--port", "0"]),
    (["--downscale", "2"], "--views DATA", []),
    (["--holdout", "3"], "--views DATA", []),
]


@pytest.mark.parametrize(("words", "said", "cure"), LINES, ids=[" ".join(words) for words, _, _ in LINES])
def test_what_the_shell_is_told_is_what_cures_it(tmp_path, monkeypatch, words, said, cure):
    monkeypatch.chdir(tmp_path)
    rm.save(rm.Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(4, 4, 4)), "v.h5")
    monkeypatch.setattr("raymarch.viewer.viewer.Viewer.run", lambda viewer, stop: None)  # served, and ended at once
    done = CliRunner().invoke(cli, ["view", "v.h5", "--no-browser", *words])
    text = done.output if done.exit_code == 2 else str(done.exception)
    assert done.exit_code != 0 and said in " ".join(text.split()) and "http://127" not in done.output
    done = CliRunner().invoke(cli, ["view", "v.h5", "--no-browser", *cure])
    assert done.exception is None and "http://127.0.0.1:" in done.output


@pytest.mark.parametrize("words", [["--bind", "0.0.0.0"], ["--allow-host", "lab.example.org"], ["--port", "8080"]])
def test_options_of_the_page_without_it_are_said(words, tmp_path):
    done = CliRunner().invoke(cli, ["fit", str(tmp_path), "--out", "v.h5", *words])
    assert done.exit_code == 2 and "of --view; give it" in done.output and words[0] in done.output
    assert view_options is not None


def test_a_port_that_is_taken_is_said_and_left_out_it_is_free():
    volume = rm.Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(4, 4, 4))
    with rm.view(volume, browser=False) as page:
        port = int(re.search(r":(\d+)/", page.url)[1])
        with pytest.raises(RaymarchError, match="leave it out for a free one"):
            rm.view(volume, browser=False, port=port)
        with rm.view(volume, browser=False) as cured:
            assert cured.url != page.url


@pytest.mark.parametrize("hosts", ["lab.example.org", [3], {"a": 1}, "ab"])
def test_names_in_python_are_a_list_as_the_answer_shows(hosts):
    volume = rm.Volume.from_function(lambda p: 1.0 + p[..., 0], shape=(4, 4, 4))
    with pytest.raises(RaymarchError, match="hosts") as told:
        rm.view(volume, browser=False, hosts=hosts)
    cure = json.loads(re.search(r"hosts=(\[.*\])", str(told.value))[1].replace("'", '"'))
    with rm.view(volume, browser=False, hosts=cure) as page:
        assert page.url


NAMES = {
    "scenes/tower/transforms_train.json": "tower", "data/fern/sparse/0": "fern", "ball.h5": "ball", "/a/b/": "b",
    "statue": "statue", "x/y/cameras.xml": "y", "": "", "a/b.tar/colmap": "b",
}  # fmt: skip


@pytest.mark.parametrize("source", NAMES)
def test_a_fit_s_page_has_the_name_of_its_set(source):
    assert set_name(source).removesuffix(".tar") == NAMES[source]


def test_a_set_that_lies_where_one_stands_has_the_folder_s_name(tmp_path, monkeypatch):
    (tmp_path / "garden").mkdir()
    monkeypatch.chdir(tmp_path / "garden")
    assert set_name("transforms.json") == set_name(".") == Path.cwd().name == "garden"

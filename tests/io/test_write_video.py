"""Laws of written clips that need no extra: as many frames as given, atomic, only over our own; paths of key files."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from PIL import Image, ImageSequence

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.videos.camera_path_file import load_camera_path
from raymarch.io.videos.write_video import cut_short_name, is_video, write_clip, write_video


def waves(count, width=40, height=30):
    """Smooth frames in 0..1, each unlike the last."""
    y, x = np.mgrid[0:height, 0:width] / height
    shift = np.arange(count) / 10
    return [np.stack([0.8 * x * height / width, y, 0.5 + 0.5 * np.sin(5 * (x + s))], -1) for s in shift]


def test_a_gif_has_the_frames(tmp_path):
    frames = waves(7, 41, 31)
    write_video(tmp_path / "a.gif", iter(frames), fps=20)
    with Image.open(tmp_path / "a.gif") as file:
        assert (file.n_frames, file.size, file.info["duration"], file.info["loop"]) == (7, (41, 31), 50, 0)
        for shown, frame in zip(ImageSequence.Iterator(file), frames, strict=True):
            assert np.abs(np.asarray(shown.convert("RGB")) / 255 - frame).mean() < 0.03
    assert is_video(tmp_path / "a.gif")


def test_grey_and_bytes_are_taken(tmp_path):
    write_video(tmp_path / "a.gif", [np.full((8, 9), 0.5), np.full((8, 9, 3), 20, np.uint8)])
    with Image.open(tmp_path / "a.gif") as file:
        levels = [np.asarray(shown.convert("RGB")).mean() for shown in ImageSequence.Iterator(file)]
    assert levels == [128, 20]


GOOD = np.zeros((4, 6, 3))
REFUSED = [
    ("a.gif", [], "no frames"),
    ("a.gif", [GOOD, np.zeros((4, 7, 3))], "frame 1 is 7 x 4 but the first 6 x 4"),
    ("a.gif", [GOOD, GOOD * np.nan], "frame 1 has NaN"),
    ("a.gif", [np.zeros((4, 6, 4))], r"frame 0 has shape \(4, 6, 4\)"),
    ("a.gif", [np.zeros((4, 6, 3), int)], "frame 0 is int64"),
    ("a.gif", ["black"], "frame 0 is 'black'"),
    ("a.avi", [GOOD], "videos are .mp4, .webm, .gif"),
    ("a.gif", [np.zeros((1, 65536, 3), np.uint8)], "frames are 65536 x 1 pixels, want at most 65535 a side of a .gif"),
    ("clip", [GOOD], "videos are .mp4, .webm, .gif"),
    ("no/a.gif", [GOOD], "there is no folder"),
]


@pytest.mark.parametrize(("name", "frames", "match"), REFUSED, ids=[match[:20] for *_, match in REFUSED])
def test_what_is_no_clip_is_told_and_nothing_is_left(name, frames, match, tmp_path):
    with pytest.raises(RaymarchError, match=match) as caught:
        write_video(tmp_path / name, frames)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["clip.mp4", "clip.webm"])
def test_a_missing_library_names_the_extra_before_any_frame(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(RaymarchError, match=r'clip.* need PyAV, .*; pip install "raymarch\[video\]"'):
        write_video(tmp_path / name, (pytest.fail("a frame was made") for _ in range(3)))
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_ours_is_replaced(tmp_path):
    place = tmp_path / "a.gif"
    Image.new("RGB", (8, 8)).save(place)
    before = place.read_bytes()
    with pytest.raises(RaymarchError, match="is no video of raymarch's and would be lost"):
        write_video(place, waves(2))
    assert place.read_bytes() == before
    write_video(place, waves(2), overwrite=True)
    write_video(place, waves(3))
    with Image.open(place) as file:
        assert file.n_frames == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_fails_in_the_middle_leaves_the_older_file(error, tmp_path):
    write_video(tmp_path / "a.gif", waves(2))
    before = (tmp_path / "a.gif").read_bytes()

    def frames():
        yield from waves(3)
        raise error

    with pytest.raises(error):
        write_video(tmp_path / "a.gif", frames())
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]
    assert (tmp_path / "a.gif").read_bytes() == before


def test_what_is_cut_short_goes_beside_and_plays(tmp_path):
    write_video(tmp_path / "a.gif", waves(2))
    place = write_clip(tmp_path / "a.gif", waves(5), 10, 85, cut=lambda: True)
    assert place == cut_short_name(tmp_path / "a.gif") == tmp_path / "a.interrupted.gif"
    with Image.open(place) as file:
        assert file.n_frames == 5
    with Image.open(tmp_path / "a.gif") as file:
        assert file.n_frames == 2


KEYS = [
    {"position": [4, 0, 1], "target": [0, 0, 0], "up": [0, 0, 1], "fov": 40.0, "note": "of a page to come"},
    {"position": [0, 4, 1], "target": [0, 0.5, 0], "up": [0, 0, 1], "fov": 30.0},
    {"position": [-3, 0, 2], "target": [0, 0, 0.2], "up": [0, 0.1, 1], "fov": 50.0},
]


def saved(folder, keys):
    (folder / "path.json").write_text(json.dumps(keys))
    return folder / "path.json"


@pytest.mark.parametrize("parallel", [False, True])
def test_a_path_of_a_file_passes_its_keys(parallel, tmp_path):
    size = {"width": 64, "height": 36}
    file = saved(tmp_path, [{**key, "orthographic": parallel, **size} for key in KEYS])
    path = load_camera_path(file, 200)
    assert {(camera.width, camera.height, camera.lens.parallel) for camera in path} == {(64, 36, parallel)}
    for key in KEYS:
        eye, target, fov = np.array(key["position"]), np.array(key["target"]), np.deg2rad(key["fov"])
        wanted = Camera.look_at(eye, target, key["up"], fov=fov, width=64, height=36)
        near = min(path, key=lambda camera: np.abs(camera.world_from_camera - wanted.world_from_camera).max())
        np.testing.assert_allclose(near.world_from_camera, wanted.world_from_camera, atol=0.04)
        across = 2 * np.tan(fov / 2) * (np.linalg.norm(eye - target) if parallel else 1)
        assert 64 / near.focal[0] == pytest.approx(across, rel=0.03)
        assert near.project(target[None])[0][0] == pytest.approx((32, 18), abs=1.5)


def test_keys_may_lie_in_a_mapping_with_their_size(tmp_path):
    bare = load_camera_path(saved(tmp_path, KEYS), 9)
    path = load_camera_path(saved(tmp_path, {"cameras": KEYS, "width": 64, "height": 36, "seconds": 3}), 9)
    assert {(camera.width, camera.height) for camera in path} == {(64, 36)}
    np.testing.assert_array_equal([c.position for c in path], [c.position for c in bare])


WRONG = [
    ({"cameras": KEYS[:1]}, "is a list of 1"),
    ({"cameras": None}, "is a list of 0"),
    ({}, "is a dict, want a list"),
    ([KEYS[0]], "is a list of 1, want a list of two or more keys"),
    ([KEYS[0], 3], "key 1 is a int, want a mapping"),
    ([KEYS[0], {"position": [1, 2, 3]}], "key 1 has no target"),
    ([KEYS[0], {**KEYS[1], "position": [1, 2]}], r"key 1: position is \[1, 2\]"),
    ([KEYS[0], {**KEYS[1], "fov": 180}], "key 1: fov is 180, want a number between 0 and 180"),
    ([KEYS[0], {**KEYS[1], "target": KEYS[1]["position"]}], "camera eye and target are both"),
    ([KEYS[0], {**KEYS[1], "orthographic": True}], "want one kind on a path"),
    ([KEYS[0], KEYS[0]], "2 of one pose"),
]


@pytest.mark.parametrize(("keys", "match"), WRONG, ids=[match[:24] for _, match in WRONG])
def test_a_file_that_is_no_path_is_named(keys, match, tmp_path):
    with pytest.raises(RaymarchError, match=match) as caught:
        load_camera_path(saved(tmp_path, keys), 10)
    assert "path.json: " in str(caught.value) and "\n" not in str(caught.value)


def test_a_gif_that_stands_still_for_too_long_is_told_and_nothing_is_left(tmp_path):
    """Pillow makes equal frames one, whose time has sixteen bits."""
    with pytest.raises(RaymarchError, match="stands still for over 655 s, which GIF cannot say; take .mp4"):
        write_video(tmp_path / "a.gif", [np.zeros((4, 4, 3))] * 80, fps=0.1)
    assert not list(tmp_path.iterdir())

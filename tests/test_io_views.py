"""Laws of reading and writing images: a set is read whole or refused by name, and nothing outside its folder is."""

import json
import logging
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from raymarch.camera import Camera
from raymarch.errors import RaymarchError
from raymarch.io import guard
from raymarch.io.image_set import load_views
from raymarch.io.picture import write_png

LEGO = Path(__file__).parents[2] / "shared" / "data" / "lego400"
POSES = [Camera.look_at((3 * np.cos(a), 3 * np.sin(a), 1)).world_from_camera for a in (0.0, 2.0, 4.0)]


def random_image(channels=4, height=6, width=8, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def write_set(folder: Path, channels=4, **changes) -> Path:
    """A set of three views; `changes` replace keys of its json, None removes them."""
    (folder / "train").mkdir(parents=True)
    frames = [{"file_path": f"./train/r_{i}", "transform_matrix": pose.tolist()} for i, pose in enumerate(POSES)]
    document = {"camera_angle_x": 0.7, "frames": frames, **changes}
    document = {key: value for key, value in document.items() if value is not None}
    (folder / "transforms_train.json").write_text(json.dumps(document))
    for i in range(3):
        Image.fromarray(random_image(channels, seed=i)).save(folder / "train" / f"r_{i}.png")
    return folder


def framed(i=1, **changes):
    """The frames of `write_set` with keys of frame i replaced, None removing them."""
    frames = [{"file_path": f"./train/r_{k}", "transform_matrix": pose.tolist()} for k, pose in enumerate(POSES)]
    frames[i] = {key: value for key, value in {**frames[i], **changes}.items() if value is not None}
    return frames


def refused(folder, message, split="train"):
    with pytest.raises(RaymarchError, match=message) as caught:
        load_views(folder, split)
    assert "\n" not in str(caught.value) and (";" in str(caught.value) or "want" in str(caught.value))
    return str(caught.value)


@pytest.mark.parametrize("channels", [3, 4])
def test_a_set_is_read_as_it_was_written(tmp_path, channels):
    views = load_views(write_set(tmp_path / "set", channels))
    assert views.names == ("r_0", "r_1", "r_2") and views.has_alpha == (channels == 4)
    for i, camera in enumerate(views.cameras):
        np.testing.assert_array_equal(views.images[i], random_image(channels, seed=i))
        np.testing.assert_allclose(camera.world_from_camera, POSES[i], atol=1e-12)
        assert camera.focal == pytest.approx((4 / np.tan(0.35),) * 2) and camera.principal == (4, 3)
    assert views.background == (1, 1, 1) and views.source.endswith("transforms_train.json")


def test_the_background_is_the_caller_s(tmp_path):
    assert load_views(write_set(tmp_path / "set"), background="0.5,0,1").background == (0.5, 0, 1)


def test_pixels_win_over_the_angle(tmp_path):
    numbers = {"fl_x": 9, "fl_y": 10.5, "cx": 3, "cy": 2.5, "w": 8, "h": 6, "k1": 0, "camera_model": "OPENCV"}
    camera = load_views(write_set(tmp_path / "set", camera_angle_x=None, **numbers)).cameras[0]
    assert camera.focal == (9, 10.5) and camera.principal == (3, 2.5)
    camera = load_views(write_set(tmp_path / "frame", frames=framed(1, fl_x=20))).cameras[1]
    assert camera.focal == (20, 20)


SOME = random_image(3)
PALETTE = Image.fromarray(SOME).convert("P")
KINDS = {
    "grey": (Image.fromarray(SOME[..., 0]), SOME[..., :1].repeat(3, 2)),
    "grey with alpha": (Image.fromarray(SOME[..., :2]), SOME[..., [0, 0, 0, 1]]),
    "palette": (PALETTE, np.asarray(PALETTE.convert("RGB"))),
    "black and white": (Image.fromarray(SOME[..., 0] > 99), (SOME[..., :1] > 99).repeat(3, 2) * 255),
    "16 bit grey": (Image.fromarray(SOME[..., 0].astype(np.uint16) * 256 + 255), SOME[..., :1].repeat(3, 2)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_png_becomes_colour(tmp_path, kind, caplog):
    image, want = KINDS[kind]
    folder = write_set(tmp_path / "set")
    for i in range(3):
        image.save(folder / "train" / f"r_{i}.png")
    np.testing.assert_array_equal(load_views(folder).images[2], want)
    assert ("3 of 3 images have 16 bit" in caplog.text) == (kind == "16 bit grey")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def raw_png(width, height, bits, colour, data) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def test_deep_colour_is_reduced_with_a_note(tmp_path, caplog):
    folder = write_set(tmp_path / "set", 3)
    rows = b"".join(b"\0" + b"".join(bytes([v, 7]) for v in row.ravel()) for row in SOME)
    (folder / "train" / "r_1.png").write_bytes(raw_png(8, 6, 16, 2, rows))
    np.testing.assert_array_equal(load_views(folder).images[1], SOME)
    assert "1 of 3 images have 16 bit" in caplog.text


@pytest.mark.parametrize("side", [30_000, 10_000, 8_193])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_huge_image_is_refused_before_decoding(tmp_path, side):
    folder = write_set(tmp_path / "set")
    (folder / "train" / "r_1.png").write_bytes(raw_png(side, side, 8, 6, b""))
    refused(folder, "r_1.png: image is too large")


def test_a_set_over_the_budget_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(guard, "MEMORY_BUDGET", 100)
    refused(write_set(tmp_path / "set"), "its 3 images declare 576 bytes, over the budget of 100 bytes")


def test_missing_images_are_left_out_and_named(tmp_path, caplog):
    folder = write_set(tmp_path / "set")
    (folder / "train" / "r_1.png").unlink()
    with caplog.at_level(logging.WARNING, "raymarch"):
        views = load_views(folder)
    assert views.names == ("r_0", "r_2")
    np.testing.assert_array_equal(views.images[1], random_image(seed=2))
    np.testing.assert_allclose(views.cameras[1].world_from_camera, POSES[2], atol=1e-12)
    assert "1 of 3 images are missing" in caplog.text and "r_1.png" in caplog.text
    for i in (0, 2):
        (folder / "train" / f"r_{i}.png").unlink()
    refused(folder, "all 3 images are missing .*r_0.png, .*r_2.png")


def test_bad_images_are_named(tmp_path):
    folder = write_set(tmp_path / "set")
    path = folder / "train" / "r_1.png"
    whole = path.read_bytes()
    for length in (0, 4, 20, len(whole) // 2, len(whole) - 30):
        path.write_bytes(whole[:length])
        refused(folder, "r_1.png: (is no readable image|image is damaged)")
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 6\n")
    refused(folder, "r_1.png: is no readable image")
    Image.fromarray(random_image(4, 5, 8)).save(path)
    refused(folder, "r_1.png: image is 8 x 5 pixels but r_0.png 8 x 6")
    Image.fromarray(random_image(3)).save(path)
    refused(folder, "r_1.png: image has no alpha but r_0.png has alpha")
    path.unlink()
    Image.fromarray(np.zeros((6, 8), np.float32)).save(folder / "train" / "r_1.tif")
    document = json.loads((folder / "transforms_train.json").read_text())
    document["frames"][1]["file_path"] = "train/r_1.tif"
    (folder / "transforms_train.json").write_text(json.dumps(document))
    refused(folder, "r_1.tif: image has mode F")


def test_a_folder_that_is_none_is_refused(tmp_path):
    refused(tmp_path / "none", "no such folder")
    refused(tmp_path, "is no known image set, looked for transforms_<split>.json")
    folder = write_set(tmp_path / "set")
    refused(folder / "transforms_train.json", "is a file, want the folder")
    (folder / "transforms_val.json").write_text("{}")
    refused(folder, "no transforms_test.json, it has the splits train, val", split="test")
    refused(folder, "it has the splits train, val", split="../set/train")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "transforms.json").write_text("{}")
    refused(tmp_path / "one", "it has no split; only transforms_<split>.json is supported so far")


BAD_TEXT = {
    "": "line 1, column 1",
    '{\n"frames": [}': "line 2, column 12",
    "\xff": "byte 0 is not UTF-8",
    "[" * 100_000: "nested too deeply",
    '{"camera_angle_x": NaN}': "the number NaN",
    '{"camera_angle_x": -Infinity}': "the number -Infinity",
    '{"camera_angle_x": 1e999}': "the number 1e999",
    '{"frames": [], "w": 1, "frames": []}': "key 'frames' comes twice",
    '{"w": ' + "9" * 5000 + "}": "cannot be read",
    "[]": "is a list, want a mapping",
    "3": "is a int, want a mapping",
}


@pytest.mark.parametrize("text", BAD_TEXT, ids=range(len(BAD_TEXT)))
def test_bad_json_is_refused(tmp_path, text):
    (tmp_path / "transforms_train.json").write_bytes(text.encode("latin-1"))
    message = refused(tmp_path, BAD_TEXT[text])
    assert len(message) < 400 + len(str(tmp_path))


def test_json_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "transforms_train.json").mkdir()
    refused(tmp_path, "is no file")


def changed(i, j, value):
    matrix = POSES[1].tolist()
    matrix[i][j] = value
    return matrix


BAD_KEYS = {
    "no frames": ({"frames": None}, "frames is missing"),
    "empty frames": ({"frames": []}, "frames is a list of 0"),
    "frames a mapping": ({"frames": {"a": 1}}, "frames is a dict of 1"),
    "frame a number": ({"frames": [3]}, "frame 0: is 3"),
    "no path": ({"frames": framed(file_path=None)}, "frame 1: file_path is missing"),
    "path a number": ({"frames": framed(file_path=7)}, "frame 1: file_path is 7"),
    "path empty": ({"frames": framed(file_path="")}, "frame 1: file_path is ''"),
    "path a null": ({"frames": framed(file_path="a\0b")}, "frame 1: file_path is "),
    "path of dots": ({"frames": framed(file_path="..")}, "leads out of"),
    "path absolute": ({"frames": framed(file_path="/etc/passwd")}, "is absolute"),
    "path of Windows": ({"frames": framed(file_path="C:\\a.png")}, "is absolute"),
    "path out": ({"frames": framed(file_path="../r_1.png")}, "leads out of"),
    "path far out": ({"frames": framed(file_path="train/../../r_1")}, "leads out of"),
    "a URL": ({"frames": framed(file_path="https://example.org/a.png")}, "is a URL"),
    "a long path": ({"frames": framed(file_path="x" * 5000)}, "cannot be looked at|is no path"),
    "angle missing": ({"camera_angle_x": None}, "camera_angle_x is missing"),
    "angle a text": ({"camera_angle_x": "0.7"}, "camera_angle_x is '0.7', want a number"),
    "angle a bool": ({"camera_angle_x": True}, "camera_angle_x is True"),
    "angle zero": ({"camera_angle_x": 0}, r"frame 0 \(r_0\): field of view is 0.0"),
    "angle negative": ({"camera_angle_x": -0.7}, "field of view is -0.7"),
    "angle huge": ({"camera_angle_x": 10**400}, "over 1e308"),
    "focal zero": ({"fl_x": 0}, "focal is"),
    "focal a list": ({"fl_x": [1]}, "fl_x is a list of 1"),
    "other width": ({"w": 16, "h": 12}, "w x h is 16 x 12 but the image has 8 x 6"),
    "distortion": ({"k1": 0.05}, "k1 is 0.05, but lenses must be ideal"),
    "fisheye": ({"camera_model": "OPENCV_FISHEYE"}, "camera_model is 'OPENCV_FISHEYE'"),
    "no matrix": ({"frames": framed(transform_matrix=None)}, r"frame 1 \(r_1\): transform_matrix is missing"),
    "matrix small": ({"frames": framed(transform_matrix=np.eye(3).tolist())}, "4 rows of 4"),
    "matrix ragged": ({"frames": framed(transform_matrix=[[1] * 4] * 3 + [[1] * 3])}, "4 rows of 4"),
    "matrix a text": ({"frames": framed(transform_matrix=changed(0, 1, "0"))}, "row 0 is '0'"),
    "matrix a bool": ({"frames": framed(transform_matrix=changed(3, 3, True))}, "row 3 is True"),
    "mirrored": (
        {"frames": framed(transform_matrix=np.diag([1, 1, -1, 1]).tolist())},
        r"transforms_train.json, frame 1 \(r_1\): world_from_camera is mirrored",
    ),
    "scaled": ({"frames": framed(transform_matrix=np.diag([2, 2, 2, 1]).tolist())}, "is not rigid"),
    "projective": ({"frames": framed(transform_matrix=changed(3, 0, 0.5))}, "has last row"),
}


@pytest.mark.parametrize("what", BAD_KEYS)
def test_bad_keys_are_refused(tmp_path, what):
    changes, message = BAD_KEYS[what]
    refused(write_set(tmp_path / "set", **changes), message)


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_out_of_the_folder_are_refused(tmp_path):
    folder = write_set(tmp_path / "set")
    path = folder / "train" / "r_1.png"
    path.rename(tmp_path / "outside.png")
    path.symlink_to(tmp_path / "outside.png")
    refused(folder, "frame 1: file_path './train/r_1' leads out of")
    path.unlink()
    path.symlink_to(path)
    refused(folder, "is no path|cannot be looked at")
    path.unlink()
    path.symlink_to(folder / "train" / "r_0.png")
    np.testing.assert_array_equal(load_views(folder).images[1], random_image(seed=0))


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "link").symlink_to(write_set(tmp_path / "set"), target_is_directory=True)
    assert len(load_views(tmp_path / "link")) == 3


@pytest.mark.skipif(not LEGO.exists(), reason=f"the lego set is not at {LEGO}")
def test_the_lego_set_is_read():
    train, val = load_views(LEGO), load_views(LEGO, "val")
    assert train.images.shape == (100, 400, 400, 4) and val.images.shape == (25, 400, 400, 4)
    for camera in (*train.cameras, *val.cameras):
        assert camera.focal == pytest.approx((555.556, 555.556), abs=1e-3) and camera.principal == (200, 200)
        assert np.linalg.norm(camera.position) == pytest.approx(4.03, abs=0.01)
    # In every view the middle of the object is in the middle of the image.
    assert (train.images[:, 150:250, 150:250, 3].max(axis=(1, 2)) == 255).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_pictures_come_back_as_they_were_written(tmp_path, channels):
    image = random_image(channels)
    for name, written in [("a.png", image), ("b.png", image / 255), ("c.png", (image / 255).astype(np.float32))]:
        write_png(tmp_path / name, written)
        again = np.asarray(Image.open(tmp_path / name)).reshape(image.shape)
        np.testing.assert_array_equal(again, image)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.png", "b.png", "c.png"]


def test_pictures_are_clipped_and_rounded(tmp_path):
    write_png(tmp_path / "a.png", np.array([[[-1.0], [2.0], [0.999], [0.0019], [np.inf]]]))
    assert np.asarray(Image.open(tmp_path / "a.png")).tolist() == [[0, 255, 255, 0, 255]]


def test_bad_pictures_are_refused_and_leave_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    write_png(path, np.zeros((2, 2, 3)))
    before = path.read_bytes()
    for image, message in [
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        (np.zeros((2, 2, 2)), "shape"),
        (np.zeros((0, 2, 3)), "shape"),
        (np.zeros((2, 2, 3), int), "image is int64"),
        (np.full((2, 2, 3), np.nan), r"image is nan at \(0, 0, 0\)"),
    ]:
        with pytest.raises(RaymarchError, match=message):
            write_png(path, image)
    with pytest.raises(RaymarchError, match="end the name in .png"):
        write_png(tmp_path / "a.jpg", np.zeros((2, 2, 3)))
    with pytest.raises(RaymarchError, match="there is no folder"):
        write_png(tmp_path / "none" / "a.png", np.zeros((2, 2, 3)))

    def no_permission(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", no_permission)
    with pytest.raises(RaymarchError, match="Permission denied.*choose a folder that you may write to"):
        write_png(path, np.ones((2, 2, 3)))
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["a.png"]

"""Laws of reading and writing images: a set is read whole or refused by name, and nothing outside its folder is."""

import json
import logging
import os
import re
import struct
import zlib
from pathlib import Path

import layouts
import numpy as np
import pytest
from PIL import Image, ImageCms
from sets import POSES, framed, random_image, write_set, write_transforms
from skips import require_shared

from raymarch.cli import cli
from raymarch.device import memory
from raymarch.errors import RaymarchError
from raymarch.io.files import strict
from raymarch.io.image_sets.frame_file import unique_names
from raymarch.io.image_sets.load import LAYOUTS, load_views
from raymarch.io.images.write import write_depth, write_png
from raymarch.system.resources import workers
from raymarch.volumes.volume import Volume


def refused(folder, message, split="train", **how):
    with pytest.raises(RaymarchError, match=message) as caught:
        load_views(folder, split, **how)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value) or "want" in str(caught.value)
    return str(caught.value)


def test_a_holdout_of_a_set_with_its_own_splits_is_said_to_be_of_no_use(tmp_path, caplog):
    """And is no part of what the views are said to be."""
    folder = write_set(tmp_path / "set")
    assert load_views(folder, holdout=3).holdout is None and "no view is held out by 3" in caplog.text
    caplog.clear()
    load_views(folder)
    assert "held out" not in caplog.text


def test_so_it_is_where_files_list_splits_or_names_tell_them(tmp_path, caplog):
    """And where they do not it is of use: one view in so many is held out."""
    lists = {"train_filenames": ["images/r_0.png", "images/r_2.png"], "test_filenames": ["images/r_1.png"]}
    own = write_transforms(tmp_path / "listed", **lists), layouts.nsvf(tmp_path / "parts", layouts.known())
    free = write_transforms(tmp_path / "free"), layouts.nsvf(tmp_path / "whole", layouts.known(), parts="")
    for folder in (*own, *free):
        caplog.clear()
        views = load_views(folder, "train", holdout=2)
        assert views.holdout == (None if folder in own else 2)
        assert ("no view is held out by 2" in caplog.text) == (folder in own)
        assert ("one view in 2 is held out" in caplog.text) == (folder in free)


@pytest.mark.parametrize("channels", [3, 4])
def test_a_set_is_read_as_it_was_written(tmp_path, channels):
    views = load_views(write_set(tmp_path / "set", channels))
    assert views.names == ("r_0", "r_1", "r_2")
    assert views.has_alpha == (channels == 4)
    for i, camera in enumerate(views.cameras):
        np.testing.assert_array_equal(views.images[i], random_image(channels, seed=i))
        np.testing.assert_allclose(camera.world_from_camera, POSES[i], atol=1e-12)
        assert camera.focal == pytest.approx((4 / np.tan(0.35),) * 2)
        assert camera.principal == (4, 3)
    assert views.background == (1, 1, 1)
    assert views.source.endswith("transforms_train.json")


@pytest.mark.parametrize("channels", [3, 4])
def test_a_frame_s_mask_is_read(tmp_path, channels):
    folder, mask = write_set(tmp_path / "set", channels), np.arange(48).reshape(6, 8) % 3 > 0
    Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "train" / "mask.png")
    path = folder / "transforms_train.json"
    document = json.loads(path.read_text())
    document["frames"][1]["mask_path"] = "./train/mask"
    path.write_text(json.dumps(document))
    views = load_views(folder)
    np.testing.assert_array_equal(views.mask(1), mask)
    assert views.mask(0) is None
    document["frames"][1]["mask_path"] = "../mask.png"
    path.write_text(json.dumps(document))
    refused(folder, "frame 1: mask_path .* leads out of")


def test_the_background_is_the_caller_s(tmp_path):
    assert load_views(write_set(tmp_path / "set"), background="0.5,0,1").background == (0.5, 0, 1)


def test_views_for_validation_stand_in_for_those_to_test(tmp_path, caplog):
    folder = write_set(tmp_path / "set")
    (folder / "transforms_val.json").write_bytes((folder / "transforms_train.json").read_bytes())
    assert load_views(folder, "test").source == str(folder / "transforms_val.json")
    assert "there is no transforms_test.json, taking transforms_val.json" in caplog.text


def test_pixels_win_over_the_angle(tmp_path):
    numbers = {"fl_x": 9, "fl_y": 10.5, "cx": 3, "cy": 2.5, "w": 8, "h": 6, "k1": 0, "camera_model": "OPENCV"}
    camera = load_views(write_set(tmp_path / "set", camera_angle_x=None, **numbers)).cameras[0]
    assert camera.focal == (9, 10.5)
    assert camera.principal == (3, 2.5)
    camera = load_views(write_set(tmp_path / "frame", frames=framed(1, fl_x=20))).cameras[1]
    assert camera.focal == (20, 20)
    cameras = load_views(write_set(tmp_path / "both", fl_x=9, frames=framed(1, fl_x=20))).cameras
    assert [camera.focal[0] for camera in cameras] == [9, 20, 9]


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
    monkeypatch.setattr(strict, "MEMORY_BUDGET", 100)
    refused(write_set(tmp_path / "set"), "its 3 images declare 576 bytes, over the budget of 100 bytes")


def test_more_than_a_fit_has_room_for_is_refused_before_decoding(tmp_path, monkeypatch):
    """By their headers: there is nothing behind these. What is not to be fitted wants no room on the device."""
    folder = write_set(tmp_path / "set")
    for i in range(3):
        (folder / "train" / f"r_{i}.png").write_bytes(raw_png(8000, 8000, 8, 6, b""))
    monkeypatch.setattr(memory, "available_bytes", lambda: 2_500_000_000)
    held, device, on_the_way = 3 * 4 * 8000**2, 3 * 4 * 8000**2, min(3, workers()) * 8 * 8000**2
    refused(folder, f"3 images of 8000 x 8000 take {held + device + on_the_way:,} bytes but 2,500,000,000 are free")
    refused(folder, "r_0.png: image is damaged", for_fit=False)
    monkeypatch.setattr(memory, "available_bytes", lambda: held)
    refused(folder, "are free; take fewer or smaller ones", for_fit=False)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1 << 50)
    monkeypatch.setattr(memory, "MAX_CELLS", 4 * 10**8)
    refused(folder, "are 192,000,000 pixels but a fit takes at most 100,000,000; take fewer")


EMPTY = '{"camera_angle_x": 0.7, "frames": ['
LONG_TEXTS = {
    "frames": (EMPTY + "{}," * 300_000 + "{}]}", "has 300,001 frames, want at most 20,000"),
    "mappings": (EMPTY + "{}," * 400_000 + "{}]}", "has 400,003 mappings and lists, want at most 320,000"),
    "lists": ("[" + "[]," * 400_000 + "1]", "has 400,001 mappings and lists"),
    "numbers": ("[" + "1," * 1_300_000 + "1]", "has 1,300,000 values, want at most 1,280,000"),
    "spaces": (" " * (strict.MAX_JSON_BYTES + 1), "bytes, want at most 33554432"),
}


@pytest.mark.parametrize("what", LONG_TEXTS)
def test_json_of_more_than_frames_need_is_refused(tmp_path, what, monkeypatch):
    """But for frames, which are counted in the end, before it is parsed."""
    text, message = LONG_TEXTS[what]
    if what != "frames":
        monkeypatch.setattr(strict, "parse_json", None)
    (tmp_path / "transforms_train.json").write_text(text)
    refused(tmp_path, message)


def test_missing_images_are_left_out_and_named(tmp_path, caplog):
    folder = write_set(tmp_path / "set")
    (folder / "train" / "r_1.png").unlink()
    with caplog.at_level(logging.WARNING, "raymarch"):
        views = load_views(folder)
    assert views.names == ("r_0", "r_2")
    np.testing.assert_array_equal(views.images[1], random_image(seed=2))
    np.testing.assert_allclose(views.cameras[1].world_from_camera, POSES[2], atol=1e-12)
    assert "1 of 3 images are missing" in caplog.text
    assert "r_1.png" in caplog.text
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
    refused(
        tmp_path, "is no known image set, looked for images with cameras of a layout that is read .NeRF-synthetic, "
    )
    folder = write_set(tmp_path / "set")
    refused(folder / "transforms_train.json", "is a file, want the folder")
    (folder / "transforms_val.json").write_text("{}")
    refused(folder, "no transforms_dev.json, it has the splits train, val", split="dev")
    refused(folder, "it has the splits train, val", split="../set/train")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "transforms.json").write_text("{}")
    refused(tmp_path / "one", "transforms.json: frames is missing, want a list of at least one; export it again")


LOOKS = {
    "MVSNet or BlendedMVS (cams/*_cam.txt)": ["cams/0_cam.txt", "images/0.jpg"],
    "Bundler (bundle.out)": ["bundle/bundle.out"],
    "VisualSFM (*.nvm)": ["model.nvm"],
    "Meshroom (*.sfm)": ["cameras.sfm"],
    "OpenMVG (sfm_data.json)": ["sfm_data.json"],
    "OpenSfM or ODM (reconstruction.json)": ["opensfm/reconstruction.json"],
    "a table of RealityCapture that another program saved (*.csv)": ["table.csv"],
    "the output of Gaussian splatting (cameras.json, point_cloud)": ["cameras.json", "point_cloud/a.ply"],
    "a folder with photographs": ["photos/a.JPG"],
    "a folder with pictures of a format that is not read": ["photos/a.HEIC"],
    "a folder with a video": ["a.MOV"],
    "a folder with an archive": ["a.zip"],
    "a folder of image sets": ["lego/transforms_train.json"],
    "a folder of images inside a set": ["../transforms_train.json", "a.png"],
    "an archive": "a.tar.gz",
    "a video": "a.mp4",
    "a single image": "a.PNG",
    "a volume": "a.h5",
}


@pytest.mark.parametrize("name", LOOKS)
def test_layouts_that_are_not_read_are_told_by_name(tmp_path, name):
    """With what to do today; a folder by what is in it, a file by its suffix."""
    files = LOOKS[name]
    for file in files if isinstance(files, list) else [files]:
        (tmp_path / "set" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / file).write_bytes(b"Name;x;y;alt;Heading;Pitch;Roll\n" if file.endswith(".csv") else b"")
    cure = next(layout.cure for layout in LAYOUTS if layout.name == name)
    message = refused(tmp_path / "set" if isinstance(files, list) else tmp_path / "set" / files, "; ")
    assert f"looks like {name}, which " in message
    assert message.endswith(cure)
    assert cure


def test_every_layout_that_is_not_read_is_tried():
    assert set(LOOKS) == {layout.name for layout in LAYOUTS}


BAD_TEXT = {
    "": "is empty .line 1, column 1",
    '{\n"frames": [}': "line 2, column 12",
    "\xff": "byte 0 is not UTF-8, want",
    '\xff\xfe{\0"\0': "byte 0 is not UTF-8 .it looks like UTF-16.",
    '{ // mine\n"frames": []}': "line 1, column 3: a comment, which JSON has not",
    '{"frames": [1, 2,]}': "a comma before a closing bracket",
    "{'frames': []}": "single quotes, where JSON has double ones",
    '{"frames": [1, 2': "it ends too early",
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
    "angle zero": ({"camera_angle_x": 0}, r"frame 0 \(r_0\): camera_angle_x is 0, want a field of view"),
    "angle negative": ({"camera_angle_x": -0.7}, "camera_angle_x is -0.7, want a field of view"),
    "angle huge": ({"camera_angle_x": 10**400}, "over 1e308"),
    "angle in degrees": ({"camera_angle_x": 40}, "camera_angle_x is 40 rad, .* in degrees, 0.6981"),
    "focal a share": ({"fl_x": 0.02}, "fl_x is 0.02 pixels in an image 8 pixels wide, a field of view of 179.4"),
    "focal far off": ({"fl_x": 1e30}, r"frame 0 \(r_0\): focal fl_x is 1e\+30 pixels"),
    "principal far off": ({"cx": 1e9}, r"frame 0 \(r_0\): cx is 1e\+09 in an image 8 pixels wide, far out of it"),
    "principal far up": ({"frames": framed(cy=-1e5)}, r"frame 1 \(r_1\): cy is -1e\+05 in an image 6 pixels high"),
    "far away": (
        {"frames": framed(transform_matrix=changed(1, 3, 1e30))},
        r"frame 1 \(r_1\): world_from_camera is 1e\+30 at \(1, 3\)",
    ),
    "focal zero": ({"fl_x": 0}, "focal is"),
    "focal a list": ({"fl_x": [1]}, "fl_x is a list of 1"),
    "other shape": ({"w": 16, "h": 6}, "w x h is 16 x 6 but the image has 8 x 6 pixels, another shape; resize"),
    "turned": (
        {"w": 60, "h": 80},
        "w x h is 60 x 80 but the image has 8 x 6 pixels, another shape; turn the image by a quarter or correct w, h",
    ),
    "no size": ({"w": 0}, "w x h is 0 x 6 but the image has 8 x 6"),
    "no lens": ({"camera_model": "FISHEYE624"}, "camera_model is 'FISHEYE624', want PINHOLE, "),
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
    message = refused(folder, "frame 1: file_path './train/r_1' leads out of")
    assert "follow_links=True, --follow-links" in message
    np.testing.assert_array_equal(load_views(folder, follow_links=True).images[1], random_image(seed=1))
    path.unlink()
    path.symlink_to(path)
    refused(folder, "is no path|cannot be looked at")
    path.unlink()
    path.symlink_to(folder / "train" / "r_0.png")
    np.testing.assert_array_equal(load_views(folder).images[1], random_image(seed=0))


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_are_followed_where_the_user_says_so(tmp_path):
    """Of files and folders in the set; an absolute path or one with .. leads out even then."""
    folder = write_set(tmp_path / "set")
    (folder / "train").rename(tmp_path / "elsewhere")
    (folder / "train").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    refused(folder, "frame 0: .* leads out of .* by a link")
    np.testing.assert_array_equal(load_views(folder, follow_links=True).images[2], random_image(seed=2))
    inside = write_set(tmp_path / "other")
    for path, message in [
        (str(tmp_path / "elsewhere" / "r_1.png"), "is absolute"),
        ("../elsewhere/r_1", "leads out of"),
        ("train/../../elsewhere/r_1", "leads out of"),
        ("..\\elsewhere\\r_1", "leads out of"),
    ]:
        (inside / "transforms_train.json").write_text(
            json.dumps({"camera_angle_x": 0.7, "frames": framed(file_path=path)})
        )
        refused(inside, message, follow_links=True)


@pytest.mark.parametrize(
    "verb", ["fit SET --out new.h5", "evaluate v SET", "render v --views SET --out o", "check-gradients v SET"]
)
@pytest.mark.parametrize("follow", [False, True])
def test_every_verb_that_reads_a_set_follows_links_if_told_so(monkeypatch, verb, follow):
    class Asked(Exception):
        pass

    def ask(path, split, **how):
        raise Asked(path, how["follow_links"])

    for name in ("load_views", "cameras_of_set"):
        monkeypatch.setattr(f"raymarch.io.image_sets.load.{name}", ask)
    fog = Volume.from_function(lambda p: np.ones(p.shape[:-1]), shape=(2, 2, 2))
    monkeypatch.setattr("raymarch.io.volumes.volume_file.load", lambda path, **how: fog)
    with pytest.raises(Asked) as asked:
        cli.main([*verb.split(), *["--follow-links"] * follow], standalone_mode=False)
    assert asked.value.args == ("SET", follow)


def test_the_folder_itself_may_be_a_link(tmp_path):
    (tmp_path / "link").symlink_to(write_set(tmp_path / "set"), target_is_directory=True)
    assert len(load_views(tmp_path / "link")) == 3


SPELLINGS = {
    "no suffix": ("train/r_1", "r_1.jpg"),
    "no suffix, capitals": ("train/r_1", "r_1.PNG"),
    "capitals on disk": ("train/r_1.png", "r_1.PNG"),
    "capitals in the file": ("train/r_1.PNG", "r_1.png"),
    "of Windows": (".\\train\\r_1.png", "r_1.png"),
    "spaces and more": ("train/bild 1 \u00e9\u65e5", "bild 1 \u00e9\u65e5.png"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_frame_finds_its_image_however_it_is_spelt(tmp_path, spelling):
    text, name = SPELLINGS[spelling]
    folder = write_set(tmp_path / "set", 3, frames=framed(file_path=text))
    (folder / "train" / "r_1.png").unlink()
    image = np.full((6, 8, 3), 77, np.uint8)
    Image.fromarray(image).save(folder / "train" / name, format="PNG")
    np.testing.assert_array_equal(load_views(folder).images[1], image)


def test_what_is_there_in_place_of_a_missing_image_is_said(tmp_path, caplog):
    folder = write_set(tmp_path / "set", frames=framed(file_path="train/r_1.png"))
    path = folder / "train" / "r_1.png"
    path.rename(folder / "train" / "R_1.JPG")
    load_views(folder)
    path.mkdir()
    load_views(folder)
    assert "r_1.png; R_1.JPG is there)" in caplog.text
    assert "r_1.png is a folder)" in caplog.text
    (folder / "train").rename(folder / "images")
    refused(folder, "all 3 images are missing .*; there is no folder .*train")


FOREIGN = {
    b"": "is empty .0 bytes.",
    b"version https://git-lfs.github.com/spec/v1\n": "a pointer of Git LFS; fetch the image with git lfs pull",
    b"<!DOCTYPE html><html>": "a web page; download the image again",
    b"\0\0\0\x18ftypheic\0\0\0\0": "a HEIC image; convert it to a PNG of 8 or 16 bit in its place",
    b"\x76\x2f\x31\x01\2\0\0\0": "an OpenEXR image",
    b"GIF89a": "a GIF image",
}


@pytest.mark.parametrize("start", FOREIGN, ids=range(len(FOREIGN)))
def test_a_file_that_is_no_image_of_ours_is_told_by_name(tmp_path, start):
    folder = write_set(tmp_path / "set")
    (folder / "train" / "r_1.png").write_bytes(start)
    refused(folder, f"r_1.png: is no readable image.*{FOREIGN[start]}")


def test_an_image_that_may_not_be_read_is_told_so(tmp_path, monkeypatch):
    folder, opened = write_set(tmp_path / "set"), Image.open

    def no_permission(path, **how):
        if path.name == "r_1.png":
            raise PermissionError(13, "Permission denied")
        return opened(path, **how)

    monkeypatch.setattr(Image, "open", no_permission)
    refused(folder, "r_1.png: cannot be read .Permission denied.; check its permissions")


def save_turned(path):
    image = Image.fromarray(random_image(3))
    exif = image.getexif()
    exif[0x0112] = 3
    image.save(path, format="JPEG", exif=exif)


def save_inks(path):
    Image.fromarray(random_image(3)).convert("CMYK").save(path, format="JPEG")


def save_moving(path):
    first, second = (Image.fromarray(random_image(3, seed=i)) for i in (5, 6))
    first.save(path, format="PNG", save_all=True, append_images=[second])


SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
SWAPPED = SRGB.replace(b"rXYZ", b"....").replace(b"gXYZ", b"rXYZ").replace(b"....", b"gXYZ")  # red is green's place


def save_profile(path, profile=SWAPPED):
    Image.fromarray(random_image(3)).save(path, format="PNG", icc_profile=profile)


TRAITS = {
    "are turned upright": save_turned,
    "are CMYK": save_inks,
    "have several frames": save_moving,
    "have a colour profile other than sRGB's": save_profile,
}


@pytest.mark.parametrize("said", TRAITS)
def test_what_an_image_holds_beside_its_pixels_is_said(tmp_path, said, caplog):
    folder = write_set(tmp_path / "set", 3)
    load_views(folder)
    assert not caplog.records
    TRAITS[said](folder / "train" / "r_1.png")
    assert load_views(folder).images.shape == (3, 6, 8, 3)
    assert f"1 of 3 images {said}" in caplog.text
    assert "(r_1.png)" in caplog.text


@pytest.mark.parametrize("profile", [SRGB, b"", b"no profile", SWAPPED[:200]])
def test_of_a_profile_that_is_srgb_s_or_cannot_be_read_nothing_is_said(tmp_path, profile, caplog):
    folder = write_set(tmp_path / "set", 3)
    save_profile(folder / "train" / "r_1.png", profile)
    assert len(load_views(folder)) == 3 and not caplog.records


NAMES = {
    "train/r_0.png train/r_1.png": "r_0 r_1",
    "a/r.png b/r.png": "a_r b_r",
    "train/r.png train/r.webp": "r r_2",
    "train/r.png train/r.webp train/r_2.png": "r r_3 r_2",
    "a/b_c.png a_b/c.png x/c.png": "b_c c c_2",
    "a/b_c.png a_b/c.png a/c.png": "b_c c c_2",
    "train/r.png train/R.png": "r R_2",
    "train/\u00e9.png train/e\u0301.png": "\u00e9 e\u0301_2",
    "train/r.png train/r.png train/r.png": "r r_2 r_3",
    "train/a\x1b[31m.png": "a_[31m",
}


@pytest.mark.parametrize("files", NAMES)
def test_no_two_views_are_one_file_name_on_any_disk(files):
    names = unique_names([Path("set") / file for file in files.split()], Path("set"))
    assert names == NAMES[files].split()


def test_a_file_that_two_frames_list_is_said(tmp_path, caplog):
    folder = write_set(tmp_path / "set", frames=framed(file_path="train/r_0"))
    assert load_views(folder).names == ("r_0", "r_0_2", "r_2")
    assert "some frames list the same image (r_0.png 2 times)" in caplog.text


def images_of(kind):
    """Three images, and what is said of them."""
    rgba = [random_image(4, seed=i) for i in range(3)]
    clear, white = np.zeros_like(rgba[0]), np.full_like(rgba[0], 255)
    edge = [
        np.where(np.pad(np.zeros((4, 6, 1), bool), ((1, 1), (1, 1), (0, 0)), constant_values=True), 9, i) for i in rgba
    ]
    return {
        "one clear": ([rgba[0], clear, rgba[2]], r"1 of 3 images \(r_1\) is transparent all over"),
        "all clear": ([clear] * 3, "all 3 images are transparent all over"),
        "all opaque": ([i | white * [0, 0, 0, 1] for i in rgba], "all 3 images are opaque all over"),
        "borders opaque": (edge, "borders are opaque, so their alpha masks little"),
        "two white": (
            [white[..., :3], rgba[1][..., :3], white[..., :3]],
            r"2 of 3 images \(r_0, r_2\) are of one colour all over, white",
        ),
        "black": ([clear[..., :3]] * 3, "all 3 images are of one colour all over, black"),
        "the same": ([rgba[0]] * 3, "all 3 images are the same, pixel for pixel"),
        "tiny": ([i[:1, :1] for i in rgba], "images of 1 x 1 pixels hold too little"),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["one clear", "all clear", "all opaque", "borders opaque", "two white", "black", "the same", "tiny"]
)
def test_images_that_show_nothing_are_said(tmp_path, kind, caplog):
    images, said = images_of(kind)
    folder = write_set(tmp_path / "set")
    for i, image in enumerate(images):
        Image.fromarray(image.astype(np.uint8)).save(folder / "train" / f"r_{i}.png")
    load_views(folder)
    assert len(caplog.records) == 1
    assert re.search(said, caplog.text)


def test_images_that_are_opaque_in_part_raise_no_doubt(tmp_path, caplog):
    folder = write_set(tmp_path / "set")
    for i in range(3):
        image = random_image(4, seed=i)
        image[:3, :, 3], image[3:, :, 3] = 255, 0
        Image.fromarray(image).save(folder / "train" / f"r_{i}.png")
    load_views(folder)
    assert caplog.text == ""


def test_a_principal_point_that_is_a_share_is_doubted(tmp_path, caplog):
    folder = write_set(tmp_path / "set", cx=0.5, cy=0.5)
    for i in range(3):
        Image.fromarray(random_image(3, 30, 40, seed=i)).save(folder / "train" / f"r_{i}.png")
    load_views(folder)
    assert "cx, cy are 0.5, 0.5: pixels are wanted" in caplog.text


def test_the_lego_set_is_read():
    lego = require_shared("data/lego400/transforms_val.json").parent
    train, val = load_views(lego), load_views(lego, "val")
    assert train.images.shape == (100, 400, 400, 4)
    assert val.images.shape == (25, 400, 400, 4)
    for camera in (*train.cameras, *val.cameras):
        assert camera.focal == pytest.approx((555.556, 555.556), abs=1e-3)
        assert camera.principal == (200, 200)
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
        (np.zeros(2), r"shape \(2,\), want \(height, width\), or"),
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
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_depth_is_white_near_dark_far_and_black_where_nothing_is(tmp_path):
    depth = np.array([[1.0, 2.0], [3.0, np.inf]])
    write_depth(tmp_path / "own.png", depth)
    assert np.asarray(Image.open(tmp_path / "own.png")).tolist() == [[255, 153], [51, 0]]
    write_depth(tmp_path / "given.png", depth, 0.0, 4.0)
    assert np.asarray(Image.open(tmp_path / "given.png")).tolist() == [[204, 153], [102, 0]]
    write_depth(tmp_path / "none.png", np.full((2, 2), np.inf))
    assert not np.asarray(Image.open(tmp_path / "none.png")).any()

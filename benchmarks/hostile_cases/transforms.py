"""Files of cameras and frames: what strangers, other programs and a slip of the editor make of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from hostile_cases.case import FIT, Area, Case

area = Area("transforms")
TRAIN = "set/transforms_train.json"


def edited(change: Callable[[dict], object], split: str = "train"):
    """Set up: the split's document changed in place."""

    def set_up(folder: Path) -> None:
        path = folder / f"set/transforms_{split}.json"
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return set_up


def written(content: str | bytes, split: str = "train"):
    """Set up: the split's file as this."""

    def set_up(folder: Path) -> None:
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / f"set/transforms_{split}.json").write_bytes(raw)

    return set_up


def replaced(old: str, new: str):
    """Set up: the first `old` of the split's text is `new`."""

    def set_up(folder: Path) -> None:
        path = folder / TRAIN
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return set_up


def first(**values):
    """A change of the first frame."""
    return edited(lambda d: d["frames"][0].update(values))


def top(**values):
    """A change of the document."""
    return edited(lambda d: d.update(values))


def _without(name: str):
    return edited(lambda d: d.pop(name))


def _as_folder(folder: Path) -> None:
    (folder / TRAIN).unlink()
    (folder / TRAIN).mkdir()


def _as_fifo(folder: Path) -> None:
    (folder / TRAIN).unlink()
    os.mkfifo(folder / TRAIN)


def _sparse(size: int):
    def set_up(folder: Path) -> None:
        with open(folder / TRAIN, "ab") as file:
            file.truncate(size)

    return set_up


def _renamed(folder: Path) -> None:
    (folder / TRAIN).rename(folder / "set/transforms.json")
    (folder / "set/transforms_test.json").unlink()


def _bom(folder: Path) -> None:
    path = folder / TRAIN
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


def _utf16(folder: Path) -> None:
    path = folder / TRAIN
    path.write_bytes(path.read_text().encode("utf-16"))


def _made(name: str, do: str = FIT, says: str = "transforms_train", set_up=None, **more) -> Case:
    return area.refused(name, do, says, set_up, **more)


FILES = [
    _made("the split's file is missing", set_up=lambda f: (f / TRAIN).unlink()),
    _made("a split that is not there", FIT + " --split nowhere", "transforms_nowhere"),
    _made("a split that is a path", FIT + " --split ../set/train", "train"),
    _made("a split of no letters", (*FIT.split(), "--split", ""), "transforms_|split"),
    _made("the only file is empty", set_up=written("")),
    _made("it is a folder", set_up=_as_folder, says="transforms_train.*(folder|no file)"),
    _made("it is a pipe that nobody fills", set_up=_as_fifo, says="transforms_train.*(pipe|no file)", needs=("posix",)),
    _made("it is noise", set_up=written(bytes(range(256)) * 8), says="UTF-8"),
    _made("it is UTF-16", set_up=_utf16, says="UTF-8"),
    _made("it is Latin-1", set_up=written('{"name": "Größe"}'.encode("latin-1")), says="UTF-8"),
    area.works("it begins with a byte order mark", FIT, _bom, makes=("out.h5",)),
    _made("it ends in the middle", set_up=replaced('"frames"', '"frames'), says="line 1"),
    _made("a comma too many", set_up=replaced('"camera_angle_x": 0.5,', '"camera_angle_x": 0.5,,'), says="line 1"),
    _made("comments in it", set_up=replaced("{", "{ // by hand\n"), says="line 1"),
    _made("single quotes", set_up=written("{'frames': []}"), says="line 1"),
    _made("a list", set_up=written("[]"), says="list"),
    _made("a number", set_up=written("7"), says="int|number"),
    _made("null", set_up=written("null"), says="null|None"),
    _made("a web page", set_up=written("<!doctype html><title>404</title>"), says="not JSON"),
    _made("a file of 10 GB", set_up=_sparse(10 << 30), says="bytes", seconds=2, needs=("linux",)),
    _made("60 MB of empty frames", set_up=lambda f: written('{"frames": [' + "{}," * 20_000_000 + "{}]}")(f),
          says="frame|bytes", seconds=3),
    _made("60 MB of nested lists", set_up=lambda f: written("[" * 30_000_000)(f), says="deep|and lists", seconds=3),
    _made("nested 100,000 deep", set_up=written('{"frames": ' + "[" * 100_000 + "]" * 100_000 + "}"), says="deep"),
    _made("a long text of one key, 30 MB", set_up=lambda f: written('{"' + "a" * 30_000_000 + '": 1}')(f),
          says="frames", seconds=3),
    area.works("instant-ngp's transforms.json alone", FIT, _renamed, makes=("out.h5",)),
]  # fmt: skip

NUMBERS = [
    _made("camera_angle_x is NaN", set_up=replaced("0.5", "NaN"), says="NaN"),
    _made("camera_angle_x is Infinity", set_up=replaced("0.5", "Infinity"), says="Infinity"),
    _made("camera_angle_x is 1e999", set_up=replaced("0.5", "1e999"), says="1e999"),
    _made("camera_angle_x is missing", set_up=_without("camera_angle_x"), says="camera_angle_x.*missing"),
    _made("camera_angle_x is 0", set_up=top(camera_angle_x=0), says="field of view|camera_angle_x"),
    _made("camera_angle_x is negative", set_up=top(camera_angle_x=-0.5), says="field of view|camera_angle_x"),
    _made("camera_angle_x is pi", set_up=top(camera_angle_x=3.141592653589793), says="field of view|camera_angle_x"),
    _made("camera_angle_x in degrees", set_up=top(camera_angle_x=28.6), says="28.6"),
    _made("camera_angle_x is a text", set_up=top(camera_angle_x="0.5"), says="camera_angle_x is '0.5'"),
    _made("camera_angle_x is true", set_up=top(camera_angle_x=True), says="camera_angle_x is True"),
    _made("camera_angle_x is null", set_up=top(camera_angle_x=None), says="camera_angle_x"),
    _made("camera_angle_x is a list", set_up=top(camera_angle_x=[0.5]), says="camera_angle_x"),
    _made("camera_angle_x is 1e-300", set_up=top(camera_angle_x=1e-300), says="camera_angle_x|focal|field of view"),
    _made("fl_x is 0", set_up=top(fl_x=0), says="focal|fl_x"),
    _made("fl_x is negative", set_up=top(fl_x=-40), says="focal|fl_x"),
    _made("fl_x is a text", set_up=top(fl_x="NaN"), says="fl_x is 'NaN'"),
    _made("fl_x is 1e300", set_up=top(fl_x=1e300), says="fl_x|focal"),
    _made("fl_y is 0", set_up=top(fl_x=47.0, fl_y=0), says="focal|fl_y"),
    _made("cx is 1e9", set_up=top(cx=1e9), says="cx|principal"),
    _made("cy is a text", set_up=top(cy="12"), says="cy is '12'"),
    _made("w and h of another image", set_up=top(w=800, h=600), says="800 x 600.*24 x 24"),
    _made("distortion that folds the image", set_up=top(k1=-9), says="lens"),
    _made("a lens that is not read", set_up=top(camera_model="FISHEYE624"), says="FISHEYE624"),
    _made("a number of 400 digits", set_up=replaced("0.5", "9" * 400), says="1e308|camera_angle_x"),
    _made("a number of 10,000 digits", set_up=replaced("0.5", "9" * 10_000), says="number"),
    _made("a key twice", set_up=replaced('"camera_angle_x": 0.5', '"camera_angle_x": 0.5, "camera_angle_x": 0.6'),
          says="camera_angle_x.*twice"),
    _made("a frame's key twice", set_up=replaced('"file_path"', '"file_path": "a", "file_path"'),
          says="file_path.*twice"),
]  # fmt: skip

FRAMES = [
    _made("no frames", set_up=_without("frames"), says="frames is missing"),
    _made("frames is empty", set_up=top(frames=[]), says="frames"),
    _made("frames is null", set_up=top(frames=None), says="frames"),
    _made("frames is a mapping", set_up=top(frames={"0": {}}), says="frames"),
    _made("a frame is a text", set_up=edited(lambda d: d["frames"].insert(3, "r_3")), says="frame 3"),
    _made("a frame is null", set_up=edited(lambda d: d["frames"].insert(3, None)), says="frame 3"),
    _made("file_path is missing", set_up=edited(lambda d: d["frames"][4].pop("file_path")), says="frame 4.*file_path"),
    _made("file_path is null", set_up=first(file_path=None), says="frame 0.*file_path"),
    _made("file_path is a number", set_up=first(file_path=7), says="frame 0.*file_path is 7"),
    _made("file_path is empty", set_up=first(file_path=""), says="frame 0.*file_path"),
    _made("file_path has a null character", set_up=first(file_path="train/r\0.png"), says="frame 0.*file_path"),
    _made("file_path is absolute", set_up=first(file_path="/etc/passwd"), says="frame 0.*absolute"),
    _made("file_path is absolute, of Windows", set_up=first(file_path="C:\\set\\r_0.png"), says="frame 0.*absolute"),
    _made("file_path is a share of Windows", set_up=first(file_path="\\\\host\\r_0.png"), says="frame 0.*absolute"),
    _made("file_path leads up", set_up=first(file_path="../ball.h5"), says="frame 0.*(leads out|outside)"),
    _made("file_path is ..", set_up=first(file_path=".."), says="frame 0"),
    area.works("file_path leads out and in again", FIT, first(file_path="../set/train/r_0.png"), makes=("out.h5",)),
    _made("file_path is a URL", set_up=first(file_path="http://127.0.0.1/r_0.png"), says="frame 0.*URL"),
    _made("file_path is a URL of a file", set_up=first(file_path="file:///etc/passwd"), says="frame 0.*URL"),
    area.either("file_path is a folder", FIT, "frame 0|images are missing|r_0|train", first(file_path="./train"),
                makes=("out.h5",)),
    area.either("file_path of 5,000 characters", FIT, "frame 0|too long", first(file_path="a" * 5000),
                makes=("out.h5",)),
    area.either("file_path with an escape code", FIT, "frame 0|missing", first(file_path="r\x1b[31m\n0"),
                makes=("out.h5",)),
    area.either("file_path of half a character", FIT, "frame 0|missing", first(file_path="r\ud800"),
                makes=("out.h5",)),
]  # fmt: skip

CASES = [*FILES, *NUMBERS, *FRAMES]

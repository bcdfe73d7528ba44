"""Law of folders of pictures: after a command its pictures are those of that command, and what is others' is as it was.

A renderer that compiles nothing stands in for the real one.
"""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest
from PIL import Image

from raymarch import cli
from raymarch.io.images.picture_folder import older_pictures, replacing_pictures
from raymarch.io.images.write import write_one_of_several, write_png
from raymarch.io.volumes.volume_file import save
from raymarch.rendering.renderer import Rendering
from raymarch.volumes.volume import Volume


class Grey:
    """A renderer of grey pictures; `fail_at` raises in place of one of them."""

    fail_at: tuple[int, BaseException] | None = None

    def __init__(self, *_):
        self.done = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def render(self, camera, background=None, *, depth=True, normals=False):
        if Grey.fail_at and self.done == Grey.fail_at[0]:
            raise Grey.fail_at[1]
        self.done += 1
        size = camera.height, camera.width
        return Rendering(np.full((*size, 3), 0.5, np.float32), np.ones(size, np.float32), np.ones(size, np.float32))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("raymarch.rendering.renderer.Renderer", Grey)
    monkeypatch.setattr(Grey, "fail_at", None)
    save(Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4)), "v.h5")
    (tmp_path / "images").mkdir()
    frames = []
    for name in ("left", "right"):
        pose = np.eye(4)
        pose[:3, 3] = [len(name), 0, 4]
        frames.append({"file_path": name, "transform_matrix": pose.tolist()})
        Image.fromarray(np.full((6, 8, 4), 200, np.uint8)).save(f"images/{name}.png")
    (tmp_path / "images" / "transforms.json").write_text(json.dumps({"camera_angle_x": 0.7, "frames": frames}))
    return tmp_path


def ran(line, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


def names(folder):
    return sorted(path.name for path in folder.iterdir())


SHORTER = {  # command before, command after, what is there then
    "fewer of an orbit": ("--orbit 5", "--orbit 3", {"0000", "0001", "0002"}),
    "more of an orbit": ("--orbit 2", "--orbit 3", {"0000", "0001", "0002"}),
    "as many": ("--orbit 3", "--orbit 3 --elevation 60", {"0000", "0001", "0002"}),
    "a path after an orbit": ("--orbit 5", "--path spiral --frames 2", {"0000", "0001"}),
    "a set after an orbit": ("--orbit 5", "--views images --split all", {"left", "right"}),
    "an orbit after a set": ("--views images --split all", "--orbit 1", {"0000"}),
    "without extras": ("--orbit 3 --extras", "--orbit 3", {"0000", "0001", "0002"}),
    "with extras": ("--orbit 2", "--orbit 1 --extras", {"0000", "0000_depth", "0000_opacity"}),
}


@pytest.mark.parametrize("case", SHORTER)
def test_no_older_picture_is_among_the_new_ones(case, here, capsys):
    before, after, there = SHORTER[case]
    for how in (before, after):
        size = "" if "--views" in how else "--size 4"
        code, out, err = ran(f"render v.h5 {how} {size} --out pictures", capsys)
        assert code == 0, err
    assert names(here / "pictures") == sorted(f"{name}.png" for name in there)
    assert f"pictures: {len(there) if 'extras' not in after else 1} images" in out


def test_what_is_others_or_a_single_picture_stays(here, capsys):
    assert ran("render v.h5 --orbit 4 --size 4 --out pictures", capsys)[0] == 0
    folder = here / "pictures"
    Image.new("L", (4, 4)).save(folder / "0009.png")  # of another program
    Image.new("L", (4, 4)).save(folder / "holiday.png")
    write_png(folder / "slices.png", np.zeros((4, 4)))
    write_png(folder / "0008.png", np.zeros((4, 4)))  # of a script, which numbers its pictures as an orbit does
    (folder / "0002.png").rename(folder / "best.png")  # kept by its user
    (folder / "notes.txt").write_text("mine")
    (folder / "inner").mkdir()
    (folder / "0003.jpg").write_bytes(b"mine")
    assert ran("render v.h5 --orbit 1 --size 4 --out pictures", capsys)[0] == 0
    kept = [
        "0000.png",
        "0003.jpg",
        "0008.png",
        "0009.png",
        "best.png",
        "holiday.png",
        "inner",
        "notes.txt",
        "slices.png",
    ]
    assert names(folder) == kept


def test_the_images_of_a_set_stay(here):
    """A set whose images raymarch wrote, as the demonstration's."""
    folder = here / "set"
    folder.mkdir()
    for name in ("0000", "0001", "0002"):
        write_one_of_several(folder / f"{name}.png", np.zeros((4, 4)))
    frames = [{"file_path": name, "transform_matrix": np.eye(4).tolist()} for name in ("0000", "0001")]
    (folder / "transforms.json").write_text(json.dumps({"frames": frames}))
    assert older_pictures(folder) == [folder / "0002.png"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("of a driver"), OSError(28, "No space left")])
def test_what_fails_leaves_the_older_pictures(error, here, capsys, monkeypatch):
    assert ran("render v.h5 --orbit 3 --size 4 --out pictures", capsys)[0] == 0
    before = {path.name: path.read_bytes() for path in (here / "pictures").iterdir()}
    monkeypatch.setattr(Grey, "fail_at", (2, error))
    kind = SystemExit if not isinstance(error, RuntimeError) else RuntimeError
    with pytest.raises(kind):
        cli.main(["render", "v.h5", "--orbit", "5", "--size", "8", "--out", "pictures"])
    assert {path.name: path.read_bytes() for path in (here / "pictures").iterdir()} == before
    if isinstance(error, KeyboardInterrupt):
        assert "pictures: has its older pictures, as they were" in capsys.readouterr().err


def test_an_interrupt_in_a_new_folder_says_what_is_there(here, capsys, monkeypatch):
    monkeypatch.setattr(Grey, "fail_at", (2, KeyboardInterrupt()))
    code, out, err = ran("render v.h5 --orbit 5 --size 8 --out pictures", capsys)
    assert (code, out) == (1, "") and "pictures: has 2 of 5 images" in err
    assert names(here / "pictures") == ["0000.png", "0001.png"]


def test_a_failure_names_the_place_that_was_asked_for(tmp_path):
    from raymarch.errors import RaymarchError

    write_one_of_several(tmp_path / "a.png", np.zeros((2, 2)))
    told = pytest.raises(RaymarchError, match=rf"^{re.escape(str(tmp_path / 'a.png'))}: image has shape")
    with told, replacing_pictures(tmp_path, ["a.png"]) as place:
        write_one_of_several(place / "a.png", np.zeros((2, 2, 2)))
    assert names(tmp_path) == ["a.png"]


def test_one_picture_may_be_one_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.arange(27.0).reshape(3, 3, 3))
    words = ["render", "v.npy", "--panorama", "16", "--position", "1,-9,1", "--out", "pano.png"]
    assert cli.cli.main(words, standalone_mode=False) == 0
    assert "pano.png: 16 x 8 pixels" in capsys.readouterr().out
    with Image.open("pano.png") as image:
        assert image.size == (16, 8)
    for more, said in (
        (["--extras"], "--extras are pictures beside it; give a folder"),
        (["--size", "9"], "--panorama says its own width"),
        (["--fov", "40"], "--fov is for --position without --panorama"),
        (["--orthographic"], "leave one out"),
        (["--orbit", "3"], "say where to look from"),
    ):
        with pytest.raises(click.UsageError, match=said):
            cli.cli.main([*words, *more], standalone_mode=False)


def test_a_cube_map_is_six_files_or_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.arange(27.0).reshape(3, 3, 3))
    words = ["render", "v.npy", "--cubemap", "4", "--position", "1,-9,1", "--out"]
    for out in ("cube.png", "faces"):
        assert cli.cli.main([*words, out], standalone_mode=False) == 0
    told = capsys.readouterr().out
    assert "cube.png: 24 x 4 pixels" in told and "faces: 6 images" in told
    faces = [np.asarray(Image.open(f"faces/{name}.png")) for name in ("px", "nx", "py", "ny", "pz", "nz")]
    np.testing.assert_array_equal(np.concatenate(faces, axis=1), np.asarray(Image.open("cube.png")))
    for more, said in (
        (["--size", "9"], "--cubemap says its own width"),
        (["--fov", "40"], "--fov is for --position without --cubemap"),
        (["--orthographic"], "leave one out"),
        (["--panorama", "8"], "two pictures of the same"),
    ):
        with pytest.raises(click.UsageError, match=said):
            cli.cli.main([*words, "cube.png", *more], standalone_mode=False)

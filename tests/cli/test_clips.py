"""Laws of clips by the command line: a frame a camera, of the size asked for; Ctrl-C keeps a part that plays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageSequence
from sets import write_set

from raymarch import cli
from raymarch.geometry.ndc import ndc_of_frustum
from raymarch.io.videos.write_video import is_video
from raymarch.io.volumes.volume_file import save
from raymarch.rendering.renderer import Rendering
from raymarch.volumes.volume import Volume

KEYS = [{"position": p, "target": [0, 0, 0], "up": [0, 0, 1], "fov": 40} for p in ([4, 0, 1], [0, 4, 2], [-4, 0, 0])]


class Painted:
    """A renderer that compiles nothing: colours that tell where the camera stands."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def render(self, camera, background=None, *, depth=True, normals=False):
        size = camera.height, camera.width
        colour = 0.5 + camera.position / 20
        image = np.broadcast_to(colour.astype(np.float32), (*size, 3)).copy()
        image[: size[0] // 2] *= 0.5
        return Rendering(image, np.ones(size, np.float32), np.ones(size, np.float32))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder: a volume, an image set and a path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("raymarch.rendering.renderer.Renderer", Painted)
    save(Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4)), "v.h5")
    (tmp_path / "path.json").write_text(json.dumps(KEYS))
    frames = []
    for i in range(5):
        pose = np.eye(4)
        pose[:3, 3] = [i, 0, 4]
        frames.append({"file_path": f"r_{i}", "transform_matrix": pose.tolist()})
        Image.fromarray(np.full((6, 8, 4), 200, np.uint8)).save(tmp_path / f"r_{i}.png")
    for split, of in (("train", frames[:4]), ("test", frames[4:])):
        (tmp_path / f"transforms_{split}.json").write_text(json.dumps({"camera_angle_x": 0.7, "frames": of}))
    return tmp_path


def ran(capsys, line):
    """Exit code, stdout and stderr of a command."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(line.split())
    said = capsys.readouterr()
    return ended.value.code, said.out, said.err


CLIPS = {
    "--orbit 7 --size 20": (7, (20, 20)),
    "--orbit 4 --size 32,18": (4, (32, 18)),
    "--path spiral --frames 6 --size 20": (6, (20, 20)),
    "--path path.json --frames 5 --size 21,15": (5, (21, 15)),
    "--path cameras --views . --frames 9": (9, (8, 6)),
    "--views .": (1, (8, 6)),
    "--views . --split train": (4, (8, 6)),
}


@pytest.mark.parametrize("how", CLIPS)
def test_a_clip_has_a_frame_a_camera_of_the_size_asked_for(how, here, capsys):
    count, size = CLIPS[how]
    code, out, err = ran(capsys, f"render v.h5 {how} --fps 10 --out clip.gif")
    assert (code, out) == (0, f"clip.gif: {count} frames, {count / 10:.3g} s\n"), err
    with Image.open("clip.gif") as file:
        assert (file.n_frames, file.size) == (count, size)
    assert is_video("clip.gif")


@pytest.mark.parametrize("fps", [12, 30, 240])
def test_the_length_that_is_said_of_a_gif_is_how_long_it_plays(fps, here, capsys):
    """Its frames are whole hundredths of a second apart, two at least."""
    _, out, _ = ran(capsys, f"render v.h5 --orbit 7 --size 20 --fps {fps} --out clip.gif")
    with Image.open("clip.gif") as file:
        plays = sum(frame.info["duration"] for frame in ImageSequence.Iterator(file)) / 1000
    assert out == f"clip.gif: 7 frames, {plays:.3g} s\n"


BOX = Volume.from_array(np.ones((4, 4, 4)))
NESTED = replace(Volume.from_array(np.ones((12, 4, 4))), boxes=3, world_from_index=BOX.world_from_index)
NDC = replace(BOX, ndc_from_world=ndc_of_frustum(np.eye(4), near=1.0))


@pytest.mark.parametrize("volume", [NESTED, NDC], ids=["nested", "ndc"])
def test_depths_beyond_the_box_are_told_apart_in_pictures_of_a_volume_that_goes_on(volume, here, capsys, monkeypatch):
    """And all pictures say a distance alike."""
    shape, far = (6, 8), np.linspace(90.0, 30.0, 48)

    def render(self, camera, background=None, *, depth=True, normals=False):
        nearer = 10.0 if camera.position[0] < 0 else 0.0
        return Rendering(np.ones((*shape, 3)), np.ones(shape), (far - nearer).reshape(shape))

    monkeypatch.setattr(Painted, "render", render)
    save(volume, "w.h5")
    write_set(here / "set")
    code, _, err = ran(capsys, "render w.h5 --views set --split train --extras --out seen")
    assert code == 0 and "depth: white at 30.6, dark at 89.4 world units" in err, err
    first, second, third = (np.asarray(Image.open(f"seen/r_{i}_depth.png")).ravel().astype(int) for i in range(3))
    assert (np.diff(first) >= 0).all() and np.ptp(first) > 200
    assert (second >= first).all() and (second > first).sum() > 40 and (second == third).all()


def test_a_path_to_a_folder_is_pictures(here, capsys):
    assert ran(capsys, "render v.h5 --path spiral --frames 3 --size 16,9 --out seen")[0] == 0
    assert sorted(path.name for path in (here / "seen").iterdir()) == ["0000.png", "0001.png", "0002.png"]
    with Image.open("seen/0001.png") as file:
        assert file.size == (16, 9)


def test_a_clip_of_others_stays(here, capsys):
    Image.new("RGB", (8, 8)).save("clip.gif")
    before = (here / "clip.gif").read_bytes()
    code, _, err = ran(capsys, "render v.h5 --orbit 3 --size 8 --out clip.gif")
    assert code == 1 and "is no video of raymarch's and would be lost" in err
    assert (here / "clip.gif").read_bytes() == before
    assert ran(capsys, "render v.h5 --orbit 3 --size 8 --out clip.gif --overwrite")[0] == 0


def test_views_of_several_sizes_are_no_clip(here, capsys):
    Image.fromarray(np.full((7, 8, 4), 200, np.uint8)).save(here / "r_1.png")
    code, _, err = ran(capsys, "render v.h5 --views . --split train --out clip.gif")
    assert code == 1 and "views are of 8 x 6 and 8 x 7, a clip is of one size" in err


@pytest.mark.parametrize("older", [False, True])
def test_an_interrupt_keeps_the_frames_so_far_beside(older, here, capsys, monkeypatch):
    if older:
        assert ran(capsys, "render v.h5 --orbit 3 --size 8 --out clip.gif")[0] == 0
    seen, one = [], Painted.render

    def render(self, *args, **how):
        seen.append(1)
        if len(seen) == 4:
            signal.raise_signal(signal.SIGINT)
        return one(self, *args, **how)

    monkeypatch.setattr(Painted, "render", render)
    code, out, err = ran(capsys, "render v.h5 --orbit 30 --size 8 --out clip.gif")
    assert (code, out) == (1, "") and "clip.interrupted.gif has 4 of 30 frames" in err
    with Image.open("clip.interrupted.gif") as file:
        assert file.n_frames == 4
    assert os.path.exists("clip.gif") == older
    assert not list(here.glob(".raymarch-*"))


def test_a_missing_library_is_one_line_before_anything_is_rendered(here):
    code = "import sys; sys.modules['av'] = None; from raymarch import cli; cli.main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "render", "v.h5", "--orbit", "3", "--out", "clip.mp4"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (run.returncode, run.stdout) == (1, "")
    (said,) = run.stderr.splitlines()
    assert said.startswith("raymarch: clip.mp4: .mp4 files need PyAV") and 'pip install "raymarch[video]"' in said
    assert not (here / "clip.mp4").exists()

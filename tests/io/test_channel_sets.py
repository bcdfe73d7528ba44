"""Law: a transforms.json with channels takes arrays, TIFF files and photographs, each frame's own channels by name."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import sets
from PIL import Image
from skips import require_extra

from raymarch import cli
from raymarch.errors import RaymarchError
from raymarch.evaluation.held_out import evaluate
from raymarch.geometry.camera import Camera
from raymarch.io.image_sets.channel_frames import read_array
from raymarch.io.image_sets.convert import convert
from raymarch.io.image_sets.load import cameras_of_set, load_views
from raymarch.io.volumes.volume_file import save
from raymarch.rendering.renderer import render
from raymarch.views.depth_images import distances_of_z
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

CHANNELS = ["red", "green", "blue", "thermal"]
CONTIGUOUS = {"planarconfig": "contig", "photometric": "minisblack"}


def write(folder, frames, **changes):
    """A set of such frames, keys with what is written to their file, and its values."""
    (folder / "images").mkdir(parents=True)
    listed = []
    for i, (name, values, keys) in enumerate(frames):
        path = folder / "images" / name
        if name.endswith(".npy"):
            np.save(path, values)
        else:
            Image.fromarray(values).save(path)
        listed.append({"file_path": f"images/{name}", "transform_matrix": sets.POSES[i % 3].tolist(), **keys})
    document = {"fl_x": 9.5, "channels": CHANNELS, "frames": listed, **changes}
    (folder / "transforms.json").write_text(json.dumps(document))
    return folder


def frames():
    rng = np.random.default_rng(0)
    photograph = sets.random_image(3)
    return [
        ("0.npy", rng.normal(size=(6, 8, 4)) + 20, {}),
        ("1.png", photograph, {}),
        ("2.npy", rng.normal(size=(3, 4)) + 300, {"channels": ["thermal"], "fl_x": 4.75}),
        ("3.tif", (300 + rng.normal(size=(6, 8))).astype(np.float32), {"channels": ["thermal"]}),
    ]


def test_each_frame_has_the_channels_that_its_file_has(tmp_path):
    given = frames()
    views = load_views(write(tmp_path / "set", given), "all")
    assert views.channels == tuple(CHANNELS) and views.sizes == ((8, 6), (8, 6), (4, 3), (8, 6))
    assert views.has_channel.tolist() == [[True] * 4, [True, True, True, False], *[[False] * 3 + [True]] * 2]
    np.testing.assert_array_equal(views.image(0), given[0][1].astype(np.float32))
    np.testing.assert_allclose(views.image(1)[..., :3], given[1][1] / 255, rtol=1e-6)
    np.testing.assert_array_equal(views.image(2)[..., 3], given[2][1].astype(np.float32))
    np.testing.assert_array_equal(views.image(3)[..., 3], given[3][1])
    assert views.cameras[2].focal == (4.75, 4.75)
    assert load_views(tmp_path / "set", "all", downscale=2, background=[1, 2, 3, 4]).sizes[0] == (4, 3)


def test_depth_images_are_read_beside_channels_and_stay_with_the_set(tmp_path):
    depth = np.full((3, 4), 3.0, np.float32)
    given = [(name, values, {**keys, "depth_file_path": "depth.npy"}) for name, values, keys in frames()]
    folder = write(tmp_path / "set", given, depth_unit_scale_factor=1.0)
    np.save(folder / "depth.npy", depth)
    views = load_views(folder, "all", depths=True)
    convert(folder, tmp_path / "set.h5")
    for seen in (views, load_views(tmp_path / "set.h5", "all", depths=True)):
        for i in range(4):
            np.testing.assert_allclose(seen.depth(i), distances_of_z(seen.cameras[i], depth), rtol=1e-6)


def test_cameras_are_read_for_themselves_from_arrays_too(tmp_path):
    folder = write(tmp_path / "set", frames())
    convert(folder, tmp_path / "set.h5", holdout=0)
    wanted = load_views(folder, "all", downscale=2)
    for path, split in ((folder, "all"), (tmp_path / "set.h5", "train")):
        found = cameras_of_set(path, split, downscale=2)
        assert [(name, camera.width, camera.focal) for name, camera in found] == [
            (name, camera.width, camera.focal) for name, camera in zip(wanted.names, wanted.cameras, strict=True)
        ]


def test_the_shell_looks_at_channels_and_says_what_wants_colours(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "set", frames())
    save(Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 2)), np.eye(4), channels=("a", "b")), "v.h5")
    for line, said in (
        ("doctor set", "4 views of"),
        ("doctor set --volume v.h5", "--volume v.h5: has the channels a, b, want a fit of colours; leave it out"),
        ("fit set --out new.h5 --background white --dry-run", "background is 'white', want 4 numbers, for red"),
        ("fit set --out new.h5 --background 1,300 --dry-run", "background has shape (2,), want 4 finite numbers"),
        ("fit set --out new.h5 --refine --steps 1", "--refine compares colours, and the views have the channels red"),
    ):
        with pytest.raises(SystemExit):
            cli.main(line.split())
        assert said in capsys.readouterr().err
    assert not (tmp_path / "new.h5").exists()


def test_the_depth_error_of_channels_is_that_of_colours():
    ball = Volume.from_function(lambda p: 30.0 * (np.linalg.norm(p, axis=-1) < 0.6), shape=(12, 12, 12))
    camera = Camera.look_at((0, -4, 0), width=8, height=6)
    depth = render(ball, camera, extras=True).depth
    known = [np.where(np.isfinite(depth), 1.1 * depth, np.nan)]
    image = np.zeros((1, 6, 8, 3))
    named = replace(ball, channels=("a", "b", "c"), activation=replace(ball.activation, colour="identity"))
    of_colours = evaluate(ball, Views([camera], image.astype(np.uint8), depths=known))
    of_channels = evaluate(named, Views([camera], image, channels=named.channels, background=(0, 0, 0), depths=known))
    assert of_colours.depth_error_relative == pytest.approx(0.1 / 1.1, rel=1e-5)
    assert of_channels.depth_error == of_colours.depth_error == of_channels.views[0].depth_error
    assert of_channels.depth_error_relative == of_colours.depth_error_relative


@pytest.mark.extra
def test_a_tiff_of_many_bands_is_read_by_tifffile(tmp_path):
    tifffile = require_extra("tifffile", "formats")

    values = np.random.default_rng(0).normal(size=(5, 6, 8)).astype(np.float32)
    tifffile.imwrite(tmp_path / "planes.tif", values, planarconfig="separate", photometric="minisblack")
    tifffile.imwrite(tmp_path / "pixels.tif", np.ascontiguousarray(np.moveaxis(values, 0, -1)), **CONTIGUOUS)
    for name in ("planes.tif", "pixels.tif"):
        np.testing.assert_array_equal(read_array(tmp_path / name), np.moveaxis(values, 0, -1))


@pytest.mark.parametrize("alpha", [False, True])
def test_one_file_has_what_the_folder_had(tmp_path, alpha):
    given, names = frames(), CHANNELS
    if alpha:
        names = [*CHANNELS, "alpha"]
        cover = np.random.default_rng(1).uniform(size=(6, 8, 1))
        given = [("0.npy", np.concatenate([given[0][1], cover], axis=-1), {}), *given[1:]]
    folder = write(tmp_path / "set", given, channels=names)
    convert(folder, tmp_path / "set.h5", holdout=0)
    for downscale in (1, 2):
        wanted = load_views(folder, "all", downscale=downscale)
        found = load_views(tmp_path / "set.h5", "train", downscale=downscale)
        assert found.channels == wanted.channels == tuple(names)
        assert found.background == wanted.background or downscale > 1  # of the images as they were written
        for i in range(4):
            np.testing.assert_array_equal(found.image(i), wanted.image(i))


BAD = {
    r"0.npy: has 3 channels, its frame 4: red": ({0: (np.zeros((6, 8, 3)), {})}, {}),
    r"frame 0: has the channel 'nir', the set red": ({0: (np.zeros((6, 8)), {"channels": ["nir"]})}, {}),
    r"frame 1: 1.png is a photograph, which has red": ({1: (sets.random_image(3), {"channels": ["thermal"]})}, {}),
    r"0.npy: has shape \(8,\), want": ({0: (np.zeros(8), {})}, {}),
    r"0.npy: has no numbers": ({0: (np.array([["a"]]), {})}, {}),
    r"channels have red twice": ({}, {"channels": ["red", "red", "blue", "thermal"]}),
    r"channels is 'thermal', want a tuple": ({}, {"channels": "thermal"}),
}


@pytest.mark.parametrize("message", BAD)
def test_sets_that_are_wrong_are_said_with_file_and_cure(tmp_path, message):
    wrong, changes = BAD[message]
    given = [(name, *wrong.get(i, (values, keys))) for i, (name, values, keys) in enumerate(frames())]
    with pytest.raises(RaymarchError, match=message) as told:
        load_views(write(tmp_path / "set", given, **changes), "all")
    assert "\n" not in str(told.value) and str(tmp_path) in str(told.value)

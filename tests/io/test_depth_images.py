"""Law: depth images of every layout are distances along rays in world units, also in HDF5; damage is one line."""

from __future__ import annotations

import json
import logging
import struct
import zlib

import h5py
import layouts
import numpy as np
import pytest
from PIL import Image
from sets import POSES, write_colmap, write_transforms

import raymarch as rm
from raymarch.io.image_sets.convert import convert
from raymarch.io.images.exr import read_exr

Z = np.linspace(1.0, 3.0, 12).reshape(3, 4)  # of images of 8 x 6
Z[0, 0] = 0


def exr(values, compression=3, kind="<f4", name="Z", version=2) -> bytes:
    """An OpenEXR image of one channel; kinds of compression: 0 none, 1 runs, 2 and 3 zip of 1 and 16 lines."""
    height, width = values.shape
    code = {"<u4": 0, "<f2": 1, "<f4": 2}[kind]
    channel = name.encode() + b"\0" + struct.pack("<iIii", code, 0, 1, 1) + b"\0"
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    parts = {"channels": ("chlist", channel), "compression": ("compression", bytes([compression]))}
    parts |= {"dataWindow": ("box2i", window), "displayWindow": ("box2i", window)}
    data = struct.pack("<iI", 20000630, version)
    for key, (form, value) in parts.items():
        data += key.encode() + b"\0" + form.encode() + b"\0" + struct.pack("<i", len(value)) + value
    data += b"\0"
    lines, blocks = 16 if compression == 3 else 1, []
    for first in range(0, height, lines):
        raw = values[first : first + lines].astype(kind).tobytes()
        packed = raw
        if compression:
            halves = np.frombuffer(raw[0::2] + raw[1::2], np.uint8).astype(int)
            steps = bytes(((np.diff(halves, prepend=halves[0]) + 128) & 255).astype(np.uint8))
            steps = bytes([raw[0]]) + steps[1:]
            packed = zlib.compress(steps) if compression > 1 else b"".join(bytes([0, one]) for one in steps)
            packed = raw if len(packed) >= len(raw) else packed
        blocks.append(struct.pack("<ii", first, len(packed)) + packed)
    at = len(data) + 8 * len(blocks)
    for block in blocks:
        data += struct.pack("<Q", at)
        at += len(block)
    return data + b"".join(blocks)


def save(path, values, unit=1e-3):
    """Depths in a file of the format that its suffix says, in steps of a unit."""
    steps = values / unit
    path.parent.mkdir(exist_ok=True, parents=True)
    if path.suffix == ".exr":
        path.write_bytes(exr(steps))
    elif path.suffix == ".npy":
        np.save(path, steps)
    elif path.suffix == ".png":
        Image.fromarray(np.rint(steps).astype(np.uint16)).save(path)
    else:
        Image.fromarray(steps.astype(np.float32)).save(path)


def nerfstudio(folder, suffix=".png", key="depth_file_path", **keys):
    """A set of three views, each with depths Z in a file."""
    frames = [
        {"file_path": f"images/r_{i}.png", "transform_matrix": POSES[i].tolist(), key: f"depth/r_{i}{suffix}"}
        for i in range(3)
    ]
    write_transforms(folder, frames=frames, **keys)
    for i in range(3):
        save(folder / "depth" / f"r_{i}{suffix}", Z)
    return folder


def load(folder, **how):
    return rm.load_views(folder, "all", **how)


def require_planes(views, z=Z):
    """Whatever is met lies at its depth along the axis of its camera, of what an image of 4 x 3 sees."""
    for i, camera in enumerate(views.cameras):
        rays, depth = camera.scaled(0.5).rays(), views.depth(i)
        assert depth.dtype == np.float32
        points = rays.origin + depth.reshape(-1, 1) * rays.direction
        _, along = camera.project(np.nan_to_num(points))
        known = z.ravel() > 0
        assert np.array_equal(known, ~np.isnan(depth).ravel())
        np.testing.assert_allclose(along[known], z.ravel()[known], rtol=1e-3)


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".npy", ".exr"])
def test_depths_along_the_axis_become_distances_along_rays(tmp_path, suffix):
    require_planes(load(nerfstudio(tmp_path / "set", suffix, k1=0.1)))


def test_a_unit_is_the_sets_or_the_users(tmp_path):
    of_ngp = load(nerfstudio(tmp_path / "a", key="depth_path", integer_depth_scale=1 / 500))
    require_planes(of_ngp, 2 * Z)
    of_set = load(nerfstudio(tmp_path / "b", depth_unit_scale_factor=0.01))
    require_planes(of_set, 10 * Z)
    require_planes(load(tmp_path / "b", depth_unit=0.001))
    assert load(tmp_path / "b", depths=False).depths is None


@pytest.mark.parametrize("unit", [0, -0.001, 1e300])
def test_a_unit_by_which_nothing_is_known_is_a_line(tmp_path, unit):
    with pytest.raises(rm.RaymarchError, match=r"frame 0: depth unit is .*, want a number over 0 and at most 1e\+09; "):
        load(nerfstudio(tmp_path / "set", depth_unit_scale_factor=unit))


@pytest.mark.parametrize("kind", ["<f4", "<f2", "<u4"])
@pytest.mark.parametrize("compression", [0, 1, 2, 3])
def test_openexr_is_read_however_it_is_packed(tmp_path, compression, kind):
    values = np.floor(np.linspace(0, 2000, 40 * 37)).reshape(40, 37)
    (tmp_path / "a.exr").write_bytes(exr(values, compression, kind))
    np.testing.assert_array_equal(read_exr(tmp_path / "a.exr"), values.astype(kind).astype(np.float32))


def test_damaged_openexr_is_a_line(tmp_path):
    whole, path, rng = exr(np.outer(np.arange(20), np.ones(9))), tmp_path / "a.exr", np.random.default_rng(0)
    damaged = [whole[:n] for n in rng.integers(0, len(whole), 60)]
    for at, value in zip(rng.integers(0, len(whole), 200), rng.integers(0, 256, 200), strict=True):
        damaged.append(whole[:at] + bytes([value]) + whole[at + 1 :])
    for data in damaged:
        path.write_bytes(data)
        try:
            assert read_exr(path).dtype == np.float32
        except rm.RaymarchError as error:
            assert "\n" not in str(error) and str(path) in str(error)


def test_a_photograph_that_exif_turns_takes_its_depths_along(tmp_path):
    folder = nerfstudio(tmp_path / "set")
    turned = Image.Exif()
    turned[0x0112] = 6
    for i in range(3):
        Image.fromarray(np.full((6, 8, 3), 40 * i, np.uint8)).save(folder / "images" / f"r_{i}.png", exif=turned)
    views = load(folder)
    assert views.sizes[0] == (6, 8)
    plain = load(nerfstudio(tmp_path / "plain"))
    for i in range(3):
        np.testing.assert_allclose(views.depth(i), np.rot90(plain.depth(i), -1), rtol=1e-6)


def test_a_missing_depth_is_said_and_gone_without(tmp_path, caplog):
    folder = nerfstudio(tmp_path / "set")
    (folder / "depth" / "r_1.png").unlink()
    with caplog.at_level(logging.WARNING, "raymarch"):
        views = load(folder)
    assert [depth is None for depth in views.depths] == [False, True, False]
    assert any("1 of 3 depth images are missing" in line and "r_1.png" in line for line in caplog.messages)


def refused(call, *said):
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert all(part in text for part in said), text


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("r_1.png", lambda p: Image.fromarray(np.zeros((3, 4, 3), np.uint8)).save(p), ("mode RGB", "16-bit PNG")),
        ("r_1.png", lambda p: save(p, Z[:, :1]), ("1 x 3", "another aspect", "cut it")),
        ("r_1.png", lambda p: save(p, Z.T), ("3 x 4", "turn it by a quarter")),
        ("r_1.png", lambda p: p.write_bytes(b"\x89PNG"), ("r_1.png", "no readable image")),
        ("r_1.npy", lambda p: np.save(p, np.zeros((2, 3, 4))), ("(2, 3, 4)", "want numbers (height, width)")),
        ("r_1.npy", lambda p: p.write_bytes(b"no array"), ("depth is damaged",)),
        ("r_1.npy", lambda p: np.save(p, np.array([{}])), ("depth is damaged",)),
        ("r_1.exr", lambda p: p.write_bytes(exr(Z, 4)), ("packed by PIZ", "16-bit PNG")),
        ("r_1.exr", lambda p: p.write_bytes(exr(Z, version=2 | 0x200)), ("tiles",)),
        ("r_1.exr", lambda p: p.write_bytes(b"junk of an image"), ("no OpenEXR image",)),
    ],
)
def test_what_is_no_depth_image_of_its_view_is_a_line(tmp_path, name, write, said):
    folder = nerfstudio(tmp_path / "set", name[3:])
    write(folder / "depth" / name)
    refused(lambda: load(folder), *said)
    assert load(folder, depths=False).depths is None  # who needs none reads the set all the same


def test_a_path_that_leads_out_is_refused(tmp_path):
    folder = nerfstudio(tmp_path / "set")
    document = json.loads((folder / "transforms.json").read_text())
    document["frames"][1]["depth_file_path"] = "../depth.png"
    (folder / "transforms.json").write_text(json.dumps(document))
    refused(lambda: load(folder), "depth_file_path", "leads out of")


def test_polycam_and_record3d_have_depths_too(tmp_path, caplog):
    cameras = layouts.known(3)
    folder = layouts.polycam(tmp_path / "polycam", cameras, "keyframes")
    for i in range(3):
        save(folder / "keyframes" / "depth" / f"{7000 + i}.png", np.where(Z > 0, Z, 1.0))
        trusted = Image.fromarray(np.where(Z > 0, 255, 0).astype(np.uint8))
        (folder / "keyframes" / "confidence").mkdir(exist_ok=True)
        trusted.save(folder / "keyframes" / "confidence" / f"{7000 + i}.png")
    require_planes(load(folder))
    folder = layouts.record3d(tmp_path / "record3d", cameras)
    for i in range(3):
        save(folder / "depth" / f"{i}.exr", Z, unit=1.0)
    require_planes(load(folder))
    (folder / "rgb" / "0.depth").write_bytes(b"bvx2")
    with caplog.at_level(logging.WARNING, "raymarch"):
        load(folder)
    assert any("LZFSE" in line and "export EXR" in line for line in caplog.messages)


def test_colmap_says_which_view_sees_which_point(tmp_path):
    views = load(write_colmap(tmp_path / "set"))
    assert sorted(map(tuple, views.sightings.tolist())) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert load(tmp_path / "set", depths=False).sightings is None


def test_hdf5_keeps_both_and_a_set_without_is_what_it_was(tmp_path):
    kept = {}
    for name, folder in (("depths", nerfstudio(tmp_path / "a")), ("sightings", write_colmap(tmp_path / "b"))):
        convert(folder, tmp_path / f"{name}.h5")
        for split in ("train", "test"):
            views, again = (rm.load_views(path, split) for path in (folder, tmp_path / f"{name}.h5"))
            for i in range(len(views)):
                one, other = views.depth(i), again.depth(i)
                assert (one is None and other is None) or np.array_equal(one, other, equal_nan=True)
            assert (views.sightings is None) == (again.sightings is None)
            if views.sightings is not None:
                assert {tuple(row) for row in views.sightings} == {tuple(row) for row in again.sightings}
        kept[name] = again
    require_planes(load(tmp_path / "depths.h5"))
    require_planes(load(tmp_path / "depths.h5", depth_unit=2.0), 2 * Z)
    assert kept["depths"].depths is not None
    plain = write_transforms(tmp_path / "plain")
    convert(plain, tmp_path / "plain.h5")
    with h5py.File(tmp_path / "plain.h5") as file:
        assert not {"depths", "depth_sizes", "sightings"} & set(file)


def test_an_altered_depth_is_refused(tmp_path):
    convert(nerfstudio(tmp_path / "a"), tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["depths"][5] = 7.0
    refused(lambda: load(tmp_path / "a.h5"), "digest")

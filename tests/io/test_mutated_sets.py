"""Law: of 2,000 damaged files a reader each is read or refused in a line, with nothing else and little memory."""

import json
import resource
import struct

import numpy as np
import pytest
from sets import COLMAP_IMAGES, COLMAP_POINTS, POSES, write_transforms
from test_colmap import binary

import raymarch as rm
from raymarch.io.image_sets import transforms
from raymarch.io.image_sets.colmap import colmap
from raymarch.io.image_sets.colmap.model import ModelFiles
from raymarch.io.image_sets.ply import read_ply_points

COUNTS, MOST_BYTES = {"transforms": 1000}, 100 << 20  # and 500 of each other: 2,000 of a reader
TEXTS = [
    b"nan",
    b"1e999",
    b"-1",
    b"0",
    b"null",
    b"{}",
    b"[]",
    b"../",
    b"\0",
    b"\xff",
    b"9" * 400,
    b"\n",
    b'"',
    b"//",
    b" ",
]
NUMBERS = [b"\xff" * 8, bytes(8), (1 << 60).to_bytes(8, "little"), b"\0\0\0\0\0\0\xf8\x7f", b"\xff\xff\xff\x7f"]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Data with one to three of: a bit flipped, an end cut, a part doubled or taken out, a number put in."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, length = int(rng.integers(len(out) + 1)), int(rng.integers(1, 24))
        match rng.integers(6):
            case 0 if out:
                out[at % len(out)] ^= 1 << int(rng.integers(8))
            case 1:
                del out[at:]
            case 2:
                del out[at : at + length]
            case 3:
                out[at:at] = out[at : at + length]
            case 4:
                out[at : at + length // 4] = TEXTS[rng.integers(len(TEXTS))]
            case _:
                number = NUMBERS[rng.integers(len(NUMBERS))]
                out[at : at + len(number)] = number
    return bytes(out)


def put(path, data):
    """A new file: some disks wait for one that is written over."""
    path.unlink()
    path.write_bytes(data)


PLY = "ply\nformat {} 1.0\nelement vertex 3\n" + "".join(f"property float {axis}\n" for axis in "xyz") + "end_header\n"
FRAMES = [
    {"file_path": f"images/r_{i}.png", "sharpness": 9 + i, "transform_matrix": np.round(POSES[i], 3).tolist()}
    for i in range(2)
]
KEYS = {
    "fl_x": 9.5,
    "cx": 4.1,
    "w": 8,
    "h": 6,
    "aabb_scale": 4,
    "offset": [0.5, 0.5, 0.5],
    "test_filenames": ["a/b.png"],
}
PINHOLE = "7 PINHOLE 8 6 9.5 9 4.2 2.9\n"


def cameras_of_transforms(path, monkeypatch):
    """The reader, but for the images."""
    monkeypatch.setattr(
        transforms, "views_of_frames", lambda frames, *_, **__: [frame.camera(8, 6) for frame in frames]
    )
    return transforms.TRANSFORMS.read(path.parent, "all")


def cameras_of_model(path, monkeypatch):
    """The parsers of COLMAP and what is made of them."""
    parser = colmap.PARSERS[path.suffix[1:]]
    cameras, images = (parser.read_cameras(path), parser.read_images(path.with_stem("images")))
    used = [(cameras[image.camera], image) for image in images.values() if image.camera in cameras]
    return [colmap.camera_of_image(camera, image, "image", 8, 6) for camera, image in used[:1]]


def points_of_model(path, monkeypatch):
    return colmap.points_of_model(ModelFiles(path.parent, path.suffix[1:]))


def points_of_ply(path, monkeypatch):
    return read_ply_points(path)


BINARY = binary()
PLAIN = struct.pack("<QIiQQ4d", 1, 7, 1, 8, 6, 9.5, 9, 4.2, 2.9)
FILES = {  # the files that are damaged, and what reads the first of them
    "transforms": (cameras_of_transforms, {"transforms.json": json.dumps({**KEYS, "frames": FRAMES}).encode()}),
    "text PLY": (points_of_ply, {"a.ply": (PLY.format("ascii") + "1 2 3\n4 5 6\n7 8 9\n").encode()}),
    "binary PLY": (points_of_ply, {"a.ply": PLY.format("binary_little_endian").encode() + np.ones(9, "<f4").tobytes()}),
    "text COLMAP": (cameras_of_model, {"cameras.txt": PINHOLE.encode(), "images.txt": COLMAP_IMAGES.encode()}),
    "text points": (points_of_model, {"points3D.txt": COLMAP_POINTS.encode()}),
    "binary COLMAP": (cameras_of_model, {"cameras.bin": PLAIN, "images.bin": BINARY["images.bin"]}),
    "binary points": (points_of_model, {"points3D.bin": BINARY["points3D.bin"]}),
}


@pytest.mark.parametrize("what", FILES)
def test_a_damaged_file_is_read_or_refused_in_a_line(what, tmp_path, monkeypatch):
    read, files = FILES[what]
    count = COUNTS.get(what, 500)
    folder, rng, refused = write_transforms(tmp_path / "set"), np.random.default_rng(12), 0
    for name, data in files.items():
        (folder / name).write_bytes(data)
    first = folder / next(iter(files))
    assert len(read(first, monkeypatch)) > 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        name = list(files)[i % len(files)]
        put(folder / name, mutated(files[name], rng))
        try:
            found = read(first, monkeypatch)
            assert found is None or all(np.isfinite(getattr(one, "world_from_camera", one)).all() for one in found)
        except rm.RaymarchError as error:
            assert "\n" not in str(error), str(error)
            assert len(str(error)) < 1000, str(error)
            refused += 1
        put(folder / name, files[name])
    assert count // 4 < refused < count
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES

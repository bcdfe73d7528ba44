"""Laws of COLMAP sets: text and binary are read as COLMAP's own library reads them, and no damage gets further."""

import itertools
import json
import math
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sets import COLMAP_CAMERAS, COLMAP_IMAGES, COLMAP_POINTS, random_image, write_colmap, write_transforms
from skips import require_extra

import raymarch as rm
from raymarch.io.image_sets.camera_models import COLMAP_MODELS, UNREAD_COLMAP_MODELS
from raymarch.io.image_sets.colmap import binary as colmap_binary
from raymarch.io.image_sets.load import READERS

LENS = rm.Lens("opencv", (0.05, -0.04, 0, 0.003, -0.002))


def load(folder, split="all", **how):
    return rm.load_views(folder, split, **how)


def refused(call, *said):
    with pytest.raises(rm.RaymarchError) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text and all(part in text for part in said), text


def test_a_text_is_read_as_it_was_written(tmp_path):
    views = load(write_colmap(tmp_path / "set"))
    assert views.names == ("r_0", "r_1", "r_2")
    x, y, z = np.eye(3)
    turns = [
        np.eye(3),
        [[1, 0, 0], [0, 0.28, -0.96], [0, 0.96, 0.28]],  # quaternion (0.8, 0.6, 0, 0): 73.74 degrees about x
        [[0.28, 0, 0.96], [0, 1, 0], [-0.96, 0, 0.28]],
    ]
    moves = [(0.1, 0.2, 3), (0, -0.2, 3.5), (0.3, 0, 4)]
    for i, (camera, turn, move) in enumerate(zip(views.cameras, np.array(turns), moves, strict=True)):
        np.testing.assert_array_equal(views.images[i], random_image(3, seed=i))
        want = np.eye(4)
        want[:3] = np.column_stack([turn.T @ x, turn.T @ -y, turn.T @ -z, -turn.T @ move])
        np.testing.assert_allclose(camera.world_from_camera, want, atol=1e-12)
        assert (camera.focal, camera.principal, camera.lens) == ((9.5, 9), (4.2, 2.9), LENS)
    np.testing.assert_allclose(views.points, [[0.1, 0.2, 0.3], [-0.4, 0.2, 0.3]])


# pycolmap as the oracle: it writes and projects, in one process without Pillow, for they crash each other.

ORACLE = """
import sys, json
from pathlib import Path
import numpy as np
import pycolmap

def reconstruction(number, model, parameters, focals, count, width, height):
    made, rng = pycolmap.Reconstruction(), np.random.default_rng(number)
    for i, camera_id in enumerate((3, 11)):
        camera = pycolmap.Camera.create_from_model_name(camera_id, model, 35.0 + i, width, height)
        lens = 0.9 if model == "FOV" else rng.uniform(-0.02, 0.02, parameters - focals - 2)
        if focals:  # a panorama's numbers are its width and height
            camera.params = [*[35.0 + i, 36.5][:focals], 20.7, 14.1, *np.atleast_1d(lens)][:parameters]
        made.add_camera_with_trivial_rig(camera)
    for i in range(count):
        image = pycolmap.Image()
        image.image_id, image.camera_id, image.name = 5 + 3 * i, (3, 11)[i % 2], f"r_{i}.png"
        turn = rng.normal(size=4)
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(turn / np.linalg.norm(turn)), rng.normal(size=3))
        image.points2D = [pycolmap.Point2D(rng.uniform(0, 30, 2)) for _ in range(3)]
        made.add_image_with_trivial_frame(image, pose)
    for k in range(3):
        track = pycolmap.Track()
        for i in range(count):
            track.add_element(5 + 3 * i, k)
        made.add_point3D(rng.normal(size=3), track, np.array([9, 8, 7], np.uint8))
    return made

def write(folder, models, count, width, height):
    for number, (model, parameters, focals) in models.items():
        made = reconstruction(int(number), model, parameters, focals, count, width, height)
        for kind in ("binary", "text"):
            target = Path(folder, number, kind, "sparse", "0")
            target.mkdir(parents=True)
            getattr(made, f"write_{kind}")(str(target))

def project(folder):
    for place in sorted(Path(folder).glob("*/*")):
        made, pixels = pycolmap.Reconstruction(str(place / "sparse" / "0")), {}
        for image in made.images.values():
            pose = image.cam_from_world()
            local = np.load(place / f"{image.name}.npy") @ pose.rotation.matrix().T + pose.translation
            pixels[image.name] = made.cameras[image.camera_id].img_from_cam(local)
        places = np.array([point.xyz for point in made.points3D.values()])
        np.savez(place / "found.npz", places=places, **pixels)

what, folder, *rest = json.loads(sys.argv[1])
{"write": write, "project": project}[what](folder, *rest)
"""
COUNT, WIDTH, HEIGHT = 3, 40, 30


def ask_pycolmap(*words):
    done = subprocess.run(
        [sys.executable, "-c", ORACLE, json.dumps(words)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def in_pycolmap(tmp_path_factory):
    """Folder of a set for each camera model and kind of file, and views of each as we read it.

    Beside it lie the pixels onto which pycolmap projects points of our rays, and the places of its points.
    """
    require_extra("pycolmap", "sfm", load=False)
    folder, read = tmp_path_factory.mktemp("pycolmap"), {}
    models = {number: (model.name, model.parameters, model.focals) for number, model in COLMAP_MODELS.items()}
    ask_pycolmap("write", str(folder), models, COUNT, WIDTH, HEIGHT)
    for number, kind in itertools.product(COLMAP_MODELS, ("binary", "text")):
        place = folder / str(number) / kind
        (place / "images").mkdir()
        for i in range(COUNT):
            Image.fromarray(random_image(3, HEIGHT, WIDTH, seed=i)).save(place / "images" / f"r_{i}.png")
        read[number, kind] = views = load(place)
        for name, camera in zip(views.names, views.cameras, strict=True):
            rays = camera.rays()
            np.save(place / f"{name}.png.npy", rays.origin + 3 * rays.direction)
    ask_pycolmap("project", str(folder))
    return folder, read


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["binary", "text"])
@pytest.mark.parametrize("number", COLMAP_MODELS)
def test_rays_project_back_to_their_pixels_in_pycolmap(number, kind, in_pycolmap):
    folder, read = in_pycolmap
    views, found = read[number, kind], np.load(folder / str(number) / kind / "found.npz")
    pixels = np.stack(np.meshgrid(np.arange(WIDTH) + 0.5, np.arange(HEIGHT) + 0.5), -1).reshape(-1, 2)
    assert len(views.names) == COUNT
    for name in views.names:
        np.testing.assert_allclose(found[f"{name}.png"], pixels, atol=1e-6)
    places = sorted(map(tuple, found["places"]))
    np.testing.assert_allclose(views.points[np.argsort(views.points[:, 0])], places, rtol=1e-12)


# Binary files by hand.


def binary(cameras=None, images=None, points=None):
    """The three files, as COLMAP's format says, of a camera like `COLMAP_CAMERAS` and three images."""
    camera = struct.pack("<IiQQ8d", 7, 4, 8, 6, 9.5, 9, 4.2, 2.9, 0.05, -0.04, 0.003, -0.002)
    poses = [(1, 1, 0, 0, 0, 0.1, 0.2, 3), (4, 0.8, 0.6, 0, 0, 0, -0.2, 3.5), (9, 0.8, 0, 0.6, 0, 0.3, 0, 4)]
    seen = struct.pack("<QddQ", 1, 1.5, 2.5, 2**64 - 1)
    taken = [struct.pack("<I7dI", *pose, 7) + f"r_{i}.png".encode() + b"\0" + seen for i, pose in enumerate(poses)]
    point = struct.pack("<Q3d3BdQ6I", 77, 1, 2, 3, 9, 8, 7, 0.5, 3, 1, 0, 4, 0, 9, 0)
    return {
        "cameras.bin": struct.pack("<Q", 1) + camera if cameras is None else cameras,
        "images.bin": struct.pack("<Q", 3) + b"".join(taken) if images is None else images,
        "points3D.bin": struct.pack("<Q", 1) + point if points is None else points,
    }


def write_binary(folder, **files):
    write_colmap(folder, None, None, None)
    for name, content in binary(**files).items():
        (folder / "sparse" / "0" / name).write_bytes(content)
    return folder


def test_binary_is_what_text_is(tmp_path):
    one, other = load(write_colmap(tmp_path / "text")), load(write_binary(tmp_path / "binary"))
    for a, b in zip(one.cameras, other.cameras, strict=True):
        np.testing.assert_array_equal(a.world_from_camera, b.world_from_camera)
        assert (a.focal, a.principal, a.lens) == (b.focal, b.principal, b.lens)
    np.testing.assert_array_equal(other.points, [[1, 2, 3]])


def test_binary_is_preferred(tmp_path):
    folder = write_binary(tmp_path / "set")
    for name in ("cameras", "images", "points3D"):
        (folder / "sparse" / "0" / f"{name}.txt").write_text("nothing")
    assert len(load(folder)) == 3


HUGE = struct.pack("<Q", 1 << 60)
FILES = binary()
CAMERA, IMAGES, POINT = (FILES[name] for name in ("cameras.bin", "images.bin", "points3D.bin"))
FAR = struct.pack("<I7dI", 1, *[math.nan] * 7, 7) + b"a\0" + bytes(8)
BAD_BINARY = {
    "no cameras": ({"cameras": b""}, "cameras.bin: is empty"),
    "2^60 cameras": ({"cameras": HUGE + CAMERA[8:]}, "declares 1,152,921,504,606,846,976 cameras but has room"),
    "2^60 images": ({"images": HUGE + IMAGES[8:]}, "declares 1,152,921,504,606,846,976 images but has room"),
    "2^60 points": ({"points": HUGE + POINT[8:]}, "declares 1,152,921,504,606,846,976 points but has room"),
    "2^60 observations": ({"images": IMAGES[:-32] + HUGE + IMAGES[-24:]}, "observations in image 9 but has room"),
    "2^60 tracks": ({"points": POINT[:-32] + HUGE + POINT[-24:]}, "images that see point 77 but has room"),
    "cameras cut": ({"cameras": CAMERA[:-5]}, "cameras.bin: ends amid camera 0 of 1"),
    "images cut": ({"images": IMAGES[:-70]}, "images.bin: ends amid image 2 of 3|name does not end"),
    "more behind": ({"cameras": CAMERA + b"x"}, "cameras.bin: has 1 bytes behind its end"),
    "camera twice": ({"cameras": struct.pack("<Q", 2) + CAMERA[8:] * 2}, "cameras.bin: camera 7 comes twice"),
    "image twice": ({"images": struct.pack("<Q", 6) + IMAGES[8:] * 2}, "images.bin: image 1 comes twice"),
    "point twice": ({"points": struct.pack("<Q", 2) + POINT[8:] * 2}, "points3D.bin: point 77 comes twice"),
    "a name without end": ({"images": struct.pack("<Q", 1) + IMAGES[8:72] + b"x" * 99}, "name does not end"),
    "a name of bytes": ({"images": IMAGES.replace(b"r_1", b"\xff\xfe1")}, "image 1 of 3: name is not UTF-8"),
    "not finite": ({"images": struct.pack("<Q", 1) + FAR}, "images.bin: image 1 has a number that is not finite"),
    "no images": ({"images": struct.pack("<Q", 0)}, "has no COLMAP model with images"),
    "no such camera": ({"cameras": CAMERA.replace(struct.pack("<Ii", 7, 4), struct.pack("<Ii", 8, 4))}, "has camera 7"),
    "of a model to come": (
        {"cameras": CAMERA.replace(struct.pack("<Ii", 7, 4), struct.pack("<Ii", 7, 99))},
        "camera 7: camera model number 99 is not read, want one of SIMPLE_PINHOLE",
    ),
}


@pytest.mark.parametrize("what", BAD_BINARY)
def test_binary_that_is_damaged_is_refused(what, tmp_path):
    files, said = BAD_BINARY[what]
    folder = write_binary(tmp_path / "set", **files)
    with pytest.raises(rm.RaymarchError, match=said) as caught:
        load(folder)
    assert "\n" not in str(caught.value)


def changed(text, old, new):
    assert old in text
    return text.replace(old, new)


BAD_TEXT = {
    "no camera line": ({"cameras": "7 OPENCV 8\n"}, "line 1: is '7 OPENCV 8', want camera, model"),
    "too few parameters": ({"cameras": "7 OPENCV 8 6 9 9 4 3\n"}, "OPENCV has 4 parameters, want 8"),
    "no number": ({"cameras": changed(COLMAP_CAMERAS, "9.5", "9,5")}, "line 2: parameters is '9,5 9 4.2"),
    "not finite": (
        {"cameras": changed(COLMAP_CAMERAS, "9.5", "inf")},
        "camera 7 has a number that is not finite",
    ),
    "camera twice": ({"cameras": COLMAP_CAMERAS * 2}, "line 4: camera 7 comes twice"),
    "image twice": ({"images": changed(COLMAP_IMAGES, "\n4 0.8", "\n1 0.8")}, "line 4: image 1 comes twice"),
    "no second lines": (
        {"images": "".join(line + "\n" for line in COLMAP_IMAGES.splitlines() if ".png" in line)},
        "line 2: is '4 0.8 0.6 0 0 0 -0.2 3.5 7 r_1.png', want x, y and point",
    ),
    "no name": ({"images": "1 1 0 0 0 0 0 3 7\n\n"}, "line 1: is '1 1 0 0 0 0 0 3 7', want image, quaternion"),
    "no rotation": ({"images": changed(COLMAP_IMAGES, "1 1 0 0 0", "1 0 0 0 0")}, "quaternion has length 0, want 1"),
    "no such camera": ({"images": changed(COLMAP_IMAGES, "7 r_1", "8 r_1")}, "image 4: has camera 8, which is not"),
    "upwards": (
        {"images": changed(COLMAP_IMAGES, "r_1.png", "../../../r_1.png")},
        "image 4: name '../../../r_1",
    ),
    "absolute": ({"images": changed(COLMAP_IMAGES, "r_1.png", "/etc/passwd")}, "name '/etc/passwd' is absolute"),
    "a point cut": ({"points": "1 0.1 0.2 0.3 9 8\n"}, "points3D.txt, line 1: is '1 0.1"),
    "a point's track cut": ({"points": "1 0.1 0.2 0.3 9 8 7 0.5 1\n"}, "pairs of what sees it"),
    "a point not finite": ({"points": "1 0.1 nan 0.3 9 8 7 0.5\n"}, "point 1 has a number that is not finite"),
    "a point twice": ({"points": "1 0 0 0 9 8 7 0.5\n" * 2}, "point 1 comes twice"),
    "another shape": (
        {"cameras": changed(COLMAP_CAMERAS, "8 6", "6 8")},
        "another shape; turn the image by a quarter or correct w, h",
    ),
    "of no size": ({"cameras": changed(COLMAP_CAMERAS, "8 6", "0 0")}, "r_0): w x h is 0 x 0 but the image has 8 x 6"),
    "a focal of 0": ({"cameras": changed(COLMAP_CAMERAS, "9.5 9", "0 0")}, "image 1 (r_0): focal"),
    "bytes": ({"cameras": "\0\1\2\3"}, "cameras.txt, line 1: is "),
    "far away": (
        {"images": changed(COLMAP_IMAGES, "0.1 0.2 3 7", "1e300 0.2 3 7")},
        "(r_0): world_from_camera",
    ),
}


@pytest.mark.parametrize("what", BAD_TEXT)
def test_text_that_is_damaged_is_refused(what, tmp_path):
    files, said = BAD_TEXT[what]
    refused(lambda: load(write_colmap(tmp_path / "set", **files)), said)


@pytest.mark.parametrize("number", UNREAD_COLMAP_MODELS)
def test_a_camera_model_that_is_not_read_is_refused_by_name(number, tmp_path):
    text = changed(COLMAP_CAMERAS, "OPENCV", UNREAD_COLMAP_MODELS[number])
    said = f"camera model {UNREAD_COLMAP_MODELS[number]!r} is not read, want one of SIMPLE_PINHOLE"
    refused(lambda: load(write_colmap(tmp_path / "text", text)), "cameras.txt, line 2", said, "; undistort")
    cameras = CAMERA.replace(struct.pack("<Ii", 7, 4), struct.pack("<Ii", 7, number))
    said = f"camera model {UNREAD_COLMAP_MODELS[number]} is not read"
    refused(lambda: load(write_binary(tmp_path / "binary", cameras=cameras)), "camera 7", said)


def test_a_long_line_is_refused_in_little_memory(tmp_path):
    folder = write_colmap(tmp_path / "set")
    with (folder / "sparse" / "0" / "images.txt").open("wb") as file:
        file.write(b"1 1 0 0 0 0 0 3 7 r_0.png\n")
        file.truncate(1 << 30)
    refused(lambda: load(folder), "has a line over 4194304 bytes")


# Where things are.


def test_the_largest_model_is_taken_and_named(tmp_path, caplog):
    folder = write_colmap(tmp_path / "set", images="\n".join(COLMAP_IMAGES.split("\n")[:3]))
    assert len(load(folder)) == 1
    assert "models" not in caplog.text
    other = write_colmap(tmp_path / "other", model="1")
    (other / "1").rename(folder / "sparse" / "1")
    assert len(load(folder)) == 3
    assert "of 2 models that with most images is taken, sparse/1 with 3 (others: sparse/0 1)" in caplog.text
    (folder / "sparse" / "0" / "images.txt").write_text("1 2 3")
    assert len(load(folder)) == 3
    assert "a model is left out: " in caplog.text


PLACES = dict.fromkeys(["", "sparse", "sparse/0", "colmap/sparse/0"], "images") | {"dense/0/sparse": "dense/0/images"}


@pytest.mark.parametrize("place", PLACES)
def test_a_model_is_found_where_tools_put_it(place, tmp_path):
    folder = write_colmap(tmp_path / "set", model=place)
    if PLACES[place] != "images":
        (folder / "images").rename(folder / PLACES[place])
    assert load(folder).names == ("r_0", "r_1", "r_2")
    assert [reader.name for reader in READERS if reader.detect(folder)] == ["COLMAP"]


def test_the_folder_of_the_model_stands_for_the_set(tmp_path):
    folder = write_colmap(tmp_path / "set")
    assert len(load(folder / "sparse" / "0")) == 3
    refused(lambda: load(folder / "sparse"), "looks like a folder of image sets", "; want one of the folders in it")


def test_another_layout_goes_before_the_model_that_it_was_made_from(tmp_path):
    folder = write_colmap(tmp_path / "set")
    write_transforms(tmp_path / "other")
    (tmp_path / "other" / "transforms.json").rename(folder / "transforms.json")
    assert load(folder).source.endswith("transforms.json")
    assert load(folder, reader="COLMAP").source.endswith("images.txt")


@pytest.mark.parametrize("name", ["input", "images_2", "images_8", "sparse/0/images"])
def test_images_are_found_where_tools_put_them(name, tmp_path):
    folder = write_colmap(tmp_path / "set")
    (folder / "images").rename(folder / name)
    assert load(folder).names == ("r_0", "r_1", "r_2")


def test_images_that_tools_made_smaller_are_taken_only_where_no_others_are(tmp_path):
    folder = write_colmap(tmp_path / "set", changed(COLMAP_CAMERAS, "8 6 9.5 9 4.2 2.9", "31 23 36 34 16 11"))
    camera = load(folder).cameras[0]
    assert camera.focal == pytest.approx((36 * 8 / 31, 34 * 6 / 23))
    assert camera.principal == pytest.approx((16 * 8 / 31, 11 * 6 / 23))
    (folder / "images").rename(folder / "images_4")
    (folder / "images").mkdir()
    for i in range(3):
        Image.fromarray(random_image(3, 23, 31, seed=i)).save(folder / "images" / f"r_{i}.png")
    assert load(folder).cameras[0].focal == (36, 34)


@pytest.mark.parametrize("suffix", [".png", ".tiff"])
@pytest.mark.parametrize("wide", [8, 6])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_the_camera_and_the_mask_of_a_photograph_that_exif_turns_are_turned_with_it(
    orientation, wide, suffix, tmp_path
):
    """COLMAP's are those of the sensor, also where the image's sides do not tell: turned by half, or square."""
    cameras, images = COLMAP_CAMERAS.replace(" 8 6 ", f" {wide} 6 "), COLMAP_IMAGES.replace(".png", suffix)
    assert f" {wide} 6 " in cameras and images.count(suffix) == 3
    folder = write_colmap(tmp_path / "set", cameras, images)
    for old in (folder / "images").iterdir():
        old.unlink()
    (folder / "masks").mkdir()
    pixels = [random_image(3, 6, wide, seed=i) for i in range(3)]
    masks = [np.random.default_rng(i).uniform(size=(6, wide)) < 0.5 for i in range(3)]
    for i in range(3):
        Image.fromarray(pixels[i]).save(folder / "images" / f"r_{i}{suffix}")
        Image.fromarray(np.uint8(255) * masks[i]).save(folder / "masks" / f"r_{i}{suffix}.png")
    flat = load(folder).cameras
    for i in range(3):
        image = Image.fromarray(pixels[i])
        exif = image.getexif()
        exif[0x0112] = orientation
        image.save(folder / "images" / f"r_{i}{suffix}", exif=exif)
    width, height = (wide, 6) if orientation == 3 else (6, wide)
    v, u = np.mgrid[:height, :width] + 0.5
    # where upright pixels are on the sensor
    before = {3: (wide - u, 6 - v), 6: (v, 6 - u), 8: (wide - v, u)}[orientation]
    index = (before[1] // 1 * wide + before[0] // 1).astype(int).ravel()
    views = load(folder)
    for i, camera in enumerate(views.cameras):
        assert (camera.width, camera.height) == (width, height)
        ours, sensor = camera.rays().direction, flat[i].rays(index).direction
        np.testing.assert_allclose(ours, sensor, atol=1e-9)
        np.testing.assert_array_equal(views.image(i).reshape(-1, 3), pixels[i].reshape(-1, 3)[index])
        np.testing.assert_array_equal(views.mask(i).ravel(), masks[i].ravel()[index])


@pytest.mark.parametrize("orientation", [2, 4, 5, 7])
def test_a_photograph_that_exif_mirrors_is_refused_for_no_camera_of_the_sensor_shows_it(orientation, tmp_path):
    cameras = COLMAP_CAMERAS.replace(" 8 6 ", " 6 6 ")
    folder = write_colmap(tmp_path / "set", cameras)
    for i in range(3):
        image = Image.fromarray(random_image(3, 6, 6, seed=i))
        exif = image.getexif()
        exif[0x0112] = orientation if i == 1 else 1
        image.save(folder / "images" / f"r_{i}.png", exif=exif)
    refused(lambda: load(folder), "r_1", f": EXIF says that the image is mirrored ({orientation}), and its camera")


@pytest.mark.parametrize("listed", ["r_0.PNG", "r_0"])
def test_images_are_found_whatever_the_letters_of_their_suffix(listed, tmp_path):
    names = COLMAP_IMAGES.replace("r_0.png", listed).replace("r_1.png", "r_1.PNG").replace("r_2.png", "r_2.PNG")
    assert load(write_colmap(tmp_path / "set", images=names)).names == ("r_0", "r_1", "r_2")


def test_a_model_without_images_is_told_so_in_a_line(tmp_path):
    folder = write_colmap(tmp_path / "set")
    for image in (folder / "images").iterdir():
        image.unlink()
    said = "has a COLMAP model but none of its 3 images (r_0.png, r_1.png, r_2.png), want them in"
    refused(lambda: load(folder), f"{folder}: {said}", "; put them there")
    (folder / "images").rmdir()
    refused(lambda: load(folder), said)


@pytest.mark.parametrize("name", ["r\n0.png", "\x1b[31mr.png", "r\u2028.png", "/r\n.png", "../../r\n.png"])
def test_a_name_with_newlines_or_escapes_is_told_in_one_line(tmp_path, name):
    images = IMAGES.replace(b"r_0.png", name.encode())
    folder = write_binary(tmp_path / "set", images=images)
    if not name.startswith(("/", "..")):
        for image in (folder / "images").iterdir():
            image.unlink()
    with pytest.raises(rm.RaymarchError) as caught:
        load(folder)
    assert str(caught.value).isprintable()


def test_images_that_are_missing_are_left_out_before_any_is_held_out(tmp_path, caplog):
    folder = write_colmap(tmp_path / "set")
    (folder / "images" / "r_0.png").unlink()
    assert load(folder, "test").names == ("r_1",)
    assert load(folder, "train").names == ("r_2",)
    assert "1 of 3 images are missing, going on without them (r_0.png)" in caplog.text


def test_names_may_have_spaces_and_folders(tmp_path):
    folder = write_colmap(tmp_path / "set", images=changed(COLMAP_IMAGES, "r_1.png", "left eye/my r 1.png"))
    (folder / "images" / "left eye").mkdir()
    (folder / "images" / "r_1.png").rename(folder / "images" / "left eye" / "my r 1.png")
    assert load(folder).names == ("my r 1", "r_0", "r_2")


def test_masks_beside_the_images_are_read(tmp_path, caplog):
    folder = write_colmap(tmp_path / "set")
    mask = np.arange(48).reshape(6, 8) % 5 > 0
    (folder / "masks").mkdir()
    for name in ("r_0.png.png", "r_2.png"):
        Image.fromarray(mask.astype(np.uint8) * 255).save(folder / "masks" / name)
    views = load(folder)
    np.testing.assert_array_equal(views.mask(0), mask)
    np.testing.assert_array_equal(views.mask(2), mask)
    assert views.mask(1) is None
    assert "2 of 3 images have a mask in " in caplog.text


@pytest.mark.parametrize(("names", "said"), [(["r_0_mask.png", "R_1.jpg.png"], True), ([], False)])
def test_masks_that_are_of_no_image_are_told(names, said, tmp_path, caplog):
    folder = write_colmap(tmp_path / "set")
    (folder / "masks").mkdir()
    for name in names:
        Image.new("L", (8, 6)).save(folder / "masks" / name)
    assert load(folder).masks is None or not any(load(folder).mask(i) is not None for i in range(3))
    assert ("none of its files is the mask of an image; name them as COLMAP does, r_0.png.png" in caplog.text) == said


@pytest.mark.parametrize("follow_links", [False, True])
def test_masks_of_images_in_the_set_s_own_folder_are_in_it_too(follow_links, tmp_path):
    """And not beside the set, in a folder that may be of another one."""
    folder = write_colmap(tmp_path / "set")
    for image in sorted((folder / "images").iterdir()):
        image.rename(folder / image.name)
    mask = np.arange(48).reshape(6, 8) % 5 > 0
    for masks, name in ((folder / "masks", "r_0.png.png"), (tmp_path / "masks", "r_1.png.png")):
        masks.mkdir()
        Image.fromarray(mask.astype(np.uint8) * 255).save(masks / name)
    views = load(folder, follow_links=follow_links)
    np.testing.assert_array_equal(views.mask(0), mask)
    assert views.mask(1) is None


@pytest.mark.skipif("os.name == 'nt'", reason="links need a privilege on Windows")
def test_a_link_of_the_images_leads_out_only_if_told_so(tmp_path):
    folder = write_colmap(tmp_path / "set")
    (folder / "images").rename(tmp_path / "elsewhere")
    (folder / "images").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    refused(lambda: load(folder), "leads out of", "by a link", "--follow-links")
    assert len(load(folder, follow_links=True)) == 3


# Points.


def test_points_of_short_tracks_and_large_errors_are_left_out(tmp_path):
    good = [f"{i} {i / 100} 0 0 9 8 7 {0.5 + i / 100} 1 0 4 0 9 0" for i in range(60)]
    short = [f"{100 + i} 50 50 50 9 8 7 0.01 1 0 4 0" for i in range(20)]
    wrong = [f"{200 + i} -50 0 0 9 8 7 9.5 1 0 4 0 9 0" for i in range(5)]
    points = load(write_colmap(tmp_path / "set", points="\n".join([*short, *good, *wrong]))).points
    np.testing.assert_allclose(points, [[i / 100, 0, 0] for i in range(60)])


@pytest.mark.parametrize("points", [None, "", "# nothing\n", "1 1e12 0.2 0.3 9 8 7 0.5 1 0 4 0 9 0\n"])
def test_a_model_may_be_without_points(points, tmp_path):
    assert load(write_colmap(tmp_path / "set", points=points)).points is None


def test_a_model_of_few_points_keeps_them_all(tmp_path):
    assert COLMAP_POINTS.count("\n") == 3
    assert len(load(write_colmap(tmp_path / "set")).points) == 2


def test_ten_thousand_images_are_parsed_in_a_moment(tmp_path):
    """And no more than a set may have."""
    many = b"".join(struct.pack("<I7dI", i, 1, *[0] * 6, 7) + b"a.png\0" + bytes(8) for i in range(20_001))
    (tmp_path / "images.bin").write_bytes(struct.pack("<Q", 20_001) + many)
    refused(lambda: colmap_binary.read_images(tmp_path / "images.bin"), "has 20,001 frames, want at most 20,000")
    (tmp_path / "images.bin").write_bytes(struct.pack("<Q", 10_000) + many[: len(many) // 20_001 * 10_000])
    assert len(colmap_binary.read_images(tmp_path / "images.bin")) == 10_000

"""Laws of the readers of foreign layouts: rays are those of the cameras that a set was written from, to 1e-6 pixel.

The writers (`tests/layouts.py`) spell each layout out by themselves. Damaged sets are one line, and never a crash.
"""

import logging
import re
import time
import zipfile
from dataclasses import replace

import layouts
import numpy as np
import pytest
from layouts import alike, centred, known, picture
from PIL import Image
from sets import write_colmap
from skips import require_shared
from whole import whole

import raymarch as rm
from raymarch.fitting.plan.survey import corners_of_bounds
from raymarch.io.files import strict
from raymarch.io.image_sets.colmap import text as colmap_text
from raymarch.io.image_sets.load import READERS
from raymarch.io.image_sets.reader import read_views, reader_of

BROWN = {"k1": 0.05, "k2": -0.02, "k3": 0.01, "p1": 0.003, "p2": -0.002}
BROWN8 = {**BROWN, "k4": 0.004}
FISH = {"k1": 0.03, "k2": -0.01, "k3": 0.005, "k4": -0.001}

SETS = {  # cameras, and how they are written
    "LLFF": (centred(alike(known())), layouts.llff, {}),
    "LLFF, reduced": (centred(alike(known(size=(32, 24)))), layouts.llff, {"inner": "images_4", "reduced": 4}),
    "Middlebury": (known(), layouts.middlebury, {}),
    "DTU": (known(), layouts.dtu, {}),
    "DTU, no masks": (known(), layouts.dtu, {"masks": False}),
    "NSVF": (known(), layouts.nsvf, {}),
    "NSVF, two parts": (known(), layouts.nsvf, {"parts": "000000001"}),
    "NSVF, no parts": (known(), layouts.nsvf, {"parts": ""}),
    "NSVF, by lines": (alike(known()), layouts.nsvf, {"lines": True}),
    "Polycam": (known(), layouts.polycam, {"inner": "keyframes"}),
    "Polycam, corrected": (known(), layouts.polycam, {"inner": "keyframes", "kind": "corrected_"}),
    "Record3D": (known(), layouts.record3d, {}),
    "Record3D, each": (known(), layouts.record3d, {"per_frame": True}),
    "Metashape": (known(), layouts.metashape, {}),
    "Metashape, local": (known(lens=BROWN), layouts.metashape, {"placed": False, "labels": ".PNG"}),
    "Metashape, one chunk": (known(lens=BROWN8), layouts.metashape, {"component": False}),
    "Metashape, fisheye": (known(lens=FISH, fisheye=True), layouts.metashape, {}),
    "RealityCapture": (alike(known()), layouts.realitycapture, {}),
    "RealityCapture, lens": (alike(known(lens=BROWN)), layouts.realitycapture, {}),
    "RealityCapture, four": (alike(known(lens=BROWN8)), layouts.realitycapture, {}),
}
EACH = pytest.mark.parametrize("kind", SETS)
FIRSTS = {kind.partition(",")[0]: kind for kind in reversed(SETS)}
FIRST = pytest.mark.parametrize("kind", FIRSTS.values(), ids=list(FIRSTS))


def write(kind, folder):
    cameras, writer, how = SETS[kind]
    folder.mkdir()
    return writer(folder, cameras, **how), cameras


def number_of(name: str) -> int:
    return int(re.findall(r"\d+", name)[-1]) % 1000


def refused(folder, message, split="train", **how):
    with pytest.raises(rm.RaymarchError, match=message) as caught:
        rm.load_views(folder, split, **how)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value) or "want" in str(caught.value)


# What is read.


@EACH
def test_rays_are_those_of_the_known_cameras(kind, tmp_path):
    folder, cameras = write(kind, tmp_path / "set")
    views = rm.load_views(folder, "all")
    assert [number_of(name) for name in views.names] == list(range(9))
    for camera, truth in zip(views.cameras, cameras, strict=True):
        rays = camera.rays()
        pixels = truth.pixels(rays.origin + 3.0 * rays.direction)
        shown = (camera.width, camera.height)
        pixels *= np.array(shown) / truth.size
        v, u = np.divmod(np.arange(shown[0] * shown[1]), shown[0])
        np.testing.assert_allclose(pixels, np.stack([u, v], axis=1) + 0.5, atol=1e-6)
        np.testing.assert_allclose(camera.position, truth.centre, atol=1e-9)


@EACH
def test_images_go_with_their_cameras(kind, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    views = rm.load_views(folder, "all")
    for i in range(9):
        image = views.image(i)
        if "Polycam" in kind:  # JPEG
            assert image.shape == (6, 8, 3)
            continue
        channels = 4 if "NSVF" in kind else 3
        np.testing.assert_array_equal(image[..., :channels], picture(i, (8, 6), channels))


@EACH
def test_a_split_is_the_set_s_own_or_every_eighth(kind, tmp_path, caplog):
    folder, _ = write(kind, tmp_path / "set")
    found = {split: [number_of(n) for n in rm.load_views(folder, split).names] for split in ("train", "val", "test")}
    if kind in ("NSVF", "NSVF, by lines"):
        assert found == {"train": [0, 1, 2, 3, 4], "val": [5, 6], "test": [7, 8]}
    elif kind == "NSVF, two parts":
        assert found == {"train": list(range(8)), "val": [8], "test": [8]}
    else:
        assert found == {"train": [1, 2, 3, 4, 5, 6, 7], "val": [0, 8], "test": [0, 8]}
        assert "in 8 is held out" in caplog.text
        assert len(rm.load_views(folder, "test", holdout=3)) == 3
    refused(folder, "no split 'nonsense'", split="nonsense")


@EACH
def test_images_made_smaller_keep_their_rays(kind, tmp_path):
    folder, cameras = write(kind, tmp_path / "set")
    small = rm.load_views(folder, "all", downscale=2)
    assert set(small.sizes) == {(4, 3)}
    for camera, truth in zip(small.cameras, cameras, strict=True):
        rays = camera.rays([5])
        want = np.array([1.5, 1.5]) * truth.size / (4, 3)
        np.testing.assert_allclose(truth.pixels(rays.origin + 3 * rays.direction), [want], atol=2e-6)


@EACH
def test_one_reader_claims_a_set(kind, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    assert [reader.name for reader in READERS if reader.detect(folder)] == [kind.partition(",")[0]]


@FIRST
def test_a_colmap_model_beside_a_set_is_read_in_place_of_llff_alone(kind, tmp_path):
    """LLFF's table was made from it, without lens and points; what other layouts have it lacks."""
    folder, _ = write(kind, tmp_path / "set")
    write_colmap(tmp_path / "colmap")
    (tmp_path / "colmap" / "sparse").rename(folder / "sparse")
    (folder / "images").mkdir(exist_ok=True)
    (tmp_path / "colmap" / "images" / "r_1.png").rename(folder / "images" / "r_1.png")
    assert reader_of(folder, READERS).name == ("COLMAP" if kind.startswith("LLFF") else kind.partition(",")[0])


@pytest.mark.parametrize("kind", ["LLFF", "LLFF, reduced"])
def test_a_colmap_model_without_any_of_its_images_stands_back_for_llff_s_table(kind, tmp_path):
    """As where images were made smaller and numbered, and the photographs that COLMAP saw were not sent along."""
    folder, cameras = write(kind, tmp_path / "set")
    write_colmap(tmp_path / "colmap")
    (tmp_path / "colmap" / "sparse").rename(folder / "sparse")
    views = rm.load_views(folder, "all")
    assert views.source.endswith("poses_bounds.npy") and len(views) == 9
    for camera, truth in zip(views.cameras, cameras, strict=True):
        np.testing.assert_allclose(camera.position, truth.centre, atol=1e-9)
    refused(folder, "has a COLMAP model but none of its 3 images", reader="COLMAP")
    (folder / "sparse" / "0" / "images.txt").write_text("1 2 3")  # which may have seen what is there
    assert reader_of(folder, READERS).name == "COLMAP"


def test_a_model_beside_llff_s_table_is_not_read_beyond_its_first_image_that_is_there(tmp_path, monkeypatch):
    """To find out whose set it is: a text of a large scene takes seconds."""
    folder, _ = write("LLFF", tmp_path / "set")
    write_colmap(tmp_path / "colmap")
    (tmp_path / "colmap" / "sparse").rename(folder / "sparse")
    (tmp_path / "colmap" / "images" / "r_0.png").rename(folder / "images" / "r_0.png")
    monkeypatch.setattr(colmap_text, "_require_observations", lambda _: pytest.fail("it is read on"))
    assert reader_of(folder, READERS).name == "COLMAP"


BOXES = {
    "Middlebury": [(-1.5, -1, -0.25), (1, 2, 0.5)],
    "DTU": [(-1, -1.5, -3), (3, 2.5, 1)],
    "NSVF": [(-1, -2, -3), (1, 2, 3.5)],
}


@FIRST
def test_a_set_s_own_box_is_kept(kind, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    box = rm.load_views(folder).box
    if kind in BOXES:
        np.testing.assert_allclose(box, BOXES[kind])
    else:
        assert box is None


def test_a_readme_without_a_box_is_no_box(tmp_path):
    folder, _ = write("Middlebury", tmp_path / "set")
    (folder / "README.txt").write_text("The bounding box is (1 2 3) (0 0)")
    assert rm.load_views(folder).box is None


@pytest.mark.parametrize("split", ["train", "test", "all"])
def test_bounds_of_llff_are_the_planes_of_each_view(split, tmp_path):
    """In parts of the set too; and as points, nine on either plane, the image's corners among them."""
    folder, cameras = write("LLFF", tmp_path / "set")
    views = rm.load_views(folder, split)
    assert views.points is None
    np.testing.assert_array_equal(views.bounds, [(1.5, 6.5)] * len(views))
    np.testing.assert_array_equal(views[1:].bounds, views.bounds[1:])
    points = corners_of_bounds(rm.load_views(folder, "all"))
    assert points.shape == (9 * 18, 3)
    depth = (cameras[3].rotation @ points[54:72].T + cameras[3].translation[:, None])[2]
    assert sorted(np.round(depth, 9)) == [1.5] * 9 + [6.5] * 9
    pixels = cameras[3].pixels(points[54:72])
    np.testing.assert_allclose([pixels.min(0), pixels.max(0)], [(0, 0), (8, 6)], atol=1e-9)


def test_silhouettes_of_dtu_are_alpha(tmp_path):
    folder, _ = write("DTU", tmp_path / "set")
    views = rm.load_views(folder, "all")
    assert views.has_alpha and views.masks is None
    for i in range(9):
        want = np.zeros((6, 8), np.uint8)
        want[1:3, i % 4 : i % 4 + 3] = 255
        np.testing.assert_array_equal(views.image(i)[..., 3], want)


def test_edges_of_corrected_polycam_images_are_masked(tmp_path):
    folder = tmp_path / "set"
    layouts.polycam(folder, known(2, size=(200, 160)), kind="corrected_")
    views = rm.load_views(folder, "all")
    want = np.zeros((160, 200), bool)
    want[15:-15, 15:-15] = True
    np.testing.assert_array_equal(views.mask(1), want)
    assert rm.load_views(folder, "all", downscale=2).mask(0).sum() == (80 - 16) * (100 - 16)


def test_corrected_polycam_images_come_first(tmp_path):
    folder = tmp_path / "set"
    layouts.polycam(folder, known(2, seed=1), inner="keyframes")
    layouts.polycam(folder, known(3, seed=2), inner="keyframes", kind="corrected_")
    assert len(rm.load_views(folder, "all")) == 3


@pytest.mark.parametrize("kind", ["NSVF", "NSVF, no parts", "Polycam", "Middlebury"])
def test_what_macos_lays_beside_files_is_none_of_a_set(kind, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    files = [file for file in folder.rglob("*") if file.is_file()]
    for file in files:
        file.with_name(f"._{file.name}").write_bytes(b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X")
    views = rm.load_views(folder, "all")
    assert reader_of(folder, READERS).name == kind.partition(",")[0]
    assert [number_of(name) for name in views.names] == list(range(9))


def test_middlebury_images_have_black_behind_them(tmp_path):
    folder, _ = write("Middlebury", tmp_path / "set")
    assert rm.load_views(folder).background == (0, 0, 0)
    assert rm.load_views(folder, background="white").background == (1, 1, 1)


@pytest.mark.parametrize("digits", [2, 3])
def test_frame_numbers_are_no_splits_of_an_nsvf_set(digits, tmp_path, caplog):
    """Only `0_`, `1_` and `2_` name one: numbers from 0 to 2 lead with the same figures."""
    folder = layouts.nsvf(tmp_path / "set", known(24), parts="")
    for file in [*folder.glob("pose/*"), *folder.glob("rgb/*")]:
        file.rename(file.with_name(file.stem[-digits:] + file.suffix))
    assert rm.load_views(folder, "test").names == tuple(f"{i:0{digits}}" for i in (0, 8, 16))
    assert "has no splits of its own" in caplog.text


def test_record3d_images_come_as_they_were_taken(tmp_path):
    cameras = known(12)
    views = rm.load_views(layouts.record3d(tmp_path / "set", cameras), "all", reader="Record3D")
    assert [int(name) for name in views.names] == list(range(12))
    assert [int(name) for name in rm.load_views(tmp_path / "set", "test", holdout=5).names] == [0, 5, 10]


def test_record3d_images_are_ordered_by_number(tmp_path):
    folder = tmp_path / "set"
    cameras = known(12)
    layouts.record3d(folder, cameras)
    views = rm.load_views(folder, "all", reader="Record3D")
    for name, camera in zip(views.names, views.cameras, strict=True):
        np.testing.assert_allclose(camera.position, cameras[int(name)].centre, atol=1e-9)


@pytest.mark.parametrize("kind", ["Metashape", "RealityCapture"])
def test_a_world_far_from_its_origin_is_moved_with_a_note(kind, tmp_path, caplog):
    cameras, writer, how = SETS[kind]
    far = np.array([612345.0, 5812345.0, 120.0])
    cameras = [replace(one, translation=one.translation - one.rotation @ far) for one in cameras]
    writer(tmp_path, cameras, **how)
    views = rm.load_views(tmp_path, "all")
    assert "so the world is moved by -6" in caplog.text
    moved = [truth.centre - camera.position for truth, camera in zip(cameras, views.cameras, strict=True)]
    np.testing.assert_allclose(moved, np.broadcast_to(moved[0], (9, 3)), atol=1e-6)
    assert max(np.abs(camera.position).max() for camera in views.cameras) < 100


def test_a_principal_point_of_photoscan_before_1_2_is_from_the_corner(tmp_path):
    """It has fx and fy, and cx and cy in pixels of the image."""
    folder, _ = write("Metashape", tmp_path / "set")
    file, before = folder / "cameras.xml", rm.load_views(folder, "all").cameras[0]
    text = re.sub(r"<b[12]>[^<]*</b[12]>", "", file.read_text())
    text = re.sub(r"<f>[^<]*</f>", "<fx>{}</fx><fy>{}</fy>".format(*before.focal), text)
    for axis, at in zip("xy", before.principal, strict=True):
        text = re.sub(f"<c{axis}>[^<]*</c{axis}>", f"<c{axis}>{at}</c{axis}>", text)
    file.write_text(text)
    after = rm.load_views(folder, "all").cameras[0]
    np.testing.assert_allclose([after.focal, after.principal], [before.focal, before.principal], rtol=1e-12)


def test_cameras_of_other_components_are_left_out(tmp_path, caplog):
    folder, _ = write("Metashape", tmp_path / "set")
    file = folder / "cameras.xml"
    file.write_text(
        file.read_text().replace('id="3" sensor_id="0" component_id="0"', 'id="3" sensor_id="0" component_id="1"')
    )
    assert "DSC 0003" not in rm.load_views(folder, "all").names
    assert "1 of 10 cameras are of smaller components and left out" in caplog.text
    assert "1 of 10 cameras are not aligned and left out" in caplog.text


NAMED = pytest.mark.parametrize("kind", ["Metashape", "Metashape, local", "RealityCapture"])  # by stems, by whole names


@NAMED
@pytest.mark.parametrize("beside", ["masks", "Mask"])
def test_a_mask_is_not_taken_for_the_photograph_of_its_name(kind, beside, tmp_path, caplog):
    folder, _ = write(kind, tmp_path / "set")
    photographs = next(path for path in (folder / "photos", folder / "images") if path.is_dir())
    photographs.rename(folder / "shots")
    for i, file in enumerate(sorted((folder / "shots").iterdir())):
        layouts.draw(folder / beside / file.name, 50 + i, (8, 6))
    views = rm.load_views(folder, "all")
    for i in range(9):
        np.testing.assert_array_equal(views.image(i), picture(i))
    assert "several files" not in caplog.text


@NAMED
def test_of_several_files_of_a_name_that_in_the_folder_with_most_is_taken_and_told(kind, tmp_path, caplog):
    folder, _ = write(kind, tmp_path / "set")
    photographs = next(path for path in (folder / "photos", folder / "images") if path.is_dir())
    photographs.rename(folder / "shots")
    name = sorted((folder / "shots").iterdir())[3].name
    layouts.draw(folder / "a" / name, 50, (8, 6))
    views = rm.load_views(folder, "all")
    np.testing.assert_array_equal(views.image(3), picture(3))
    said = f"1 names are of several files each, of which the first is taken ({name[:8]}"
    assert said in caplog.text and f": shots/{name}, a/{name})" in caplog.text


@NAMED
def test_what_lies_in_images_goes_before_a_folder_that_has_one_file_more(kind, tmp_path, caplog):
    """As that of depth maps has as soon as one photograph is missing."""
    folder, _ = write(kind, tmp_path / "set")
    photographs = next(path for path in (folder / "photos", folder / "images") if path.is_dir())
    photographs.rename(folder / "images")
    files = sorted((folder / "images").iterdir())
    for i, file in enumerate(files):
        layouts.draw(folder / "depth" / file.name, 50 + i, (8, 6))
    files[3].unlink()
    views = rm.load_views(folder, "all")
    numbers = [number_of(name) for name in views.names]
    for i in {*numbers} - {3}:
        np.testing.assert_array_equal(views.image(numbers.index(i)), picture(i))
    assert len(views) == 9 and "8 names are of several files each, of which the first is taken" in caplog.text


def test_photographs_without_a_camera_do_not_tell_in_which_folder_the_others_are(tmp_path):
    folder, _ = write("Metashape", tmp_path / "set")
    (folder / "photos").rename(folder / "shots")
    files = sorted((folder / "shots").iterdir())
    for i, file in enumerate([*files[1:], folder / "shots" / "DSC 0099.png"]):  # which was not aligned
        layouts.draw(folder / "a" / file.name, 50 + i, (8, 6))
    views = rm.load_views(folder, "all")
    for i in range(9):
        np.testing.assert_array_equal(views.image(i), picture(i))


@NAMED
def test_cameras_of_one_name_are_left_out_where_nothing_tells_whose_picture_is_whose(kind, tmp_path, caplog):
    """As of two flights of a drone that both count from 1: one picture for both would be wrong for one of them."""
    folder, _ = write(kind, tmp_path / "set")
    photographs = next(path for path in (folder / "photos", folder / "images") if path.is_dir())
    table = next(file for file in folder.iterdir() if file.suffix in (".xml", ".csv"))
    table.write_text(table.read_text().replace("0005", "0003"))
    name = sorted(photographs.iterdir())[3].name
    views = rm.load_views(folder, "all")  # of one file there is nothing to tell apart
    assert len(views) == 9 and "list the same image" in caplog.text
    layouts.draw(folder / "second" / name, 5, (8, 6))
    views = rm.load_views(folder, "all")
    assert [number_of(name) for name in views.names] == [0, 1, 2, 4, 6, 7, 8]
    assert f"1 names are of several cameras and of several files, and left out ({name[:8]}" in caplog.text
    table.write_text(re.sub(r"(DSC |IMG_)000\d", r"\g<1>0003", table.read_text()))
    refused(folder, "each name is of several cameras and of several files", split="all")


@FIRST
def test_missing_images_are_left_out_or_their_count_is_told(kind, tmp_path, caplog):
    """Left out where cameras name their images; where only their order pairs them a count that differs is refused."""
    folder, _ = write(kind, tmp_path / "set")
    images = sorted(
        file for file in folder.rglob("*") if file.suffix in (".png", ".jpg") and file.parent.name != "mask"
    )
    images[4].unlink()
    if kind in ("LLFF", "DTU", "Record3D"):
        refused(folder, "has 9 (poses|cameras) but .* 8 images")
        return
    assert len(rm.load_views(folder, "all")) == 8
    assert "1 of 9 images are missing" in caplog.text


def test_images_without_a_pose_are_told(tmp_path, caplog):
    folder, _ = write("NSVF", tmp_path / "set")
    (folder / "pose" / "0_0003.txt").unlink()
    assert len(rm.load_views(folder)) == 4
    assert "1 images in rgb have no pose, going on without them (0_0003)" in caplog.text


def test_masks_that_are_too_few_are_told(tmp_path):
    folder, _ = write("DTU", tmp_path / "set")
    (folder / "mask" / "000.png").unlink()
    refused(folder, "has 9 cameras but .*mask 8 masks")


def test_the_temple_is_read():
    views = rm.load_views(require_shared("data/temple_sparse/templeSR_par.txt").parent)
    assert len(views) == 14 and views.sizes[0] == (640, 480)
    np.testing.assert_allclose(views.box, [(-0.073568, 0.021728, -0.012445), (0.028855, 0.181892, 0.062736)])
    corners = np.stack(np.meshgrid(*views.box.T, indexing="ij"), -1).reshape(-1, 3)
    for i, camera in enumerate(views.cameras):  # the box is about what is bright
        pixels, depth = camera.project(corners)
        v, u = np.nonzero(views.image(i).max(-1) > 60)
        low, high = np.percentile(np.stack([u, v], 1), (1, 99), axis=0)
        assert depth.min() > 0
        assert (pixels.min(0) < low + 12).all() and (pixels.max(0) > high - 12).all()


# What is refused.

CHANGES = {  # file, what is replaced in it, by what, and what is said
    "a count that is wrong": ("Middlebury", "temple_par.txt", r"^9\n", "8\n", "line 1 says 8 images, 9 follow"),
    "a count of 2^60": ("Middlebury", "temple_par.txt", r"^9\n", f"{1 << 60}\n", "line 1: is '1152921504606846976'"),
    "a number too few": ("Middlebury", "temple_par.txt", r" \S+\n$", "\n", "line 10"),
    "a number that is none": ("Middlebury", "temple_par.txt", r"\S+\n$", "nan\n", "line 10, number 21 is nan"),
    "infinity": ("Middlebury", "temple_par.txt", r"\S+\n$", "inf\n", "number 21 is inf"),
    "1e999": ("Middlebury", "temple_par.txt", r"\S+\n$", "1e999\n", "number 21 is 1e999"),
    "1_0": ("Middlebury", "temple_par.txt", r"\S+\n$", "1_0\n", "number 21 is '1_0'"),
    "a name with ..": ("Middlebury", "temple_par.txt", "temple0003.png", "../temple0003.png", "leads out of"),
    "an absolute name": ("Middlebury", "temple_par.txt", "temple0003.png", "/etc/passwd", "is absolute"),
    "a label with ..": ("Metashape", "cameras.xml", "DSC 0003", "../../DSC", "leads out of"),
    "an absolute name in CSV": ("RealityCapture", "cameras.csv", "IMG_0003.png", "C:\\\\x\\\\y.png", "is absolute"),
    "an entity": ("Metashape", "cameras.xml", "<document", '<!DOCTYPE a [<!ENTITY b "c">]><document', "document type"),
    "no scale": ("Metashape", "cameras.xml", "<scale>4.0", "<scale>0", "scale is 0"),
    "another lens": ("Metashape", "cameras.xml", 'n type="frame"', 'n type="spherical"', "is of type 'spherical'"),
    "b2": ("Metashape", "cameras.xml", "<b1>", "<b2>0.5</b2><b1>", "has b2"),
    "no transforms": ("Metashape", "cameras.xml", "transform>", "x>", "none of 10 cameras is aligned"),
    "a truncated XML": ("Metashape", "cameras.xml", r"</cameras>[\s\S]*", "", "is not XML"),
    "a column too many": ("RealityCapture", "cameras.csv", r"\n$", ",5\n", "has 17 columns, the first line 16"),
    "no number in CSV": ("RealityCapture", "cameras.csv", r"0\.0\n$", "x\n", "line 10.*t2 is 'x'"),
    "no rows": ("RealityCapture", "cameras.csv", r"\n[\s\S]*$", "\n", "has no cameras"),
    "a null character": ("RealityCapture", "cameras.csv", "IMG_0003", "IMG\0", "null characters"),
    "no focal": ("Polycam", "keyframes/cameras/7003.json", '"fx"', '"gx"', "fx is missing"),
    "NaN in JSON": ("Polycam", "keyframes/cameras/7003.json", '"fx": [^,]*', '"fx": NaN', "has the number NaN"),
    "a text in JSON": ("Polycam", "keyframes/cameras/7003.json", '"t_00": [^,]*', '"t_00": "1"', "t_00 is '1'"),
    "a mirrored pose": ("NSVF", "pose/0_0003.txt", r"^(\S+) (\S+) (\S+)", r"\1 \2 0\3", "0_0003"),
    "a pose of nine": ("NSVF", "pose/0_0003.txt", r"\n\S+ .*\n$", "\n", "has 12 numbers, want 16"),
    "skew": ("NSVF", "intrinsics.txt", r" 0\.0 ", " 5.0 ", "skew is 5"),
    "no matrix": ("NSVF", "intrinsics.txt", r"[\s\S]*", "1 2", "want a matrix K"),
    "an empty box": ("NSVF", "bbox.txt", r"[\s\S]*", "0 0 0 1 0 1", "bbox.txt: box"),
    "no unit": ("Record3D", "metadata.json", r'"poses": \[\[[^,]*', '"poses": [[9.0', "quaternion of length"),
    "six numbers": ("Record3D", "metadata.json", r'"poses": \[\[[^,]*,', '"poses": [[', "pose 0 is a list of 6"),
    "poses too few": ("Record3D", "metadata.json", r'"poses": \[\[[^\]]*\],', '"poses": [', "has 8 poses but .* 9"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_wrong_is_said_with_its_place(what, tmp_path):
    kind, name, old, new, message = CHANGES[what]
    folder, _ = write(kind, tmp_path / "set")
    text = (folder / name).read_text()
    changed = re.sub(old, new, text, count=0 if what == "no transforms" else 1)
    assert changed != text
    (folder / name).write_text(changed)
    refused(folder, message, split="all", reader=kind)


@pytest.mark.parametrize("change", ["fewer", "more", "flat", "objects", "infinite", "swapped bounds", "no height"])
def test_a_table_of_llff_that_is_wrong_is_told(change, tmp_path):
    folder, _ = write("LLFF", tmp_path / "set")
    file = folder / "poses_bounds.npy"
    table = np.load(file)
    said = {
        "fewer": "has 8 poses but .* 9 images",
        "more": "has 10 poses but .* 9 images",
        "flat": r"want \(images, 17\)",
    }
    said |= {"objects": "holds object, want numbers", "infinite": r"is inf at \(3, 5\)"}
    said |= {"swapped bounds": "row 2 .*bounds are 6.5, 1.5", "no height": "height, width, focal are 0"}
    if change == "swapped bounds":
        table[2, 15:] = table[2, 16], table[2, 15]
    if change == "infinite":
        table[3, 5] = np.inf
    if change == "no height":
        table[0, 4] = 0
    wrong = {
        "fewer": table[:8],
        "more": np.concatenate([table, table[:1]]),
        "flat": table.ravel(),
        "objects": table.astype(object),
    }
    np.save(file, wrong.get(change, table), allow_pickle=True)
    refused(folder, said[change], reader="LLFF")


def test_a_zip_bomb_is_refused_unread(tmp_path):
    folder, _ = write("DTU", tmp_path / "set")
    with zipfile.ZipFile(folder / "cameras.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("world_mat_0.npy", bytes(65 << 20))
    began = time.perf_counter()
    refused(folder, "its arrays declare 68,157,440 bytes, want 67,108,864", reader="DTU")
    assert time.perf_counter() - began < 1


def test_a_member_that_is_longer_than_it_says_is_refused(tmp_path):
    file = tmp_path / "a.npz"
    np.savez(file, world_mat_0=np.eye(4))
    data = bytearray(file.read_bytes())
    at = data.rindex(b"PK\x01\x02") + 24  # the size in the central directory
    data[at : at + 4] = (200).to_bytes(4, "little")
    file.write_bytes(data)
    with pytest.raises(rm.RaymarchError, match="a.npz"):
        strict.read_npz(file, "world_mat_")


def test_an_array_that_lies_about_its_shape_is_refused_before_it_is_made(tmp_path):
    file = tmp_path / "a.npy"
    np.save(file, np.zeros((3, 17)))
    for shape in (b"(9999999999999, 17)", b"(3, 16)", b"(-3, -17)"):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + b", }"
        header += b" " * (118 - len(header) - 1) + b"\n"
        file.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header + bytes(3 * 17 * 8))
        with pytest.raises(rm.RaymarchError, match="declares .* bytes but holds 408|is no whole NumPy array|no whole"):
            strict.read_npy(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "document type"),
        ("<x>&lol;</x>", "is not XML"),
        ("<x>" * 101 + "</x>" * 101, "nested over 100 levels"),
        ("<x>" * 200_000, "nested over 100 levels"),
        ("<x>" + "<y/>" * 1_000_000 + "</x>", "1,000,002 tags"),
        ("text", "is not XML"),
        ("<x></y>", "is not XML"),
        (" ", "is not XML"),
    ],
)
def test_xml_that_may_do_harm_is_refused(text, said, tmp_path):
    file = tmp_path / "a.xml"
    file.write_text(text)
    began = time.perf_counter()
    with pytest.raises(rm.RaymarchError, match=said):
        strict.read_xml(file)
    assert time.perf_counter() - began < 1


def test_xml_in_another_encoding_hides_nothing(tmp_path):
    (tmp_path / "a.xml").write_bytes('<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'.encode("utf-16"))
    with pytest.raises(rm.RaymarchError, match="has a document type or entities"):
        strict.read_xml(tmp_path / "a.xml")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("NSVF", "pose/0_0003.txt"),
        ("Polycam", "keyframes/cameras/7003.json"),
        ("DTU", "image/000003.png"),
        ("LLFF", "images/im 03.png"),
    ],
)
def test_links_that_lead_out_are_followed_only_if_asked(kind, name, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    refused(folder, "leads out of .* by a link", split="all", reader=kind)
    assert len(rm.load_views(folder, "all", reader=kind, follow_links=True)) == 9


@FIRST
def test_images_of_another_aspect_are_refused(kind, tmp_path):
    folder, _ = write(kind, tmp_path / "set")
    for file in folder.rglob("*"):
        if file.suffix in (".png", ".jpg") and file.parent.name != "mask":
            Image.fromarray(picture(0, (16, 6), 4 if kind == "NSVF" else 3)).save(file)
    if kind in ("Middlebury", "NSVF", "DTU", "RealityCapture"):  # which tell no size
        rm.load_views(folder, "all") if kind != "DTU" else refused(folder, "mask is 8 x 6 but its image 16 x 6")
        return
    refused(folder, "w x h is 8 x 6 but the image has 16 x 6 pixels, another shape")


# Mutated files, 2,000 for each reader.

TABLES = {
    "LLFF": ["poses_bounds.npy"],
    "Middlebury": ["temple_par.txt", "README.txt"],
    "DTU": ["cameras.npz"],
    "NSVF": ["intrinsics.txt", "bbox.txt", "pose/0_0000.txt"],
    "Polycam": ["keyframes/cameras/7000.json"],
    "Record3D": ["metadata.json"],
    "Metashape": ["cameras.xml"],
    "RealityCapture": ["cameras.csv"],
}
WORDS = [b"nan", b"-inf", b"1e999", b"9" * 400, b"../", b"\0", b"\xff\xfe", b"<", b"{", b"[" * 3000, b",", b"\n", b"-"]


def mutated(data: bytes, rng) -> bytes:
    """A file with a few bytes changed, words put in, pieces cut, doubled or moved."""
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(int(x) for x in rng.integers(0, len(out) + 1, 2))
        to = min(to, at + int(rng.integers(1, 200)))
        match rng.integers(0, 6):
            case 0 if at < len(out):
                out[at] ^= 1 << int(rng.integers(0, 8))
            case 1:
                out[at:at] = WORDS[rng.integers(0, len(WORDS))]
            case 2:
                del out[at:to]
            case 3:
                out[at:at] = out[at:to]
            case 4:
                del out[at:]
            case _:
                out[at:to] = WORDS[rng.integers(0, len(WORDS))]
    return bytes(out)


@pytest.mark.parametrize("count", [400, whole(2000)])
@pytest.mark.parametrize("kind", TABLES)
def test_mutated_files_are_read_or_refused_in_one_line(kind, count, tmp_path, monkeypatch, caplog):
    """Without the images, which are not what is mutated: cameras are made for each, of the size that it has."""
    caplog.set_level(logging.CRITICAL)
    cameras, writer, how = SETS[FIRSTS[kind]]
    folder = writer(tmp_path, cameras[:2], **how)
    reader = next(one for one in READERS if one.name == kind)

    def cameras_alone(frames, folder, source, *_, **__):
        made = [frame.camera(8, 6) for frame in frames if frame.file.is_file()]
        return rm.Views(
            made or [rm.Camera.look_at((1, 0, 0), width=8, height=6)], np.zeros((max(len(made), 1), 6, 8, 3), np.uint8)
        )

    monkeypatch.setattr(f"{reader.read.__module__}.views_of_frames", cameras_alone)
    if kind == "DTU":
        monkeypatch.setattr(f"{reader.read.__module__}._with_silhouettes", lambda views, _: views)
    rng, files = np.random.default_rng(7), [folder / name for name in TABLES[kind]]
    sound, refusals, slowest = [file.read_bytes() for file in files], 0, 0.0
    for n in range(count):
        i = n % len(files)
        files[i].unlink()  # a file that is cut and written again is flushed to the disk by some systems
        files[i].write_bytes(mutated(sound[i], rng))
        began = time.perf_counter()
        try:
            assert reader.detect(folder) in (True, False)
            read_views(reader, folder, "all")
        except rm.RaymarchError as error:
            refusals += 1
            assert "\n" not in str(error) and str(error).startswith(str(folder)), error
        slowest = max(slowest, time.perf_counter() - began)
        files[i].unlink()
        files[i].write_bytes(sound[i])
    assert slowest < 1
    assert count // 4 < refusals < count

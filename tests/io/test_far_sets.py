"""Laws of sets far from their origin: every reader moves them near it, all splits alike, and says where it was."""

import json
from dataclasses import replace

import numpy as np
import pytest
from layouts import alike, centred, dtu, known, llff, metashape, middlebury, nsvf, polycam, realitycapture, record3d
from sets import POSES, random_image, write_colmap, write_set, write_transforms

import raymarch as rm
from raymarch.diagnosis.diagnose import diagnose, quick_findings
from raymarch.diagnosis.read_set import read_set
from raymarch.io.image_sets.convert import convert
from raymarch.views.world_origin import box_near, far_middle

FAR = np.array([612345.0, 5812345.0, 120.0])
WRITERS = {
    "LLFF": (centred(alike(known())), llff),
    "Middlebury": (known(), middlebury),
    "DTU": (known(), dtu),
    "NSVF": (known(), nsvf),
    "Polycam": (known(), polycam),
    "Record3D": (known(), record3d),
    "Metashape": (known(), metashape),
    "RealityCapture": (alike(known()), realitycapture),
}


def moved(poses, by):
    return [(pose + np.pad(np.reshape(by, (3, 1)), ((0, 1), (3, 0)))).tolist() for pose in poses]


def places(views):
    return np.array([camera.position for camera in views.cameras])


@pytest.mark.parametrize("kind", WRITERS)
def test_every_reader_moves_a_far_set_near_its_origin(kind, tmp_path, caplog):
    cameras, writer = WRITERS[kind]
    (tmp_path / "far").mkdir()
    writer(tmp_path / "far", [replace(one, translation=one.translation - one.rotation @ FAR) for one in cameras])
    views = rm.load_views(tmp_path / "far", "all")
    assert "so the world is moved by -" in caplog.text
    truth = np.array([camera.centre for camera in cameras]) + FAR
    np.testing.assert_allclose(places(views) + views.origin, truth, atol=1e-6)
    assert np.abs(places(views)).max() < 100
    for split in ("train", "test"):
        assert rm.load_views(tmp_path / "far", split).origin == views.origin


@pytest.mark.parametrize("kind", WRITERS)
def test_a_set_near_its_origin_stays_where_it_is(kind, tmp_path, caplog):
    cameras, writer = WRITERS[kind]
    (tmp_path / "near").mkdir()
    writer(tmp_path / "near", cameras)
    assert rm.load_views(tmp_path / "near", "all").origin is None
    assert "moved" not in caplog.text


def test_colmap_is_moved_with_its_points(tmp_path):
    near = write_colmap(tmp_path / "near")
    lines, points = [], []
    for line in (near / "sparse/0/images.txt").read_text().splitlines():
        words = line.split()
        if len(words) == 10 and words[-1].endswith(".png"):
            w, x, y, z, *t = map(float, words[1:8])
            rotation = np.array(
                [
                    [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
                ]
            )
            words[5:8] = [f"{v!r}" for v in (np.array(t) - rotation @ FAR).tolist()]
        lines.append(" ".join(words))
    for line in (near / "sparse/0/points3D.txt").read_text().splitlines():
        words = line.split()
        if not line.startswith("#"):
            words[1:4] = [f"{v!r}" for v in (np.array(words[1:4], float) + FAR).tolist()]
        points.append(" ".join(words))
    far = write_colmap(tmp_path / "far", images="\n".join(lines) + "\n", points="\n".join(points) + "\n")
    here, there = rm.load_views(near, "all"), rm.load_views(far, "all")
    np.testing.assert_allclose(places(there) + there.origin, places(here) + FAR, atol=1e-6)
    np.testing.assert_allclose(there.points + there.origin, here.points + FAR, atol=1e-6)


def far_transforms(folder, **changes):
    names = [f"r_{i}.png" for i in range(9)]
    frames = [
        {"file_path": f"images/{name}", "transform_matrix": pose}
        for name, pose in zip(names, moved(POSES * 3, FAR), strict=True)
    ]
    return write_transforms(folder, names=names, frames=frames, **changes)


def test_transforms_are_moved_with_their_box_and_points(tmp_path):
    box = np.array([[-1.0, -1, -1], [1, 2, 1]])
    text = "ply\nformat ascii 1.0\nelement vertex 2\n" + "".join(f"property double {a}\n" for a in "xyz")
    folder = far_transforms(tmp_path / "set", aabb=(box + FAR).tolist(), ply_file_path="p.ply")
    rows = "\n".join(" ".join(f"{v!r}" for v in row) for row in (box + FAR).tolist())
    (folder / "p.ply").write_text(f"{text}end_header\n{rows}\n")
    views = rm.load_views(folder, "train")
    np.testing.assert_allclose(views.box + views.origin, box + FAR, atol=1e-6)
    np.testing.assert_allclose(views.points + views.origin, box + FAR, atol=1e-6)


def test_a_box_that_was_not_moved_with_the_cameras_is_left_out(tmp_path, caplog):
    folder = far_transforms(tmp_path / "set", aabb_scale=4)
    assert rm.load_views(folder, "train").box is None
    assert "the set's box lies far from its cameras and is left out" in caplog.text


def test_the_splits_of_a_blender_set_are_moved_alike(tmp_path):
    folder = write_set(tmp_path / "set")
    document = json.loads((folder / "transforms_train.json").read_text())
    for split, by in (("train", (0, 0, 0)), ("test", (7, 0, 0)), ("val", (-3, 5, 1))):
        for frame, pose in zip(document["frames"], moved(POSES, FAR + by), strict=True):
            frame["transform_matrix"] = pose
        (folder / f"transforms_{split}.json").write_text(json.dumps(document))
    train, test, val = (rm.load_views(folder, split) for split in ("train", "test", "val"))
    assert train.origin == test.origin == val.origin
    np.testing.assert_allclose(places(test) - places(train), [[7, 0, 0]] * 3, atol=1e-6)


def test_a_converted_set_keeps_where_its_origin_is(tmp_path):
    folder = far_transforms(tmp_path / "set")
    convert(folder, tmp_path / "set.h5")
    of_folder, of_file = rm.load_views(folder, "train"), rm.load_views(tmp_path / "set.h5", "train")
    assert of_file.origin == of_folder.origin
    np.testing.assert_array_equal(places(of_file), places(of_folder))


def test_a_file_of_views_far_away_is_moved_as_it_is_read(tmp_path):
    from raymarch.io.image_sets.hdf5.writing import write_views

    like = rm.Camera.look_at((3, 0, 0), width=8, height=6)
    cameras = [replace(like, world_from_camera=np.array(pose)) for pose in moved(POSES, FAR)]
    write_views(
        [("train", rm.Views(cameras, np.stack([random_image(3, seed=i) for i in range(3)])))], tmp_path / "f.h5"
    )
    views = rm.load_views(tmp_path / "f.h5", "train")
    np.testing.assert_allclose(places(views) + views.origin, [pose[:3, 3] + FAR for pose in POSES], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e3, 1e6])
def test_what_is_far_depends_on_the_spread_and_not_on_the_unit(scale):
    ring = np.array([pose[:3, 3] for pose in POSES * 3])
    assert far_middle(ring * scale) is None
    assert far_middle((ring + 100) * scale) is None
    assert far_middle((ring + FAR) * scale) is not None


def test_a_camera_elsewhere_does_not_keep_the_rest_far_away():
    ring = np.array([pose[:3, 3] for pose in POSES * 3]) + FAR
    for i in (0, 4, 8):
        odd = ring.copy()
        odd[i] = 0
        np.testing.assert_allclose(far_middle(odd), FAR, atol=10)


def test_a_set_whose_numbers_are_beyond_all_bounds_is_read(tmp_path):
    """Map coordinates in millimetres are over 1e9."""
    frames = [
        {"file_path": f"images/r_{i}.png", "transform_matrix": pose} for i, pose in enumerate(moved(POSES, FAR * 1e3))
    ]
    views = rm.load_views(write_transforms(tmp_path / "set", frames=frames), "all")
    assert np.abs(places(views)).max() < 100


def test_a_user_s_box_in_the_set_s_coordinates_is_moved_with_it(caplog):
    box = np.array([[-1.0, -1, -1], [1, 1, 1]])
    np.testing.assert_allclose(box_near(box + FAR, tuple(FAR)), box, atol=1e-6)
    assert "the box is in the set's own coordinates" in caplog.text
    caplog.clear()
    np.testing.assert_array_equal(box_near(box, tuple(FAR)), box)
    np.testing.assert_array_equal(box_near(box + FAR, None), box + FAR)
    assert not caplog.records


def views_far_away():
    like = rm.Camera.look_at((3, 0, 0), width=8, height=6)
    cameras = [replace(like, world_from_camera=np.array(pose)) for pose in moved(POSES * 2, FAR)]
    return rm.Views(cameras, np.stack([random_image(3, seed=i) for i in range(6)]))


def test_views_made_by_hand_far_away_are_an_error_of_the_diagnosis_and_said_by_the_fit():
    (found,) = [one for one in diagnose(views_far_away()) if one.code == "far-from-origin"]
    assert found.severity == "error"
    assert [one.code for one in quick_findings(views_far_away())][:1] == ["far-from-origin"]


def test_the_cure_for_views_made_by_hand_works():
    views = views_far_away()
    (found,) = [one for one in diagnose(views) if one.code == "far-from-origin"]
    origin = np.array([float(x) for x in found.cure.partition("take ")[2].partition(" from")[0].split(",")])
    cameras = [
        replace(one, world_from_camera=np.array(moved([one.world_from_camera], -origin)[0])) for one in views.cameras
    ]
    assert not [one for one in diagnose(replace(views, cameras=cameras)) if one.code == "far-from-origin"]


def test_doctor_says_where_a_set_was_moved(tmp_path):
    _, findings = read_set(far_transforms(tmp_path / "set"), None)
    assert any("so the world is moved by" in one.message for one in findings)


def test_images_that_are_missing_do_not_move_the_origin(tmp_path):
    """The origin is that of all cameras of the file, whichever of their images are there."""
    folder = far_transforms(tmp_path / "set")
    whole = rm.load_views(folder, "all").origin
    for i in (0, 1, 2, 3):
        (folder / f"images/r_{i}.png").unlink()
    assert rm.load_views(folder, "all").origin == whole


def test_cameras_in_one_place_are_moved_in_maps_alone():
    assert far_middle([(4.0, 0, 0)] * 5) is None
    np.testing.assert_allclose(far_middle([FAR] * 5), FAR)

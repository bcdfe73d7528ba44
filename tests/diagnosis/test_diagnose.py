"""Law: the doctor names each planted fault of an image set, and finds none in a set that is as it should be."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from painted_room import ball, room
from PIL import Image

import raymarch as rm
from raymarch.diagnosis import extent, intrinsics
from raymarch.diagnosis import images as exposures_of_views
from raymarch.diagnosis.diagnose import examine, quick_findings
from raymarch.diagnosis.poses import pose_convention
from raymarch.fitting.plan.survey import Survey
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.geometry.pose import exp_rigid
from raymarch.matching.epipolar import distances, epipolar_tolerance, match_directions, matches_agree, poses_of
from raymarch.matching.matches import Matches, features_of, neighbours
from raymarch.matching.points import matched_points, with_matched_points
from raymarch.views.agreement import alpha_of
from raymarch.views.display_values import linear_of_srgb

FLIP = np.diag([1.0, -1.0, -1.0, 1.0])
ROOM, BALL = room(8), ball(8)
BENT = room(8, lens=rm.Lens("radial", (-0.25, 0.05)))
POINTS = {id(views.images): features_of(views) for views in (ROOM, BALL, BENT)}  # which faults of cameras leave
BOX = np.array([[-0.2, -0.2, -0.2], [2.0, 2.0, 2.0]])
AXES = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def posed(change):
    return replace(ROOM, cameras=[replace(c, world_from_camera=change(c.world_from_camera)) for c in ROOM.cameras])


def transposed(pose):
    out = pose.copy()
    out[:3, :3] = pose[:3, :3].T
    return out


def scaled(factor):
    return replace(ROOM, cameras=[replace(c, focal=(c.focal[0] * factor, c.focal[1] * factor)) for c in ROOM.cameras])


def resized(factor):
    """Intrinsics of images that are larger by a factor."""
    cameras = [
        replace(c, focal=np.array(c.focal) * factor, principal=np.array(c.principal) * factor) for c in ROOM.cameras
    ]
    return replace(ROOM, cameras=cameras)


def turned(view=4):
    turn = exp_rigid([0, 0, 0, *np.deg2rad([3, -3, 2.6])])
    cameras = list(ROOM.cameras)
    cameras[view] = replace(cameras[view], world_from_camera=cameras[view].world_from_camera @ turn)
    return replace(ROOM, cameras=cameras)


def given_to(order):
    return replace(ROOM, cameras=[ROOM.cameras[i] for i in order])


def in_linear_light():
    return replace(ROOM, images=np.rint(255 * linear_of_srgb(ROOM.images / 255)).astype(np.uint8))


def drifting(stops):
    gains = 2.0 ** (stops * np.linspace(-0.5, 0.5, len(ROOM)))
    light = linear_of_srgb(ROOM.images / 255) * gains[:, None, None, None]
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return replace(ROOM, images=np.rint(255 * np.clip(display, 0, 1)).astype(np.uint8))


def premultiplied():
    images = BALL.images.copy()
    images[..., :3] = np.rint(images[..., :3] * (images[..., 3:] / 255))
    return replace(BALL, images=images)


def without_lens():
    return replace(BENT, cameras=[replace(c, lens=rm.Lens()) for c in BENT.cameras])


def doubled():
    images = ROOM.images.copy()
    images[6] = images[1]
    return replace(ROOM, images=images)


SHUFFLED = np.random.default_rng(2).permutation(len(ROOM))
FAULTS = {
    "OpenCV poses": (posed(lambda p: p @ FLIP), None, "opencv-poses"),
    "other axes": (posed(lambda p: p @ AXES), None, "camera-axes"),
    "transposed": (posed(transposed), None, "transposed-rotations"),
    "world-to-camera": (posed(np.linalg.inv), None, "world-to-camera"),
    "world-to-camera of OpenCV": (posed(lambda p: np.linalg.inv(p @ FLIP)), None, "world-to-camera"),
    "focal x 2": (scaled(2.0), None, "focal-length"),
    "focal / 2": (scaled(0.5), None, "focal-length"),
    "of images twice as large": (resized(2.0), None, "focal-length"),
    "box / 10": (ROOM, BOX * 0.1 + 1.6, "box"),
    "box x 10": (ROOM, (BOX - 0.9) * 10, "box"),
    "box + 10": (ROOM, BOX + 10, "box"),
    "premultiplied": (premultiplied(), None, "premultiplied-alpha"),
    "one turned": (turned(), None, "camera-off"),
    "shuffled": (given_to(SHUFFLED), None, "images-shuffled"),
    "backwards": (given_to(range(len(ROOM))[::-1]), None, "images-shuffled"),
    "linear light": (in_linear_light(), None, "linear-light"),
    "no lens": (without_lens(), None, "lens-left-out"),
    "drift up": (drifting(1.0), None, "exposure"),
    "drift down": (drifting(-1.0), None, "exposure"),
    "a copy": (doubled(), None, "duplicates"),
    "one view": (ROOM[3], None, "one-view"),
}


@cache
def findings(fault):
    views, box, _ = FAULTS[fault]
    return examine(views, box, POINTS.get(id(views.images))).findings


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault):
    code = FAULTS[fault][2]
    found = [each for each in findings(fault) if each.severity != "note"]
    assert code in [each.code for each in found]
    assert all(each.message and each.cure and "\n" not in str(each) for each in found)


@pytest.mark.parametrize("away", [1e5, 5e6])
def test_only_its_place_is_found_in_a_set_far_from_the_origin(away):
    """As a survey's coordinates are: cameras stand apart by their distances, not by parts of where they are."""
    moved = posed(lambda pose: pose + np.pad([[away], [-away], [0]], ((0, 1), (3, 0))))
    found = examine(moved, None, POINTS[id(moved.images)]).findings
    assert [each.code for each in found if each.severity == "error"] == ["far-from-origin"]
    assert len(matched_points(moved)) > len(matched_points(ROOM)) / 2 > 100


@pytest.mark.parametrize("right", [(ROOM, BOX), (BALL, None), (BENT, None)], ids=["room", "ball", "lens"])
def test_nothing_is_found_in_a_set_that_is_right(right):
    views, box = right
    assert examine(views, box, POINTS[id(views.images)]).findings == ()


@pytest.mark.parametrize("up", [(0, 0, -1), (-1, 0, 0), (0, -1, 0), (0.6, 0.64, 0.48)], ids=str)
def test_an_up_that_is_not_z_is_told_with_what_orbits_want(up):
    x = np.cross(up, (0.3, 0.1, 0.2))
    y = np.cross(up, x)
    turn = np.eye(4)
    turn[:3, :3] = np.stack([x / np.linalg.norm(x), y / np.linalg.norm(y), up], axis=1)  # z to up
    (found,) = examine(posed(lambda pose: turn @ pose), None, POINTS[id(ROOM.images)]).findings
    assert (found.code, found.severity) == ("up", "note")
    told = np.array([float(text) for text in found.cure.split()[1].split(",")])
    assert told @ up > 0.95 * np.linalg.norm(told)


def test_cameras_in_one_place_agree_on_matches_of_one_ray_alone():
    """Which have no epipolar line, so that any match would lie on it."""
    rng, count = np.random.default_rng(5), 200
    like = rm.Camera.look_at((4, 0, 0), width=64, height=64)
    turns = [exp_rigid([0, 0, 0, *(0.1 * rng.normal(size=3))]) for _ in range(6)]
    cameras = [replace(like, world_from_camera=turn) for turn in turns]
    poses = poses_of(cameras)
    poses[:, :3, 3] += np.array([0.3, 0.1, -4.0]) + 1e-14 * rng.normal(size=(6, 3))
    first, second = rng.integers(0, 6, (2, count))
    matches = Matches(first, second, rng.uniform(0, 64, (count, 2)), rng.uniform(0, 64, (count, 2)))
    seen, near = match_directions(cameras, matches), epipolar_tolerance(cameras, matches)
    assert matches_agree(poses, matches, seen, near).mean() < 0.1
    one = seen._replace(
        first=np.einsum("nba,nbc,nc->na", poses[first][:, :3, :3], poses[second][:, :3, :3], seen.second)
    )
    assert matches_agree(poses, matches, one, near).all()
    apart = one._replace(first=one.first + 0.01 * np.cross(one.first, rng.normal(size=(count, 3))))
    told = np.linalg.norm(np.cross(one.first, apart.first), axis=1) * seen.pixels / np.sqrt(2)
    np.testing.assert_allclose(np.abs(distances(poses, matches, apart)), told, rtol=0.05)


def test_a_thing_alike_from_all_around_is_no_other_convention():
    """Its points stand still in all images, and cameras that look at the origin are in one place if read inverted."""
    around, up = 2 * np.pi * np.arange(12) / 12, 0.3 + 0.2 * (np.arange(12) % 3)
    eyes = 4 * np.stack([np.cos(around) * np.cos(up), np.sin(around) * np.cos(up), np.sin(up)], 1)
    cameras = [rm.Camera.look_at(eye, width=64, height=64) for eye in eyes]
    first, second = np.array([(i, (i + 1) % 12) for i in range(12) for _ in range(10)]).T
    at = np.random.default_rng(3).uniform(16, 48, (120, 2))
    matches = Matches(first, second, at, at)
    finding, _ = pose_convention(
        poses_of(cameras), matches, match_directions(cameras, matches), epipolar_tolerance(cameras, matches)
    )
    assert finding is None


@pytest.mark.parametrize("noise", [0.1, 0.25, 0.35])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_intrinsics_are_not_told_by_a_few_views_that_stand_close(count, noise):
    rng, like = np.random.default_rng(count), rm.Camera.look_at((4, 0, 0), fov=0.9, width=120, height=96)
    steps = [exp_rigid([0.04 * i, 0.02 * i * i, 0, 0, 0.03 * i, 0]) for i in range(count)]
    cameras = [replace(like, world_from_camera=like.world_from_camera @ step) for step in steps]
    points = rng.uniform(-1, 1, (200, 3))
    at = [camera.project(points)[0] + rng.normal(0, noise, (200, 2)) for camera in cameras]
    i, j = np.triu_indices(count, 1)
    ends = np.repeat(i, 200), np.repeat(j, 200)
    matches = Matches(*ends, np.concatenate([at[k] for k in i]), np.concatenate([at[k] for k in j]))
    seen, poses = match_directions(cameras, matches), poses_of(cameras)
    assert intrinsics.focal(cameras, matches, seen, poses)[0] is None
    assert intrinsics.lens(cameras, matches, seen, poses) is None


def test_a_box_that_no_camera_looks_at_is_found_without_points():
    ring = rm.orbit((0, 0, 0), 4.0, 6, like=rm.Camera.look_at((4, 0, 0), width=8, height=6))
    views = rm.Views(ring, np.random.default_rng(0).integers(0, 256, (6, 6, 8, 3), dtype=np.uint8))
    codes = [[each.code for each in examine(views, box).findings] for box in (BOX - 0.9, BOX + 100)]
    assert codes == [[], ["box"]]


@pytest.mark.parametrize(("fault", "factor"), [("focal x 2", 0.5), ("focal / 2", 2.0)])
def test_the_focal_length_comes_out(fault, factor):
    (found,) = (each for each in findings(fault) if each.code == "focal-length")
    assert float(found.message.split("times ")[1].split()[0]) == pytest.approx(factor, rel=0.03)


@pytest.mark.parametrize("wrong", [0.5, 1.5, 2.0])
@pytest.mark.parametrize("kind", ["fisheye", ""])
def test_the_focal_length_of_fisheyes_comes_out(kind, wrong):
    """Which scales their angles, beyond a right angle too; of pinholes, beside them, tangents."""
    rng, fov = np.random.default_rng(0), np.deg2rad(100)
    true = 200 / (fov / 2 if kind else np.tan(fov / 2))
    around = 2 * np.pi * np.arange(12) / 12
    eyes = np.stack([4 * np.cos(around), 4 * np.sin(around), 0.5 * np.sin(3 * around)], axis=1)
    lens = rm.Lens("fisheye", (0.0, 0.0, 0.0, 0.0)) if kind else rm.Lens()
    cameras = [rm.Camera.look_at(eye, 0.3 * rng.normal(size=3), width=400, height=400) for eye in eyes]
    cameras = [replace(camera, focal=(true, true), lens=lens) for camera in cameras]
    points = rng.uniform(-4, 4, (1500, 3))
    pixels, depths = zip(*[camera.project(points) for camera in cameras], strict=True)
    inside = [(d > 0.1) & (p >= 0).all(1) & (p < 400).all(1) for p, d in zip(pixels, depths, strict=True)]
    pairs = [(i, (i + k) % 12) for i in range(12) for k in (1, 2)]
    both = {pair: np.flatnonzero(inside[pair[0]] & inside[pair[1]])[:100] for pair in pairs}
    first, second = np.array([pair for pair in pairs for _ in both[pair]]).T
    at = [np.concatenate([pixels[pair[k]][both[pair]] for pair in pairs]) for k in (0, 1)]
    matches = Matches(first, second, *(each + 0.3 * rng.normal(size=each.shape) for each in at))
    given = [replace(camera, focal=(true * wrong, true * wrong)) for camera in cameras]
    finding, _ = intrinsics.focal(given, matches, match_directions(given, matches), poses_of(given))
    factor = float(finding.message.split("times ")[1].split()[0])
    assert factor == pytest.approx(1 / wrong, rel=0.01)


def test_the_turn_of_a_camera_comes_out():
    (found,) = (each for each in findings("one turned") if each.code == "camera-off")
    assert ROOM.names[4] in found.message
    assert float(found.message.split("about ")[1].split()[0]) == pytest.approx(5.0, abs=0.4)


def test_the_order_of_images_comes_out():
    (found,) = (each for each in findings("backwards") if each.code == "images-shuffled")
    assert "backwards" in found.message


def test_images_are_ordered_by_the_numbers_that_their_names_have_whatever_else_is_in_these():
    names = [f"Feld {number}²" for number in range(6, 14)]
    by_letters = sorted(range(len(ROOM)), key=lambda i: names[i])
    views = replace(ROOM, cameras=[ROOM.cameras[i] for i in by_letters], names=names)
    (found,) = (each for each in examine(views, None, POINTS[id(ROOM.images)]).findings if each.code[:4] == "imag")
    assert "by letters" in found.message and "by number" in found.message


@pytest.mark.parametrize("fault", ["OpenCV poses", "transposed", "world-to-camera", "premultiplied", "linear light"])
def test_what_is_certain_is_said_before_a_fit(fault):
    views, _, code = FAULTS[fault]
    assert [each.code for each in quick_findings(views)] == [code]


@pytest.mark.parametrize("views", [ROOM, BALL, BENT, scaled(2.0), turned(), drifting(1.0)])
def test_what_is_not_certain_is_not_said_before_a_fit(views):
    assert quick_findings(views) == []


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("size", [(1, 8, 8), (3, 2, 5), (5, 40, 3), (6, 40, 40)])
def test_sets_without_sense_are_no_faults_of_cameras(size, channels):
    count, height, width = size
    ring = rm.orbit((0, 0, 0), 4.0, count, like=rm.Camera.look_at((4, 0, 0), width=width, height=height))
    noise = np.random.default_rng(0).integers(0, 256, (1, height, width, channels), dtype=np.uint8)
    for images in (np.zeros_like(noise), noise):  # all black, or clear; all the same
        found = examine(rm.Views(ring, np.repeat(images, count, 0)), None).findings
        assert {each.code for each in found} <= {"contents", "duplicates", "one-view"}


def test_points_that_images_agree_on_lie_on_what_they_show():
    """The nearest of the corner's walls x = 0, y = 0 and z = 0, which reach as far as 2.4 in the images."""
    points = matched_points(ROOM)
    assert len(points) > 500
    assert np.median(np.abs(points).min(1)) < 0.01
    assert np.quantile(points.max(1), 0.99) == pytest.approx(2.0, abs=0.4)
    assert len(matched_points(ROOM[:1])) == 0


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_points_of_channels_are_those_of_what_is_shown_of_them(extra):
    """A fourth channel is no alpha, and what is unknown has no points."""
    some, names = ROOM[:2], ("red", "green", "blue", "thermal", "depth")
    images = np.concatenate([np.stack(some.images) / 255, np.full((2, *some.images[0].shape[:2], extra), 290)], axis=-1)
    images[1, ..., :3] = np.nan
    images[1, ..., 3:] = 291
    images = images[: 1 if extra == 0 else 2]
    views = rm.Views(some.cameras[: len(images)], images.astype(np.float32), channels=names[: 3 + extra])
    found, wanted = features_of(views), features_of(views.in_colour())
    assert len(found[0].place) > 100 and all(len(one.place) == 0 for one in found[1:])
    np.testing.assert_array_equal(found[0].place, wanted[0].place)
    assert len(matched_points(views)) == 0 and len(with_matched_points(views).points or ()) == 0


def test_planes_of_bounds_are_no_points_that_images_agree_on(tmp_path):
    (tmp_path / "images").mkdir()
    rows = []
    for i, (camera, image) in enumerate(zip(ROOM.cameras, ROOM.images, strict=True)):
        Image.fromarray(image).save(tmp_path / "images" / f"{i}.png")
        right, up, back = camera.world_from_camera[:3, :3].T
        size = camera.height, camera.width, camera.focal[0]
        rows.append([*np.stack([-up, right, back, camera.position, size], axis=1).ravel(), 0.5, 90.0])
    np.save(tmp_path / "poses_bounds.npy", rows)
    views = rm.load_views(tmp_path, "all")
    assert views.points is None and views.bounds.shape == (len(ROOM), 2)
    told, plain = (examine(each, BOX, POINTS[id(ROOM.images)]) for each in (views, ROOM))
    assert told.findings == plain.findings == ()
    np.testing.assert_allclose(told.points, plain.points, atol=1e-6)


def test_a_set_without_points_gets_those_that_its_images_agree_on():
    own = replace(ROOM, points=np.ones((60, 3)))
    assert Survey(own).points is own.points
    np.testing.assert_array_equal(Survey(ROOM).points, matched_points(ROOM))


def test_another_order_that_is_found_is_an_error_though_no_silhouette_speaks_against_the_poses():
    opaque = np.concatenate([ROOM.images, np.full_like(ROOM.images[..., :1], 255)], axis=-1)
    backwards = replace(ROOM, images=opaque, cameras=list(ROOM.cameras)[::-1])
    assert backwards.has_alpha
    found = examine(backwards, None, POINTS[id(ROOM.images)]).findings
    assert ("images-shuffled", "error") in [(each.code, each.severity) for each in found]


def test_matches_of_which_no_view_has_enough_tell_no_exposure(monkeypatch):
    """Many in all, and few of each view: as of a hundred views of a thin thing."""
    pairs = np.arange(240)
    matches = SimpleNamespace(first=pairs % 120, second=(pairs + 1) % 120)
    monkeypatch.setattr(exposures_of_views, "brightness", lambda *_: (np.ones((240, 3)), np.ones((240, 3))))
    assert exposures_of_views.exposures(range(120), matches) is None
    assert exposures_of_views.exposure(range(120), matches) is None


def test_alpha_that_a_mask_takes_out_says_nothing_of_the_set():
    """Somebody before a part of each image, cut out as if it were the object, and masked: as if nothing were there."""
    images, clear, masks = BALL.images.copy(), BALL.images.copy(), np.ones((len(BALL), 64, 64), bool)
    part = np.s_[:, 20:60, :26]
    images[part], clear[part], masks[part] = 255, 0, False
    spoilt, without = replace(BALL, images=images), replace(BALL, images=clear)
    masked = replace(spoilt, masks=masks)
    for i in range(len(BALL)):
        direction = extent._middle(masked, i)
        np.testing.assert_array_equal(direction, extent._middle(without, i))
        assert np.abs(direction - extent._middle(spoilt, i)).max() > 0.01
    alpha = alpha_of(masked, 0, masked=255)
    assert (alpha[20:60, :26] == 255).all() and (alpha[:20] == BALL.images[0, :20, :, 3]).all()


def test_masks_of_a_frames_edge_leave_right_poses_right():
    """What is masked denies nothing, and no body has to cover it."""
    masks = np.ones((len(BALL), 64, 64), bool)
    masks[:, :12], masks[:, -12:] = False, False
    assert extent.silhouettes(BALL) == extent.silhouettes(replace(BALL, masks=masks)) == []
    order = np.random.default_rng(0).permutation(len(BALL))
    shuffled = replace(BALL, cameras=[BALL.cameras[i] for i in order], masks=masks)
    assert extent.silhouettes(shuffled) == extent.silhouettes(replace(shuffled, masks=None))


def test_neighbours_of_some_views_are_those_that_they_have_among_all():
    cameras = orbit((0, 0, 0), 3.0, 40, like=Camera.look_at((3, 0, 0), width=8, height=8))
    every = neighbours(cameras, 4)
    some = neighbours(cameras, 4, [0, 20])
    assert len(some) == 8 and set(some) <= set(every) and all({0, 20} & set(pair) for pair in some)


@pytest.mark.parametrize(
    ("middle", "half", "found"),
    [
        ((0, 0, 0), 0.9, None),
        ((0, 0, 0), 0.05, ("warning", "times too small for all of them")),
        ((0, 0, 0), 0.005, ("error", "times too small for all of them")),
        ((0.5, -0.5, 0.6), 0.1, ("warning", "times too small for all of them")),
        ((0, 0, 0), 0.5, ("warning", "it is too small for all of them")),
        ((0, 0, 1.5), 0.9, ("error", "beside most of them")),
        ((9, 0, 0), 0.05, ("error", "beside most of them")),
    ],
)
def test_a_small_box_amid_the_points_is_no_box_beside_them(middle, half, found):
    points = np.random.default_rng(0).uniform(-1, 1, (400, 3))
    told = extent.box(ROOM, np.array(middle) + np.array([[-half], [half]]), points)
    assert (told and told.severity) == (found and found[0])
    assert told is None or found[1] in told.message


@pytest.mark.parametrize("count", [2, 3, 7, 8])
def test_a_drift_of_exposure_is_told_from_eight_views_on(count, monkeypatch):
    """The first and the last of fewer are any two views, whose exposures may differ."""
    stops = np.linspace(-0.3, 0.3, count)[:, None].repeat(3, 1)
    monkeypatch.setattr(exposures_of_views, "exposures", lambda *_: stops)
    found = exposures_of_views.exposure(ROOM[:count], None)
    assert ("drifts" in found.message, found.severity) == ((True, "warning") if count == 8 else (False, "note"))


def grey_squares(count, stops):
    """Views of a grey square by alpha, that become brighter by so many stops in linear light from first to last."""
    light = 0.2 * 2.0 ** (stops * np.linspace(-0.5, 0.5, count))
    images = np.zeros((count, 12, 12, 4), np.uint8)
    images[:, 3:9, 3:9, :3] = np.rint(255 * (1.055 * light ** (1 / 2.4) - 0.055))[:, None, None, None]
    images[:, 3:9, 3:9, 3] = 255
    return rm.Views(orbit((0, 0, 0), 4.0, count, like=Camera.look_at((4, 0, 0), width=12, height=12)), images)


@pytest.mark.parametrize(("count", "stops", "told"), [(10, 1.0, True), (10, 0.0, False), (9, 1.0, False)])
def test_views_that_show_nothing_leave_the_drift_of_the_others(count, stops, told):
    """One transparent all over, one masked all over: of ten, eight are left."""
    views, masks = grey_squares(count, stops), [None] * count
    images = views.images.copy()
    images[4, ..., 3] = 0
    masks[6] = np.zeros((12, 12), bool)
    found = exposures_of_views.exposure_by_alpha(replace(views, images=images, masks=masks))
    assert (found is not None) == told
    assert not told or "+1.0 stops" in found.message


def test_a_picture_whose_alpha_masks_nothing_has_no_silhouette():
    """Its frame is no outline of what it shows: nothing is told by it, of cameras, box or exposure."""
    opaque = grey_squares(10, 1.0)
    opaque.images[..., 3] = 255
    assert extent.silhouettes(opaque) == []
    assert exposures_of_views.exposure_by_alpha(opaque) is None
    assert extent.box(opaque, np.array([(-0.3, -0.3, -0.3), (0.3, 0.3, 0.3)]), np.zeros((0, 3))) is None


def test_matched_points_lie_on_what_is_seen_by_the_two_views_of_their_match():
    seen = with_matched_points(ROOM)
    off = np.abs(seen.points).min(axis=1)  # from the nearest wall
    assert len(seen.points) > 100
    assert np.quantile(off, 0.5) < 0.01
    assert np.quantile(off, 0.9) < 0.05
    assert (np.bincount(seen.sightings[:, 1]) == 2).all()
    assert with_matched_points(ROOM[[0]]).points is None


def test_depths_of_another_unit_are_told():
    metres = replace(BALL, depths=[np.full((4, 4), 4.0)] * len(BALL))
    assert extent.depth_unit(BALL) is None
    assert extent.depth_unit(metres) is None
    found = extent.depth_unit(replace(BALL, depths=[np.full((4, 4), 4000.0)] * len(BALL)))
    assert found.code == "depth-unit"
    assert "about 0.001 times" in found.cure

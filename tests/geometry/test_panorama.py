"""Laws of panoramas: columns are longitude, rows latitude, all around, as formulas and COLMAP's own model have them."""

import numpy as np
import pytest
from skips import require_extra

import raymarch as rm
from raymarch.geometry.alignment import similarity, transform_camera
from raymarch.geometry.pose import exp_rigid


def pixels(camera, count=2000):
    return np.random.default_rng(0).uniform((0, 0), (camera.width, camera.height), (count, 2))


def directions(camera, places):
    """In the camera's axes."""
    return camera.lens.directions((places - np.array(camera.principal)) / np.array(camera.focal))


def test_columns_are_longitude_and_rows_latitude():
    camera = rm.Camera.panorama((0, 0, 0), width=360)
    places = pixels(camera)
    longitude, latitude = np.deg2rad(places[:, 0] - 180), np.deg2rad(90 - places[:, 1])
    level = np.cos(latitude)
    wanted = np.stack([level * np.sin(longitude), np.sin(latitude), -level * np.cos(longitude)], axis=1)
    np.testing.assert_allclose(directions(camera, places), wanted, rtol=0, atol=1e-14)


def test_the_middle_looks_at_the_target_and_up_is_up():
    camera = rm.Camera.panorama((1, 2, 3), (1, 5, 3), width=64)
    seen, distance = camera.project([(1, 5, 3), (1, 2, 9), (3, 2, 3)])  # ahead, above, to the right
    np.testing.assert_allclose(seen[[0, 2]], [(32, 16), (48, 16)], atol=1e-12)
    np.testing.assert_allclose([seen[1, 1], *distance], [0, 3, 6, 2], atol=1e-12)


@pytest.mark.extra
def test_colmap_has_the_same_rays():
    pycolmap = require_extra("pycolmap", "sfm")
    camera = rm.Camera.panorama((0, 0, 0), width=800)
    sphere = pycolmap.CameraModelId.EQUIRECTANGULAR
    theirs = pycolmap.Camera.create_from_model_id(1, sphere, 1.0, camera.width, camera.height)
    places = pixels(camera)
    rays = [theirs.cam_ray_from_img(place) for place in places]
    np.testing.assert_allclose(directions(camera, places) * (1, -1, -1), rays, rtol=0, atol=1e-12)


def test_a_panorama_of_a_ball_is_that_of_six_pinholes():
    """Every ray of it is a ray of a pinhole that looks its way."""
    ball = rm.Volume.from_function(
        lambda p: 6 * np.exp(-8 * ((p - (0.3, 0.1, -0.2)) ** 2).sum(-1)), lambda p: 0.5 + 0.4 * p, shape=(12, 12, 12)
    )
    camera = rm.Camera.panorama((0.2, 0.1, 0.1), width=32)
    image = rm.render(ball, camera)
    for column, row in ((3, 5), (12, 8), (16, 1), (20, 14), (30, 7)):
        ahead = directions(camera, np.array([[column + 0.5, row + 0.5]]))[0] @ camera.world_from_camera[:3, :3].T
        single = rm.Camera.look_at(camera.position, camera.position + ahead, fov=1e-6, width=1, height=1)
        np.testing.assert_allclose(image[row, column], rm.render(ball, single)[0, 0], rtol=0, atol=2e-6)


def test_gradients_are_transposes_and_slopes():
    ball = rm.Volume.from_function(lambda p: 3 + np.sin(3 * p).sum(-1), lambda p: 0.5 + 0.3 * p, shape=(8, 8, 8))
    camera = rm.Camera.panorama((0.13, 0.21, 0.17), (2, 1, 0.5), width=12)
    march = rm.March(min_transmittance=0, min_weight=0)
    for row in rm.check_gradients(ball, camera, ("pose", "focal", "principal_point", "density"), march=march).rows:
        assert row.verdict == "good", row


def test_pixels_beyond_all_around_are_refused_with_a_cure():
    pose = np.eye(4)
    with pytest.raises(rm.RaymarchError, match=r"at most 360 x 180 degrees; give width / \(2 pi\)"):
        rm.Camera(pose, (10.0, 10.0), (64, 32), 128, 64, rm.Lens("equirectangular"))
    assert rm.Camera(pose, (128 / (2 * np.pi),) * 2, (64, 32), 128, 64, rm.Lens("equirectangular")).width == 128


@pytest.mark.parametrize("up", [(0, 0, 1), (1, 0, 0), (1, 0, 1), (0.2, -3, 0.1)])
def test_the_middle_is_level_across_up_where_no_target_is_given(up):
    ahead = -rm.Camera.panorama((1, 2, 3), up=up).world_from_camera[:3, 2]
    assert abs(np.dot(ahead, up)) < 1e-12 * np.linalg.norm(up)


@pytest.mark.parametrize("wrong", [{"up": "z"}, {"eye": (0, 0)}, {"eye": (np.nan, 0, 0)}, {"up": (0, 0, 0)}])
def test_a_wrong_place_of_a_panorama_is_one_line(wrong):
    with pytest.raises(rm.RaymarchError) as caught:
        rm.Camera.panorama(**{"eye": (0, 0, 0), **wrong})
    assert "\n" not in str(caught.value)


def test_panoramas_of_a_moved_world_are_aligned_whatever_lies_behind_their_seams():
    rng, move = np.random.default_rng(0), exp_rigid([0.3, -0.2, 0.1, 0.1, 0.3, -0.2])
    move[:3, :3] *= 1.1
    true = [rm.Camera.panorama(eye, width=128) for eye in rng.uniform(-0.5, 0.5, (9, 3))]
    moved = [transform_camera(camera, move) for camera in true]
    for box in (None, [(-1, -1, -1), (1, 1, 1)]):
        found = similarity(moved, true, box)
        np.testing.assert_allclose(found @ move, np.eye(4), rtol=0, atol=1e-9)
    noisy = [camera.moved(exp_rigid(0.005 * rng.normal(size=6))) for camera in true]
    found = similarity(noisy, true, [(-1, -1, -1), (1, 1, 1)])
    assert np.abs(found - np.eye(4)).max() < 0.01

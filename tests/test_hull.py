"""Law: box and hull hold the object and little more; where nothing can be found, the error says what to give."""

from __future__ import annotations

import numpy as np
import pytest
import single as worker

from raymarch.camera import Camera, orbit
from raymarch.errors import RaymarchError
from raymarch.hull import find_box, visual_hull
from raymarch.imagestore import ImageStore
from raymarch.pose import grid_of_box, look_at
from raymarch.view import Views

RADIUS = 0.6
DISTANCE = 4.0
PLACES = [(0.0, 0.0, 0.0), (0.2, -0.15, 0.1), (7.0, -3.0, 20.0)]


def around(centre, like=None):
    """Two rings of cameras, above and below."""
    like = like or Camera.look_at((1, 0, 0), fov=0.6, width=64, height=48)
    return [c for angle in (0.5, -0.4) for c in orbit(centre, DISTANCE, 8, elevation=np.rad2deg(angle), like=like)]


def masks(cameras, centre):
    """RGBA images of a ball, opaque where the ray through a pixel's centre meets it."""
    images = []
    for camera in cameras:
        rays = camera.rays()
        away = rays.origin - centre
        along = np.sum(away * rays.direction, axis=1)
        hit = (along < 0) & (along**2 - np.sum(away**2, axis=1) + RADIUS**2 > 0)
        images.append(np.where(hit[:, None], (200, 90, 30, 255), 0).reshape(camera.height, camera.width, 4))
    return np.array(images, np.uint8)


def box_of(views):
    with ImageStore(views) as store:
        return find_box(views, store)


@pytest.mark.parametrize("centre", PLACES)
def test_box_of_a_ball_holds_it_and_is_little_larger(centre):
    """The cameras look at it, or a little past it."""
    cameras = around(np.round(centre))
    lower, upper = box_of(Views(cameras, masks(cameras, centre)))
    assert (lower <= np.array(centre) - RADIUS).all() and (upper >= np.array(centre) + RADIUS).all()
    assert (upper - lower).max() < 1.3 * 2 * RADIUS


def test_hull_of_a_ball_holds_it_and_is_little_larger():
    """Every cell that the ball reaches into is kept, by all views; the cells kept have not 2.5 times its volume."""
    cameras = around((0, 0, 0))
    views = Views(cameras, masks(cameras, (0, 0, 0)))
    box = np.array([(-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)])
    with ImageStore(views) as store:
        seen = visual_hull(store, box, (20, 20, 20))
    middles = np.stack(np.meshgrid(*[np.linspace(-0.95, 0.95, 20)] * 3, indexing="ij"), -1)
    reach = np.linalg.norm(np.maximum(np.abs(middles) - 0.05, 0), axis=-1)  # from the ball's centre to the cell
    inside = reach < RADIUS - 0.05  # a pixel is 0.04 wide there, and its centre may miss the rim
    assert (seen[inside] == len(cameras)).all()
    assert np.sum(seen > 0) * 0.1**3 < 2.5 * 4 / 3 * np.pi * RADIUS**3


def test_a_cell_that_no_view_sees_is_no_hull():
    """-1 where a view shows emptiness, and where none looks."""
    cameras = around((0, 0, 0))
    full = np.full_like(masks(cameras, (0, 0, 0)), 255)  # nothing is shown empty: what remains is what is looked at
    with ImageStore(Views(cameras, full)) as store:
        far = visual_hull(store, [(30, 30, 30), (31, 31, 31)], (2, 2, 2))
        above = visual_hull(store, [(0, 0, 50), (1, 1, 51)], (2, 2, 2))
        middle = visual_hull(store, [(-0.1, -0.1, -0.1), (0.1, 0.1, 0.1)], (2, 2, 2))
    assert (far >= 0).all() and (above == -1).all() and (middle == len(cameras)).all()


def test_a_larger_ball_has_a_larger_hull():
    """More opaque pixels never carve more."""
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    more = images.copy()
    more[:, 10:30, 5:40, 3] = 255
    hulls = []
    for each in (images, more):
        with ImageStore(Views(cameras, each)) as store:
            hulls.append(visual_hull(store, [(-1, -1, -1), (1, 1, 1)], (12, 12, 12)) >= 0)
    assert (hulls[1] | ~hulls[0]).all() and hulls[1].sum() > hulls[0].sum()


def test_images_without_alpha_get_the_cameras_field_of_view():
    """A cube about where the axes meet, wide enough for all that the cameras see there."""
    cameras = around((1, 2, 3))
    lower, upper = box_of(Views(cameras, masks(cameras, (1, 2, 3))[..., :3]))
    np.testing.assert_allclose((lower + upper) / 2, (1, 2, 3), atol=1e-12)
    half = (upper - lower) / 2
    np.testing.assert_allclose(half, half[0])
    assert DISTANCE * np.tan(0.3) <= half[0] < 1.5 * DISTANCE * np.tan(0.3)


def parallel(count):
    """Cameras side by side that look the same way."""
    return [Camera.from_fov(look_at((x, -4, 0), (x, 0, 0)), 0.6, 16, 16) for x in range(count)]


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("cameras", [parallel(1), parallel(3)], ids=["one", "three parallel"])
def test_axes_that_meet_nowhere_ask_for_a_box(cameras, channels):
    views = Views(cameras, np.full((len(cameras), 16, 16, channels), 255, np.uint8))
    with pytest.raises(RaymarchError, match="--box") as error:
        box_of(views)
    assert "\n" not in str(error.value)


def test_cameras_in_one_point_ask_for_a_box():
    cameras = [Camera.from_fov(look_at((0, 0, 0), to), 0.6, 16, 16) for to in [(1, 0, 0), (0, 1, 0), (-1, 1, 0.5)]]
    with pytest.raises(RaymarchError, match="--box"):
        box_of(Views(cameras, np.full((3, 16, 16, 3), 255, np.uint8)))


def test_transparent_images_are_an_error():
    cameras = around((0, 0, 0))
    with pytest.raises(RaymarchError, match="transparent"):
        box_of(Views(cameras, np.zeros((len(cameras), 48, 64, 4), np.uint8)))


def test_box_in_f32_is_that_in_f64(single):
    cameras = around((0, 0, 0))
    images = masks(cameras, (0, 0, 0))
    wanted = worker.box(cameras, images)
    np.testing.assert_allclose(single(worker.box, cameras, images), wanted, rtol=0, atol=2 * np.ptp(wanted) / 64)


@pytest.mark.parametrize("size", [(1, 1, 1), (2.0, 0.31, 1.3), (0.01, 1, 100)])
@pytest.mark.parametrize("resolution", [4, 17])
def test_grid_of_a_box_has_cubic_voxels_and_holds_it(size, resolution):
    box = np.array([np.zeros(3), size]) + (3, -4, 5)
    grown, shape = grid_of_box(box, resolution)
    voxels = (grown[1] - grown[0]) / (np.array(shape) - 1)
    np.testing.assert_allclose(voxels, max(size) / (resolution - 1), rtol=1e-9)
    assert max(shape) == resolution and min(shape) >= 4
    assert (grown[0] <= box[0] + 1e-9).all() and (grown[1] >= box[1] - 1e-9).all()
    np.testing.assert_allclose(grown.mean(0), box.mean(0), rtol=1e-12)

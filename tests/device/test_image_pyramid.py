"""Law: images made smaller show the same scene through the same cameras, in the store as in one of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from raymarch.device.image_store import ImagePyramid, ImageStore
from raymarch.fitting.plan.resolution import count_halvings, footprint_of
from raymarch.fitting.plan.survey import Survey
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.views.resize import downscale_views, max_halvings
from raymarch.views.views import Views

LENSES = [Lens(), Lens("opencv", (0.05, -0.02, 0.0, 0.01, -0.01))]
EYES = [(0, -4, 0), (3, 1, 2)]


def views_of(width: int, height: int, lens: Lens = LENSES[0], channels: int = 4, masked: bool = False) -> Views:
    """Views of noise."""
    rng = np.random.default_rng(0)
    cameras = [replace(Camera.look_at(eye, width=width, height=height), lens=lens) for eye in EYES]
    images = rng.integers(0, 256, (len(EYES), height, width, channels), np.uint8)
    masks = [None, rng.random((height, width)) > 0.2] if masked else None
    return Views(cameras, images, masks=masks)


@pytest.mark.parametrize("lens", LENSES, ids=lambda lens: lens.model)
@pytest.mark.parametrize("factor", [2, 4])
def test_a_smaller_pixel_looks_where_the_middle_of_its_own_pixels_does(lens, factor):
    views = views_of(32, 24, lens)
    small = downscale_views(views, factor)
    for camera, less in zip(views.cameras, small.cameras, strict=True):
        points = np.random.default_rng(1).normal(size=(20, 3)) * 0.3
        np.testing.assert_allclose(less.project(points)[0] * factor, camera.project(points)[0], rtol=1e-9)


def test_a_smaller_image_is_the_mean_of_its_pixels_and_a_masked_one_counts_nowhere():
    views = views_of(32, 24, channels=3, masked=True)
    small = downscale_views(views, 2)
    means = views.image(0).reshape(12, 2, 16, 2, 3).mean((1, 3))
    assert np.abs(small.image(0) - means).max() <= 0.5 + 1e-3
    wholes = views.mask(1).reshape(12, 2, 16, 2).all((1, 3))
    np.testing.assert_array_equal(small.mask(1), wholes)
    assert small.mask(0) is None


@pytest.mark.parametrize(("size", "most"), [((32, 24), 0), ((64, 32), 1), ((800, 800), 5), ((15, 900), 0)])
def test_no_side_is_halved_below_what_tiles_need(size, most):
    camera = Camera.look_at((0, -4, 0), width=size[0], height=size[1])
    assert max_halvings(Views([camera], np.zeros((1, size[1], size[0], 3), np.uint8))) == most


def test_a_footprint_is_what_the_pixel_sees_and_halving_images_doubles_it():
    views, centre = views_of(64, 48), np.array([0.1, 0.2, -0.3])
    box = np.stack([centre - 0.5, centre + 0.5])
    assert footprint_of(Survey(downscale_views(views, 2)), box) == pytest.approx(2 * footprint_of(Survey(views), box))
    camera = views.cameras[0]
    ahead = camera.position + np.linalg.norm(camera.position - centre) * -camera.world_from_camera[:3, 2]
    beside = ahead + footprint_of(Survey(views[:1]), box) * camera.world_from_camera[:3, 0]
    assert np.linalg.norm(np.diff(camera.project(np.stack([ahead, beside]))[0], axis=0)) == pytest.approx(1, rel=1e-6)


def test_cameras_in_the_middle_of_the_box_see_its_walls():
    views = views_of(64, 48)[:1]
    eye = views.cameras[0].position
    assert footprint_of(Survey(views), np.stack([eye - 2, eye + 2])) == pytest.approx(2 / views.cameras[0].focal[0])


def test_views_with_masks_stay_as_they_are():
    assert max_halvings(views_of(64, 64)) == 2
    assert max_halvings(views_of(64, 64, masked=True)) == 0


@pytest.mark.parametrize("voxel", [0.5, 1.0, 1.3, 2.0, 3.9, 8.1])
def test_halved_images_leave_a_voxel_as_wide_as_was_asked_but_once_more_would_not(voxel):
    n = count_halvings(voxel, 1.0, 1.25)
    assert n == 0 or voxel / 2**n >= 1.25
    assert voxel / 2 ** (n + 1) < 1.25


def test_a_width_under_all_numbers_halves_images_as_often_as_any():
    assert count_halvings(1.0, 1e-5, 1e-320) == count_halvings(1.0, 1e-5, 1e-100) > 60


def test_the_pyramid_goes_between_its_sizes_and_exposures_go_along():
    views = views_of(64, 48)
    exposures = np.tile([1.1, 1.0, 0.9, 0.0, 0.01, 0.0], (2, 1))
    with ImagePyramid(views) as images:
        assert images.use(0).tiles == 2 * 16 * 12
        assert images.use(1).tiles == 2 * 8 * 6
        images.set_exposures(exposures)
        store = images.use(0)
        np.testing.assert_allclose(store.fields.exposure.to_numpy()[:2], exposures, rtol=1e-6)
        store.set_errors(np.zeros(store.tiles), 0.5)
        assert images.use(0).errors()[1] == 0.5
        images.use(1).set_errors(np.zeros(store.tiles), 0.25)
        assert images.use(1).errors()[1] == 0.25
        assert images.use(0).errors()[1] > 1e6  # of what was not in use nothing is known


@pytest.mark.parametrize("times", [(1,), (2, 1), (1, 0), (2, 0, 1, 0)], ids=str)
def test_images_of_a_size_are_as_in_a_store_of_their_own_whatever_was_there_before(times):
    views = views_of(66, 48)
    with ImagePyramid(views) as images, ImageStore(downscale_views(views, 2 ** times[-1])) as alone:
        for each in times:
            store = images.use(each)
        assert (store.views, store.tiles, store.listed) == (alone.views, alone.tiles, alone.listed)
        counts = {"pixels": sum(w * h for w, h in downscale_views(views, 2 ** times[-1]).sizes), "view": store.tiles}
        counts |= {"counting": store.tiles, "list": store.tiles, "error": store.tiles}
        for name in (*counts, "place", "pose", "lens", "exposure"):
            one, other = (getattr(each.fields, name).to_numpy() for each in (store, alone))
            count = counts.get(name, store.views)
            np.testing.assert_array_equal(one[:count], other[:count], err_msg=name)

"""Law: voxels are as fine as the pictures show and the rays settle; what is finer than the pictures is said."""

from __future__ import annotations

import bisect
import logging
from functools import cache

import numpy as np
import pytest

from raymarch.fitting.plan.budget import require_budget
from raymarch.fitting.plan.resolution import (
    FINE_RAY_FACTOR,
    FINE_VOXEL_PIXELS,
    MAX_DENSE_RESOLUTION,
    MAX_RESOLUTION,
    MIN_RESOLUTION,
    VOXEL_PIXELS,
    footprint_of,
    limit_resolution,
    resolution_for,
)
from raymarch.fitting.plan.survey import Survey
from raymarch.fitting.settings.settings import preset
from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

BOX = np.array([(-0.6, -1.1, -0.8), (0.6, 1.1, 0.8)])


@cache
def views_of(pixels: int, shown: float = 1.0, channels: int = 4) -> Views:
    """Views of so many pixels a side from four away, whose alpha shows something on a share of their rows."""
    cameras = [Camera.look_at(eye, width=pixels, height=pixels) for eye in [(0, -4, 0), (4, 0, 0), (0, 2, 3)]]
    images = np.zeros((3, pixels, pixels, channels), np.uint8)
    images[:, : round(shown * pixels)] = 255
    return Views(cameras, images)


def resolution(pixels: int, shown: float = 1.0, channels: int = 4, **changes) -> int:
    return resolution_for(Survey(views_of(pixels, shown, channels)), BOX, preset("default", **changes)).resolution


def fewest_steps(pixels: int, wanted: int) -> int:
    """Steps that a resolution takes."""
    return bisect.bisect_left(range(10**6), wanted, lo=100, key=lambda steps: resolution(pixels, steps=steps))


@pytest.mark.parametrize("pixels", [100, 200, 300])
def test_with_rays_enough_a_voxel_is_as_wide_as_the_pixels_say(pixels):
    found = resolution(pixels, steps=10**6)
    voxel = 2.2 / (found - 1)
    assert voxel / footprint_of(Survey(views_of(pixels)), BOX) == pytest.approx(FINE_VOXEL_PIXELS, rel=0.02)


def test_finer_than_what_most_pictures_show_wants_twice_the_rays():
    wide = int(2.2 / (VOXEL_PIXELS * footprint_of(Survey(views_of(300)), BOX)) + 1)
    steps = fewest_steps(300, wide)
    assert resolution(300, steps=int(0.95 * FINE_RAY_FACTOR * steps)) == wide
    assert resolution(300, steps=int(1.5 * FINE_RAY_FACTOR * steps)) == pytest.approx(wide * 1.5**0.5, abs=4)
    by_pictures = 2.2 / (VOXEL_PIXELS * footprint_of(Survey(views_of(800)), BOX)) + 1
    assert resolution(800, steps=10**6) == int(by_pictures) > MAX_DENSE_RESOLUTION  # which is fine enough


def test_four_times_the_rays_make_voxels_half_as_wide_until_the_pictures_end_it():
    few, more = resolution(800, steps=400, rays=8192), resolution(800, steps=1600, rays=8192)
    assert more == pytest.approx(2 * few, abs=2)
    assert resolution(800, steps=10**8) <= MAX_RESOLUTION
    assert resolution(100, steps=10**8) == resolution(100, steps=10**6)


def test_what_shows_a_quarter_of_the_surface_has_voxels_half_as_wide_of_as_many_rays():
    steps = {"steps": 400, "rays": 8192}
    faces = 1.2 * 2.2 + 2.2 * 1.6 + 1.6 * 1.2
    wide = [footprint_of(Survey(views_of(800)[i]), BOX) for i in range(3)]
    full = 4 * np.mean(800**2 * np.square(wide))  # four silhouettes
    assert resolution(800, 0.25 * faces / full, **steps) == pytest.approx(2 * resolution(800, **steps), abs=2)
    assert resolution(800, 1.1 * faces / full, **steps) == resolution(800, **steps)  # its box's faces at most
    assert resolution(800, channels=3, **steps) == resolution(800, **steps)  # nor where no alpha tells
    assert resolution(800, 0.0, **steps) == resolution(800, steps=10**6)  # as the pictures say


def test_finer_than_a_dense_grid_wants_three_times_the_rays():
    steps = fewest_steps(1600, MAX_DENSE_RESOLUTION)
    assert resolution(1600, steps=2 * steps) == MAX_DENSE_RESOLUTION
    assert resolution(1600, steps=int(4.5 * steps)) == pytest.approx(MAX_DENSE_RESOLUTION * 1.5**0.5, abs=4)


@pytest.mark.parametrize("changes", [{"seconds": 20, "steps": None}, {"seconds": 20}, {"steps": 100}])
def test_a_short_fit_is_coarser_than_a_long_one(changes):
    assert resolution(800, **changes) < resolution(800, steps=10**6)


def test_what_was_asked_for_stays_and_too_fine_a_wish_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        assert resolution(800, resolution=300) == 300
        assert not caplog.records
        assert resolution(100, resolution=300) == 300
    assert "finer than the pictures" in caplog.text


@pytest.mark.parametrize("gigabytes", [0.7, 1.0, 2.0])
def test_a_resolution_that_nobody_asked_for_is_one_that_the_memory_has_room_for(gigabytes):
    images = (3, 800, 800, 4)
    settings = resolution_for(Survey(views_of(800)), BOX, preset("default", memory=gigabytes))
    found = limit_resolution(settings, BOX, images)
    assert MIN_RESOLUTION <= found.resolution < settings.resolution
    assert require_budget(found, BOX, images).total <= gigabytes * 1e9
    assert limit_resolution(found, BOX, images) == found

"""Law: the device computes what tests/reference.py defines, image, depth and gradients, in f64; f32 is close to f64."""

from __future__ import annotations

import cases
import drive
import numpy as np
import pytest
import reference
import single as worker
from whole import whole

CASES = [
    *[("upright", 1, *variant) for variant in cases.SOME_READINGS],
    ("rotated", 0, "softplus", "sigmoid"),
    ("rotated", 1, "softplus", "sigmoid"),
    ("rotated", 2, "exponential", "sigmoid"),
    whole(("upright", 3, "softplus", "sigmoid")),
    ("one cell", 1, "softplus", "sigmoid"),
    *[whole(("upright", 1, *variant)) for variant in cases.OTHER_READINGS],
]
CASES_IN_F32 = [
    ("upright", 1, "softplus", "sigmoid"),
    whole(("upright", 1, "relu", "clamped")),
    ("upright", 1, "exponential", "sigmoid"),
    whole(("rotated", 2, "exponential", "sigmoid")),
]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(map(str, case)))
def case(request):
    return request.param


def relative(a, b):
    """Relative L2 difference."""
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def test_image_is_the_reference(case):
    v = cases.volume(*case)
    rays = cases.rays(v)
    for step in (0.5, 1.37, 100):
        wanted = reference.march(v, rays, step * v.voxel, cases.BACKGROUND)
        np.testing.assert_allclose(drive.image(v, rays, step * v.voxel), wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("degree", [0, 1])
def test_image_is_the_reference_with_early_stop_and_weight_floor(degree):
    v = cases.volume(degree=degree)
    rays = cases.rays(v)
    wanted = reference.march(v, rays, 0.1, cases.BACKGROUND, 0.3, 0.02)
    assert np.abs(wanted - reference.march(v, rays, 0.1, cases.BACKGROUND)).max() > 0.01  # they do something
    np.testing.assert_allclose(
        drive.image(v, rays, 0.1, min_transmittance=0.3, min_weight=0.02), wanted, rtol=0, atol=1e-10
    )


def test_points_on_the_last_faces_belong_to_the_last_cell():
    """So that no sample beyond the level is read, which for the finest level would be other memory."""
    grid = drive.grid_of(1)
    grid.upload(cases.volume())
    top = np.array(cases.FINEST) - 1.0
    points = np.array([0 * top, top, top + 1e-9, top - 1e-9, [top[0], 1, 1.5]])
    cells = np.empty_like(points)
    worker.cells_of(grid.fields, points, cells)
    np.testing.assert_array_equal(cells, [0 * top, top - 1, top - 1, top - 1, [top[0] - 1, 1, 1]])


def test_gradient_is_the_reference(case):
    v = cases.volume(*case)
    rays = cases.rays(v)
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    wanted = reference.march_gradient(v, rays, 0.5 * v.voxel, cases.BACKGROUND, d_image)
    for got, want in zip(drive.gradient(v, rays, d_image, 0.5 * v.voxel), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.abs(want).max())


@pytest.mark.parametrize(("degree", "block"), [(0, 4), (0, 1), (1, 4)])
def test_gradient_is_the_reference_with_early_stop_and_weight_floor(degree, block):
    v = cases.volume(degree=degree)
    rays = cases.rays(v)
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    wanted = reference.march_gradient(v, rays, 0.1, cases.BACKGROUND, d_image, 0.3, 0.02)
    for got, want in zip(
        drive.gradient(v, rays, d_image, 0.1, min_transmittance=0.3, min_weight=0.02, block=block), wanted, strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.abs(want).max())


@pytest.mark.parametrize("density", cases.FIT_DENSITIES)
def test_depth_is_the_reference(density):
    v = cases.volume(density=density)
    rays = cases.rays(v)
    wanted, early = reference.depth(v, rays, 0.1), reference.depth(v, rays, 0.1, 0.3)
    assert np.isinf(wanted).any()
    assert np.isfinite(wanted).any()
    assert (wanted != early).any()
    np.testing.assert_allclose(drive.depth(v, rays, 0.1), wanted, rtol=1e-10)
    np.testing.assert_allclose(drive.depth(v, rays, 0.1, 0.3), early, rtol=1e-10)


@pytest.mark.parametrize("degree", range(4))
def test_harmonics_are_the_reference(degree):
    directions = np.random.default_rng(0).normal(size=(20, 3))
    directions = np.concatenate([directions, np.eye(3), -np.eye(3)])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    got = np.empty((len(directions), (degree + 1) ** 2))
    worker.harmonics_of(degree, directions, got)
    wanted = [reference.harmonics(degree, d) for d in directions]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-14)


@pytest.mark.parametrize("case", CASES_IN_F32, ids=lambda case: "-".join(map(str, case)))
def test_f32_is_close_to_f64(single, case):
    v = cases.volume(*case)
    rays = cases.rays(v)
    np.testing.assert_allclose(single(worker.image, *case), worker.image(*case), rtol=0, atol=1e-5)
    d_image = np.random.default_rng(1).normal(size=(len(rays), 4))
    wanted = drive.gradient(v, rays, d_image, 0.5 * v.voxel)
    for got, want in zip(single(worker.gradient, *case), wanted, strict=True):
        assert relative(got, want) < 1e-3

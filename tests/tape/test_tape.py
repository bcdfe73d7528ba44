"""Law: one Tape over march, loss and regularisers gives the gradient of their sum; regularisers on a share of the
blocks are on average the full sum."""

from __future__ import annotations

from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
from drive import best_agreement

from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.fitting.settings.objective import LOSSES, Regulariser
from raymarch.kernels.fit.regularise import EPS_DENSITY, EPS_FEATURES, TILE_EDGE

STEP, SEED = 3, 5
NAMES = ("tv_density", "tv_colour", "sparsity")
WEIGHTS = (0.7, 0.4, 0.3)  # of each
SCENE = cases.volume("upright", 1)
RAYS = cases.rays(SCENE)
ROUNDING = len(RAYS) * float(np.finfo(float).eps)  # of a sum to which every ray adds once


def ready(v, target=None):
    """Grid and buffer with a volume, its rays, what they should be, and no gradient."""
    grid, buffer = drive.grid_of(v.degree), drive.ray_buffer()
    if target is not None:
        drive.set_rays(np.zeros_like(target), target)
    grid.upload(v)
    grid.refresh_occupancy(0.0)
    buffer.upload(RAYS)
    for field in (grid.fields.density.grad, grid.fields.features.grad, buffer.fields.image.grad):
        field.fill(0)
    return grid, buffer


def targets(seed=0):
    return np.random.default_rng(seed).uniform(0, 1, (len(RAYS), 4))


def regularise(grid, buffer, step, fraction, weights):
    """Add those of our regularisers that have a weight."""
    for name, weight in zip(NAMES, weights, strict=True):
        if weight:
            differentiable_passes.regularise(grid, buffer, Regulariser.named(name, weight), SEED, step, fraction)


def whole(grid, buffer, weights=WEIGHTS, fraction=0.6, march=True):
    """The loss of one step of a fit; its gradient is left in the grid."""
    background = ti.Vector(list(cases.BACKGROUND))
    buffer.fields.image.grad.fill(0)
    with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
        if march:
            differentiable_passes.march(grid, buffer, len(RAYS), 0.17, 0.0, 0.0, background)
            differentiable_passes.compare(buffer, LOSSES["squared"], len(RAYS), background, 0.5)
        regularise(grid, buffer, STEP, fraction, weights)
    return buffer.fields.loss[None]


@pytest.mark.parametrize(
    ("variant", "march"),
    [
        pytest.param(("softplus", "sigmoid"), True, id="softplus-sigmoid-march and regularisers"),
        pytest.param(("softplus", "sigmoid"), False, id="softplus-sigmoid-regularisers"),
        pytest.param(
            ("exponential", "clamped"), True, id="exponential-clamped-march and regularisers", marks=pytest.mark.whole
        ),
        pytest.param(("exponential", "clamped"), False, id="exponential-clamped-regularisers"),
    ],
)
def test_gradient_of_the_tape_is_the_derivative_of_its_loss(variant, march):
    v = cases.volume("upright", 1, *variant)
    grid, buffer = ready(v, targets())
    whole(grid, buffer, march=march)
    rng = np.random.default_rng(7)
    for name, d in zip(("density", "features"), grid.download_gradient(), strict=True):
        direction = rng.normal(size=d.shape)

        def along(h, name=name, direction=direction):
            moved, _ = ready(replace(v, **{name: getattr(v, name) + h * direction}))
            return whole(moved, buffer, march=march)

        assert best_agreement(along, np.sum(d * direction)) < 1e-7


def test_gradients_of_tapes_add_up_until_they_are_taken():
    """The Tape clears nothing; the optimiser does. Without regularisers their kernel adds nothing."""
    grid, buffer = ready(SCENE, targets())
    whole(grid, buffer, (0, 0, 0))
    once = grid.download_gradient()
    whole(grid, buffer, (0, 0, 0))
    for got, wanted in zip(grid.download_gradient(), once, strict=True):
        np.testing.assert_allclose(got, 2 * wanted, rtol=0, atol=ROUNDING * np.abs(wanted).max())


def test_gradients_of_march_and_regularisers_add():
    parts = []
    for weights, march in ((WEIGHTS, True), ((0, 0, 0), True), (WEIGHTS, False)):
        grid, buffer = ready(SCENE, targets())
        loss = whole(grid, buffer, weights, march=march)
        parts.append((loss, *grid.download_gradient()))
    for both, march, regularisers in zip(*parts, strict=True):
        np.testing.assert_allclose(both, march + regularisers, rtol=0, atol=ROUNDING * np.abs(both).max())


def variation(values, eps, shift=None):
    """Sum of sqrt(d^2 + eps^2) - eps over all edges, or those within the blocks of EDGE^3 moved by `shift`."""
    total = 0.0
    for axis in range(3):
        n = values.shape[axis]
        d = np.diff(values, axis=axis)
        penalty = np.sqrt(d**2 + eps**2) - eps
        if shift is not None:
            inside = (np.arange(n - 1) + shift[axis]) % TILE_EDGE < TILE_EDGE - 1
            penalty = np.compress(inside, penalty, axis=axis)
        total += penalty.sum()
    return total


def sparsity(v):
    """Sum of ln(1 + 2 x^2), x the optical depth over one scale."""
    return np.log(1 + 2 * (v.sigma() * v.activation.scale) ** 2).sum()


def regulariser(weights, fraction, step, v=SCENE):
    grid, buffer = ready(v)
    buffer.fields.loss[None] = 0
    regularise(grid, buffer, step, fraction, weights)
    return buffer.fields.loss[None]


@pytest.mark.parametrize("step", range(5))
def test_all_blocks_are_all_edges_within_them(step):
    """Weights are per voxel; an edge is within a block in (EDGE - 1) / EDGE of the shifts."""
    grid, _ = ready(SCENE)
    _, _, shift = differentiable_passes._blocks(grid, SEED, step)
    per_edge = (TILE_EDGE - 1) / TILE_EDGE * SCENE.density.size
    wanted = [
        0.7 * variation(SCENE.density, EPS_DENSITY, shift.to_list()) / per_edge,
        0.4 * variation(SCENE.features, EPS_FEATURES, shift.to_list()) / per_edge,
        0.3 * sparsity(SCENE) / SCENE.density.size,
    ]
    for i, one in enumerate(np.diag(WEIGHTS)):
        assert regulariser(one, 1.0, step) == pytest.approx(wanted[i], rel=1e-12)
    assert regulariser(WEIGHTS, 1.0, step) == pytest.approx(sum(wanted), rel=1e-12)


def test_a_flat_volume_has_no_variation():
    flat = cases.constant(0.3, 0.2, shape=cases.FINEST)
    assert regulariser((1, 1, 0), 1.0, 0, flat) == pytest.approx(0, abs=1e-15)
    assert regulariser((0, 0, 1), 1.0, 0, flat) == pytest.approx(np.log(1 + 2 * 0.3**2), rel=1e-12)


@pytest.mark.parametrize("fraction", [1.0, 0.4, 0.1])
def test_a_share_of_the_blocks_is_the_full_sum_on_average(fraction):
    """Mean over 400 steps within three standard errors, for each of the three."""
    full = [
        variation(SCENE.density, EPS_DENSITY) / SCENE.density.size,
        variation(SCENE.features, EPS_FEATURES) / SCENE.density.size,
        sparsity(SCENE) / SCENE.density.size,
    ]
    grid, buffer = ready(SCENE)
    for weights, wanted in zip(np.eye(3), full, strict=True):
        drawn = []
        for step in range(400):
            buffer.fields.loss[None] = 0
            regularise(grid, buffer, step, fraction, weights)
            drawn.append(buffer.fields.loss[None])
        error = np.std(drawn) / np.sqrt(len(drawn))
        assert abs(np.mean(drawn) - wanted) < 3 * error + 1e-12 * wanted
        assert (np.std(drawn) > 0.1 * wanted) == (fraction < 1)  # at 1 only the blocks' offset is left to chance


def test_empty_blocks_are_left_alone():
    """Where nothing is occupied nothing is regularised, and no gradient comes."""
    v = replace(SCENE, density=np.full(SCENE.shape, -40.0))
    grid, buffer = ready(v)
    grid.fields.empty_distance.fill(255)
    assert grid.measure_occupancy() == 0
    assert whole(grid, buffer, march=False, fraction=1.0) == 0
    assert not any(d.any() for d in grid.download_gradient())

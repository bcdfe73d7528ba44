"""Law: a gradient left to chance is the gradient in the mean, and what is not left to chance is added as it is."""

import cases
import drive
import numpy as np
import pytest
from whole import whole

from raymarch.device.brick_grid import BrickGrid, begin_anew
from raymarch.device.grid import Grid
from raymarch.device.grid_layout import set_numbers
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.kernels.integrator.sample_adjoint import MIN_CHANCE, draw_factor

ROULETTE = 0.5  # of these volumes' samples about half have less influence
DRAWS, DIRECTIONS, SIGMAS = 300, 6, 4.5
KINDS = [("dense", True), whole(("bricks", False))]  # and whether samples are kept for the adjoint
INFLUENCES = (0.0, 0.01, 0.03, 0.2, 0.4999, 0.5, 0.7, 3.0)
ARRAY = ti.types.ndarray(ndim=1)


def gradients(kind, keeps, roulette, draws):
    """Gradient of density and features by each of the draws, (draw, number)."""
    v, rng = cases.volume(), np.random.default_rng(0)
    rays, slots = cases.rays(v), {"slots": 2}
    bricks = BrickGrid(v.shape, 1, bricks=2, **slots) if kind == "bricks" else None
    with bricks or Grid(v.shape, 1, **slots) as grid, RayBuffer(len(rays), keeps) as buffer:
        if bricks:
            grid.hold(np.ones(grid.cells, bool))
        grid.upload(v)
        buffer.upload(rays)
        buffer.set_image_gradient(rng.normal(size=(len(rays), 4)))
        variant = grid.variant.replace(roulette=roulette)
        call = grid, buffer, len(rays), v.voxel, 0.0, 1e-3, ti.Vector(list(cases.BACKGROUND)), variant
        differentiable_passes.march(*call)
        found = []
        for draw in draws:
            begin_anew(grid)
            set_numbers(buffer.fields, draw=draw)
            differentiable_passes.march.grad(*call)
            found.append(np.concatenate([each.ravel() for each in grid.download_gradient()]))
    return np.array(found)


@pytest.mark.parametrize("kind", KINDS)
def test_mean_over_draws_is_the_gradient(kind):
    (wanted,) = gradients(*kind, 0.0, [0])
    found = gradients(*kind, ROULETTE, range(DRAWS))
    directions = np.random.default_rng(1).normal(size=(wanted.size, DIRECTIONS))
    along = found @ directions
    error = along.std(0) / np.sqrt(DRAWS)
    assert error.min() > 1e-3 * np.abs(wanted).max()  # much was left to chance
    np.testing.assert_array_less(np.abs(along.mean(0) - wanted @ directions), SIGMAS * error)


def test_a_draw_is_the_same_by_its_number_and_another_by_another():
    one, again, other = gradients("dense", True, ROULETTE, [7, 7, 8])
    np.testing.assert_array_equal(one, again)
    assert (one != other).mean() > 0.1


def the_variant():
    """Variant of the cases' volumes."""
    return drive.grid_of().variant


@ti.kernel
def shares(rays: ti.template(), variant: ti.template(), influence: float, out: ARRAY):
    """What each of many samples of one influence is taken times."""
    for n in range(out.shape[0]):
        out[n] = draw_factor(rays, variant, influence, n // 8, n % 8)


@pytest.mark.parametrize("influence", INFLUENCES)
def test_a_sample_is_drawn_in_proportion_to_its_influence(influence):
    buffer, out = drive.ray_buffer(), np.zeros(40_000)
    set_numbers(buffer.fields, draw=3)
    shares(buffer.fields, the_variant().replace(roulette=ROULETTE), influence, out)
    chance = np.clip(influence / ROULETTE, MIN_CHANCE, 1)
    assert set(np.unique(np.round(out * chance, 9))) == ({0.0, 1.0} if chance < 1 else {1.0})
    assert abs((out > 0).mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / out.size) + 1e-12


def test_without_roulette_all_is_added():
    out = np.zeros(1000)
    shares(drive.ray_buffer().fields, the_variant(), 1e-9, out)
    assert (out == 1).all()

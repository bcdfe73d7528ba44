"""Law: features are added up and stepped where a step added to them, all of them, and nowhere else."""

import cases
import drive
import numpy as np
import pytest
from whole import whole

from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.fitting.settings.objective import REGULARISERS
from raymarch.fitting.settings.optimiser import Adam
from raymarch.kernels.field.bricks import cell_index, sample_index
from raymarch.kernels.field.copies import clear_gradients, clear_moments
from raymarch.kernels.field.gather import cell_of
from raymarch.kernels.field.touched import add_features, mark
from raymarch.kernels.fit.regularise import COLOUR_DIFFERENCE, regularise
from raymarch.volumes.volume import Volume

SHAPE = (19, 13, 18)  # several words along each axis, and blocks of eight that are not whole
CHANNELS = 12
SLOTS = 2
POINTS = ti.types.ndarray(ndim=2)
KINDS = [4, "bricks", *map(whole, (1, 2, 8))]  # edge of a dense grid's blocks, or bricks


def grid_of(kind) -> Grid:
    """A grid of a kind, with nothing in it."""
    if kind == "bricks":
        grid = BrickGrid(SHAPE, 1, bricks=3 * 2 * 3, slots=SLOTS, moments=True)
        grid.hold(np.ones(grid.cells, bool))
    else:
        grid = Grid(SHAPE, 1, slots=SLOTS, moments=True, block=kind)
    grid.fill(0.0, 0.0)
    return drive.kept(grid)


@ti.kernel
def add_at(grid: ti.template(), points: POINTS, values: POINTS):
    """Add features at points, the first by the second slot, the next by the first."""
    for _ in range(1):
        for n in range(points.shape[0]):
            p = ti.Vector([points[n, 0], points[n, 1], points[n, 2]])
            cell = cell_of(p, ti.Vector([SHAPE[0] - 1, SHAPE[1] - 1, SHAPE[2] - 1]))
            value = ti.Vector.zero(float, CHANNELS)
            for c in ti.static(range(CHANNELS)):
                value[c] = values[n, c]
            add_features(grid, (n + 1) % SLOTS, cell_index(grid, cell), p - cell, value)
            mark(grid, cell_index(grid, cell), cell_index(grid, cell))


@ti.kernel
def put_features(grid: ti.template(), slot: int, x: int, y: int, z: int, value: float):
    """One number into a slot's features, which nobody notes."""
    for _ in range(1):
        I = sample_index(grid, ti.Vector([x, y, z]))
        grid.d_features[slot, I[0], I[1], I[2]][0] = value


def added(points, values):
    """The sum (x, y, z, channel) of values (n, channel) that points (n, 3) give their cells' corners."""
    found = np.zeros((*SHAPE, CHANNELS))
    cells = np.minimum(points.astype(int), np.array(SHAPE) - 2)
    for corner in np.ndindex(2, 2, 2):
        f = np.where(corner, points - cells, 1 - (points - cells)).prod(1)
        np.add.at(found, tuple((cells + corner).T), f[:, None] * values)
    return found


def drawn(count, seed):
    """Points (n, 3) all over the grid, on its samples and in its corners, with values (n, channel)."""
    rng, top = np.random.default_rng(seed), np.array(SHAPE) - 1.0
    points = np.concatenate([rng.uniform(0, 1, (count, 3)) * top, np.floor(rng.uniform(0, 1, (5, 3)) * top), [0 * top]])
    return points, rng.normal(size=(len(points), CHANNELS))


@pytest.mark.parametrize("count", [3, 500])
@pytest.mark.parametrize("kind", KINDS)
def test_what_slots_hold_of_features_is_added_up_and_nothing_left(kind, count):
    grid = grid_of(kind)
    for seed in range(4):
        points, values = drawn(count, seed)
        clear_gradients(grid.fields)
        add_at(grid.fields, points, values)
        grid.reduce_slots()
        np.testing.assert_allclose(grid.download_gradient()[1], added(points, values), rtol=0, atol=1e-12)
        own = 1 if kind == "bricks" else 0
        assert not grid.fields.d_features.to_numpy()[own:].any()
        assert not grid.fields.feature_cells.to_numpy().any()


@pytest.mark.parametrize("kind", KINDS)
def test_each_cell_reaches_its_eight_corners_in_any_word(kind):
    """One cell at a time, all of those that lie at the end of a word along some axis among them."""
    grid = grid_of(kind)
    value = np.ones((1, CHANNELS))
    for cell in np.ndindex(10, 9, 9):
        point = np.array([cell]) + 0.5
        clear_gradients(grid.fields)
        add_at(grid.fields, point, value)
        grid.reduce_slots()
        assert grid.download_gradient()[1].sum() == pytest.approx(CHANNELS, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_features_that_no_sample_added_to_are_not_looked_at(kind):
    """In a block that was touched, a slot's sample that no noted cell reaches stays as it is."""
    grid = grid_of(kind)
    clear_gradients(grid.fields)
    add_at(grid.fields, np.array([[4.5, 4.5, 4.5]]), np.ones((1, CHANNELS)))
    put_features(grid.fields, 1, 7, 7, 7, 3.0)
    grid.reduce_slots()
    assert grid.download_gradient()[1][7, 7, 7].tolist() == [0.0] * CHANNELS
    put_features(grid.fields, 1, 7, 7, 7, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_moves_what_was_added_to_and_is_the_last_to_look(kind):
    grid = grid_of(kind)
    clear_gradients(grid.fields)
    grid.fill(0.0, 0.0)
    points, values = drawn(40, 5)
    add_at(grid.fields, points, values)
    grid.reduce_slots()
    Adam(coarse=0.0).step(grid, 0, 0.0, 0)
    moved = (grid.download()[1] != 0).any(-1)
    np.testing.assert_array_equal(moved, (added(points, values) != 0).any(-1))
    assert not grid.fields.feature_samples.to_numpy().any()
    assert not grid.download_gradient()[1].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_cube_moves_by_all_that_was_added_in_it(kind):
    """At the first step by the rate against the sign of the sum; shown by the samples that nothing was added to."""
    grid = grid_of(kind)
    clear_gradients(grid.fields)
    clear_moments(grid.fields)
    grid.fill(0.0, 0.0)
    points, values = drawn(40, 6)
    add_at(grid.fields, points, values)
    grid.reduce_slots()
    Adam(lr_colour=0.3, coarse=0.25).step(grid, 0, 0.0, 0)
    given = added(points, values)
    whole_cubes = np.pad(given, [(0, -n % 4) for n in SHAPE] + [(0, 0)])
    x, y, z = (n // 4 for n in whole_cubes.shape[:3])
    total = whole_cubes.reshape(x, 4, y, 4, z, 4, CHANNELS).sum((1, 3, 5))
    wanted = -0.25 * 0.3 * np.sign(total).repeat(4, 0).repeat(4, 1).repeat(4, 2)[tuple(map(slice, SHAPE))]
    beside = ~(given != 0).any(-1)
    np.testing.assert_allclose(grid.download()[1][beside], wanted[beside], rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_step_takes_what_a_regulariser_gave_features_that_no_ray_met(kind):
    grid, buffer = grid_of(kind), drive.ray_buffer()
    clear_gradients(grid.fields)
    rng = np.random.default_rng(2)
    features = rng.normal(size=(*SHAPE, CHANNELS))
    grid.upload(Volume(np.zeros(SHAPE), features, np.eye(4), cases.volume().activation))
    before = grid.download()[1]
    ours = REGULARISERS["tv_colour"]
    call = differentiable_passes._call(grid, ours, 0, 0, 1.0)
    regularise(grid.fields, buffer.fields, grid.variant, COLOUR_DIFFERENCE, ours.value, ours.slope, *call)
    given = (grid.download_gradient()[1] != 0).any(-1)
    assert given.any()
    Adam(coarse=0.0).step(grid, 0, 0.0, 0)
    np.testing.assert_array_equal((grid.download()[1] != before).any(-1), given)

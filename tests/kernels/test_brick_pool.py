"""Law: a sparse grid is the dense one bit for bit where all bricks are, and one whose missing samples are empty."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cases
import drive
import numpy as np
import pytest
from whole import whole

from raymarch.device import pool as device_pool
from raymarch.device.brick_grid import BrickGrid, places_of, read_bricks
from raymarch.device.grid import Grid, begin_anew
from raymarch.errors import RaymarchError
from raymarch.fitting import differentiable_passes
from raymarch.fitting.pruning import Pruning
from raymarch.fitting.settings.objective import Regulariser
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.rays import Rays
from raymarch.kernels.field.copies import clear_moments
from raymarch.kernels.fit.adam import adam
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.volume import Volume

SHAPE, FINER = (13, 10, 17), (17, 13, 22)
ROOM = 3 * 2 * 3
STEP = 0.11
COUNT = 400  # rays: more than the chunk that one slot takes
KINDS = ("dense", "sparse")


def dense_volume(degree=0, seed=0):
    """Random values in every sample."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=SHAPE), rng.normal(0, 0.7, (*SHAPE, 3 * (degree + 1) ** 2))
    return Volume(*values, np.diag([0.1, 0.12, 0.09, 1]), cases.volume().activation)


def holed_volume(degree=0, seed=0):
    """The same without some of its bricks, and the mask of the samples that are there."""
    v = dense_volume(degree, seed)
    whole = Bricks.of_dense(v.density, v.features, v.activation.empty)
    kept = np.random.default_rng(seed + 9).permutation(whole.count)[: 2 * whole.count // 3]
    table = np.full(whole.table.shape, -1, np.int32)
    for number, old in enumerate(kept):
        table[whole.table == old] = number
    bricks = Bricks(table, whole.density[kept], whole.features[kept])
    there = np.repeat(np.repeat(np.repeat(table >= 0, 8, 0), 8, 1), 8, 2)[tuple(map(slice, SHAPE))]
    return Volume.of_bricks(bricks, SHAPE, v.world_from_index, v.activation), there


@pytest.fixture
def grids():
    """Grids by kind and degree."""
    made = {}

    def grid_of(kind, degree) -> Grid:
        if (kind, degree) not in made:
            how = {"slots": 2, "moments": True}
            grid = BrickGrid(FINER, degree, bricks=ROOM, **how) if kind == "sparse" else Grid(FINER, degree, **how)
            made[kind, degree] = drive.kept(grid)
        return made[kind, degree]

    return grid_of


def gradient_on(grid, rays, w):
    """Gradient by density and features of sum(image * w), of a grid as it is."""
    begin_anew(grid)
    image = drive.image_on(grid, drive.ray_buffer(), rays, STEP)
    drive.ray_buffer().set_image_gradient(w)
    call = grid.variant, len(rays), STEP, 0.0, 0.0, drive.ti.Vector(list(cases.BACKGROUND))
    drive.march_adjoint(grid.fields, drive.ray_buffer().fields, *call)
    grid.reduce_slots()
    return image, *grid.download_gradient()


def same(one, other, within=0.0):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=within)


@pytest.mark.ordered
@pytest.mark.parametrize("degree", [0, whole(1)])
def test_image_gradient_and_step_are_a_dense_grids_bit_for_bit(grids, degree):
    v, found = dense_volume(degree), []
    rays = cases.rays(v)
    w = np.random.default_rng(1).normal(size=(len(rays), 4))
    for kind in KINDS:
        grid = grids(kind, degree)
        if kind == "sparse":
            grid.set_level(SHAPE, v.world_from_index)
            grid.hold(np.ones(grid.cells, bool))
        grid.upload(v)
        part = gradient_on(grid, rays, w)
        clear_moments(grid.fields)
        adam(grid.fields, grid.blocks, 0, 0, 0.3, 0.2, 0.25, 0.9, 0.99, 1e-8, 0.0, 0.1, 0.2)
        occupied = grid.refresh_occupancy(0.5, margin=1)
        found.append((*part, *grid.download(), *drive.distances(grid), np.array(occupied)))
    assert not np.array_equal(found[0][3], v.density)
    same(*found)


@pytest.mark.parametrize("degree", [0, whole(1)])
def test_refining_and_regularising_are_a_dense_grids_where_nothing_is_missing(grids, degree):
    v, found = dense_volume(degree), []
    buffer = drive.ray_buffer()
    for kind in KINDS:
        grid = grids(kind, degree)
        if kind == "sparse":
            grid.set_level(SHAPE, v.world_from_index)
            grid.hold(np.ones(grid.cells, bool))
        grid.upload(v)
        grid.refine(FINER)
        grid.measure_occupancy()
        values = grid.download()
        for name in ("tv_density", "tv_colour", "sparsity"):
            with drive.ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
                differentiable_passes.regularise(grid, buffer, Regulariser.named(name, 1.0), 3, 5, 0.5)
        found.append((*values, *grid.download_gradient(), np.array(buffer.fields.loss[None])))
        begin_anew(grid)
    assert np.abs(found[0][2]).max() > 0
    same(*found, within=1e-13)  # bit for bit where Taichi optimises, as users have it


def test_a_march_of_a_pool_with_holes_is_that_of_the_volume_without_them(grids):
    v, there = holed_volume()
    rays = cases.rays(v)
    dense = grids("dense", 0)
    dense.upload(v.dense())
    sparse = grids("sparse", 0)
    sparse.upload(v)
    w = np.random.default_rng(1).normal(size=(len(rays), 4))
    wanted, found = gradient_on(dense, rays, w), gradient_on(sparse, rays, w)
    drive.same_sums(found[0], wanted[0])
    for mine, its in zip(found[1:], wanted[1:], strict=True):
        drive.same_sums(mine[there], its[there])
        assert not mine[~there].any()  # dropped
    assert np.abs(wanted[1][~there]).max() > 0
    assert sparse.download_bricks().table.tolist() == v.bricks.table.tolist()
    same(sparse.download(), (v.density, v.features))


@pytest.mark.ordered
@pytest.mark.parametrize("axis", range(3))
def test_a_cell_whose_lower_corner_is_in_a_missing_brick_gives_its_upper_ones_their_gradient(grids, axis):
    """Rays that see nothing but the cells between the first bricks along an axis, which are missing, and the next."""
    v = dense_volume()
    every = Bricks.of_dense(v.density, v.features, v.activation.empty)
    there = np.moveaxis(every.table, axis, 0)
    kept, table = np.sort(there[1:].ravel()), np.full(every.table.shape, -1, np.int32)
    np.moveaxis(table, axis, 0)[1:] = np.searchsorted(kept, there[1:])
    bricks = Bricks(table, every.density[kept], every.features[kept])
    holed = Volume.of_bricks(bricks, SHAPE, v.world_from_index, v.activation)
    start = np.full((COUNT, 3), -2.0)
    start[:, axis] = 7.5  # between the last sample of the first brick and the first of the next
    start[:, (axis + 1) % 3] = np.linspace(2, 5, COUNT)
    scale = np.diag(v.world_from_index)[:3]
    rays = Rays(start * scale, np.eye(3)[[(axis + 2) % 3] * COUNT] * scale)
    w = np.ones((len(rays), 4))
    found = []
    for kind, volume in (("dense", holed.dense()), ("sparse", holed)):
        grid = grids(kind, 0)
        grid.upload(volume)
        gradient = gradient_on(grid, rays, w)[1]
        clear_moments(grid.fields)
        adam(grid.fields, grid.blocks, 0, 0, 0.3, 0.2, 0.25, 0.9, 0.99, 1e-8, 0.0, 0.1, 0.2)
        found.append([np.moveaxis(x, axis, 0)[8:] for x in (gradient, *grid.download())])
    same(*found)
    assert np.abs(found[0][0]).max() > 0
    assert not np.array_equal(found[0][1], np.moveaxis(v.density, axis, 0)[8:])


@pytest.mark.parametrize("degree", [0, whole(1)])
def test_the_adjoint_of_a_pool_with_holes_is_the_transpose_of_its_march(grids, degree):
    """Against central differences, along a random direction of the samples that are there."""
    v, there = holed_volume(degree, seed=3)
    rays, rng = cases.rays(v), np.random.default_rng(2)
    w = rng.normal(size=(len(rays), 4))
    grid = grids("sparse", degree)
    grid.upload(v)
    _, *gradients = gradient_on(grid, rays, w)
    for name, d in zip(("density", "features"), gradients, strict=True):
        direction = rng.normal(size=getattr(v.bricks, name).shape)
        parts = {n: 0 * getattr(v.bricks, n) for n in ("density", "features")} | {name: direction}
        along = getattr(Volume.of_bricks(replace(v.bricks, **parts), SHAPE, v.world_from_index, v.activation), name)

        def moved(h, name=name, direction=direction):
            bricks = replace(v.bricks, **{name: getattr(v.bricks, name) + h * direction})
            grid.upload(replace(v, samples=replace(v.samples, bricks=bricks)))
            return np.sum(w * drive.image_on(grid, drive.ray_buffer(), rays, STEP))

        assert drive.best_agreement(moved, np.sum(d[there] * along[there])) < 1e-7
    begin_anew(grid)


def test_what_is_dropped_stays_out_and_away(grids):
    """The place of missing bricks is what it was after steps that write to it."""
    v, _ = holed_volume()
    grid, rays = grids("sparse", 0), cases.rays(v)
    grid.upload(v)
    for age in range(3):
        gradient_on(grid, rays, np.ones((len(rays), 4)))
        adam(grid.fields, grid.blocks, age, age, 0.3, 0.2, 0.25, 0.9, 0.99, 1e-8, 0.5, 0.1, 0.2)
    for field in (grid.fields.d_density, grid.fields.m_density, grid.fields.v_density):
        assert not field.to_numpy().reshape(-1, field.shape[-1])[:, :512].any()
    assert np.all(grid.fields.density.to_numpy()[0, 0, :512] == v.activation.empty)


def test_carving_leaves_bricks_that_an_occupied_cell_reads(grids):
    v = dense_volume()
    occupied = np.zeros(grids("dense", 0).cells, bool)
    occupied[0, 1, 2] = occupied[3, 0, 4] = True
    found = []
    for kind in KINDS:
        grid = grids(kind, 0)
        if kind == "sparse":
            grid.set_level(SHAPE, v.world_from_index)
            grid.hold(np.ones(grid.cells, bool))
        grid.upload(v)
        grid.occupy(occupied)
        grid.measure_occupancy()
        samples = grid.carved_samples()
        found.append((samples.density(v.activation.empty), samples.features() * (samples.density(0) > -20)[..., None]))
        grid.measure_occupancy()
    assert grids("sparse", 0).carved_samples().bricks.count < ROOM
    lit = found[0][0] > v.activation.empty
    assert 0 < lit.sum() < lit.size
    for dense, sparse in zip(*found, strict=True):
        np.testing.assert_array_equal(sparse[lit], dense[lit])
    assert np.all(found[1][0][~lit] <= v.activation.empty)


@pytest.mark.parametrize("shape", [(33, 17, 9), (40, 11, 23)], ids=str)
def test_bricks_that_cells_read_hold_every_corner_of_every_point_in_them(shape):
    rng = np.random.default_rng(0)
    cells = rng.uniform(size=(8, 4, 3)) < 0.2
    bricks = read_bricks(cells, shape)
    for cell in np.argwhere(cells):
        points = (cell + rng.uniform(0, 1, (50, 3))) * (np.array(shape) - 1) / cells.shape
        lower = np.minimum(points.astype(int), np.array(shape) - 2)
        for corner in itertools.product((0, 1), repeat=3):
            assert bricks[tuple(((lower + corner) // 8).T)].all()
    assert not read_bricks(np.zeros((8, 4, 3), bool), shape).any()


def test_places_are_dealt_once_each_along_a_curve_that_stays_near():
    mask = np.random.default_rng(0).uniform(size=(9, 8, 7)) < 0.5
    table = places_of(mask)
    assert np.array_equal(table > 0, mask)
    assert sorted(table[mask]) == list(range(1, mask.sum() + 1))
    at = np.argwhere(mask)[np.argsort(table[mask])]
    assert np.abs(np.diff(at, axis=0)).sum(1).mean() < 3


def test_a_volume_without_a_brick_is_empty():
    nothing = Bricks(np.full((2, 2, 2), -1, np.int32), np.zeros((0, 8, 8, 8)), np.zeros((0, 8, 8, 8, 3)))
    v = Volume.of_bricks(nothing, (9, 10, 11), np.eye(4))
    with BrickGrid(v.shape, 0, bricks=1) as grid:
        grid.upload(v)
        assert grid.bricks == 0
        assert grid.download_bricks().count == 0


@pytest.mark.parametrize("small", [True, False], ids=["small", "large"])
def test_a_grid_that_grows_keeps_what_is_in_it_and_that_it_diverged(small, monkeypatch):
    """A large one gives back first what only a fit needs."""
    monkeypatch.setattr("raymarch.device.brick_grid.SMALL_TREE_BYTES", device_pool.SMALL_TREE_BYTES if small else 0)
    v = holed_volume()[0]
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=1, moments=True) as grid:
        grid.upload(v)
        grid.occupy(np.arange(np.prod(grid.cells)).reshape(grid.cells) % 2 == 0)
        grid.measure_occupancy()
        grid.fields.nonfinite_step[None] = 7
        cells, table, values = grid.occupied_cells(), grid.table(), grid.download()
        assert grid.grow(v.bricks.count + 300)
        assert grid.room == v.bricks.count + 300
        assert grid.fields.nonfinite_step[None] == 7
        now = grid.occupied_cells(), grid.table(), *grid.download()
        for one, before in zip(now, (cells, table, *values), strict=True):
            np.testing.assert_array_equal(one, before)
        assert (grid.slots, grid.moments) == (1, True)
        grid.fields.m_density.fill(0.5)
        assert not grid.grow(10**8)
        np.testing.assert_array_equal(grid.table(), table)
        assert np.all(grid.fields.m_density.to_numpy() == 0.5)


def test_a_fit_that_ended_has_its_values_and_gives_the_rest_back(monkeypatch):
    """Nobody else gets what is left of it."""
    monkeypatch.setattr("raymarch.device.brick_grid.SMALL_TREE_BYTES", 0)
    v = holed_volume()[0]
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=2, moments=True) as grid:
        grid.upload(v)
        grid.occupy(np.arange(np.prod(grid.cells)).reshape(grid.cells) % 2 == 0)
        grid.measure_occupancy()

        def values():
            bricks = grid.carved_samples().bricks
            return [*grid.download(), bricks.table, bricks.density, bricks.features, grid.occupied_cells()]

        wanted, roots = values(), grid._tree.roots
        grid.end_fit()
        assert [root.destroyed for root in roots] == [False, True]
        for one, other in zip(values(), wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(RaymarchError, match="no gradient"):
            grid.refine(grid.shape)
        left = grid._tree
    assert left not in device_pool._kept
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=2, moments=True) as grid:
        grid.upload(v)
        np.testing.assert_array_equal(grid.download()[0], wanted[0])
        assert not grid.fields.d_density.to_numpy().any()


def test_a_small_fit_that_ended_is_kept_for_the_next():
    v = holed_volume()[0]
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=2, moments=True) as grid:
        grid.upload(v)
        grid.end_fit()
        left = grid._tree
    assert left in device_pool._kept


def test_a_grid_that_has_no_memory_to_grow_keeps_its_moments(monkeypatch):
    """A fit goes on with it, and its moments are as old as they were."""
    v = holed_volume()[0]
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=1, moments=True) as grid:
        grid.upload(v)
        grid.fields.m_density.fill(0.5)
        monkeypatch.setattr("raymarch.device.memory.available_bytes", lambda: 0)
        assert not grid.grow(10_000)
        assert np.all(grid.fields.m_density.to_numpy() == 0.5)
        np.testing.assert_array_equal(grid.download()[0], v.density)


def test_moments_begin_anew_where_a_grid_was_refused_the_memory_that_was_found_for_it(monkeypatch):
    """What was given back is taken again without what was in it: a fit that stays at its level has to know."""
    v, allocate = holed_volume()[0], BrickGrid._allocate

    def refused(self, places):
        if places > v.bricks.count:
            raise RaymarchError("no memory")
        allocate(self, places)

    monkeypatch.setattr(Pruning, "prune", lambda self: None)
    monkeypatch.setattr(Pruning, "make_room", lambda self, shape, most: self.grid.grow(10_000))
    with BrickGrid(v.shape, 0, bricks=v.bricks.count, slots=1, moments=True) as grid:
        grid.upload(v)
        grid.fields.m_density.fill(0.5)
        monkeypatch.setattr(BrickGrid, "_allocate", refused)
        assert Pruning(grid, None, None, FitSettings(), 0.0).next_level(1, grid.shape, lambda room: room)
        assert not grid.fields.m_density.to_numpy().any()
        np.testing.assert_array_equal(grid.download()[0], v.density)


def test_dense_arrays_with_more_numbers_than_kernels_index_are_refused(monkeypatch):
    """A sparse grid may have more samples than any dense one."""
    monkeypatch.setattr("raymarch.device.grid.MAX_CELLS", 3 * 33**3 - 1)
    said = "dense arrays of 33 x 33 x 33 samples have 3 numbers each"
    with BrickGrid((33, 33, 33), 0, bricks=9) as grid, pytest.raises(RaymarchError, match=said):
        grid.download()


def test_more_bricks_than_there_is_room_for_are_refused():
    said = "125 bricks are wanted but there is room for 9; raise memory or lower"
    with BrickGrid((33, 33, 33), 0, bricks=9) as grid, pytest.raises(RaymarchError, match=said):
        grid.hold(np.ones(grid.cells, bool))


def test_rays_that_ask_after_a_pruning_leap_by_what_it_left():
    """Else the next look would leap over all there is, and find that nobody sees anything."""
    with BrickGrid((33, 33, 33), 0, bricks=125, slots=1, moments=True) as grid:
        grid.measure_occupancy()
        kept = np.random.default_rng(0).random(grid.cells) < 0.2
        Pruning(grid, None, None, FitSettings(), 0.0)._keep(kept)
        places = np.stack(np.meshgrid(*map(np.arange, grid.cells), indexing="ij"), -1)[..., None, :]
        wanted = abs(places - np.argwhere(kept)).max(-1).min(-1)
        np.testing.assert_array_equal(drive.distances(grid)[0], wanted)

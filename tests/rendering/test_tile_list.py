"""Law: the tiles that one ray tells to be clear of all that is occupied are tiles no ray of which meets any."""

import cases
import drive
import numpy as np
import pytest
from whole import whole

from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.engine import ti
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.geometry.pose import look_at
from raymarch.kernels.rays.camera import corner_of
from raymarch.kernels.rays.tile_list import TILES_A_RUN, hit_or_clear, list_tiles, meets_occupied, ray_of
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

SHAPE = (61, 57, 53)
ROD = (9, 9, 201)
SIZE = 112  # so that there are more tiles than one thread counts
OCCUPIED = (0.0003, 0.003, 0.03, 0.5)  # of the cells
FLAGS = ti.types.ndarray(ndim=1)


def cameras():
    """From afar, from near, from inside, with a wide lens, so near that a tile is wider than a cell, and from so far
    that one pixel of a tile has all of the box."""
    centre = np.array([0.1, 0.0, -0.1])
    for distance, fov in ((4.0, 0.5), (2.0, 1.0), (0.3, 1.4), (1.2, 2.4)):
        yield Camera.from_fov(look_at(centre + distance * np.array([0.5, -0.7, 0.5]), centre), fov, SIZE, SIZE)
    pose = look_at(centre + [0.0, 2.5, 0.4], centre)
    yield Camera(pose, (70.0, 65.0), (54.0, 59.5), SIZE, SIZE, lens=Lens("opencv", (-0.3, 0.08, 0, 0, 0)))
    yield Camera.from_fov(look_at(centre + [0.0, -2.5, 0.4], centre), 1.0, 8, 8)
    yield Camera(look_at(centre + [0.0, -20.0, 0.4], centre), (7.3, 7.3), (1.5, 2.5), 8, 8)


def seen_by(some: list[Camera]) -> ImageStore:
    """Views whose images do not matter."""
    return ImageStore(Views(some, [np.full((c.height, c.width, 3), 9, np.uint8) for c in some]))


def filled(shape, world_from_index) -> Grid:
    grid = Grid(shape, 0)
    grid.upload(Volume(np.zeros(shape), np.zeros((*shape, 3)), world_from_index))
    return grid


@pytest.fixture(scope="module", autouse=True)
def trees():
    """Trees with room for all that comes here, so that kernels are compiled once."""
    seen_by(list(cameras())).close()
    Grid(tuple(np.maximum(SHAPE, ROD)), 0).close()


@pytest.fixture
def store():
    with seen_by(list(cameras())) as store:
        yield store


@pytest.fixture
def grid():
    """A grid of many occupancy cells, turned in the world."""
    turned = cases.motion((1, 2, -1), 0.5, (-0.7, -0.6, -0.5)) @ np.diag([0.02, 0.022, 0.024, 1])
    with filled(SHAPE, turned) as grid:
        yield grid


@ti.kernel
def any_ray_meets(store: ti.template(), grid: ti.template(), dt: float, hit: FLAGS):
    """Whether any ray of a tile meets something, each asked."""
    for t in range(hit.shape[0]):
        view, row, column = corner_of(store, t)
        for within in range(store.tile * store.tile):
            o, d = ray_of(store, grid, view, column + within % store.tile + 0.5, row + within // store.tile + 0.5)
            if meets_occupied(grid, o, d, dt):
                hit[t] = 1


@ti.kernel
def one_ray_tells(store: ti.template(), grid: ti.template(), dt: float, clear: FLAGS):
    """Whether the ray through a tile's middle says that none does."""
    for t in range(clear.shape[0]):
        _hit, is_clear = hit_or_clear(store, grid, t, dt)
        clear[t] = ti.cast(is_clear, ti.i32)


@pytest.mark.parametrize("fraction", OCCUPIED)
@pytest.mark.parametrize("step", [1.0, whole(0.4)])
def test_list_is_of_the_tiles_with_a_ray_that_meets_something(store, grid, fraction, step):
    occupied = np.random.default_rng(0).uniform(size=grid.cells) < fraction
    drive.set_occupied(grid, occupied)
    grid.measure_occupancy()
    hit, clear = np.zeros(store.tiles, np.int32), np.zeros(store.tiles, np.int32)
    any_ray_meets(store.fields, grid.fields, step * grid.voxel, hit)
    one_ray_tells(store.fields, grid.fields, step * grid.voxel, clear)
    found = list_tiles(store.fields, grid.fields, step * grid.voxel, store.tiles)
    np.testing.assert_array_equal(store.fields.list.to_numpy()[:found], np.flatnonzero(hit))
    assert hit[:TILES_A_RUN].any() and hit[TILES_A_RUN:].any()
    assert not (hit & clear).any()
    assert occupied.any()
    assert clear.any()


BESIDE = ((-0.6427, -0.7661, 0.0114, 0.23), (-0.7659, 0.6428, 0.0159, 0.25), (-0.0195, 0.0015, -0.9998, -0.4))


def test_a_tile_is_listed_whose_pixel_meets_the_box_where_its_middle_and_corners_do_not():
    """The end of a rod, from beside it: one corner's ray grazes the box elsewhere, the middle's misses it."""
    camera = Camera.from_fov(np.vstack([BESIDE, (0, 0, 0, 1)]), 1.0, 64, 64)
    with seen_by([camera]) as store, filled(ROD, np.diag([0.02, 0.02, 0.02, 1])) as grid:
        occupied = np.zeros(grid.cells, bool)
        occupied[:, :, -1] = True
        drive.set_occupied(grid, occupied)
        grid.measure_occupancy()
        hit = np.zeros(store.tiles, np.int32)
        any_ray_meets(store.fields, grid.fields, grid.voxel, hit)
        found = list_tiles(store.fields, grid.fields, grid.voxel, store.tiles)
        assert hit.sum() > 1
        np.testing.assert_array_equal(store.fields.list.to_numpy()[:found], np.flatnonzero(hit))

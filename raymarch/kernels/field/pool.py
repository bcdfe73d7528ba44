"""Transfer between arrays of bricks and the pool of a sparse grid, and resampling of its bricks to another level."""

import taichi as ti

from raymarch.kernels.field.bricks import SAMPLES, place_of_sample, sample_at
from raymarch.kernels.field.copies import is_read, resample
from raymarch.volumes.bricks import BRICK


@ti.kernel
def table_in(grid: ti.template(), table: ti.types.ndarray(dtype=ti.i32, ndim=3)):
    """Put a table of places, whose bricks then know where they lie; the one before becomes the old one."""
    for I in ti.grouped(grid.table):
        grid.old_table[I] = grid.table[I]
        grid.table[I] = 0
    for i, j, k in ti.ndrange(table.shape[0], table.shape[1], table.shape[2]):
        if table[i, j, k] != 0:
            grid.table[i, j, k] = table[i, j, k]
            grid.brick[table[i, j, k]] = ti.Vector([i, j, k])


@ti.kernel
def clear_missing(grid: ti.template(), empty: float):
    """Values of the bricks that are missing: nothing."""
    for n in range(SAMPLES):
        grid.density[0, 0, n] = empty
        grid.features[0, 0, n] = ti.Vector.zero(float, grid.features.n)


@ti.kernel
def save_places(grid: ti.template(), places: int):
    """As `save_level`: keep the pool's values in place of the gradient while `refine_places` overwrites them."""
    for n in range(places * SAMPLES):
        grid.g_density[0, 0, 0, n] = grid.density[0, 0, n]
        grid.g_features[0, 0, 0, n] = grid.features[0, 0, n]


@ti.kernel
def refine_places(grid: ti.template(), old_top: ti.math.vec3, places: int, shape: ti.math.ivec3, empty: float):
    """As `refine`, of the samples of the bricks that are there; those beyond the level are empty."""
    for n in range(SAMPLES, places * SAMPLES):
        I = sample_at(grid, n)
        if all(I < shape):
            resample(grid, I, ti.Vector([0, 0, n]), old_top, shape[0], shape[1], shape[2])
        else:
            grid.density[0, 0, n] = empty
            grid.features[0, 0, n] = ti.Vector.zero(float, grid.features.n)


@ti.kernel
def fill_places(grid: ti.template(), places: int, density: float, feature: float):
    """Constant values in all bricks that are there."""
    for n in range(SAMPLES, places * SAMPLES):
        grid.density[0, 0, n] = density
        grid.features[0, 0, n] = ti.Vector([feature] * grid.features.n)


@ti.func
def row_of(grid: ti.template(), place, m):
    """Place in the pool of sample m of a brick, counted by rows."""
    local = ti.Vector([m // (BRICK * BRICK), (m // BRICK) % BRICK, m % BRICK])
    return place_of_sample(grid.table, (grid.brick[place] << 3) + local)


@ti.kernel
def bricks_in(
    density: ti.types.ndarray(ndim=2), features: ti.types.ndarray(ndim=3), grid: ti.template(),
):  # fmt: skip
    """Values of bricks, density (brick, 512) and features (brick, 512, channel), to the places from 1 on."""
    for b, m in ti.ndrange(density.shape[0], SAMPLES):
        n = row_of(grid, 1 + b, m)
        grid.density[0, 0, n] = density[b, m]
        for c in ti.static(range(grid.features.n)):
            grid.features[0, 0, n][c] = features[b, m, c]


@ti.kernel
def bricks_out(
    grid: ti.template(), places: ti.types.ndarray(dtype=ti.i32, ndim=1),
    density: ti.types.ndarray(ndim=2), features: ti.types.ndarray(ndim=3),
):  # fmt: skip
    """Values of the bricks at `places`, as of `bricks_in`."""
    for b, m in ti.ndrange(density.shape[0], SAMPLES):
        n = row_of(grid, places[b], m)
        density[b, m] = grid.density[0, 0, n]
        for c in ti.static(range(grid.features.n)):
            features[b, m, c] = grid.features[0, 0, n][c]


@ti.kernel
def empty_unread(
    grid: ti.template(), places: ti.types.ndarray(dtype=ti.i32, ndim=1),
    density: ti.types.ndarray(ndim=2), features: ti.types.ndarray(ndim=3), shape: ti.math.ivec3, empty: float,
):  # fmt: skip
    """density (brick, 512) = `empty` of samples that no occupied cell reads; those beyond the level are nothing."""
    for b, m in ti.ndrange(density.shape[0], SAMPLES):
        I = sample_at(grid, row_of(grid, places[b], m))
        if not all(I < shape):
            density[b, m] = empty
            for c in range(features.shape[2]):
                features[b, m, c] = 0.0
        elif not is_read(grid, I):
            density[b, m] = ti.min(density[b, m], empty)

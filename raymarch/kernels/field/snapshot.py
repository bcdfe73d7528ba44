"""Snapshot of a fit's grid: all numbers of its samples in one array, slab by slab along x, out and in again."""

import taichi as ti

from raymarch.kernels.field.bricks import SAMPLES, is_sparse, summed


@ti.func
def row_at(grid: ti.template(), i, j, k):
    """Index in the fields of the sample (i, j, k), or of number i of those in the bricks of a sparse grid."""
    if ti.static(is_sparse(grid.table)):
        return ti.Vector([0, 0, SAMPLES + i])
    else:
        return ti.Vector([i, j, k])


@ti.kernel
def samples_out(grid: ti.template(), first: int, values: ti.types.ndarray(ndim=4)):  # (x, y, z, n)
    """values[i] = all numbers of the samples from x = `first` on: density and features, density and colour of Adam's
    first and second moments, and what is left of the gradient."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        I, width = row_at(grid, first + i, j, k), ti.static(1 + grid.features.n)
        values[i, j, k, 0] = grid.density[I]
        values[i, j, k, width] = grid.m_density[I]
        values[i, j, k, width + 4] = grid.v_density[I]
        values[i, j, k, width + 8] = grid.g_density[summed(grid, I)]
        for c in ti.static(range(3)):
            values[i, j, k, width + 1 + c] = grid.m_features[I][c]
            values[i, j, k, width + 5 + c] = grid.v_features[I][c]
        for c in ti.static(range(grid.features.n)):
            values[i, j, k, 1 + c] = grid.features[I][c]
            values[i, j, k, width + 9 + c] = grid.g_features[summed(grid, I)][c]


@ti.kernel
def samples_in(values: ti.types.ndarray(ndim=4), grid: ti.template(), first: int):  # (x, y, z, n)
    """All numbers of the samples from x = `first` on = values[i], as `samples_out` gives them."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        I, width = row_at(grid, first + i, j, k), ti.static(1 + grid.features.n)
        grid.density[I] = values[i, j, k, 0]
        grid.m_density[I] = values[i, j, k, width]
        grid.v_density[I] = values[i, j, k, width + 4]
        grid.g_density[summed(grid, I)] = values[i, j, k, width + 8]
        for c in ti.static(range(3)):
            grid.m_features[I][c] = values[i, j, k, width + 1 + c]
            grid.v_features[I][c] = values[i, j, k, width + 5 + c]
        for c in ti.static(range(grid.features.n)):
            grid.features[I][c] = values[i, j, k, 1 + c]
            grid.g_features[summed(grid, I)][c] = values[i, j, k, width + 9 + c]

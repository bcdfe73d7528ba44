"""Occupancy grid for empty-space skipping: the cells that hold anything, and how far each is from them."""

import numpy as np

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field.bricks import BRICK_BLOCKS, distinct_samples, is_sparse, position_of_block, sample_index

# Chessboard distance transform of occupancy cells, and the blocks that they reach into.
#
# On arrays, not on fields of a grid: so a process compiles this once for all grids, and finds it on disk the next
# time.

MAX_DISTANCE = 255  # farther than any
MAX_LINES, LINES_A_ROW = 4096, 16  # of cells, whose distances are found at a time, and one after the other
CELL_ARRAY = ti.types.ndarray(dtype=ti.u8, ndim=3)


@ti.func
def distance_so_far(b, d, last: ti.template(), row, stamp):
    """min over y <= x of max(x - y, d_y), after that of x - 1, which is b; d is d_x.

    It falls to d, stays b, or grows by one. It stays b where a cell of distance b is at most b away, for one of less
    would have made b less. `last[row, d]` is where a distance d was met last; `stamp` is where x is.
    """
    last[row, d] = stamp
    c = b
    if d <= b:
        c = d
    elif last[row, b] < stamp - b:
        c = b + 1
    return c


@ti.func
def is_uniform(distance: ti.template(), begin, along, n):
    """Whether all cells of a line have one distance, which a line of its own cannot lessen."""
    x = 1
    while x < n and distance[begin + x * along] == distance[begin]:
        x += 1
    return x >= n


@ti.func
def distance_along(distance: ti.template(), last: ti.template(), row, scratch: ti.template(), begin, along, n, stamp):
    """distance[x] = min over y of max(|x - y|, distance[y]), of a line of cells: from the one side, then the other.

    Positions begin at `stamp`, so far from those of other lines that they find none of theirs in `last`.
    """
    if not is_uniform(distance, begin, along, n):
        b = MAX_DISTANCE
        for x in range(n):
            b = distance_so_far(b, ti.cast(distance[begin + x * along], ti.i32), last, row, stamp + x)
            scratch[begin + x * along] = ti.cast(b, ti.u8)
        b = MAX_DISTANCE
        for back in range(n):
            cell = begin + (n - 1 - back) * along
            b = distance_so_far(b, ti.cast(distance[cell], ti.i32), last, row, stamp + n + MAX_DISTANCE + back)
            distance[cell] = ti.cast(ti.min(b, ti.cast(scratch[cell], ti.i32)), ti.u8)


def lines_a_block() -> int:
    """Lines that one block of threads takes, as kernels ask: one on the CPU, where they take turns; a GPU launches
    blocks by the ten thousand, and Vulkan not as many as a line each would make."""
    return 1 if runtime.runs_on_cpu() else 32


@ti.kernel
def spread_along(
    # (x, y, z) of the cells: distances, and what is the kernel's; (line at a time, distance) of where each was met last
    to_occupied: CELL_ARRAY,
    to_empty: CELL_ARRAY,
    scratch: CELL_ARRAY,
    last: ti.types.ndarray(dtype=ti.i32, ndim=2),
    cells: ti.math.ivec3,
    along: ti.math.ivec3,
    u: ti.math.ivec3,
    v: ti.math.ivec3,  # an axis, and the two others
    first: int,
):
    """Chessboard distances of cells of which `to_occupied` says 0 or 255, one axis after the other, the `first` being
    told: to the nearest occupied cell, and to the nearest empty one, of which a cell is 255 away where there is none.
    """
    n, wide, lines = cells.dot(along), cells.dot(v), cells.dot(u) * cells.dot(v)
    ti.loop_config(block_dim=ti.static(lines_a_block()))
    for row in range(last.shape[0]):
        for d in range(MAX_DISTANCE + 1):
            last[row, d] = -MAX_DISTANCE - 1
        stamp, line = 0, row
        while line < lines:
            begin = line // wide * u + line % wide * v
            if first:
                for x in range(n):
                    cell = begin + x * along
                    to_empty[cell] = ti.u8(0) if to_occupied[cell] > 0 else ti.u8(MAX_DISTANCE)
            distance_along(to_occupied, last, row, scratch, begin, along, n, stamp)
            distance_along(to_empty, last, row, scratch, begin, along, n, stamp + 2 * (n + MAX_DISTANCE))
            stamp += 4 * (n + MAX_DISTANCE)
            line += last.shape[0]


def spread(to_occupied: np.ndarray) -> np.ndarray:
    """Chessboard distances to occupied cells in place of marks (x, y, z) u8 that are 0 there, else 255; those to empty
    ones are returned.
    """
    to_empty, scratch = np.empty_like(to_occupied), np.empty_like(to_occupied)
    lines = to_occupied.size // min(to_occupied.shape)
    last = np.empty((min(max(lines // LINES_A_ROW, 1), MAX_LINES), MAX_DISTANCE + 1), np.int32)
    cells, axes = ti.Vector(list(to_occupied.shape)), [ti.Vector(axis) for axis in np.eye(3, dtype=int).tolist()]
    for a in range(3):
        spread_along(to_occupied, to_empty, scratch, last, cells, axes[a], axes[a - 2], axes[a - 1], a == 0)
    return to_empty


@ti.kernel
def reach_blocks(
    to_occupied: CELL_ARRAY,
    blocks: CELL_ARRAY,  # (x, y, z) of the cells, of the blocks
    cells: ti.math.ivec3,
    cells_per_index: ti.math.vec3,
    edge: int,  # of a block [sample]
):
    """blocks = 1 where an occupied cell reaches into a block of samples, else 0."""
    for I in ti.grouped(ti.ndrange(blocks.shape[0], blocks.shape[1], blocks.shape[2])):
        low, high = ti.cast(I * edge - 1, float) * cells_per_index, ti.cast((I + 1) * edge, float) * cells_per_index
        first, last = ti.cast(ti.max(low, 0.0), ti.i32), ti.min(ti.cast(high, ti.i32), cells - 1)
        found = False
        i = first[0]
        while i <= last[0] and not found:
            j = first[1]
            while j <= last[1] and not found:
                k = first[2]
                while k <= last[2] and not found:
                    found = to_occupied[i, j, k] == 0
                    k += 1
                j += 1
            i += 1
        blocks[I] = ti.u8(1) if found else ti.u8(0)


CELL_SLACK = 1e-3  # voxels that a cell is looked at beyond its faces, for the rounding of where these lie


@ti.func
def occupy_all(grid: ti.template()):
    """Every cell counts as occupied, and none as empty; the march takes no step where neither is known."""
    for I in ti.grouped(grid.empty_distance):
        grid.empty_distance[I], grid.occupied_distance[I] = ti.u8(0), ti.u8(MAX_DISTANCE)


@ti.kernel
def occupy(grid: ti.template()):
    """Reset of the occupancy: nothing is known to be empty."""
    occupy_all(grid)


@ti.kernel
def prepare(grid: ti.template()):
    """Initial marks of a grid that nobody has written to: all cells allowed and occupied, no block touched."""
    for I in ti.grouped(grid.hull_mask):
        grid.hull_mask[I], grid.empty_distance[I], grid.occupied_distance[I] = ti.u8(1), ti.u8(0), ti.u8(MAX_DISTANCE)
    for B in ti.grouped(grid.block_written):
        grid.block_written[B], grid.block_has_gradient[B], grid.block_occupied[B] = ti.u8(0), ti.u8(0), ti.u8(1)
        grid.nonfinite_step[None] = 0


@ti.kernel
def mark_occupied(grid: ti.template(), least: float, margin: int, nx: int, ny: int, nz: int):
    """empty_distance = 0 where a sample the cell reads, or one `margin` off, has raw density over `least`; else 255.

    Cells that `hull_mask` rules out stay empty.
    """
    cells = grid.cells[None]
    for I in ti.grouped(ti.ndrange(cells[0], cells[1], cells[2])):
        per_index = grid.cells_per_index[None]
        low, high = ti.cast(I, float) / per_index, ti.cast(I + 1, float) / per_index
        first = ti.max(ti.cast(low, ti.i32) - margin, 0)
        last = ti.min(ti.cast(ti.ceil(high), ti.i32) + margin, ti.Vector([nx, ny, nz]) - 1)
        last = distinct_samples(grid, first, last)
        found = False
        if grid.hull_mask[I]:
            i = first[0]  # loops that end early take LLVM an eighth of the time of those that it makes vectors of
            while i <= last[0] and not found:
                j = first[1]
                while j <= last[1] and not found:
                    k = first[2]
                    while k <= last[2] and not found:
                        found = grid.density[sample_index(grid, ti.Vector([i, j, k]))] > least
                        k += 1
                    j += 1
                i += 1
        grid.empty_distance[I] = ti.u8(0) if found else ti.u8(MAX_DISTANCE)


@ti.func
def samples_of_cell(grid: ti.template(), I, nx, ny, nz):
    """First and last sample that a cell reads, or may by the rounding of where its faces lie."""
    per_index = grid.cells_per_index[None]
    low, high = ti.cast(I, float) / per_index - CELL_SLACK, ti.cast(I + 1, float) / per_index + CELL_SLACK
    last = ti.min(ti.cast(ti.ceil(high), ti.i32), ti.Vector([nx, ny, nz]) - 1)
    return ti.min(ti.max(ti.cast(low, ti.i32), 0), last), last


@ti.kernel
def raw_ranges(
    grid: ti.template(),
    start: int,
    out: ti.types.ndarray(ndim=3),  # (2, row, z)
    margin: int,
    nx: int,
    ny: int,
    nz: int,
):
    """out = least and largest raw density of the samples that a cell reads, or that are `margin` off.

    Of the cells in rows along z from row `start` on, of which there are y for each x.
    """
    cells = grid.cells[None]
    for row, z in ti.ndrange(out.shape[1], out.shape[2]):
        I = ti.Vector([(start + row) // cells[1], (start + row) % cells[1], z])
        first, last = samples_of_cell(grid, I, nx, ny, nz)
        first, last = ti.max(first - margin, 0), ti.min(last + margin, ti.Vector([nx, ny, nz]) - 1)
        last = distinct_samples(grid, first, last)
        least = grid.density[sample_index(grid, first)]
        most = least
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for k in range(first[2], last[2] + 1):
                    raw = grid.density[sample_index(grid, ti.Vector([i, j, k]))]
                    least, most = ti.min(least, raw), ti.max(most, raw)
        out[0, row, z], out[1, row, z] = least, most


@ti.kernel
def mark_straddling(grid: ti.template(), level: float, nx: int, ny: int, nz: int):
    """empty_distance = 0 where the samples that a cell reads lie on both sides of a raw level, or on it; else 255.

    Between them the trilinear field has all values from the least to the largest, and no others.
    """
    cells = grid.cells[None]
    for I in ti.grouped(ti.ndrange(cells[0], cells[1], cells[2])):
        first, last = samples_of_cell(grid, I, nx, ny, nz)
        last = distinct_samples(grid, first, last)
        below, above = False, False
        i = first[0]
        while i <= last[0] and not (below and above):
            j = first[1]
            while j <= last[1] and not (below and above):
                k = first[2]
                while k <= last[2] and not (below and above):
                    x = grid.density[sample_index(grid, ti.Vector([i, j, k]))]
                    below, above = below or x <= level, above or x >= level
                    k += 1
                j += 1
            i += 1
        grid.empty_distance[I] = ti.u8(0) if below and above else ti.u8(MAX_DISTANCE)


@ti.kernel
def cells_in(values: CELL_ARRAY, field: ti.template()):
    """field[i, j, k] = values[i, j, k], numbers of cells."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        field[i, j, k] = values[i, j, k]


@ti.kernel
def cells_out(field: ti.template(), values: CELL_ARRAY):
    """values[i, j, k] = field[i, j, k], numbers of cells."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        values[i, j, k] = field[i, j, k]


@ti.kernel
def occupancy_in(
    # (cell), (cell), (block), each (x, y, z)
    empty_distance: CELL_ARRAY,
    occupied_distance: CELL_ARRAY,
    blocks: CELL_ARRAY,
    grid: ti.template(),
):
    """Copy distances of the cells, and which blocks an occupied one reaches into, as `distance` finds them."""
    for i, j, k in ti.ndrange(empty_distance.shape[0], empty_distance.shape[1], empty_distance.shape[2]):
        grid.empty_distance[i, j, k] = empty_distance[i, j, k]
        grid.occupied_distance[i, j, k] = occupied_distance[i, j, k]
    for J in ti.grouped(grid.block_occupied):
        B = position_of_block(grid, J)
        found = ti.u8(0)
        if B[0] < blocks.shape[0] and B[1] < blocks.shape[1] and B[2] < blocks.shape[2]:
            found = blocks[B]
        if ti.static(is_sparse(grid.table)):
            if J[2] < BRICK_BLOCKS:
                found = ti.u8(0)
        grid.block_occupied[J] = found

"""Occupancy grid for empty-space skipping: the cells that hold anything, and how far each is from them."""

import taichi as ti

from raymarch.kernels.field.bricks import BRICK_BLOCKS, is_sparse, position_of_block, sample_index

# Chessboard distance transform of occupancy cells, and the blocks that they reach into.
#
# On arrays, not on fields of a grid: so a process compiles this once for all grids, and finds it on disk the next
# time.

MAX_DISTANCE = 255  # farther than any
CELL_ARRAY = ti.types.ndarray(dtype=ti.u8, ndim=3)


@ti.func
def farness(to_occupied: ti.template(), to_empty: ti.template(), cell, empty):
    """Distance so far of a cell to the nearest that is not empty, or to the nearest that is, by what is asked for."""
    found = to_empty[cell]
    if empty:
        found = to_occupied[cell]
    return ti.cast(found, ti.i32)


@ti.func
def distance_transform(
    to_occupied: ti.template(), to_empty: ti.template(), scratch: ti.template(), start, along, n, first
):
    """Distance transform of a line of cells, of one axis: far = min over y of a line of max(|x - y|, far_y).

    One of a cell's two distances is 0, as it is of one kind itself, so a single search serves both. Of neighbours these
    differ by 1 at most, and none is less than the least of the line, which ends most searches. At the first axis, of
    zeros alone, the next zero to the right is all that can be nearer than one more than before.
    """
    y, from_occupied, from_empty = 0, MAX_DISTANCE, MAX_DISTANCE
    while y < n and from_occupied + from_empty > 0:
        from_occupied = ti.min(from_occupied, farness(to_occupied, to_empty, start + y * along, True))
        from_empty = ti.min(from_empty, farness(to_occupied, to_empty, start + y * along, False))
        y += 1
    least = ti.max(from_occupied, from_empty)  # of a line of both kinds either is 0
    before, was_empty = MAX_DISTANCE, False
    for x in range(n):
        empty = to_occupied[start + x * along] > 0
        best, low, end = farness(to_occupied, to_empty, start + x * along, empty), least, n
        if x > 0:
            if empty != was_empty:
                before = 0
            best, low = ti.min(best, before + 1), ti.max(least, before - 1)
            for r in range(low, ti.min(low + 2, n - x)):
                best = ti.min(best, ti.max(r, farness(to_occupied, to_empty, start + (x + r) * along, empty)))
            if first:
                end = 0
        r = 1
        while r < ti.min(best, end) and best > low and (x - r >= 0 or x + r < n):
            if x - r >= 0:
                best = ti.min(best, ti.max(r, farness(to_occupied, to_empty, start + (x - r) * along, empty)))
            if x + r < n:
                best = ti.min(best, ti.max(r, farness(to_occupied, to_empty, start + (x + r) * along, empty)))
            r += 1
        scratch[start + x * along] = ti.cast(best, ti.u8)
        before, was_empty = best, empty
    for x in range(n):
        cell = start + x * along
        if to_occupied[cell] > 0:
            to_occupied[cell] = scratch[cell]
        else:
            to_empty[cell] = scratch[cell]


@ti.kernel
def spread_along(
    # (x, y, z) of the cells: distances, and what is the kernel's
    to_occupied: CELL_ARRAY,
    to_empty: CELL_ARRAY,
    scratch: CELL_ARRAY,
    cells: ti.math.ivec3,
    along: ti.math.ivec3,
    u: ti.math.ivec3,
    v: ti.math.ivec3,  # an axis, and the two others
    first: int,
):
    """Chessboard distances of cells of which `to_occupied` says 0 or 255, one axis after the other, the `first` being
    told: to the nearest occupied cell, and to the nearest empty one, of which a cell is 255 away where there is none.
    """
    for i, j in ti.ndrange(cells.dot(u), cells.dot(v)):
        start, n = i * u + j * v, cells.dot(along)
        if first:
            for x in range(n):
                cell = start + x * along
                to_empty[cell] = ti.u8(0) if to_occupied[cell] > 0 else ti.u8(MAX_DISTANCE)
        distance_transform(to_occupied, to_empty, scratch, start, along, n, first)


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

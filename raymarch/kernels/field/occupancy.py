"""Occupancy grid for empty-space skipping: cells that hold anything, and their chessboard distance transform."""

import taichi as ti

from raymarch.kernels.field.bricks import BLOCKS, at, is_sparse, position_of_block

FULL = 255
SLACK = 1e-3  # voxels that a cell is looked at beyond its faces, for the rounding of where these lie


@ti.func
def occupy_all(grid: ti.template()):
    """Every cell counts as occupied, and none as empty; the march takes no step where neither is known."""
    for I in ti.grouped(grid.empty_distance):
        grid.empty_distance[I], grid.occupied_distance[I] = ti.u8(0), ti.u8(FULL)


@ti.kernel
def occupy(grid: ti.template()):
    """Reset of the occupancy: nothing is known to be empty."""
    occupy_all(grid)


@ti.kernel
def prepare(grid: ti.template()):
    """Initial marks of a grid that nobody has written to: all cells allowed and occupied, no block touched."""
    occupy_all(grid)
    for I in ti.grouped(grid.hull_mask):
        grid.hull_mask[I] = ti.u8(1)
    for B in ti.grouped(grid.block_written):
        grid.block_written[B], grid.block_has_gradient[B], grid.block_occupied[B] = ti.u8(0), ti.u8(0), ti.u8(1)
    for _ in range(1):
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
                        found = grid.density[at(grid, ti.Vector([i, j, k]))] > least
                        k += 1
                    j += 1
                i += 1
        grid.empty_distance[I] = ti.u8(0) if found else ti.u8(FULL)


@ti.func
def samples_of_cell(grid: ti.template(), I, nx, ny, nz):
    """First and last sample that a cell reads, or may by the rounding of where its faces lie."""
    per_index = grid.cells_per_index[None]
    low, high = ti.cast(I, float) / per_index - SLACK, ti.cast(I + 1, float) / per_index + SLACK
    last = ti.min(ti.cast(ti.ceil(high), ti.i32), ti.Vector([nx, ny, nz]) - 1)
    return ti.min(ti.max(ti.cast(low, ti.i32), 0), last), last


@ti.kernel
def raw_ranges(grid: ti.template(), out: ti.types.ndarray(ndim=4), margin: int, nx: int, ny: int, nz: int):
    """out = least and largest raw density (2, x, y, z) of the samples that a cell reads, or that are `margin` off."""
    cells = grid.cells[None]
    for I in ti.grouped(ti.ndrange(cells[0], cells[1], cells[2])):
        first, last = samples_of_cell(grid, I, nx, ny, nz)
        first, last = ti.max(first - margin, 0), ti.min(last + margin, ti.Vector([nx, ny, nz]) - 1)
        least = grid.density[at(grid, first)]
        most = least
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for k in range(first[2], last[2] + 1):
                    raw = grid.density[at(grid, ti.Vector([i, j, k]))]
                    least, most = ti.min(least, raw), ti.max(most, raw)
        out[0, I], out[1, I] = least, most


@ti.kernel
def mark_straddling(grid: ti.template(), level: float, nx: int, ny: int, nz: int):
    """empty_distance = 0 where the samples that a cell reads lie on both sides of a raw level, or on it; else 255.

    Between them the trilinear field has all values from the least to the largest, and no others.
    """
    cells = grid.cells[None]
    for I in ti.grouped(ti.ndrange(cells[0], cells[1], cells[2])):
        first, last = samples_of_cell(grid, I, nx, ny, nz)
        below, above = False, False
        for i in range(first[0], last[0] + 1):
            for j in range(first[1], last[1] + 1):
                for k in range(first[2], last[2] + 1):
                    x = grid.density[at(grid, ti.Vector([i, j, k]))]
                    below, above = below or x <= level, above or x >= level
        grid.empty_distance[I] = ti.u8(0) if below and above else ti.u8(FULL)


@ti.func
def farness(grid: ti.template(), cell, empty):
    """Distance so far of a cell to the nearest that is not empty, or to the nearest that is, by what is asked for."""
    found = grid.occupied_distance[cell]
    if empty:
        found = grid.empty_distance[cell]
    return ti.cast(found, ti.i32)


@ti.func
def spread(grid: ti.template(), start, along, n, first):
    """Distance transform of a line of cells, of one axis: far = min over y of a line of max(|x - y|, far_y).

    One of a cell's two distances is 0, as it is of one kind itself, so a single search serves both. Of neighbours these
    differ by 1 at most, and none is less than the least of the line, which ends most searches. At the first axis, of
    zeros alone, the next zero to the right is all that can be nearer than one more than before.
    """
    y, from_occupied, from_empty = 0, FULL, FULL
    while y < n and from_occupied + from_empty > 0:
        from_occupied = ti.min(from_occupied, farness(grid, start + y * along, True))
        from_empty = ti.min(from_empty, farness(grid, start + y * along, False))
        y += 1
    least = ti.max(from_occupied, from_empty)  # of a line of both kinds either is 0
    before, was_empty = FULL, False
    for x in range(n):
        empty = grid.empty_distance[start + x * along] > 0
        best, low, end = farness(grid, start + x * along, empty), least, n
        if x > 0:
            if empty != was_empty:
                before = 0
            best, low = ti.min(best, before + 1), ti.max(least, before - 1)
            for r in range(low, ti.min(low + 2, n - x)):
                best = ti.min(best, ti.max(r, farness(grid, start + (x + r) * along, empty)))
            if first:
                end = 0
        r = 1
        while r < ti.min(best, end) and best > low and (x - r >= 0 or x + r < n):
            if x - r >= 0:
                best = ti.min(best, ti.max(r, farness(grid, start + (x - r) * along, empty)))
            if x + r < n:
                best = ti.min(best, ti.max(r, farness(grid, start + (x + r) * along, empty)))
            r += 1
        grid.scratch[start + x * along] = ti.cast(best, ti.u8)
        before, was_empty = best, empty
    for x in range(n):
        cell = start + x * along
        if grid.empty_distance[cell] > 0:
            grid.empty_distance[cell] = grid.scratch[cell]
        else:
            grid.occupied_distance[cell] = grid.scratch[cell]


@ti.kernel
def spread_along(
    grid: ti.template(),
    cells: ti.math.ivec3, along: ti.math.ivec3, u: ti.math.ivec3, v: ti.math.ivec3,  # an axis, and the two others
    first: int,
):  # fmt: skip
    """Chessboard distance transform of the cells marked so far, one axis after the other; the `first` also marks what
    is empty: occupied_distance = 0 where `empty_distance` says so; else 255."""
    for i, j in ti.ndrange(cells.dot(u), cells.dot(v)):
        start, n = i * u + j * v, cells.dot(along)
        if first:
            for x in range(n):
                cell = start + x * along
                grid.occupied_distance[cell] = ti.u8(0) if grid.empty_distance[cell] > 0 else ti.u8(FULL)
        spread(grid, start, along, n, first)


@ti.func
def occupied_blocks(grid: ti.template()):
    """block_occupied = 1 for blocks that an occupied cell reaches into."""
    for J in ti.grouped(grid.block_occupied):
        B = position_of_block(grid, J)
        per_index = grid.cells_per_index[None]
        low, high = ti.cast(B * grid.block - 1, float) * per_index, ti.cast((B + 1) * grid.block, float) * per_index
        first, last = ti.cast(ti.max(low, 0.0), ti.i32), ti.cast(high, ti.i32)
        for a in ti.static(range(3)):
            last[a] = ti.min(last[a], grid.cells[None][a] - 1)
        found = False
        i = first[0]
        while i <= last[0] and not found:
            j = first[1]
            while j <= last[1] and not found:
                k = first[2]
                while k <= last[2] and not found:
                    found = grid.empty_distance[i, j, k] == 0
                    k += 1
                j += 1
            i += 1
        if ti.static(is_sparse(grid.table)):
            found = found and J[2] >= BLOCKS
        grid.block_occupied[J] = ti.u8(1) if found else ti.u8(0)


@ti.kernel
def count_occupied(grid: ti.template(), cells: ti.math.ivec3) -> int:
    """Count of the cells that are occupied, and the blocks that these reach into."""
    occupied_blocks(grid)
    count = 0
    for I in ti.grouped(ti.ndrange(cells[0], cells[1], cells[2])):
        count += ti.cast(grid.empty_distance[I] == 0, ti.i32)
    return count

"""Chessboard distance transform of occupancy cells, and the blocks that they reach into.

On arrays, not on fields of a grid: so a process compiles this once for all grids, and finds it on disk the next time.
"""

import taichi as ti

FULL = 255  # farther than any
ARRAY = ti.types.ndarray(dtype=ti.u8, ndim=3)


@ti.func
def farness(to_occupied: ti.template(), to_empty: ti.template(), cell, empty):
    """Distance so far of a cell to the nearest that is not empty, or to the nearest that is, by what is asked for."""
    found = to_empty[cell]
    if empty:
        found = to_occupied[cell]
    return ti.cast(found, ti.i32)


@ti.func
def spread(to_occupied: ti.template(), to_empty: ti.template(), scratch: ti.template(), start, along, n, first):
    """Distance transform of a line of cells, of one axis: far = min over y of a line of max(|x - y|, far_y).

    One of a cell's two distances is 0, as it is of one kind itself, so a single search serves both. Of neighbours these
    differ by 1 at most, and none is less than the least of the line, which ends most searches. At the first axis, of
    zeros alone, the next zero to the right is all that can be nearer than one more than before.
    """
    y, from_occupied, from_empty = 0, FULL, FULL
    while y < n and from_occupied + from_empty > 0:
        from_occupied = ti.min(from_occupied, farness(to_occupied, to_empty, start + y * along, True))
        from_empty = ti.min(from_empty, farness(to_occupied, to_empty, start + y * along, False))
        y += 1
    least = ti.max(from_occupied, from_empty)  # of a line of both kinds either is 0
    before, was_empty = FULL, False
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
    to_occupied: ARRAY, to_empty: ARRAY, scratch: ARRAY,  # (x, y, z) of the cells: distances, and what is the kernel's
    cells: ti.math.ivec3, along: ti.math.ivec3, u: ti.math.ivec3, v: ti.math.ivec3,  # an axis, and the two others
    first: int,
):  # fmt: skip
    """Chessboard distances of cells of which `to_occupied` says 0 or 255, one axis after the other, the `first` being
    told: to the nearest occupied cell, and to the nearest empty one, of which a cell is 255 away where there is none.
    """
    for i, j in ti.ndrange(cells.dot(u), cells.dot(v)):
        start, n = i * u + j * v, cells.dot(along)
        if first:
            for x in range(n):
                cell = start + x * along
                to_empty[cell] = ti.u8(0) if to_occupied[cell] > 0 else ti.u8(FULL)
        spread(to_occupied, to_empty, scratch, start, along, n, first)


@ti.kernel
def reach_blocks(
    to_occupied: ARRAY, blocks: ARRAY,  # (x, y, z) of the cells, of the blocks
    cells: ti.math.ivec3, cells_per_index: ti.math.vec3, edge: int,  # of a block [sample]
):  # fmt: skip
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

"""Bricks of a sparse grid: where samples, and blocks of marks, lie in the pool; in a dense grid where their index says.

A brick is 8^3 samples, eight blocks of 4^3 one behind the other. The pool is flat, asked by its last axis alone. The
table has each brick's place in the pool; a missing brick is place 0, which is empty: what is added there is dropped.
"""

import math

from raymarch.engine import ti
from raymarch.volumes.bricks import BRICK_SIDE

BRICK_SHIFT = BRICK_SIDE.bit_length() - 1
BRICK_SAMPLES = BRICK_SIDE**3
BRICK_BLOCKS = 8  # of marks, a brick


def is_sparse(table) -> bool:
    """Whether a table of bricks is there: a dense grid has None."""
    return table is not None


def mask_of(field) -> int:
    """Bit mask of all places that a sample can have."""
    return (1 << (math.prod(field.shape) - 1).bit_length()) - 1


@ti.func
def offset_in_brick(i, axis: ti.template()):
    """What the index along an axis adds to a sample's place in its brick."""
    return ((i & 4) << ti.static(6 - axis)) | ((i & 3) << ti.static(4 - 2 * axis))


@ti.func
def place_of_sample(table: ti.template(), I):
    """Place of a sample in the pool."""
    return table[I >> BRICK_SHIFT] * BRICK_SAMPLES + (
        offset_in_brick(I[0], 0) | offset_in_brick(I[1], 1) | offset_in_brick(I[2], 2)
    )


@ti.func
def brick_corners(table: ti.template(), cell):
    """Places in the pool of a cell's eight corners, the last axis fastest: each finds its own brick."""
    upper = cell + 1
    low, high = cell >> BRICK_SHIFT, upper >> BRICK_SHIFT
    places = ti.Vector.zero(ti.i32, 8)
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        brick = ti.Vector(
            [
                high[0] if ti.static(a) else low[0],
                high[1] if ti.static(b) else low[1],
                high[2] if ti.static(c) else low[2],
            ]
        )
        within = offset_in_brick(upper[0] if ti.static(a) else cell[0], 0)
        within |= offset_in_brick(upper[1] if ti.static(b) else cell[1], 1)
        within |= offset_in_brick(upper[2] if ti.static(c) else cell[2], 2)
        places[ti.static(4 * a + 2 * b + c)] = table[brick] * BRICK_SAMPLES + within
    return places


@ti.func
def cell_index(grid: ti.template(), cell):
    """Where a cell lies in the fields of the grid: `brick_corners` a sparse one, by its lower corner in a dense one."""
    if ti.static(is_sparse(grid.table)):
        return brick_corners(grid.table, cell)
    else:
        return cell


@ti.func
def old_cell_index(grid: ti.template(), cell):
    """As `cell_index`, before the last change of level."""
    if ti.static(is_sparse(grid.table)):
        return brick_corners(grid.old_table, cell)
    else:
        return cell


@ti.func
def block_of_cell(grid: ti.template(), cell):
    """Index in the fields of marks of the block that a cell's lower corner is in, of what `cell_index` gave."""
    if ti.static(is_sparse(grid.table)):
        return ti.Vector([0, 0, cell[0] >> ti.static((BRICK_SAMPLES // BRICK_BLOCKS).bit_length() - 1)])
    else:
        return cell >> ti.static(grid.block.bit_length() - 1)


@ti.func
def sample_index(grid: ti.template(), I):
    """Index of sample I in the fields of the grid."""
    J = I
    if ti.static(is_sparse(grid.table)):
        J = ti.Vector([0, 0, place_of_sample(grid.table, I) & ti.static(mask_of(grid.density))])
    return J


@ti.func
def gradient_index(grid: ti.template(), I):
    """Index in `g_density` and `g_features`, the gradient, of a sample at index I of the grid's fields."""
    if ti.static(is_sparse(grid.table)):
        return ti.Vector([0, I[0], I[1], I[2]])  # what the first slot adds is added to the sum itself
    else:
        return I


@ti.func
def is_present(grid: ti.template(), I):
    """Whether sample I is in the grid: in a dense one each is."""
    found = True
    if ti.static(is_sparse(grid.table)):
        found = grid.table[I >> BRICK_SHIFT] != 0
    return found


@ti.func
def distinct_samples(grid: ti.template(), first, last):
    """Last of the samples from `first` to `last` to be looked at: `first` where no brick of theirs is present.

    Samples of missing bricks are alike.
    """
    end = last
    if ti.static(is_sparse(grid.table)):
        present = False
        low, high = first >> BRICK_SHIFT, last >> BRICK_SHIFT
        for brick in ti.grouped(ti.ndrange((low[0], high[0] + 1), (low[1], high[1] + 1), (low[2], high[2] + 1))):
            present = present or grid.table[brick] != 0
        if not present:
            end = first
    return end


@ti.func
def block_at(grid: ti.template(), B):
    """Index of block B in the fields of marks."""
    J = B
    if ti.static(is_sparse(grid.table)):
        sub = ((B[0] & 1) << 2) | ((B[1] & 1) << 1) | (B[2] & 1)
        J = ti.Vector([0, 0, grid.table[B >> 1] * BRICK_BLOCKS + sub])
    return J


@ti.func
def position_of_block(grid: ti.template(), J):
    """Transpose of `block_at`: where the block of these marks lies."""
    B = J
    if ti.static(is_sparse(grid.table)):
        m = J[2]
        B = (grid.brick[m // BRICK_BLOCKS] << 1) + ti.Vector([(m >> 2) & 1, (m >> 1) & 1, m & 1])
    return B


@ti.func
def sample_of_block(grid: ti.template(), J, i, j, k):
    """Index of a block's own sample (i, j, k) in the fields of the grid."""
    I = J * grid.block + ti.Vector([i, j, k])
    if ti.static(is_sparse(grid.table)):
        I = ti.Vector([0, 0, J[2] * ti.static(BRICK_SAMPLES // BRICK_BLOCKS) + 16 * i + 4 * j + k])
    return I


@ti.func
def first_block(grid: ti.template()):
    """Number of the first block whose marks count: those of place 0 do not."""
    return ti.static(BRICK_BLOCKS if is_sparse(grid.table) else 0)


@ti.func
def sample_at(grid: ti.template(), n):
    """Index in space of the sample at place n of the pool."""
    m = n % BRICK_SAMPLES
    within = ti.Vector([((m >> 6) & 4) | ((m >> 4) & 3), ((m >> 5) & 4) | ((m >> 2) & 3), ((m >> 4) & 4) | (m & 3)])
    return (grid.brick[n // BRICK_SAMPLES] << BRICK_SHIFT) + within

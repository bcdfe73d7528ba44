"""Bit masks of touched samples: which of a step's features were added to, 32 samples a word.

Features are most of a gradient's numbers, and not all samples of a touched block have any. So each slot notes the cells
at whose corners it added features, the one who adds up finds the samples that these reach, and no others are looked at.
A word is of 2 x 4 x 4 samples, or cells by their lower corners; bit 16 x + 4 y + z. At degree 0 there are none.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field.bricks import BRICK_SAMPLES, block_at, block_of_cell, gradient_index, is_sparse
from raymarch.kernels.field.gather import scatter

WORD_BITS = 32
ALL_BITS = -1  # each bit of a word
FIRST_X, FIRST_Y, FIRST_Z = 0x0000FFFF, 0x000F000F, 0x11111111  # bits of a word's first samples along an axis


@ti.func
def word_of(grid: ti.template(), I):
    """Index of the word that sample I of the grid's fields is in."""
    W = ti.Vector([I[0] >> 1, I[1] >> 2, I[2] >> 2])
    if ti.static(is_sparse(grid.table)):
        W = ti.Vector([0, 0, I[2] // WORD_BITS])
    return W


@ti.func
def bit_of(grid: ti.template(), I):
    """Bit of sample I of the grid's fields in its word."""
    n = ((I[0] & 1) << 4) | ((I[1] & 3) << 2) | (I[2] & 3)
    if ti.static(is_sparse(grid.table)):
        n = I[2] % WORD_BITS
    return n


@ti.func
def sample_of_word(grid: ti.template(), W, n):
    """Index in the grid's fields of the sample that bit n of a word is of."""
    I = ti.Vector([2 * W[0] + (n >> 4), 4 * W[1] + ((n >> 2) & 3), 4 * W[2] + (n & 3)])
    if ti.static(is_sparse(grid.table)):
        I = ti.Vector([0, 0, W[2] * WORD_BITS + n])
    return I


@ti.func
def word_of_cube(grid: ti.template(), C, half):
    """Index of a word of a cube of 4^3 samples, 0 or 1 along x; a block of a sparse grid is such a cube."""
    W = ti.Vector([2 * C[0] + half, C[1], C[2]])
    if ti.static(is_sparse(grid.table)):
        W = ti.Vector([0, 0, 2 * C[2] + half])
    return W


def words_of(grid) -> int:
    """Count of words of a block."""
    return grid.block**3 // WORD_BITS


@ti.func
def place_of_word(grid: ti.template(), B, w):
    """Where a block's own word w lies in space, in words, of the block that lies at B."""
    across = ti.static(grid.block // 4)
    return ti.Vector(
        [2 * across * B[0] + w // across**2, across * B[1] + (w // across) % across, across * B[2] + w % across]
    )


@ti.func
def word_of_block(grid: ti.template(), J, w):
    """Index of a block's own word w, of the block of marks J."""
    W = place_of_word(grid, J, w)
    if ti.static(is_sparse(grid.table)):
        W = word_of_cube(grid, J, w)
    return W


@ti.func
def word_at(grid: ti.template(), P):
    """Index of the word that lies at P in space, in words."""
    W = P
    if ti.static(is_sparse(grid.table)):
        W = word_of_cube(grid, block_at(grid, ti.Vector([P[0] >> 1, P[1], P[2]])), P[0] & 1)
    return W


@ti.func
def neighbour_bits(word, a: ti.template(), b: ti.template(), c: ti.template()):
    """Samples of a word that the cells of one reach, which lies (a, b, c), each 0 or 1, words below it."""
    m = word
    m = (m >> 3) & FIRST_Z if ti.static(c) else m | ((m << 1) & ~FIRST_Z)
    m = (m >> 12) & FIRST_Y if ti.static(b) else m | ((m << 4) & ~FIRST_Y)
    return (m >> 16) & FIRST_X if ti.static(a) else m | (m << 16)


@ti.func
def reached_samples(grid: ti.template(), P):
    """Samples of the word at P in space that each slot's cells reach, a word a slot; at the box's end maybe more."""
    found = ti.Vector.zero(ti.i32, grid.slots)
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        W = word_at(grid, ti.max(P - ti.Vector([a, b, c]), 0))
        for s in ti.static(range(grid.slots)):
            found[s] |= neighbour_bits(grid.feature_cells[s, W[0], W[1], W[2]], a, b, c)
    return found


@ti.func
def add_features(grid: ti.template(), slot, cell, f, d_features):
    """Transpose of the interpolation of features, `scatter`, with the cell noted in its slot.

    Where a slot has more than one writer all of the word is noted, so that no write need be atomic.
    """
    scatter(grid.d_features, slot, cell, f, d_features)
    if ti.static(grid.parted):
        I = ti.Vector([cell[0], cell[1], cell[2]])
        if ti.static(is_sparse(grid.table)):
            I = ti.Vector([0, 0, cell[0]])
        W = word_of(grid, I)
        if ti.static(runtime.runs_on_cpu()):
            word = grid.feature_cells[slot, W[0], W[1], W[2]]
            grid.feature_cells[slot, W[0], W[1], W[2]] = word | (1 << bit_of(grid, I))
        else:
            grid.feature_cells[slot, W[0], W[1], W[2]] = ALL_BITS


# Snapshot of a fit's grid: all numbers of its samples in one array, slab by slab along x, out and in again.


@ti.func
def row_at(grid: ti.template(), i, j, k):
    """Index in the fields of the sample (i, j, k), or of number i of those in the bricks of a sparse grid."""
    if ti.static(is_sparse(grid.table)):
        return ti.Vector([0, 0, BRICK_SAMPLES + i])
    else:
        return ti.Vector([i, j, k])


@ti.kernel
def samples_out(grid: ti.template(), first: int, values: ti.types.ndarray(ndim=4)):  # (x, y, z, n)
    """values[i] = all numbers of the samples from x = `first` on: density and features, density and colour of Adam's
    first and second moments, and what is left of the gradient."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        I, width, C = row_at(grid, first + i, j, k), ti.static(1 + grid.features.n), ti.static(grid.colours)
        values[i, j, k, 0] = grid.density[I]
        values[i, j, k, width] = grid.m_density[I]
        values[i, j, k, width + 1 + C] = grid.v_density[I]
        values[i, j, k, width + 2 + 2 * C] = grid.g_density[gradient_index(grid, I)]
        for c in ti.static(range(grid.colours)):
            values[i, j, k, width + 1 + c] = grid.m_features[I][c]
            values[i, j, k, width + 2 + C + c] = grid.v_features[I][c]
        for c in ti.static(range(grid.features.n)):
            values[i, j, k, 1 + c] = grid.features[I][c]
            values[i, j, k, width + 3 + 2 * C + c] = grid.g_features[gradient_index(grid, I)][c]


@ti.kernel
def samples_in(values: ti.types.ndarray(ndim=4), grid: ti.template(), first: int):  # (x, y, z, n)
    """All numbers of the samples from x = `first` on = values[i], as `samples_out` gives them."""
    for i, j, k in ti.ndrange(values.shape[0], values.shape[1], values.shape[2]):
        I, width, C = row_at(grid, first + i, j, k), ti.static(1 + grid.features.n), ti.static(grid.colours)
        grid.density[I] = values[i, j, k, 0]
        grid.m_density[I] = values[i, j, k, width]
        grid.v_density[I] = values[i, j, k, width + 1 + C]
        grid.g_density[gradient_index(grid, I)] = values[i, j, k, width + 2 + 2 * C]
        for c in ti.static(range(grid.colours)):
            grid.m_features[I][c] = values[i, j, k, width + 1 + c]
            grid.v_features[I][c] = values[i, j, k, width + 2 + C + c]
        for c in ti.static(range(grid.features.n)):
            grid.features[I][c] = values[i, j, k, 1 + c]
            grid.g_features[gradient_index(grid, I)][c] = values[i, j, k, width + 3 + 2 * C + c]


# Adjoint of one sample of a march: its part of the gradient of density and colour.


@ti.func
def mark(grid: ti.template(), cell, cell2):
    """Note the blocks of two samples as touched."""
    block, block2 = block_of_cell(grid, cell), block_of_cell(grid, cell2)
    # A write, even of what is there, would take the line from the other threads.
    if grid.block_written[block] + grid.block_written[block2] < 2:
        grid.block_written[block], grid.block_written[block2] = ti.u8(1), ti.u8(1)

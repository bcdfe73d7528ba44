"""Gradient of touched samples, packed: what ranks send to each other, block after block, out of the grid and in again.

Above degree 0 features have a gradient in touched samples alone (`kernels/field/touched`), whose words travel first.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import first_block, gradient_index, sample_of_block
from raymarch.kernels.field.touched import WORD_BITS, sample_of_word, word_of_block, words_of
from raymarch.kernels.fit.reduce import block_of
from raymarch.kernels.numeric import is_finite


def numbers_of_block(fields) -> int:
    """Count of a block's numbers: density, and at degree 0 features side by side with it."""
    return fields.block**3 * (1 + (fields.features.n if fields.packs else 0))


@ti.kernel
def marks_out(grid: ti.template(), blocks: ti.math.ivec3, marks: ti.types.ndarray(ndim=1)):
    """marks = whether each block has a gradient."""
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        marks[b] = grid.block_has_gradient[block_of(b, blocks)]


@ti.kernel
def words_out(
    grid: ti.template(), blocks: ti.math.ivec3, at: ti.types.ndarray(ndim=1), words: ti.types.ndarray(ndim=2)
):
    """words (block, word) = which samples of the blocks `at` have features with a gradient."""
    for n in range(at.shape[0]):
        J = block_of(at[n], blocks)
        for w in range(ti.static(words_of(grid))):
            words[n, w] = grid.feature_samples[word_of_block(grid, J, w)]


@ti.kernel
def blocks_out(
    grid: ti.template(), blocks: ti.math.ivec3, at: ti.types.ndarray(ndim=1), numbers: ti.types.ndarray(ndim=2)
):
    """numbers (block, number) = gradient of the samples of the blocks `at`."""
    for n in range(at.shape[0]):
        J, e = block_of(at[n], blocks), ti.static(grid.block)
        for i, j, k in ti.ndrange(e, e, e):
            G, m = gradient_index(grid, sample_of_block(grid, J, i, j, k)), (i * e + j) * e + k
            numbers[n, m] = grid.g_density[G]
            if ti.static(grid.packs):
                for c in ti.static(range(grid.features.n)):
                    numbers[n, (1 + c) * ti.static(grid.block**3) + m] = grid.g_features[G][c]


@ti.kernel
def blocks_in(
    grid: ti.template(), blocks: ti.math.ivec3, at: ti.types.ndarray(ndim=1), numbers: ti.types.ndarray(ndim=2)
):
    """Gradient of the samples of the blocks `at`, which have one, = numbers, as `blocks_out` gives them."""
    for n in range(at.shape[0]):
        J, e, total = block_of(at[n], blocks), ti.static(grid.block), ti.cast(0.0, float)
        grid.block_has_gradient[J] = ti.u8(1)
        for i, j, k in ti.ndrange(e, e, e):
            G, m = gradient_index(grid, sample_of_block(grid, J, i, j, k)), (i * e + j) * e + k
            grid.g_density[G] = numbers[n, m]
            total += numbers[n, m]
            if ti.static(grid.packs):
                for c in ti.static(range(grid.features.n)):
                    number = numbers[n, (1 + c) * ti.static(grid.block**3) + m]
                    grid.g_features[G][c] = number
                    total += number
        if grid.nonfinite_step[None] == 0 and not is_finite(total):
            grid.nonfinite_step[None] = 1


@ti.kernel
def features_out(
    grid: ti.template(),
    blocks: ti.math.ivec3,
    at: ti.types.ndarray(ndim=1),
    words: ti.types.ndarray(ndim=2),
    first: ti.types.ndarray(ndim=1),
    numbers: ti.types.ndarray(ndim=2),
):
    """numbers (sample, feature) = gradient of the touched samples, those of block n from `first[n]` on."""
    for n in range(at.shape[0]):
        J, m = block_of(at[n], blocks), first[n]
        for w in range(ti.static(words_of(grid))):
            W = word_of_block(grid, J, w)
            for b in range(WORD_BITS):
                if (words[n, w] >> b) & 1:
                    g = grid.g_features[gradient_index(grid, sample_of_word(grid, W, b))]
                    for c in ti.static(range(grid.features.n)):
                        numbers[m, c] = g[c]
                    m += 1


@ti.kernel
def features_in(
    grid: ti.template(),
    blocks: ti.math.ivec3,
    at: ti.types.ndarray(ndim=1),
    words: ti.types.ndarray(ndim=2),
    first: ti.types.ndarray(ndim=1),
    numbers: ti.types.ndarray(ndim=2),
):
    """Gradient of the touched samples = numbers, as `features_out` gives them; they are marked as touched."""
    for n in range(at.shape[0]):
        J, m, total = block_of(at[n], blocks), first[n], ti.cast(0.0, float)
        for w in range(ti.static(words_of(grid))):
            W = word_of_block(grid, J, w)
            grid.feature_samples[W] = words[n, w]
            for b in range(WORD_BITS):
                if (words[n, w] >> b) & 1:
                    g = ti.Vector.zero(float, grid.features.n)
                    for c in ti.static(range(grid.features.n)):
                        g[c] = numbers[m, c]
                        total += g[c]
                    grid.g_features[gradient_index(grid, sample_of_word(grid, W, b))] = g
                    m += 1
        if grid.nonfinite_step[None] == 0 and not is_finite(total):
            grid.nonfinite_step[None] = 1

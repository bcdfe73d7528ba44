"""Gradient reduction over slots, in fixed order (deterministic), which leaves them clean: only what was written.

Where several ranks have the slots of a step, these are added along a tree of pairs (`pairwise`), of which each
rank has a branch.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import (
    BRICK_SAMPLES,
    block_at,
    first_block,
    gradient_index,
    is_sparse,
    position_of_block,
    sample_of_block,
)
from raymarch.kernels.field.touched import (
    WORD_BITS,
    place_of_word,
    reached_samples,
    sample_of_word,
    word_of_block,
    words_of,
)
from raymarch.kernels.numeric import is_finite


def direct_slots(grid) -> int:
    """Count of slots that are the gradient itself, and not to be added to it."""
    return 1 if is_sparse(grid.table) else 0


@ti.func
def block_of(b, blocks):
    """Block by its number b, last axis fastest."""
    return ti.Vector([b // (blocks[1] * blocks[2]), (b // blocks[2]) % blocks[1], b % blocks[2]])


@ti.func
def take_slot(part: ti.template(), slot, I):
    """What a slot holds of sample I, which becomes 0."""
    at = ti.Vector([slot, I[0], I[1], I[2]])
    value = part[at]
    part[at] = 0
    return value


@ti.func
def sum_in_pairs(part: ti.template(), I, reached, n, first: ti.template(), count: ti.template()):
    """Sum, along a tree of pairs, of what `count` slots from `first` on hold of sample I, which becomes 0; a slot holds
    nothing where bit n of its word of `reached` is not set."""
    total = ti.zero(part[first, I[0], I[1], I[2]])
    if ti.static(count == 1):
        if (reached[first] >> n) & 1:
            total = take_slot(part, first, I)
    else:
        total = sum_in_pairs(part, I, reached, n, first, ti.static(count // 2)) + sum_in_pairs(
            part, I, reached, n, ti.static(first + count // 2), ti.static(count // 2)
        )
    return total


@ti.func
def pairs_and_sum(grid: ti.template(), part: ti.template(), I, reached, n, before):
    """Gradient of sample I and what the slots hold of it, these along a tree of pairs."""
    total = sum_in_pairs(part, I, reached, n, 0, grid.slots)
    if ti.static(direct_slots(grid) == 0):
        total += before
    return total


@ti.func
def sum_of_samples(grid: ti.template(), J, pairwise: ti.template()):
    """Add up what the slots hold of a block's samples, of density alone above degree 0; the sum of all."""
    total, all_reached = ti.cast(0.0, float), ti.Vector([1] * grid.slots)
    for i in range(grid.block):
        for j in range(grid.block):
            for k in range(grid.block):
                I = sample_of_block(grid, J, i, j, k)
                G = gradient_index(grid, I)
                d_density = grid.g_density[G]
                if ti.static(pairwise):
                    d_density = pairs_and_sum(grid, grid.d_density, I, all_reached, 0, d_density)
                else:
                    for s in ti.static(range(direct_slots(grid), grid.slots)):
                        d_density += take_slot(grid.d_density, s, I)
                grid.g_density[G] = d_density
                total += d_density
                if ti.static(grid.packs):
                    d_features = grid.g_features[G]
                    if ti.static(pairwise):
                        d_features = pairs_and_sum(grid, grid.d_features, I, all_reached, 0, d_features)
                    else:
                        for s in ti.static(range(direct_slots(grid), grid.slots)):
                            d_features += take_slot(grid.d_features, s, I)
                    grid.g_features[G] = d_features
                    total += d_features.sum()
    return total


@ti.func
def sum_of_features(grid: ti.template(), J, pairwise: ti.template()):
    """Add up what the slots hold of a block's features, where they were added to; the sum of all."""
    total = ti.cast(0.0, float)
    for w in range(ti.static(words_of(grid))):
        W = word_of_block(grid, J, w)
        of_slot, word = reached_samples(grid, place_of_word(grid, position_of_block(grid, J), w)), 0
        for s in ti.static(range(grid.slots)):
            word |= of_slot[s]
        if word != 0:
            grid.feature_samples[W] |= word
            for n in range(WORD_BITS):
                if (word >> n) & 1:
                    I = sample_of_word(grid, W, n)
                    G = gradient_index(grid, I)
                    d_features = grid.g_features[G]
                    if ti.static(pairwise):
                        d_features = pairs_and_sum(grid, grid.d_features, I, of_slot, n, d_features)
                    else:
                        for s in ti.static(range(direct_slots(grid), grid.slots)):
                            if (of_slot[s] >> n) & 1:
                                d_features += take_slot(grid.d_features, s, I)
                    grid.g_features[G] = d_features
                    total += d_features.sum()
    return total


@ti.func
def forget_cells(grid: ti.template(), J):
    """Clear what the slots noted of a block's cells."""
    for w in range(ti.static(words_of(grid))):
        W = word_of_block(grid, J, w)
        for s in ti.static(range(grid.slots)):
            grid.feature_cells[s, W[0], W[1], W[2]] = 0


@ti.kernel
def reduce_slots(grid: ti.template(), blocks: ti.math.ivec3, pairwise: ti.template()):
    """density.grad, features.grad += sum over slots of d_density, d_features, which become 0; marks blocks dirty.

    In a sparse grid the first slot is the gradient itself. `pairwise`: whether slots, a power of two of them, are added
    along a tree of pairs, not one after another.

    A sample's cell touches the next block too, so a block is dirty if one of its seven lower neighbours was touched.
    """
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        J = block_of(b, blocks)
        B = position_of_block(grid, J)
        hit = False
        for i, j, k in ti.static(ti.ndrange(2, 2, 2)):
            lower = ti.max(B - ti.Vector([i, j, k]), 0)
            hit = hit or grid.block_written[block_at(grid, lower)] != 0
        if hit:
            grid.block_has_gradient[J] = ti.u8(1)
            total = sum_of_samples(grid, J, pairwise)
            if ti.static(grid.parted):
                total += sum_of_features(grid, J, pairwise)
            if grid.nonfinite_step[None] == 0 and not is_finite(total):
                grid.nonfinite_step[None] = 1
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        J = block_of(b, blocks)
        if grid.block_written[J] != 0:
            grid.block_written[J] = 0
            if ti.static(grid.parted):
                forget_cells(grid, J)
    if ti.static(is_sparse(grid.table)):
        for n in range(BRICK_SAMPLES):  # what was added where no brick is
            for s in ti.static(range(grid.slots)):
                grid.d_density[s, 0, 0, n] = 0
                grid.d_features[s, 0, 0, n] = 0

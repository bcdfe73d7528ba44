"""Gradient reduction over slots, in fixed order (deterministic), which leaves them clean: only what was written."""

import taichi as ti

from raymarch.kernels.field.bricks import (
    SAMPLES,
    block_at,
    first_block,
    is_sparse,
    position_of_block,
    sample_of_block,
    summed,
)
from raymarch.kernels.numeric import finite


@ti.func
def block_of(b, blocks):
    """Block by its number b, last axis fastest."""
    return ti.Vector([b // (blocks[1] * blocks[2]), (b // blocks[2]) % blocks[1], b % blocks[2]])


@ti.kernel
def reduce_slots(grid: ti.template(), blocks: ti.math.ivec3):
    """density.grad, features.grad += sum over slots of d_density, d_features, which become 0; marks blocks dirty.

    In a sparse grid the first slot is the gradient itself.

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
            total = ti.cast(0.0, float)
            for i in range(grid.block):
                for j in range(grid.block):
                    for k in range(grid.block):
                        I = sample_of_block(grid, J, i, j, k)
                        G = summed(grid, I)
                        d_density, d_features = grid.g_density[G], grid.g_features[G]
                        for s in ti.static(range(1 if is_sparse(grid.table) else 0, grid.slots)):
                            d_density += grid.d_density[s, I[0], I[1], I[2]]
                            d_features += grid.d_features[s, I[0], I[1], I[2]]
                            grid.d_density[s, I[0], I[1], I[2]] = 0
                            grid.d_features[s, I[0], I[1], I[2]] = 0
                        total += d_density + d_features.sum()
                        grid.g_density[G], grid.g_features[G] = d_density, d_features
            if grid.nonfinite_step[None] == 0 and not finite(total):
                grid.nonfinite_step[None] = 1
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        grid.block_written[block_of(b, blocks)] = 0
    if ti.static(is_sparse(grid.table)):
        for n in range(SAMPLES):  # what was added where no brick is
            for s in ti.static(range(grid.slots)):
                grid.d_density[s, 0, 0, n] = 0
                grid.d_features[s, 0, 0, n] = 0

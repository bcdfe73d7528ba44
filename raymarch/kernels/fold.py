"""Add the slots' gradient buffers up, in fixed order, and leave them clean: only where something was written."""

import taichi as ti

from raymarch.kernels.numeric import finite


@ti.func
def block_of(b, blocks):
    """The b-th block, last axis fastest."""
    return ti.Vector([b // (blocks[1] * blocks[2]), (b // blocks[2]) % blocks[1], b % blocks[2]])


@ti.kernel
def fold(grid: ti.template(), blocks: ti.math.ivec3):
    """density.grad, features.grad += sum over slots of d_density, d_features, which become 0; marks blocks dirty.

    A sample's cell touches the next block too, so a block is dirty if one of its seven lower neighbours was touched.
    """
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        hit = False
        for i, j, k in ti.static(ti.ndrange(2, 2, 2)):
            lower = ti.max(B - ti.Vector([i, j, k]), 0)
            hit = hit or grid.touched[lower] != 0
        if hit:
            grid.dirty[B] = ti.u8(1)
            for i, j, k in ti.ndrange(grid.block, grid.block, grid.block):
                I = B * grid.block + ti.Vector([i, j, k])
                d_density = grid.density.grad[I]
                d_features = grid.features.grad[I]
                for s in range(grid.slots):
                    d_density += grid.d_density[s, I[0], I[1], I[2]]
                    d_features += grid.d_features[s, I[0], I[1], I[2]]
                    grid.d_density[s, I[0], I[1], I[2]] = 0
                    grid.d_features[s, I[0], I[1], I[2]] = 0
                if grid.broken[None] == 0 and not (finite(d_density) and finite(d_features.sum())):
                    grid.broken[None] = 1
                grid.density.grad[I] = d_density
                grid.features.grad[I] = d_features
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        grid.touched[block_of(b, blocks)] = 0

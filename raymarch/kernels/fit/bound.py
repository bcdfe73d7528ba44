"""Upper bound on the raw densities of a grid's samples."""

import taichi as ti

from raymarch.kernels.field.bricks import first_block, sample_of_block
from raymarch.kernels.fit.reduce import block_of


@ti.kernel
def bound_density(grid: ti.template(), blocks: ti.math.ivec3, most: float):  # Fields (x, y, z), raw density
    """density = min(density, most)."""
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        for i, j, k in ti.ndrange(grid.block, grid.block, grid.block):
            I = sample_of_block(grid, B, i, j, k)
            grid.density[I] = ti.min(grid.density[I], most)

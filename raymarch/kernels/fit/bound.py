"""Bounds on the densities of samples, of those that rays see and of the others."""

import taichi as ti

from raymarch.kernels.field.bricks import first_block, sample_of_block
from raymarch.kernels.fit.reduce import block_of


@ti.kernel
def bound_density(
    grid: ti.template(), blocks: ti.math.ivec3, seen: float, unseen: float,  # Fields (x, y, z), raw densities
):  # fmt: skip
    """density = min(density, seen) of samples that m_density marks, min(density, unseen) of the others."""
    for b in range(first_block(grid), blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        for i, j, k in ti.ndrange(grid.block, grid.block, grid.block):
            I = sample_of_block(grid, B, i, j, k)
            grid.density[I] = ti.min(grid.density[I], seen if grid.m_density[I] != 0.0 else unseen)

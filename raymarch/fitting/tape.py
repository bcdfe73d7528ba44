"""The march and the regularisers as the Tape sees them: kernels with hand-written adjoints.

Taichi does not differentiate the march: `grad_replaced` hides the loop from it and `grad_for` names the adjoint.
"""

from __future__ import annotations

import taichi as ti

from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.kernels.fit import regularise as kernels
from raymarch.kernels.march.march import march as march_kernel
from raymarch.kernels.march.march import march_adjoint


@ti.ad.grad_replaced
def march(grid: Grid, buffer: RayBuffer, count, dt, min_transmittance, min_weight, background, variant=None):
    """Render the buffer's rays into its image; its adjoint adds to the grid's gradient."""
    march_kernel(
        grid.fields, buffer.fields, variant or grid.variant, count, dt, min_transmittance, min_weight, background
    )


@ti.ad.grad_for(march)
def _(grid: Grid, buffer: RayBuffer, count, dt, min_transmittance, min_weight, background, variant=None):
    march_adjoint(
        grid.fields, buffer.fields, variant or grid.variant, count, dt, min_transmittance, min_weight, background
    )
    grid.reduce_slots()


def _blocks(grid: Grid, seed: int, step: int):
    """This step's random shift, the level's shape and how many blocks cover it, as kernel arguments."""
    mixed = (seed * 2654435761 + step * 40503) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    shift = [(mixed >> (2 * a)) % kernels.EDGE for a in range(3)]
    blocks = [(n + s + kernels.EDGE - 1) // kernels.EDGE for n, s in zip(grid.shape, shift, strict=True)]
    return ti.Vector(blocks), ti.Vector(list(grid.shape)), ti.Vector(shift)


def _weights(grid: Grid, fraction: float, tv_density: float, tv_features: float, sparsity: float):
    """Chance of a block as 32 bits, and the weights over the voxels that makes their mean the full sum's."""
    voxels = grid.shape[0] * grid.shape[1] * grid.shape[2]
    per_edge = fraction * (kernels.EDGE - 1) / kernels.EDGE * voxels
    chance = min(round(fraction * 2**32), 2**32 - 1)
    return chance, tv_density / per_edge, tv_features / per_edge, sparsity / (fraction * voxels)


@ti.ad.grad_replaced
def regularise(grid: Grid, buffer: RayBuffer, seed, step, fraction, tv_density, tv_features, sparsity):
    """Add total variation and sparsity, estimated on a random `fraction` of the blocks, to the loss."""
    place = _blocks(grid, seed, step)
    weights = _weights(grid, fraction, tv_density, tv_features, sparsity)
    kernels.regularise(grid.fields, buffer.fields, grid.variant, *place, seed, step, *weights)


@ti.ad.grad_for(regularise)
def _(grid: Grid, buffer: RayBuffer, seed, step, fraction, tv_density, tv_features, sparsity):
    place = _blocks(grid, seed, step)
    weights = _weights(grid, fraction, tv_density, tv_features, sparsity)
    kernels.regularise_adjoint(grid.fields, buffer.fields, grid.variant, *place, seed, step, *weights)

"""Total variation and sparsity on random blocks of 4^3 voxels, with the adjoint beside them.

Blocks are shifted by one random offset a step and never overlap, and only edges within a block count, so that the
adjoint needs no atomics and every edge has the same chance: the caller scales the weights by one over it.
Penalty of a difference d: sqrt(d^2 + eps^2) - eps (Charbonnier et al. 1994); of a density: ln(1 + 2 tau^2), tau
the optical depth over one finest voxel (Cauchy, as in Barron 2019).
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.fit.reduce import block_of
from raymarch.kernels.numeric import hash_u32

EDGE = 4
EPS_DENSITY = 0.1
EPS_FEATURES = 0.02


@ti.func
def chosen(grid: ti.template(), B, b, shift, shape, seed, step, chance):
    """Whether the block is drawn this step and lies on an occupied block of the layout."""
    middle = ti.min(ti.max(B * EDGE - shift + EDGE // 2, 0), shape - 1) // grid.block
    return hash_u32(seed, step, b) < chance and grid.block_occupied[middle] != 0


@ti.kernel
def regularise(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), blocks: ti.math.ivec3, shape: ti.math.ivec3,
    shift: ti.math.ivec3, seed: int, step: int, chance: ti.u32, w_density: ti.f64, w_features: ti.f64,
    w_sparsity: ti.f64,
):  # fmt: skip
    """loss += w_density sum phi(density edge) + w_features sum phi(feature edge) + w_sparsity sum phi(tau)."""
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if chosen(grid, B, b, shift, shape, seed, step, chance):
            total = ti.cast(0.0, ti.f64)
            for i, j, k in ti.ndrange(EDGE, EDGE, EDGE):
                local = ti.Vector([i, j, k])
                I = B * EDGE - shift + local
                if all(I >= 0) and all(I < shape):
                    x = activation.density(variant, grid.density[I] + grid.shift[None])
                    total += w_sparsity * ti.log(1.0 + 2.0 * x * x)
                    for a in ti.static(range(3)):
                        N = I + ti.Vector.unit(3, a, ti.i32)
                        if local[a] + 1 < EDGE and N[a] < shape[a]:
                            d = grid.density[N] - grid.density[I]
                            total += w_density * (ti.sqrt(d * d + EPS_DENSITY**2) - EPS_DENSITY)
                            e = grid.features[N] - grid.features[I]
                            total += w_features * (ti.sqrt(e * e + EPS_FEATURES**2) - EPS_FEATURES).sum()
            rays.loss[None] += total


@ti.kernel
def regularise_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), blocks: ti.math.ivec3, shape: ti.math.ivec3,
    shift: ti.math.ivec3, seed: int, step: int, chance: ti.u32, w_density: ti.f64, w_features: ti.f64,
    w_sparsity: ti.f64,
):  # fmt: skip
    """density.grad, features.grad += their derivative of `regularise`; the blocks of the layout are marked dirty."""
    for b in range(blocks[0] * blocks[1] * blocks[2]):
        B = block_of(b, blocks)
        if chosen(grid, B, b, shift, shape, seed, step, chance):
            d_loss = rays.loss.grad[None]
            u_density, u_features = ti.cast(w_density * d_loss, float), ti.cast(w_features * d_loss, float)
            for i, j, k in ti.ndrange(EDGE, EDGE, EDGE):
                local = ti.Vector([i, j, k])
                I = B * EDGE - shift + local
                if all(I >= 0) and all(I < shape):
                    raw = grid.density[I] + grid.shift[None]
                    x = activation.density(variant, raw)
                    slope = 4.0 * x / (1.0 + 2.0 * x * x) * activation.density_slope(variant, raw)
                    d_density = ti.cast(w_sparsity * d_loss, float) * slope
                    d_features = ti.Vector.zero(float, grid.features.n)
                    for a, side in ti.static(ti.ndrange(3, 2)):
                        N = I + (2 * side - 1) * ti.Vector.unit(3, a, ti.i32)
                        at = local[a] + 2 * side - 1
                        if 0 <= at and at < EDGE and 0 <= N[a] and N[a] < shape[a]:
                            d = grid.density[I] - grid.density[N]
                            d_density += u_density * d / ti.sqrt(d * d + EPS_DENSITY**2)
                            e = grid.features[I] - grid.features[N]
                            d_features += u_features * e / ti.sqrt(e * e + EPS_FEATURES**2)
                    grid.density.grad[I] = grid.density.grad[I] + d_density
                    grid.features.grad[I] = grid.features.grad[I] + d_features
                    grid.block_has_gradient[I // grid.block] = ti.u8(1)

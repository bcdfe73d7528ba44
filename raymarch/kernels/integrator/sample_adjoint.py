"""Adjoint of one sample of a march: its part of the gradient of density and colour."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import block_of_cell
from raymarch.kernels.field.gather import scatter
from raymarch.kernels.field.touched import add_features
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_again
from raymarch.kernels.integrator.sample import colour_at, located
from raymarch.kernels.march.compositing import contributes
from raymarch.kernels.march.kept import colour_again
from raymarch.kernels.march.roulette import share_of_draw


@ti.func
def adjoint_of_packed(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), ahead: ti.template(), slot,
    cell, f, raw, Y, tau, slope, e, T, remaining, carry, d_colour, min_weight, on, share,
):  # fmt: skip
    """Add what one sample of degree 0 gives the gradient, times `on`, 0 or 1; T and `remaining` after it, and weight
    times raw.

    With gradients scaled near the cameras `share` of it is added; what it means to other samples stays whole.

    Factors of 0 and 1 where a `select` would do: that becomes a branch, and ends what the compiler makes vectors of.
    """
    weight, T_after = variant.mode.composite(T, tau, e)
    d_raw = ti.Vector.zero(float, 4)
    seen = ti.select(contributes(variant, weight, min_weight), on, 0.0)
    shown = seen * weight
    colour = colour_at(grid, variant, cell, f, Y, raw)
    d_weight = seen * d_colour.dot(colour)
    if ti.static(variant.mode.colour):
        d_raw = (shown * Y[0]) * d_colour * activation.colour_slope(variant, colour)
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_raw[3] = on * slope * optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    if ti.static(variant.near_scaled):
        d_raw *= share
    scatter(grid.d_packed, slot, cell, f, d_raw)
    return T_after, remaining, carry, shown * raw


@ti.func
def adjoint_of_sample(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), ahead: ti.template(), slot,
    r, k, kept: ti.template(),
    p, Y, tau, slope, e, T, remaining, carry, d_colour, min_weight, share,
):  # fmt: skip
    """Add what sample k of ray r, at p, gives the gradient above degree 0; T and `remaining` after it.

    `kept` of the samples before it had weight, and are counted on. `share` as in `adjoint_of_packed`, and what of it is
    drawn (`roulette`): where nothing is, no memory of the grid is met.
    """
    weight, T_after = variant.mode.composite(T, tau, e)
    d_weight, d_sum, lit = ti.cast(0.0, float), ti.Vector.zero(float, 4), False
    if contributes(variant, weight, min_weight):
        colour = colour_again(grid, rays, variant, r, k, kept, p, Y)
        kept += 1
        d_weight = d_colour.dot(colour)
        if ti.static(variant.mode.colour):
            d_sum = weight * d_colour * activation.colour_slope(variant, colour)
            lit = True
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_raw = slope * optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    share *= share_of_draw(rays, variant, ti.max(ti.abs(weight), slope * T_after), r, k)
    if share > 0.0:
        cell, f = located(grid, p)
        if lit:
            d_sum *= share
            d_features = ti.Vector.zero(float, grid.features.n)
            for b in ti.static(range((grid.degree + 1) ** 2)):
                for c in ti.static(range(3)):
                    d_features[3 * b + c] = Y[b] * d_sum[c]
            add_features(grid, slot, cell, f, d_features)
        scatter(grid.d_density, slot, cell, f, share * d_raw)
        mark(grid, cell, cell)
    return T_after, remaining, carry


@ti.func
def mark(grid: ti.template(), cell, cell2):
    """Note the blocks of two samples as touched."""
    block, block2 = block_of_cell(grid, cell), block_of_cell(grid, cell2)
    # A write, even of what is there, would take the line from the other threads.
    if grid.block_written[block] + grid.block_written[block2] < 2:
        grid.block_written[block], grid.block_written[block2] = ti.u8(1), ti.u8(1)

"""Adjoint of one sample that a transfer function classified: its part of the gradient of density and table."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import add, scatter
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_again
from raymarch.kernels.march.compositing import contributes
from raymarch.kernels.march.transfer import extinction, knot_below, shade_of, slope_of


@ti.func
def adjoint_of_classified(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), ahead: ti.template(), slot,
    cell, f, x, inverse_scale, width, T, remaining, carry, d_colour, min_weight, share,
):  # fmt: skip
    """Add what one sample of raw density with its shift x gives the gradients; T, `remaining`, `carry` after it."""
    value, by_x = activation.density_and_slope(variant, x)
    i, beyond = knot_below(rays.table, value * inverse_scale)
    shade = shade_of(rays.table, i, beyond)
    sigma, by_opacity = extinction(rays.table, shade[3])
    tau = sigma * width
    weight, T_after = variant.mode.composite(T, tau, variant.mode.step_transmittance(tau))
    shown, d_weight = ti.cast(0.0, float), ti.cast(0.0, float)
    if contributes(variant, weight, min_weight):
        shown, d_weight = weight, d_colour.dot(shade)
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    if ti.static(variant.mode.looks_behind):
        remaining, carry = remaining_again(grid, rays, variant, ahead, T_after, min_weight, remaining, carry)
    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    d_shade = shown * d_colour
    d_shade[3] = d_tau * width * by_opacity
    add_to_knots(rays, slot, i, beyond, d_shade)
    d_x = d_shade.dot(slope_of(rays.table, i, value * inverse_scale)) * inverse_scale * by_x
    if ti.static(variant.near_scaled):
        d_x *= share
    scatter(grid.d_density, slot, cell, f, d_x)
    return T_after, remaining, carry


@ti.func
def add_to_knots(rays: ti.template(), slot, i, beyond, d_shade):
    """Add the gradient by a shade to that of the knots around it."""
    above = ti.cast(d_shade * (beyond * rays.table.per_value[i]), ti.f64)
    add(rays.table.d_rgba, ti.Vector([slot, i]), ti.cast(d_shade, ti.f64) - above)
    add(rays.table.d_rgba, ti.Vector([slot, i + 1]), above)


@ti.func
def add_gradient_of_sigma(rays: ti.template(), variant: ti.template(), slot, x, inverse_scale, d_sigma):
    """Add what the extinction of a sample of raw density with its shift x gives the gradient of the table."""
    i, beyond = knot_below(rays.table, activation.density(variant, x) * inverse_scale)
    _sigma, by_opacity = extinction(rays.table, shade_of(rays.table, i, beyond)[3])
    d_shade = ti.Vector.zero(float, 4)
    d_shade[3] = d_sigma * by_opacity
    add_to_knots(rays, slot, i, beyond, d_shade)

"""Remaining-radiance term of the adjoint: at a ray's start, and in additive mode up to the next clamp."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.march.compositing import background_of, contributes, is_alive
from raymarch.kernels.march.sample import colour_at, fetch, ray_segment
from raymarch.kernels.rays.traverse import empty_steps, place_of


@ti.func
def remaining_at_first(rays: ti.template(), variant: ti.template(), r):
    """`remaining` of `composite_adjoint` before the first sample, and the clamp it holds up to: none is known yet."""
    d_image = rays.image.grad[r]
    remaining = rays.image[r].dot(d_image)
    if ti.static(variant.mode == "x-ray"):
        remaining = rays.image[r][3] * d_image[3]
    return remaining, -1


@ti.func
def next_clamp(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, T,
    dt, min_transmittance, min_weight, background,
):  # fmt: skip
    """Additive: the next sample from k on whose weight is all of T that is left, and what the image gains by T there.

    The march runs ahead to it. Without one, it is what the background and the T behind the box gain.
    """
    entry, d, length, Y, step, phase, n = ray_segment(grid, rays, variant, r, dt)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    gain, clamped = d_image[3] + d_colour.dot(background_of(variant, background)), 0
    while k <= n and clamped == 0 and is_alive(variant, T, min_transmittance):
        p, width = place_of(variant, entry, d, length, step, phase, k)
        skip = empty_steps(grid, per_index, p, d, step)
        if skip > 0:
            k += skip
        else:
            cell, f, raw = fetch(grid, p)
            tau = activation.density(variant, raw[3] + shift) * inverse_scale * width
            if tau > T:
                clamped = 1
                gain = ti.cast(0.0, float)
                if contributes(variant, T, min_weight):
                    colour = colour_at(grid, variant, cell, f, Y, raw)
                    gain = colour[0] * d_image[0] + colour[1] * d_image[1] + colour[2] * d_image[2]
            else:
                T -= tau
                k += 1
    return k, gain

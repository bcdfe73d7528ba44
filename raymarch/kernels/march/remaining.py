"""What the light still to come owes the gradient: at a ray's start, and in additive mode up to the next clamp."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.march.compositing import behind, going, lit
from raymarch.kernels.march.sample import colour_at, raw_at, within
from raymarch.kernels.rays.traverse import empty_steps, place_of


@ti.func
def owed_at_first(rays: ti.template(), reading: ti.template(), r):
    """`later` of `take_adjoint` before the first sample, and the clamp it holds up to: none is known yet."""
    d_image = rays.image.grad[r]
    later = rays.image[r].dot(d_image)
    if ti.static(reading.mode == "x-ray"):
        later = rays.image[r][3] * d_image[3]
    return later, -1


@ti.func
def next_clamp(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), r, k, T, dt, stop, least, background,
):  # fmt: skip
    """Additive: the next sample from k on whose weight is all of T that is left, and what the image gains by T there.

    The march runs ahead to it. Without one, it is what the background and the T behind the box gain.
    """
    entry, d, length, Y, step, phase, n = within(grid, rays, reading, r, dt)
    per_index, shift, per_scale = grid.cells_per_index[None], grid.shift[None], grid.per_scale[None]
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    gain, clamped = d_image[3] + d_colour.dot(behind(reading, background)), 0
    while k <= n and clamped == 0 and going(reading, T, stop):
        p, width = place_of(reading, entry, d, length, step, phase, k)
        skip = empty_steps(grid, per_index, p, d, step)
        if skip > 0:
            k += skip
        else:
            cell, f, raw = raw_at(grid, p)
            tau = activation.density(reading, raw[3] + shift) * per_scale * width
            if tau > T:
                clamped = 1
                gain = ti.cast(0.0, float)
                if lit(reading, T, least):
                    colour = colour_at(grid, reading, cell, f, Y, raw)
                    gain = colour[0] * d_image[0] + colour[1] * d_image[1] + colour[2] * d_image[2]
            else:
                T -= tau
                k += 1
    return k, gain

"""What the light still to come owes the gradient: at a ray's start, and in additive mode up to the next clamp."""

import taichi as ti

from raymarch.kernels import activation
from raymarch.kernels.compositing import behind, going, lit
from raymarch.kernels.sample import colour_at, in_index_space, raw_at
from raymarch.kernels.traverse import clip, empty_steps, jitter_of, step_at, steps_of


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
    o, d, Y = in_index_space(grid, rays, r)
    top, per_index = grid.top[None], grid.cells_per_index[None]
    shift, per_scale = grid.shift[None], grid.per_scale[None]
    near, far = clip(o, d, top)
    phase, stretch = jitter_of(rays, reading, r)
    step = stretch * dt
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    gain, clamped = d_image[3] + d_colour.dot(behind(reading, background)), 0
    n = steps_of(near, far, step, phase)
    while k <= n and clamped == 0 and going(reading, T, stop):
        begin, width = step_at(reading, near, far, step, phase, k)
        p = ti.max(o + (begin + 0.5 * width) * d, 0.0)
        skip = empty_steps(grid.leap, per_index, p, d, step)
        if skip > 0:
            k += skip
        else:
            cell, f, raw = raw_at(grid, p, top)
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

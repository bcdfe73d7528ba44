"""Samples of a march: rays in index space, interpolated density and features at a point, and its colour."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.march.compositing import contributes
from raymarch.kernels.rays.clip import kept_of_ray
from raymarch.kernels.rays.placed import placed
from raymarch.kernels.rays.rays import jitter_of, steps_of


@ti.func
def in_index_space(grid: ti.template(), rays: ti.template(), r):
    """Ray r in index space: origin and direction, and the harmonics of its view direction."""
    direction = rays.direction[r]
    o, d = placed(grid, rays.origin[r], direction)
    return o, d, basis(grid.degree, direction)


@ti.func
def ray_segment(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s, dt):
    """Segment s of ray r: its harmonics, its step and phase, and the index of its last, shorter step."""
    o, d, Y = in_index_space(grid, rays, r)
    entry, index_direction, length = kept_of_ray(grid, rays, variant, r, o, d, s)
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    return entry, index_direction, length, Y, step, phase, steps_of(length, step, phase)


@ti.func
def located(grid: ti.template(), p):
    """Cell of a point, by where it lies in the fields of the grid, and the position within it.

    p lies in the box, and on none of its upper faces: `clip_to_box` sees to it.
    """
    lowest = ti.cast(p, ti.i32)
    return where(grid, lowest), p - lowest  # a floor would make 1 of what rounding put under 0


@ti.func
def optics_of(variant: ti.template(), raw, shift, inverse_scale, width):
    """Optical depth of a sample, its derivative by its raw density, and what passes the sample."""
    sigma, slope = activation.density_and_slope(variant, raw + shift)
    tau = sigma * inverse_scale * width
    return tau, slope * inverse_scale * width, variant.mode.step_transmittance(tau)


@ti.func
def fetch(grid: ti.template(), cell, f):
    """Interpolated sample: what is stored there in four lanes, density the last.

    At degree 0 colour comes along, in one go; above, the other lanes are 0 and `colour_at` looks it up.
    """
    raw = ti.Vector.zero(float, 4)
    if ti.static(grid.degree == 0):
        raw = gather(grid.packed, cell, f)
    else:
        raw[3] = gather(grid.density, cell, f)
    return raw


@ti.func
def colour_at(grid: ti.template(), variant: ti.template(), cell, f, Y, raw):
    """Colour of `sum_k c_k Y_k`, interpolated before it is activated; 1 for a line integral, `raw` where a transfer
    function made that. The last lane is idle."""
    colour = ti.Vector.one(float, 4)
    if ti.static(variant.mode.classifies):
        colour = raw
    elif ti.static(variant.mode.colour):
        total = raw * Y[0]
        if ti.static(grid.degree > 0):
            features = gather(grid.features, cell, f)
            for k in ti.static(range((grid.degree + 1) ** 2)):
                for c in ti.static(range(3)):
                    total[c] += Y[k] * features[3 * k + c]
        colour = activation.colour(variant, total)
    return colour


@ti.func
def weighted_colour(grid: ti.template(), variant: ti.template(), cell, f, Y, raw, weight, min_weight):
    """weight * colour of a sample whose colour came along, black under `min_weight`, without a branch."""
    shown = ti.select(contributes(variant, weight, min_weight), weight, 0.0)
    return shown * colour_at(grid, variant, cell, f, Y, raw)

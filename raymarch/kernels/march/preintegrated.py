"""Pre-integrated transfer function: along a step the value is linear, and what the table makes of that is integrated.

A step that jumps over a knot still sees it, so that pictures need fewer steps (Engel et al. 2001, "High-quality
pre-integrated volume rendering using hardware-accelerated pixel shading"). No table of pairs of values is made: between
knots colour and opacity are linear, and so a step is cut where its value meets a knot, each piece into midpoints.
"""

from dataclasses import replace
from functools import cache

import taichi as ti

from raymarch.errors import RaymarchError
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.march.compositing import background_of, contributes, is_alive
from raymarch.kernels.march.depth import march_depth
from raymarch.kernels.march.mode import RayMode
from raymarch.kernels.march.normals import march_normals
from raymarch.kernels.march.passes import Passes
from raymarch.kernels.march.sample import located, ray_segment
from raymarch.kernels.march.transfer import TRANSFER, extinction, knot_below, shade_of
from raymarch.kernels.march.variant import Variant
from raymarch.kernels.numeric import at_least, at_most, exp
from raymarch.kernels.rays.traverse import empty_steps, place_of, step_at

PIECES = 4  # midpoints between two knots


@ti.func
def value_at(grid: ti.template(), variant: ti.template(), p):
    """Value at a point of the box."""
    cell, f = located(grid, p)
    return activation.density(variant, gather(grid.density, cell, f) + grid.shift[None]) * grid.inverse_scale[None]


@ti.func
def next_knot(table: ti.template(), i, first, rise):
    """Share 0..1 of a step at which its value, `first` above the table's beginning and rising by `rise`, leaves knot i
    for the next; 1 where it stays. Before the table's beginning i is -1."""
    share = ti.cast(1.0, float)
    if rise > 0:
        share = (table.above[i + 1] - first) / rise
    elif rise < 0 and i >= 0:
        share = (table.above[i] - first) / rise
    return at_most(at_least(share, 0.0), 1.0)


@ti.func
def composite_step(
    table: ti.template(), variant: ti.template(), value, value2, width, min_weight,
    T: ti.template(), sum: ti.template(),
):  # fmt: skip
    """Composite one step along which the value goes from `value` to `value2`."""
    first, rise = value - table.place[None][0], value2 - value
    i, _beyond = knot_below(table, value)
    if first < 0:
        i = -1
    share = ti.cast(0.0, float)
    while share < 1.0:
        end = next_knot(table, i, first, rise)
        knot = ti.max(i, 0)
        a = shade_of(table, knot, at_least(first + share * rise - table.above[knot], 0.0))
        b = shade_of(table, knot, at_least(first + end * rise - table.above[knot], 0.0))
        if a[3] + b[3] > 0 and end > share:
            for q in ti.static(range(PIECES)):
                shade = a + (b - a) * ((q + 0.5) / PIECES)
                sigma, _by_opacity = extinction(table, shade[3])
                e = exp(-sigma * width * (end - share) / PIECES)
                weight = T * (1.0 - e)
                if contributes(variant, weight, min_weight):
                    sum += weight * shade
                T *= e
        share = end
        i += ti.select(rise > 0, 1, -1)


@ti.kernel
def march_preintegrated(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """image = sum over steps of what the table makes of a linear value, + T background."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, sum = ti.cast(1.0, float), ti.Vector.zero(float, 4)
        per_index = grid.cells_per_index[None]
        for s in range(ti.static(grid.segments)):
            entry, d, length, _Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k, known, value = 0, -1, ti.cast(0.0, float)
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    begin, _width = step_at(variant, 0.0, length, step, phase, k)
                    if known != k:
                        value = value_at(grid, variant, entry + begin * d)
                    value2 = value_at(grid, variant, entry + (begin + width) * d)
                    composite_step(rays.table, variant, value, value2, width, min_weight, T, sum)
                    k += 1
                    value, known = value2, k
        seen = background_of(variant, background)
        rays.image[r] = ti.Vector([sum[0] + T * seen[0], sum[1] + T * seen[1], sum[2] + T * seen[2], T])


def no_gradient(*_: object) -> None:
    """RaymarchError: a picture of pre-integrated steps has no gradient here."""
    raise RaymarchError("mode transfer has no gradient when pre-integrated; march it plain, at half the step")


@cache
def _plain(variant: Variant) -> Variant:
    return replace(variant, mode=TRANSFER)


def depth_of_samples(grid: object, rays: object, variant: Variant, *call: object) -> None:
    """Depth by the weights of the plain march's samples."""
    march_depth(grid, rays, _plain(variant), *call)


def normals_of_samples(grid: object, rays: object, variant: Variant, *call: object) -> None:
    """Normals by the weights of the plain march's samples."""
    march_normals(grid, rays, _plain(variant), *call)


PREINTEGRATED = RayMode(
    "transfer",
    Passes(
        march_preintegrated, no_gradient, no_gradient, no_gradient, no_gradient, depth_of_samples, normals_of_samples
    ),
    background=True,
    ends=True,
    classifies=True,
)

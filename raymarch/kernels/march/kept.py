"""What a march keeps for its adjoint, above degree 0: each ray's first samples, and the colours of those with weight.

The adjoint then reads numbers that lie side by side where it would gather density, and all harmonics, from eight
corners again. What is kept bears its sample's number: the adjoint looks up what it does not find, as beyond the last
that is kept.
"""

import taichi as ti

from raymarch.kernels.march.compositing import contributes
from raymarch.kernels.march.sample import colour_at, fetch, located

KEPT_DENSITIES, KEPT_COLOURS = 96, 32  # a ray


def keeps(grid, rays, variant) -> bool:
    """Whether a march keeps its samples: where the buffer has room, and a colour is more than one read."""
    seen = variant.mode.colour and not variant.mode.classifies
    return rays.kept_colour is not None and grid.degree > 0 and grid.boxes == 1 and seen


@ti.func
def keep_density(rays: ti.template(), r, k, n, raw):
    """Keep the raw density of sample k of ray r, the n-th that is looked at."""
    if n < KEPT_DENSITIES:
        rays.kept_density[r * KEPT_DENSITIES + n] = ti.Vector([raw[3], k])


@ti.func
def density_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, n, p):
    """Sample k of ray r, the n-th that is looked at, in four lanes, density the last: what was kept of it, or `fetch`."""
    raw, found = ti.Vector.zero(float, 4), False
    if ti.static(keeps(grid, rays, variant)):
        if n < KEPT_DENSITIES:
            kept = rays.kept_density[r * KEPT_DENSITIES + n]
            raw[3], found = kept[0], kept[1] == k
    if not found:
        cell, f = located(grid, p)
        raw = fetch(grid, cell, f)
    return raw


@ti.func
def light_of_kept(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, n,
    cell, f, Y, raw, weight, min_weight,
):  # fmt: skip
    """As `weighted_colour`, of sample k of ray r, whose colour is kept as the ray's n-th; how many there are then."""
    light, more = ti.Vector.zero(float, 4), n
    if contributes(variant, weight, min_weight):
        colour = colour_at(grid, variant, cell, f, Y, raw)
        light = weight * colour
        if n < KEPT_COLOURS:
            rays.kept_colour[r * KEPT_COLOURS + n] = ti.Vector([colour[0], colour[1], colour[2], k])
        more = n + 1
    return light, more


@ti.func
def colour_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, n, p, Y, raw):
    """Colour of sample k of ray r, at p, the n-th with weight: what was kept of it, or `colour_at`."""
    colour, found = ti.Vector.zero(float, 4), False
    if ti.static(keeps(grid, rays, variant)):
        if n < KEPT_COLOURS:
            colour = rays.kept_colour[r * KEPT_COLOURS + n]
            found = colour[3] == k
            colour[3] = 0.0
    if not found:
        cell, f = located(grid, p)
        colour = colour_at(grid, variant, cell, f, Y, raw)
    return colour

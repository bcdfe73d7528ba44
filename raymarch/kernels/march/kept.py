"""What a march keeps for its adjoint, above degree 0: each ray's first samples, and the colours of those with weight.

The adjoint then reads numbers that lie side by side where it would gather density, and all harmonics, from eight
corners again. What is kept bears its sample's number: the adjoint looks up what it does not find, as beyond the last
that is kept.
"""

import taichi as ti

from raymarch.kernels.integrator.sample import colour_at, located
from raymarch.kernels.march.group import densities_of_group, group_size, grouped

KEPT_DENSITIES, KEPT_COLOURS = 64, 32  # a ray


def keeps(grid, rays, variant) -> bool:
    """Whether a march keeps its samples: where the buffer has room, and a colour is more than one read."""
    return rays.kept_colour is not None and grouped(grid, variant) and grid.boxes == 1 and variant.mode.colour


@ti.func
def keep_densities(rays: ti.template(), r, first, n, raws):
    """Keep the raw densities of a group, whose first sample has the number `first` and is ray r's n-th."""
    if n + ti.static(group_size()) <= KEPT_DENSITIES:
        for j in range(ti.static(group_size())):
            rays.kept_density[r * KEPT_DENSITIES + n + j] = ti.Vector([raws[j], first + j])


@ti.func
def keep_colour(rays: ti.template(), r, k, n, colour):
    """Keep the colour of sample k of ray r, the n-th with weight."""
    if n < KEPT_COLOURS:
        rays.kept_colour[r * KEPT_COLOURS + n] = ti.Vector([colour[0], colour[1], colour[2], k])


@ti.func
def densities_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, n, place: ti.template()):
    """Raw densities of a group, whose first sample is ray r's n-th: what was kept of them, or `densities_of_group`."""
    _entry, _d, _length, _step, _phase, first, end = place
    raws, found = ti.Vector.zero(float, ti.static(group_size())), False
    if ti.static(keeps(grid, rays, variant)):
        if n + ti.static(group_size()) <= KEPT_DENSITIES:
            found = True
            for j in range(ti.static(group_size())):
                kept = rays.kept_density[r * KEPT_DENSITIES + n + j]
                raws[j] = kept[0]
                found = found and (kept[1] == first + j or first + j >= end)
    if not found:
        raws = densities_of_group(grid, variant, place)
    return raws


@ti.func
def colour_again(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, k, n, p, Y):
    """Colour of sample k of ray r, at p, the n-th with weight: what was kept of it, or what is there."""
    colour, found = ti.Vector.zero(float, 4), False
    if ti.static(keeps(grid, rays, variant)):
        if n < KEPT_COLOURS:
            colour = rays.kept_colour[r * KEPT_COLOURS + n]
            found = colour[3] == k
            colour[3] = 0.0
    if not found:
        cell, f = located(grid, p)
        colour = colour_at(grid, variant, cell, f, Y, ti.Vector.zero(float, 4))
    return colour

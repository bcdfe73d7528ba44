"""Tangent of a pre-integrated picture by density and table: `preintegrated`'s loop, each line differentiated.

A knot is met sooner or later as the density there changes: dot_u = -dot_x / (slope of x by u). Letters are the same.
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell
from raymarch.kernels.field.gather import gather
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.knots import POINTS, above_first, beyond_knot, move_by_value, next_knot, point_of, slope_at
from raymarch.kernels.march.transfer import extinction, shade_of
from raymarch.kernels.modes.preintegrated import begin_cell, intervals_of
from raymarch.kernels.rays.cells import (
    beyond_empty,
    cell_at,
    exit_of,
    first_sample,
    is_empty,
    is_inside,
    next_cell,
    segment_of,
)
from raymarch.kernels.rays.root import at, cubic_of


@ti.func
def dot_density(dot_grid: ti.template(), sample, f):
    """Columns of the raw density's tangent in a cell, whose first sample it is; 0 where none moves."""
    dot = ti.Vector.zero(float, dot_grid.columns)
    if ti.static(not dot_grid.still):
        dot = gather(dot_grid.density, sample, f)
    return dot


@ti.func
def tangent_of_cell(
    grid: ti.template(), dot_grid: ti.template(), rays: ti.template(), variant: ti.template(), v, sample, f, d, h,
    min_transmittance, min_weight, T: ti.template(), dot_T: ti.template(), dot_colour: ti.template(),
):  # fmt: skip
    """Tangent of `composite_cell`, whose first sample is given."""
    i, j = intervals_of(grid, rays, variant, v)
    c = cubic_of(v, f, d)
    first, second, i, piece = begin_cell(grid, rays, variant, c, i, j)
    u, dot_u = ti.cast(0.0, float), ti.Vector.zero(float, dot_grid.columns)
    while u < 1.0 and is_alive(variant, T, min_transmittance):
        u2, then = next_knot(grid, rays.table, variant, c, first, second, u, i, piece)
        dot_u2 = ti.Vector.zero(float, dot_grid.columns)
        if then != i:
            dot_u2 = -move_by_value(v, c, u2) * dot_density(dot_grid, sample, f + u2 * d)
        for q in range(POINTS):
            share, part = point_of(q)
            place = u + share * (u2 - u)
            x, width = at(c, place), part * (u2 - u) * h
            knot, beyond = beyond_knot(rays.table, i, above_first(grid, rays.table, variant, x))
            shade = shade_of(rays.table, knot, beyond)
            sigma, by_opacity = extinction(rays.table, shade[3])
            weight, T_after = composite(variant, T, sigma * width)
            on = contributes(variant, weight, min_weight)
            by_x = activation.density_slope(variant, x + grid.shift[None]) * grid.inverse_scale[None]
            shade_by_x = rays.table.rise[knot] * ti.select(i >= 0, by_x, 0.0)
            along, above = slope_at(c, place), beyond * rays.table.per_value[knot]
            dot_x = dot_density(dot_grid, sample, f + place * d)
            for e in range(dot_grid.columns):
                moved = dot_x[e] + along * ((1.0 - share) * dot_u[e] + share * dot_u2[e])
                dot_shade = moved * shade_by_x + dot_grid.table[knot, e]
                dot_shade += (dot_grid.table[knot + 1, e] - dot_grid.table[knot, e]) * above
                dot_tau = by_opacity * dot_shade[3] * width + sigma * part * (dot_u2[e] - dot_u[e]) * h
                dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[e], dot_tau)
                if on:
                    for k in ti.static(range(3)):
                        dot_colour[e, k] += dot_weight * shade[k] + weight * dot_shade[k]
                dot_T[e] = dot_after
            T = T_after
        u, i, dot_u = u2, then, dot_u2


@ti.kernel
def preintegrated_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """dot_image[r, e] = (d image / d density and table) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, dot_T, top = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns), grid.max_index[None]
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, _axis, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v = corners_of_cell(grid.density, where(grid, cell + first))
                    tangent_of_cell(
                        grid, dot_grid, rays, variant, v, cell + first, entry + t * way - cell, (out - t) * way,
                        out - t, min_transmittance, min_weight, T, dot_T, dot_colour,
                    )  # fmt: skip
                    t, cell = out, next_cell(cell, way, axis)
                    on = axis >= 0 and t < length and is_inside(cell, top)
        seen = background_of(variant, background)
        for e in range(dot_grid.columns):
            image = ti.Vector([dot_colour[e, 0], dot_colour[e, 1], dot_colour[e, 2], 0.0])
            dot_image[r, e] = image + dot_T[e] * ti.Vector([seen[0], seen[1], seen[2], 1.0])

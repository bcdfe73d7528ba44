"""Geometry gradients of a pre-integrated picture, by the rays' origin and way; and the mode.

Letters as in `preintegrated`; S the slope of the raw density in index space. What ends an interval is a face of a cell
or of the box, met as `meeting` says, or a knot: the density at o + t d stays the knot's, so
dot_t = -S (dot_o + t dot_d) / (S d).
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, trilinear_slope
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.integrator.remaining import remaining_at_first
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.knots import POINTS, above_first, beyond_knot, move_by_value, next_knot, point_of
from raymarch.kernels.march.plain_transfer import (
    as_plain,
    depth_gradients_of_samples,
    depth_of_samples,
    normals_of_samples,
)
from raymarch.kernels.march.preintegrated_tangent import preintegrated_tangent
from raymarch.kernels.march.transfer import extinction, shade_of
from raymarch.kernels.modes.preintegrated import (
    adjoint_of_point,
    begin_cell,
    intervals_of,
    march_preintegrated,
    preintegrated_adjoint,
)
from raymarch.kernels.rays.cells import (
    beyond_empty,
    cell_at,
    ends_of,
    exit_of,
    first_sample,
    is_empty,
    is_inside,
    next_cell,
    segment_of,
)
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.nested import box_of, scale_of
from raymarch.kernels.rays.root import at, cubic_of

KNOT = 1 << 20  # number of no face


@ti.func
def end_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, d, scale, v, f, by_value, t, face, d_t,
    d_own: ti.template(), d_d: ti.template(), d_place: ti.template(), d_way: ti.template(),
):  # fmt: skip
    """Adjoint of where an interval ends, at f in the cell: of a knot or of a face; `by_value` is 1 / (S d)."""
    if face == KNOT:
        q = d_t * by_value * trilinear_slope(v, f)
        d_own -= q
        d_d -= t * q
    else:
        meet_adjoint(grid, rays, variant, r, d, scale, t, face, d_t, d_own, d_d, d_place, d_way)


@ti.kernel
def preintegrated_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, top, d_image = ti.cast(1.0, float), grid.max_index[None], rays.image.grad[r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2], 0.0])
        remaining, carry = remaining_at_first(rays, variant, r, background)
        d_o, d_d = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_place, d_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, _far, enters, leaves = ends_of(grid, rays, variant, r, s)
            first, scale, d_own = first_sample(grid, s), scale_of(box_of(grid, s)), ti.Vector.zero(float, 3)
            cell, t, on, axis0 = cell_at(entry, top), ti.cast(0.0, float), length > 0, enters
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, axis0, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v, f, h = corners_of_cell(grid.density, where(grid, cell + first)), entry + t * way - cell, out - t
                    i, j = intervals_of(grid, rays, variant, v)
                    c = cubic_of(v, f, h * way)
                    e1, e2, i, piece = begin_cell(grid, rays, variant, c, i, j)
                    u, face = ti.cast(0.0, float), axis0
                    while u < 1.0 and is_alive(variant, T, min_transmittance):
                        u2, then = next_knot(grid, rays.table, variant, c, e1, e2, u, i, piece)
                        face2 = ti.select(then != i, KNOT, ti.select(axis < 0, leaves, axis))
                        d_t, d_t2 = ti.cast(0.0, float), ti.cast(0.0, float)
                        for q in range(POINTS):
                            share, part = point_of(q)
                            place = u + share * (u2 - u)
                            T, remaining, carry, d_x, d_width, _knot, _beyond, _d_shade = adjoint_of_point(
                                grid, rays, variant, i, at(c, place), part * (u2 - u) * h,
                                T, remaining, carry, d_colour, min_weight,
                            )  # fmt: skip
                            d_p = d_x * trilinear_slope(v, f + place * h * way)
                            d_own += d_p
                            d_d += (near + t + place * h) * d_p
                            d_t += (1.0 - share) * d_p.dot(d) - part * d_width
                            d_t2 += share * d_p.dot(d) + part * d_width
                        end_adjoint(
                            grid, rays, variant, r, d, scale, v, f + u * h * way, move_by_value(v, c, u) * h,
                            near + t + u * h, face, d_t, d_own, d_d, d_place, d_way,
                        )  # fmt: skip
                        end_adjoint(
                            grid, rays, variant, r, d, scale, v, f + u2 * h * way, move_by_value(v, c, u2) * h,
                            near + t + u2 * h, face2, d_t2, d_own, d_d, d_place, d_way,
                        )  # fmt: skip
                        u, i, face = u2, then, face2
                    t, cell, axis0 = out, next_cell(cell, way, axis), axis
                    on = axis >= 0 and t < length and is_inside(cell, top)
            d_o += scale * d_own
        moved.d_origin[r], moved.d_index_direction[r], moved.d_dt[r] = d_o, d_d, 0.0
        moved.d_view_direction[r] = ti.Vector.zero(float, 3)
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place, d_way


@ti.func
def end_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(), variant: ti.template(), r, k, d, scale, slope,
    by_value, t, face,
):  # fmt: skip
    """Tangent dot_t of where an interval ends, of column k; `slope` is S there, `by_value` 1 / (S d)."""
    dot_t = ti.cast(0.0, float)
    if face == KNOT:
        dot_t = -by_value * slope.dot(scale * moved.dot_origin[r, k] + t * moved.dot_index_direction[r, k])
    else:
        dot_t = meet_tangent(grid, rays, moved, variant, r, k, d, scale, t, face)
    return dot_t


@ti.kernel
def preintegrated_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.dot_image[r, k] = (d image / d geometry) of every column k of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, dot_T, top = ti.cast(1.0, float), ti.Vector.zero(float, moved.columns), grid.max_index[None]
        dot_colour = ti.Matrix.zero(float, moved.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, _far, enters, leaves = ends_of(grid, rays, variant, r, s)
            first, scale = first_sample(grid, s), scale_of(box_of(grid, s))
            cell, t, on, axis0 = cell_at(entry, top), ti.cast(0.0, float), length > 0, enters
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, axis0, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v, f, h = corners_of_cell(grid.density, where(grid, cell + first)), entry + t * way - cell, out - t
                    i, j = intervals_of(grid, rays, variant, v)
                    c = cubic_of(v, f, h * way)
                    e1, e2, i, piece = begin_cell(grid, rays, variant, c, i, j)
                    u, dot_t, dot_t2 = ti.cast(0.0, float), dot_T, dot_T
                    for k in range(moved.columns):
                        dot_t[k] = meet_tangent(grid, rays, moved, variant, r, k, d, scale, near + t, axis0)
                    while u < 1.0 and is_alive(variant, T, min_transmittance):
                        u2, then = next_knot(grid, rays.table, variant, c, e1, e2, u, i, piece)
                        face, end = ti.select(then != i, KNOT, ti.select(axis < 0, leaves, axis)), near + t + u2 * h
                        slope, by = trilinear_slope(v, f + u2 * h * way), move_by_value(v, c, u2) * h
                        for k in range(moved.columns):
                            dot_t2[k] = end_tangent(grid, rays, moved, variant, r, k, d, scale, slope, by, end, face)
                        for q in range(POINTS):
                            share, part = point_of(q)
                            place = u + share * (u2 - u)
                            x, width, at_t = at(c, place), part * (u2 - u) * h, near + t + place * h
                            knot, beyond = beyond_knot(rays.table, i, above_first(grid, rays.table, variant, x))
                            shade = shade_of(rays.table, knot, beyond)
                            sigma, by_opacity = extinction(rays.table, shade[3])
                            weight, T_after = composite(variant, T, sigma * width)
                            on_here = contributes(variant, weight, min_weight)
                            by_x = activation.density_slope(variant, x + grid.shift[None]) * grid.inverse_scale[None]
                            shade_by_x = rays.table.rise[knot] * ti.select(i >= 0, by_x, 0.0)
                            S = trilinear_slope(v, f + place * h * way)
                            for k in range(moved.columns):
                                dot_p = scale * moved.dot_origin[r, k] + at_t * moved.dot_index_direction[r, k]
                                dot_p += ((1.0 - share) * dot_t[k] + share * dot_t2[k]) * d
                                dot_shade = S.dot(dot_p) * shade_by_x
                                dot_tau = by_opacity * dot_shade[3] * width + sigma * part * (dot_t2[k] - dot_t[k])
                                dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[k], dot_tau)
                                if on_here:
                                    for b in ti.static(range(3)):
                                        dot_colour[k, b] += dot_weight * shade[b] + weight * dot_shade[b]
                                dot_T[k] = dot_after
                            T = T_after
                        u, i, dot_t = u2, then, dot_t2
                    t, cell, axis0 = out, next_cell(cell, way, axis), axis
                    on = axis >= 0 and t < length and is_inside(cell, top)
        seen = background_of(variant, background)
        for k in range(moved.columns):
            image = ti.Vector([dot_colour[k, 0], dot_colour[k, 1], dot_colour[k, 2], 0.0])
            moved.dot_image[r, k] = image + dot_T[k] * ti.Vector([seen[0], seen[1], seen[2], 1.0])


PREINTEGRATED = RayMode(
    "transfer",
    Passes(
        as_plain(march_preintegrated),
        as_plain(preintegrated_adjoint),
        as_plain(preintegrated_tangent),
        as_plain(preintegrated_geometry_adjoint),
        as_plain(preintegrated_geometry_tangent),
        depth_of_samples,
        normals_of_samples,
        depth_gradients_of_samples,
    ),
    background=True,
    ends=True,
    step=False,
    classifies=True,
)

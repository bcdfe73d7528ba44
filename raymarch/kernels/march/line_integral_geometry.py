"""Geometry gradients of the line integral and of the mean, their depth, and the two modes.

What is differentiated is the rule itself: its points move with the planes between cells, so that slopes are the image's
for any activation. Letters as in `line_integral`.
"""

from dataclasses import dataclass

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, trilinear, trilinear_slope
from raymarch.kernels.integrator.depth import MET
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.modes.line_integral import (
    GAUSS,
    dot_of,
    gain_of,
    image_of,
    length_of,
    line_integral,
    line_integral_adjoint,
    line_integral_tangent,
    points_of,
)
from raymarch.kernels.rays.cells import cell_at, ends_of, exit_of, first_sample, is_inside, next_cell, segment_of
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.nested import box_of, scale_of
from raymarch.kernels.rays.placed import distance_of


@dataclass(frozen=True)
class LineIntegral(RayMode):
    """Line integral of the value along a ray, or its `mean` over the length in the box."""

    mean: bool = False


@ti.func
def value_at(variant: ti.template(), v, f, shift):
    """Value and its slope (3,) by the place."""
    x = trilinear(v, f) + shift
    return activation.density(variant, x), activation.density_slope(variant, x) * trilinear_slope(v, f)


@ti.kernel
def line_integral_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top = grid.shift[None], grid.max_index[None]
        gain = gain_of(grid, rays, variant, r) * grid.inverse_scale[None]
        d_length = ti.cast(0.0, float)
        if ti.static(variant.mode.mean):
            d_length = -gain_of(grid, rays, variant, r) * rays.image[r][0]
        d_o, d_d = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_place, d_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, far, axis0, leaves = ends_of(grid, rays, variant, r, s)
            first, scale, d_own = first_sample(grid, s), scale_of(box_of(grid, s)), ti.Vector.zero(float, 3)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            if on:
                meet_adjoint(
                    grid, rays, variant, r, d, scale, near, axis0, -d_length / scale, d_own, d_d, d_place, d_way
                )  # fmt: skip
                meet_adjoint(
                    grid, rays, variant, r, d, scale, far, leaves, d_length / scale, d_own, d_d, d_place, d_way
                )  # fmt: skip
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                y0, slope0 = value_at(variant, v, f0, shift)
                y1, slope1 = value_at(variant, v, f1, shift)
                d_p0, d_p1 = gain * half * slope0, gain * half * slope1
                d_h, along0, along1 = 0.5 * gain * (y0 + y1), d_p0.dot(d), d_p1.dot(d)
                middle, apart = near + 0.5 * (t + out), GAUSS * (out - t)
                d_own += d_p0 + d_p1
                d_d += (middle - apart) * d_p0 + (middle + apart) * d_p1
                d_t0 = (0.5 + GAUSS) * along0 + (0.5 - GAUSS) * along1 - d_h
                meet_adjoint(
                    grid, rays, variant, r, d, scale, near + t, axis0, d_t0, d_own, d_d, d_place, d_way
                )  # fmt: skip
                axis1 = ti.select(axis < 0, leaves, axis)
                d_t1 = (0.5 - GAUSS) * along0 + (0.5 + GAUSS) * along1 + d_h
                meet_adjoint(
                    grid, rays, variant, r, d, scale, near + out, axis1, d_t1, d_own, d_d, d_place, d_way
                )  # fmt: skip
                t, cell, axis0 = out, next_cell(cell, way, axis), axis
                on = axis >= 0 and t < length and is_inside(cell, top)
            d_o += scale * d_own
        moved.d_origin[r], moved.d_index_direction[r], moved.d_dt[r] = d_o, d_d, 0.0
        moved.d_view_direction[r] = ti.Vector.zero(float, 3)
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place, d_way


@ti.kernel
def line_integral_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, total = grid.shift[None], grid.max_index[None], ti.cast(0.0, float)
        dot_total, dot_length = ti.Vector.zero(float, moved.columns), ti.Vector.zero(float, moved.columns)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, far, axis0, leaves = ends_of(grid, rays, variant, r, s)
            first, scale = first_sample(grid, s), scale_of(box_of(grid, s))
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            if on:
                for c in range(moved.columns):
                    dot_near = meet_tangent(grid, rays, moved, variant, r, c, d, scale, near, axis0)
                    dot_far = meet_tangent(grid, rays, moved, variant, r, c, d, scale, far, leaves)
                    dot_length[c] += (dot_far - dot_near) / scale
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                y0, slope0 = value_at(variant, v, f0, shift)
                y1, slope1 = value_at(variant, v, f1, shift)
                total += half * (y0 + y1)
                middle, apart = near + 0.5 * (t + out), GAUSS * (out - t)
                axis1 = ti.select(axis < 0, leaves, axis)
                for c in range(moved.columns):
                    dot_own, dot_d = scale * moved.dot_origin[r, c], moved.dot_index_direction[r, c]
                    dot_t0 = meet_tangent(grid, rays, moved, variant, r, c, d, scale, near + t, axis0)
                    dot_t1 = meet_tangent(grid, rays, moved, variant, r, c, d, scale, near + out, axis1)
                    dot_p0 = dot_own + (middle - apart) * dot_d + ((0.5 + GAUSS) * dot_t0 + (0.5 - GAUSS) * dot_t1) * d
                    dot_p1 = dot_own + (middle + apart) * dot_d + ((0.5 - GAUSS) * dot_t0 + (0.5 + GAUSS) * dot_t1) * d
                    dot_total[c] += half * (slope0.dot(dot_p0) + slope1.dot(dot_p1))
                    dot_total[c] += 0.5 * (dot_t1 - dot_t0) * (y0 + y1)
                t, cell, axis0 = out, next_cell(cell, way, axis), axis
                on = axis >= 0 and t < length and is_inside(cell, top)
        total *= grid.inverse_scale[None]
        length = length_of(grid, rays, variant, r)
        T = image_of(variant, total, length)[3]
        for c in range(moved.columns):
            dot = dot_total[c] * grid.inverse_scale[None]
            moved.dot_image[r, c] = dot_of(variant, dot, dot_length[c], total, T, length)


@ti.kernel
def line_integral_depth(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, not used
):  # fmt: skip
    """depth = mean distance of the points by what they add, infinite where less than `MET` of the light is stopped.

    Of the mean, whose values are no extinction, by how much that is whichever its sign, and of all that has any.
    """
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, inverse_scale = grid.shift[None], grid.max_index[None], grid.inverse_scale[None]
        total, moment = ti.cast(0.0, float), ti.cast(0.0, float)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            _d, near, _far, _enters, _leaves = ends_of(grid, rays, variant, r, s)
            first, scale = first_sample(grid, s), scale_of(box_of(grid, s))
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                w0 = half * inverse_scale * activation.density(variant, trilinear(v, f0) + shift)
                w1 = half * inverse_scale * activation.density(variant, trilinear(v, f1) + shift)
                middle, apart = near + 0.5 * (t + out), GAUSS * (out - t)
                if ti.static(variant.mode.mean):
                    w0, w1 = ti.abs(w0), ti.abs(w1)
                total += w0 + w1
                moment += w0 * distance_of(grid, rays.origin[r], rays.direction[r], (middle - apart) / scale)
                moment += w1 * distance_of(grid, rays.origin[r], rays.direction[r], (middle + apart) / scale)
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)
        met = 1.0 - ti.exp(-total) >= MET
        if ti.static(variant.mode.mean):
            met = total > 0
        rays.depth[r] = ti.select(met, moment / ti.select(met, total, 1.0), ti.math.inf)


PASSES = Passes(
    line_integral,
    line_integral_adjoint,
    line_integral_tangent,
    line_integral_geometry_adjoint,
    line_integral_geometry_tangent,
    line_integral_depth,
)
X_RAY_EXACT = LineIntegral("x-ray-exact", PASSES, step=False)
AVERAGE = LineIntegral("average", PASSES, step=False, mean=True)

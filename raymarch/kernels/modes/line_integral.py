"""Line integral of the value along a ray, and its mean, by two Gauss-Legendre points a cell.

Along a ray a trilinear field is a cubic in each cell, for which two points are exact: with an activation that is the
identity, or relu where no number is negative, there is no step and no error of one. Of any other activation's value it
is the Gauss-Legendre rule of fourth order in the size of cells, and gradients are those of the rule.

Letters: t0, t1 where a ray enters and leaves a cell, h = t1 - t0, I the integral, L the length in the box. The integral
is I in each channel, T = e^-I; the mean is I / L, with T 0 where the ray meets the box, else 1.
"""

from dataclasses import dataclass

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear, trilinear_slope, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.depth import MET
from raymarch.kernels.integrator.mode import MOST, RayMode, sloping
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE, at_most, exp
from raymarch.kernels.rays.cells import cell_at, ends_of, exit_of, first_sample, is_inside, next_cell, segment_of
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.rays import box_of, distance_of, scale_of

GAUSS = 0.28867513459481287  # of h, from the middle of a cell to each point: 1 / (2 sqrt 3)


@ti.func
def length_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """L [world unit]."""
    total = ti.cast(0.0, float)
    for s in range(ti.static(grid.segments)):
        _entry, _way, length = segment_of(grid, rays, variant, r, s)
        total += ti.max(length, 0.0) / scale_of(box_of(grid, s))
    return total


@ti.func
def points_of(entry, way, cell, t0, t1):
    """Both points' positions in the cell, and half of h."""
    middle, apart = entry + 0.5 * (t0 + t1) * way - cell, GAUSS * (t1 - t0) * way
    return middle - apart, middle + apart, 0.5 * (t1 - t0)


@ti.func
def image_of(variant: ti.template(), total, length):
    """Image (4,) of an integral and the length it is over."""
    value, T = total, at_most(exp(-total), MOST)
    if ti.static(variant.mode.mean):
        value, T = ti.cast(0.0, float), ti.cast(1.0, float)
        if length > 0:
            value, T = total / length, ti.cast(0.0, float)
    return ti.Vector([value, value, value, T])


@ti.kernel
def line_integral(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """image = the integral or the mean three times, and T."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, total = grid.shift[None], grid.max_index[None], ti.cast(0.0, float)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                both = activation.density(variant, trilinear(v, f0) + shift)
                both += activation.density(variant, trilinear(v, f1) + shift)
                total += half * both
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)
        rays.image[r] = image_of(variant, total * grid.inverse_scale[None], length_of(grid, rays, variant, r))


@ti.func
def gain_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """d_I of ray r from d_image, by the image as it was marched."""
    d_image = rays.image.grad[r]
    gain = d_image[0] + d_image[1] + d_image[2]
    if ti.static(variant.mode.mean):
        gain /= ti.max(length_of(grid, rays, variant, r), 1e-30)
    else:
        gain -= sloping(rays.image[r][3]) * d_image[3]
    return gain


@ti.func
def adjoint_of_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot):
    """What one ray gives the gradient of density, `line_integral`'s loop again."""
    shift, top = grid.shift[None], grid.max_index[None]
    gain = gain_of(grid, rays, variant, r) * grid.inverse_scale[None]
    for s in range(ti.static(grid.segments)):
        entry, way, length = segment_of(grid, rays, variant, r, s)
        first = first_sample(grid, s)
        cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
        while on:
            out, axis = exit_of(entry, way, cell, length)
            out = ti.max(out, t)
            f0, f1, half = points_of(entry, way, cell, t, out)
            place = where(grid, cell + first)
            v = corners_of_cell(grid.density, place)
            d_point = gain * half
            d0 = d_point * activation.density_slope(variant, trilinear(v, f0) + shift)
            d1 = d_point * activation.density_slope(variant, trilinear(v, f1) + shift)
            scatter_corners(grid.d_density, slot, place, d0 * weights(f0) + d1 * weights(f1))
            mark(grid, place, place)
            t, cell = out, next_cell(cell, way, axis)
            on = axis >= 0 and t < length and is_inside(cell, top)


@ti.kernel
def line_integral_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """d_density += (d image / d density)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots)


@ti.kernel
def line_integral_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """dot_image[r, e] = (d image / d density) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        shift, top, total = grid.shift[None], grid.max_index[None], ti.cast(0.0, float)
        dot_total = ti.Vector.zero(float, dot_grid.columns)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                f0, f1, half = points_of(entry, way, cell, t, out)
                v = corners_of_cell(grid.density, where(grid, cell + first))
                x0, x1 = trilinear(v, f0) + shift, trilinear(v, f1) + shift
                total += half * (activation.density(variant, x0) + activation.density(variant, x1))
                by0 = half * activation.density_slope(variant, x0)
                by1 = half * activation.density_slope(variant, x1)
                dot0, dot1 = gather(dot_grid.density, cell + first, f0), gather(dot_grid.density, cell + first, f1)
                for e in range(dot_grid.columns):
                    dot_total[e] += by0 * dot0[e] + by1 * dot1[e]
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)
        length = length_of(grid, rays, variant, r)
        T = image_of(variant, total * grid.inverse_scale[None], length)[3]
        for e in range(dot_grid.columns):
            dot = dot_total[e] * grid.inverse_scale[None]
            dot_image[r, e] = dot_of(variant, dot, ti.cast(0.0, float), ti.cast(0.0, float), T, length)


@ti.func
def dot_of(variant: ti.template(), dot_total, dot_length, total, T, length):
    """Tangent (4,) of `image_of`."""
    dot, dot_T = dot_total, -sloping(T) * dot_total
    if ti.static(variant.mode.mean):
        dot, dot_T = ti.cast(0.0, float), ti.cast(0.0, float)
        if length > 0:
            dot = (dot_total - total / length * dot_length) / length
    return ti.Vector([dot, dot, dot, dot_T])


# Geometry gradients of the line integral and of the mean, their depth, and the two modes.
#
# What is differentiated is the rule itself: its points move with the planes between cells, so that slopes are the
# image's for any activation. Letters as in `line_integral`.


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

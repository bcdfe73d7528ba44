"""Geometry gradients of the march: adjoint and tangents by the rays' origin, direction and step length.

Same loop and letters as `march`; the ray is replayed, nothing is kept per sample. Positions move in index space, where
the box stays 0..top, so a moved box is a moved ray. Directions enter twice: as the way of the ray, and as the heading
in which the harmonics are read. Kinks, where a derivative is one-sided: cell faces, the box's edges, T at
`min_transmittance`, a weight at `min_weight`, the kinks of relu-like activations; the number of whole steps is held.
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather_slope
from raymarch.kernels.field.harmonics import basis_slope
from raymarch.kernels.field.tables import optics
from raymarch.kernels.integrator.mode import background_of, composite, contributes, is_alive
from raymarch.kernels.integrator.remaining import (
    optical_depth_gradient,
    pass_sample,
    remaining_again,
    remaining_at_first,
)
from raymarch.kernels.integrator.sample import in_index_space
from raymarch.kernels.rays.meeting import kept_segment, slope_of_cut
from raymarch.kernels.rays.rays import (
    box_of,
    empty_steps,
    first_of,
    jitter_of,
    scale_of,
    seen_from,
    step_at,
    steps_of,
    widths_of,
)


@ti.func
def colour_slopes(grid: ti.template(), variant: ti.template(), cell, f, Y, slope_of_Y, shade, by_x, x_by_position):
    """Colour, and its derivative by index-space position and view direction, both (3, 3); 1 for a line integral.

    Where a transfer function made it, it is its shade, whose slope by the raw density is `by_x`.
    """
    colour = ti.Vector.one(float, 3)
    by_position, by_heading = ti.Matrix.zero(float, 3, 3), ti.Matrix.zero(float, 3, 3)
    if ti.static(variant.mode.classifies):
        for c in ti.static(range(3)):
            colour[c] = shade[c]
            for a in ti.static(range(3)):
                by_position[c, a] = by_x[c] * x_by_position[a]
    elif ti.static(variant.mode.colour):
        v, vx, vy, vz = gather_slope(grid.features, cell, f)
        total = ti.Vector.zero(float, 3)
        for k in ti.static(range((grid.degree + 1) ** 2)):
            for c in ti.static(range(3)):
                total[c] += Y[k] * v[3 * k + c]
                by_position[c, 0] += Y[k] * vx[3 * k + c]
                by_position[c, 1] += Y[k] * vy[3 * k + c]
                by_position[c, 2] += Y[k] * vz[3 * k + c]
                for a in ti.static(range(3)):
                    by_heading[c, a] += slope_of_Y[k, a] * v[3 * k + c]
        colour = activation.colour(variant, total)
        s = activation.colour_slope(variant, colour)
        for c, a in ti.static(ti.ndrange(3, 3)):
            by_position[c, a] *= s[c]
            by_heading[c, a] *= s[c]
    return colour, by_position, by_heading


@ti.kernel
def geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time: index-space origin and way, heading, dt."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        slope_of_Y = basis_slope(grid.degree, rays.direction[r])
        per_index = grid.cells_per_index[None]
        shift, inverse_scale = grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        T = ti.cast(1.0, float)
        d_image = rays.image.grad[r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
        remaining, carry = remaining_at_first(rays, variant, r, background)
        d_o, d_d, d_view_direction = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_dt = ti.cast(0.0, float)
        d_place_origin, d_place_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first = seen_from(grid, o, box), first_of(grid, box)
            near, far, enters, leaves = kept_segment(grid, rays, variant, r, own, d, s)
            d_own, d_near, d_far = ti.Vector.zero(float, 3), ti.cast(0.0, float), ti.cast(0.0, float)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                begins, wide = widths_of(variant, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    if ti.static(variant.mode.looks_before):
                        remaining, carry = remaining_again(
                            grid, rays, variant, (r, s, k, dt, min_transmittance, background), T, min_weight,
                            remaining, carry,
                        )  # fmt: skip
                    lowest = cell_of(p, first + grid.max_index[None])
                    cell, f = where(grid, lowest), p - lowest
                    x, x0, x1, x2 = gather_slope(grid.density, cell, f)
                    x += shift
                    sigma, by_x, shade, shade_by_x = optics(rays, variant, x, inverse_scale)
                    x_by_position = ti.Vector([x0, x1, x2])
                    weight, T_after = composite(variant, T, sigma * width)
                    d_weight = ti.cast(0.0, float)
                    d_p = ti.Vector.zero(float, 3)
                    if contributes(variant, weight, min_weight):
                        colour, by_position, by_heading = colour_slopes(
                            grid, variant, cell, f, Y, slope_of_Y, shade, shade_by_x, x_by_position
                        )  # fmt: skip
                        d_weight = colour.dot(d_colour)
                        d_p += weight * (by_position.transpose() @ d_colour)
                        d_view_direction += weight * (by_heading.transpose() @ d_colour)
                    tau = sigma * width
                    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
                    if ti.static(variant.mode.looks_behind):
                        ahead = (r, s, k + 1, dt, min_transmittance, background)
                        remaining, carry = remaining_again(
                            grid, rays, variant, ahead, T_after, min_weight, remaining, carry
                        )
                    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
                    d_width = d_tau * sigma
                    d_p += d_tau * width * by_x * x_by_position
                    d_t = d_p.dot(d)
                    d_own += d_p
                    d_d += t * d_p
                    if k < n:
                        d_near += d_t
                        d_dt += stretch * ((begins + 0.5 * wide) * d_t + wide * d_width)
                    else:
                        d_near += 0.5 * d_t - d_width
                        d_far += 0.5 * d_t + d_width
                        d_dt += stretch * begins * (0.5 * d_t - d_width)
                    T = T_after
                    k += 1
            for a in ti.static(range(3)):
                if a == enters:
                    d_own[a] -= d_near / d[a]
                    d_d[a] -= d_near * near / d[a]
                if a == leaves:
                    d_own[a] -= d_far / d[a]
                    d_d[a] -= d_far * far / d[a]
            if ti.static(variant.clipped):
                by_near = d_near * slope_of_cut(grid, rays, r, enters)
                by_far = d_far * slope_of_cut(grid, rays, r, leaves)
                d_place_origin -= scale_of(box) * (by_near + by_far)
                d_place_way -= near * by_near + far * by_far
            d_o += scale_of(box) * d_own
        moved.d_origin[r], moved.d_index_direction[r], moved.d_view_direction[r], moved.d_dt[r] = (
            d_o,
            d_d,
            d_view_direction,
            d_dt,
        )
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place_origin, d_place_way


@ti.kernel
def geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents, all of them in one pass."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        slope_of_Y = basis_slope(grid.degree, rays.direction[r])
        per_index = grid.cells_per_index[None]
        shift, inverse_scale = grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        T = ti.cast(1.0, float)
        dot_T = ti.Vector.zero(float, moved.columns)
        dot_colour = ti.Matrix.zero(float, moved.columns, 3)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first = seen_from(grid, o, box), first_of(grid, box)
            near, far, enters, leaves = kept_segment(grid, rays, variant, r, own, d, s)
            scale = scale_of(box)
            dot_near, dot_far = ti.Vector.zero(float, moved.columns), ti.Vector.zero(float, moved.columns)
            for a in ti.static(range(3)):
                for c in range(moved.columns):
                    if a == enters:
                        dot_near[c] = (
                            -(scale * moved.dot_origin[r, c][a] + near * moved.dot_index_direction[r, c][a]) / d[a]
                        )
                    if a == leaves:
                        dot_far[c] = (
                            -(scale * moved.dot_origin[r, c][a] + far * moved.dot_index_direction[r, c][a]) / d[a]
                        )
            if ti.static(variant.clipped):
                by_near, by_far = slope_of_cut(grid, rays, r, enters), slope_of_cut(grid, rays, r, leaves)
                for c in range(moved.columns):
                    dot_origin, dot_way = scale * moved.dot_place_origin[r, c], moved.dot_place_way[r, c]
                    dot_near[c] -= by_near.dot(dot_origin + near * dot_way)
                    dot_far[c] -= by_far.dot(dot_origin + far * dot_way)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                begins, wide = widths_of(variant, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    lowest = cell_of(p, first + grid.max_index[None])
                    cell, f = where(grid, lowest), p - lowest
                    x, x0, x1, x2 = gather_slope(grid.density, cell, f)
                    x += shift
                    sigma, by_x, shade, shade_by_x = optics(rays, variant, x, inverse_scale)
                    x_by_position = ti.Vector([x0, x1, x2])
                    weight, T_after = composite(variant, T, sigma * width)
                    colour = ti.Vector.zero(float, 3)
                    by_position, by_heading = ti.Matrix.zero(float, 3, 3), ti.Matrix.zero(float, 3, 3)
                    if contributes(variant, weight, min_weight):
                        colour, by_position, by_heading = colour_slopes(
                            grid, variant, cell, f, Y, slope_of_Y, shade, shade_by_x, x_by_position
                        )  # fmt: skip
                    for c in range(moved.columns):
                        dot_step = stretch * moved.dot_dt[c]
                        dot_t = dot_near[c] + (begins + 0.5 * wide) * dot_step
                        dot_width = wide * dot_step
                        if k == n:
                            dot_t = 0.5 * (dot_near[c] + dot_far[c] + begins * dot_step)
                            dot_width = dot_far[c] - dot_near[c] - begins * dot_step
                        dot_p = scale * moved.dot_origin[r, c] + dot_t * d + t * moved.dot_index_direction[r, c]
                        dot_sigma = by_x * (x0 * dot_p[0] + x1 * dot_p[1] + x2 * dot_p[2])
                        dot_tau = dot_sigma * width + sigma * dot_width
                        dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[c], dot_tau)
                        lit_by = dot_weight * colour + weight * (
                            by_position @ dot_p + by_heading @ moved.dot_view_direction[r, c]
                        )
                        for b in ti.static(range(3)):
                            dot_colour[c, b] += lit_by[b]
                        dot_T[c] = dot_after
                    T = T_after
                    k += 1
        for c in range(moved.columns):
            image = ti.Vector([dot_colour[c, 0], dot_colour[c, 1], dot_colour[c, 2], 0.0])
            seen = background_of(variant, background)
            image += dot_T[c] * ti.Vector([seen[0], seen[1], seen[2], 1.0])
            moved.dot_image[r, c] = image

"""Geometry gradients of depth: adjoint and tangent by the rays' origin, direction and step length.

Same loop and letters as `geometry`; a sample's distance moves with the ray's ends, and its weight with the place it is
read at. In NDC a distance has slopes of its own, which are not here: of such a volume depth moves by density alone.
"""

import taichi as ti

from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather_slope
from raymarch.kernels.field.tables import optics
from raymarch.kernels.integrator.depth import LEAST, depth_again, depth_slope
from raymarch.kernels.integrator.geometry import widths_of
from raymarch.kernels.integrator.mode import composite, is_alive
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample
from raymarch.kernels.integrator.sample import in_index_space
from raymarch.kernels.rays.meeting import kept_segment, slope_of_cut
from raymarch.kernels.rays.rays import box_of, empty_steps, first_of, jitter_of, scale_of, seen_from, step_at, steps_of


@ti.kernel
def depth_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), gradients (ray,)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, [world unit], 0..1
):  # fmt: skip
    """moved.d_* = (d depth / d geometry)' depth.grad, after `march_depth`: index-space origin and way, dt."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        per_index = grid.cells_per_index[None]
        shift, inverse_scale = grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        depth, slope = depth_slope(rays, r)
        T, remaining, carry = ti.cast(1.0, float), ti.cast(0.0, float), ti.cast(1.0, float)
        if ti.static(variant.mode.looks_ahead):
            carry = ti.cast(0.0, float)
        d_o, d_d, d_dt = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.cast(0.0, float)
        d_place_origin, d_place_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first, scale = seen_from(grid, o, box), first_of(grid, box), scale_of(box)
            near, far, enters, leaves = kept_segment(grid, rays, variant, r, own, d, s)
            d_own, d_near, d_far = ti.Vector.zero(float, 3), ti.cast(0.0, float), ti.cast(0.0, float)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and slope != 0 and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                begins, wide = widths_of(variant, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    if ti.static(variant.mode.looks_before):
                        ahead = (r, s, k, dt, min_transmittance)
                        remaining, carry = depth_again(grid, rays, variant, ahead, T, depth, slope, remaining, carry)
                    lowest = cell_of(p, first + grid.max_index[None])
                    x, x0, x1, x2 = gather_slope(grid.density, where(grid, lowest), p - lowest)
                    x += shift
                    sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                    tau = sigma * width
                    weight, T_after = composite(variant, T, tau)
                    d_weight = slope * (t / scale - depth)
                    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
                    if ti.static(variant.mode.looks_behind):
                        ahead = (r, s, k + 1, dt, min_transmittance)
                        remaining, carry = depth_again(
                            grid, rays, variant, ahead, T_after, depth, slope, remaining, carry
                        )
                    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
                    d_width = d_tau * sigma
                    d_p = d_tau * width * by_x * ti.Vector([x0, x1, x2])
                    d_t = d_p.dot(d) + slope * weight / scale
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
                d_place_origin -= scale * (by_near + by_far)
                d_place_way -= near * by_near + far * by_far
            d_o += scale * d_own
        moved.d_origin[r], moved.d_index_direction[r] = d_o, d_d
        moved.d_view_direction[r], moved.d_dt[r] = ti.Vector.zero(float, 3), d_dt
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place_origin, d_place_way


@ti.kernel
def depth_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    dot_depth: ti.template(),  # (ray, column)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, [world unit], 0..1
):  # fmt: skip
    """dot_depth[r, c] = (d depth / d geometry) of every column c of tangents, after `march_depth`."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        per_index = grid.cells_per_index[None]
        shift, inverse_scale = grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step, weights = stretch * dt, rays.weights[r]
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, moved.columns)
        total = ti.Vector.zero(float, moved.columns)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first, scale = seen_from(grid, o, box), first_of(grid, box), scale_of(box)
            near, far, enters, leaves = kept_segment(grid, rays, variant, r, own, d, s)
            dot_near, dot_far = ti.Vector.zero(float, moved.columns), ti.Vector.zero(float, moved.columns)
            for a in ti.static(range(3)):
                for c in range(moved.columns):
                    dot_o, dot_d = scale * moved.dot_origin[r, c][a], moved.dot_index_direction[r, c][a]
                    if a == enters:
                        dot_near[c] = -(dot_o + near * dot_d) / d[a]
                    if a == leaves:
                        dot_far[c] = -(dot_o + far * dot_d) / d[a]
            if ti.static(variant.clipped):
                by_near, by_far = slope_of_cut(grid, rays, r, enters), slope_of_cut(grid, rays, r, leaves)
                for c in range(moved.columns):
                    dot_origin, dot_way = scale * moved.dot_place_origin[r, c], moved.dot_place_way[r, c]
                    dot_near[c] -= by_near.dot(dot_origin + near * dot_way)
                    dot_far[c] -= by_far.dot(dot_origin + far * dot_way)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and weights > 0 and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                begins, wide = widths_of(variant, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    lowest = cell_of(p, first + grid.max_index[None])
                    x, x0, x1, x2 = gather_slope(grid.density, where(grid, lowest), p - lowest)
                    x += shift
                    sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                    weight, T_after = composite(variant, T, sigma * width)
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
                        total[c] += dot_weight * (t / scale - rays.depth[r]) + weight * dot_t / scale
                        dot_T[c] = dot_after
                    T = T_after
                    k += 1
        for c in range(moved.columns):
            dot_depth[r, c] = ti.select(weights > 0, total[c] / ti.max(weights, LEAST), 0.0)

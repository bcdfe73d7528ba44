"""Depth of rays: mean distance by the march's weights; its adjoint and its tangent by the raw density.

Same loop and letters as `march`, t the distance of a sample, W the sum of weights. Of a ray that meets something

    depth = sum_k weight_k t_k / W,   d_weight_k = d_depth (t_k - depth) / W,   d_t_k = d_depth weight_k / W

so that what is left of T behind the last sample counts for nothing, and `sum_k weight_k d_weight_k` is 0. Where nothing
is met depth is infinite and has no slope. `depth_geometry` has what moves with the rays.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather, gather_slope, scatter
from raymarch.kernels.field.tables import add_gradient_of_sigma, classified, optics, table_tangent
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.mode import composite, is_alive
from raymarch.kernels.integrator.remaining import FADED, optical_depth_gradient, pass_sample
from raymarch.kernels.integrator.sample import fetch, in_index_space, located, ray_segment
from raymarch.kernels.light.shading import normal_of
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.meeting import kept_segment
from raymarch.kernels.rays.rays import (
    box_of,
    distance_of,
    empty_steps,
    first_of,
    jitter_of,
    place_of,
    scale_of,
    seen_from,
    step_at,
    steps_of,
)

MET = 0.01  # opacity under which a ray counts as having met nothing
LEAST = 1e-12  # of the weights' sum


@ti.kernel
def march_depth(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], 0..1
):  # fmt: skip
    """depth = sum_k weight_k t_k / sum_k weight_k, infinite where an opacity under `MET` is met; keeps the sum."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        per_index = grid.cells_per_index[None]
        shift, inverse_scale = grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        T = ti.cast(1.0, float)
        total, weights = ti.cast(0.0, float), ti.cast(0.0, float)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first = seen_from(grid, o, box), first_of(grid, box)
            near, far, _, _ = kept_segment(grid, rays, variant, r, own, d, s)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell = cell_of(p, first + grid.max_index[None])
                    x = gather(grid.density, where(grid, cell), p - cell) + shift
                    sigma, _by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                    weight, T_after = composite(variant, T, sigma * width)
                    total += weight * distance_of(grid, rays.origin[r], rays.direction[r], t / scale_of(box))
                    weights += weight
                    T = T_after
                    k += 1
        rays.depth[r] = ti.select(1.0 - T >= MET, total / ti.max(weights, LEAST), ti.math.inf)
        rays.weights[r] = ti.select(1.0 - T >= MET, ti.max(weights, LEAST), 0.0)


@ti.func
def depth_slope(rays: ti.template(), r):
    """Depth of a ray, and d_depth / W; of one that meets nothing both are 0, whatever d_depth is."""
    depth, slope = ti.cast(0.0, float), ti.cast(0.0, float)
    if rays.weights[r] > 0:
        depth, slope = rays.depth[r], rays.depth.grad[r] / rays.weights[r]
    return depth, slope


@ti.func
def depth_gain_ahead(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s, k, T, dt, min_transmittance, depth, slope,
):  # fmt: skip
    """Gain by a unit of T before sample k of segment s, as `remaining.gain_ahead`: what the samples from there add."""
    o, d, _ = in_index_space(grid, rays, r)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    gain, dot_T = ti.cast(0.0, float), ti.cast(1.0, float)
    for segment in range(s, ti.static(grid.segments)):
        box = box_of(grid, segment)
        own, first = seen_from(grid, o, box), first_of(grid, box)
        near, far, _, _ = kept_segment(grid, rays, variant, r, own, d, segment)
        n = steps_of(far - near, step, phase)
        while k <= n and far > near and dot_T != 0 and is_alive(variant, T, min_transmittance):
            begin, width = step_at(variant, near, far, step, phase, k)
            t = begin + 0.5 * width
            p = ti.max(own + t * d, 0.0) + first
            skip = empty_steps(grid, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, first + grid.max_index[None])
                x = gather(grid.density, where(grid, cell), p - cell) + shift
                sigma, _by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                tau = sigma * width
                dot_weight, dot_T_after = variant.mode.tangent(T, tau, dot_T, ti.cast(0.0, float))
                distance = distance_of(grid, rays.origin[r], rays.direction[r], t / scale_of(box))
                gain += dot_weight * slope * (distance - depth)
                _, T = composite(variant, T, tau)
                dot_T = dot_T_after
                k += 1
        k = 0
    return gain


@ti.func
def depth_again(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), ahead: ti.template(), T, depth, slope,
    remaining, carry,
):  # fmt: skip
    """As `remaining.remaining_again`; `ahead` is (r, s, number of the next sample, dt, min_transmittance)."""
    if ti.abs(carry) < FADED:
        r, s, k, dt, min_transmittance = ahead
        remaining = depth_gain_ahead(grid, rays, variant, r, s, k, T, dt, min_transmittance, depth, slope)
        carry = ti.cast(1.0, float)
    return remaining, carry


@ti.func
def adjoint_of_depth(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot, dt, min_transmittance,
):  # fmt: skip
    """Add to a slot what the depth of ray r gives the gradient of density."""
    o, d, _ = in_index_space(grid, rays, r)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    depth, slope = depth_slope(rays, r)
    T, remaining, carry = ti.cast(1.0, float), ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(variant.mode.looks_ahead):
        carry = ti.cast(0.0, float)
    for s in range(ti.static(grid.segments)):
        box = box_of(grid, s)
        own, first = seen_from(grid, o, box), first_of(grid, box)
        near, far, _, _ = kept_segment(grid, rays, variant, r, own, d, s)
        k, n = 0, steps_of(far - near, step, phase)
        while k <= n and far > near and slope != 0 and is_alive(variant, T, min_transmittance):
            begin, width = step_at(variant, near, far, step, phase, k)
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
                cell, f = where(grid, lowest), p - lowest
                x = gather(grid.density, cell, f) + shift
                sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                tau = sigma * width
                weight, T_after = composite(variant, T, tau)
                distance = distance_of(grid, rays.origin[r], rays.direction[r], t / scale_of(box))
                d_weight = slope * (distance - depth)
                remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
                if ti.static(variant.mode.looks_behind):
                    ahead = (r, s, k + 1, dt, min_transmittance)
                    remaining, carry = depth_again(grid, rays, variant, ahead, T_after, depth, slope, remaining, carry)
                d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
                if ti.static(variant.mode.classifies):
                    add_gradient_of_sigma(rays, variant, slot, x, inverse_scale, d_tau * width)
                scatter(grid.d_density, slot, cell, f, d_tau * width * by_x)
                mark(grid, cell, cell)
                T = T_after
                k += 1


@ti.kernel
def depth_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], 0..1
):  # fmt: skip
    """d_density += (d depth / d density)' depth.grad, after `march_depth`, in the slots of the march's adjoint."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_depth(grid, rays, variant, r, slot, dt, min_transmittance)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_depth(grid, rays, variant, r, r % grid.slots, dt, min_transmittance)


@ti.kernel
def depth_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_depth: ti.template(),  # RayFields (ray,), (ray, column)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, [world unit], 0..1
):  # fmt: skip
    """dot_depth[r, d] = (d depth / d density) of each column d of dot_grid, after `march_depth`."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
        total, weights = ti.Vector.zero(float, dot_grid.columns), rays.weights[r]
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first = seen_from(grid, o, box), first_of(grid, box)
            near, far, _, _ = kept_segment(grid, rays, variant, r, own, d, s)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and weights > 0 and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    lowest = cell_of(p, first + grid.max_index[None])
                    f = p - lowest
                    x = gather(grid.density, where(grid, lowest), f) + shift
                    dot_x = gather(dot_grid.density, lowest, f)
                    sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                    tau = sigma * width
                    distance = distance_of(grid, rays.origin[r], rays.direction[r], t / scale_of(box))
                    for e in range(dot_grid.columns):
                        dot_sigma = by_x * dot_x[e]
                        if ti.static(variant.mode.classifies):
                            _dot, by_table = table_tangent(rays, dot_grid.table, variant, x, inverse_scale, e)
                            dot_sigma += by_table
                        dot_weight, dot_after = variant.mode.tangent(T, tau, dot_T[e], dot_sigma * width)
                        total[e] += dot_weight * (distance - rays.depth[r])
                        dot_T[e] = dot_after
                    _, T = composite(variant, T, tau)
                    k += 1
        for e in range(dot_grid.columns):
            dot_depth[r, e] = ti.select(weights > 0, total[e] / ti.max(weights, LEAST), 0.0)


# Normals of what is composited: the mean slope of the value by the march's weights, made a unit vector.


@ti.func
def world_slope(grid: ti.template(), slope):
    """Slope (3,) in the world of one in index space: the transpose of the frame times it."""
    m, total = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        total[j] += m[i, j] * slope[i]
    return total


@ti.func
def index_slope(grid: ti.template(), d_slope):
    """Transpose of `world_slope`."""
    m, total = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        total[i] += m[i, j] * d_slope[j]
    return total


@ti.kernel
def march_normals(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], 0..1
):  # fmt: skip
    """sum_even = sum_k weight_k slope_k of unit length, facing the eye; 0 where an opacity under `MET` is met."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        phase, stretch = jitter_of(rays, variant, r)
        step = stretch * dt
        T, total = ti.cast(1.0, float), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            box = box_of(grid, s)
            own, first = seen_from(grid, o, box), first_of(grid, box)
            near, far, _enters, _leaves = kept_segment(grid, rays, variant, r, own, d, s)
            k, n = 0, steps_of(far - near, step, phase)
            while k <= n and far > near and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                p = ti.max(own + (begin + 0.5 * width) * d, 0.0) + first
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell = cell_of(p, first + grid.max_index[None])
                    x, x0, x1, x2 = gather_slope(grid.density, where(grid, cell), p - cell)
                    x += shift
                    sigma, _by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                    weight, T_after = composite(variant, T, sigma * width)
                    steep = weight * scale_of(box) * activation.density_slope(variant, x)
                    if ti.static(grid.boxes > 1):
                        steep *= scale_of(box)  # in the world the value, too, is half as much in a box twice as large
                    total += steep * ti.Vector([x0, x1, x2])
                    T = T_after
                    k += 1
        slope, normal = world_slope(grid, total), ti.Vector.zero(float, 3)
        if 1.0 - T >= MET:
            normal, _ = normal_of(slope, -rays.direction[r])
        rays.sum_even[r] = ti.Vector([normal[0], normal[1], normal[2], 0.0])


# Cells that rays see: those in which a sample has more than a least weight on its ray.


@ti.kernel
def mark_seen(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float, least: float,  # rays, [world unit], 0..1, 0..1
):  # fmt: skip
    """seen = 1 in cells with a sample of a weight over `least`."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        T = ti.cast(1.0, float)
        for s in range(ti.static(grid.segments)):
            entry, d, length, _, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    place, f = located(grid, p)
                    raw = fetch(grid, place, f)
                    tau, _shade = classified(rays, variant, raw, shift, inverse_scale, width)
                    weight, T = composite(variant, T, tau)
                    if weight > least:
                        grid.seen[ti.min(ti.cast(p * per_index, ti.i32), grid.cells[None] - 1)] = ti.u8(1)
                    k += 1

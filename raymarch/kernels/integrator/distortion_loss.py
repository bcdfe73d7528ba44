"""Distortion loss of rays (Barron et al. 2022, "Mip-NeRF 360"), and its adjoint: light spread along a ray costs.

Of weights w at depths s in intervals of width d it is sum_ij w_i w_j |s_i - s_j| + sum_i w_i^2 d_i / 3, for which two
running sums are enough, W of w and S of w s (Sun et al. 2022, "Improved direct voxel grid optimization"). It is of
degree 2 in the weights, so sum_i w_i g_i is twice the loss, and `later` needs no second sum. Depths are bounded:
s = t / (t + unit). Emission and absorption only; colours take no part.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.gather import cell_of, gather, scatter
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.mode import is_alive
from raymarch.kernels.integrator.sample import index_ray
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE, put_numbers
from raymarch.kernels.rays.rays import (
    box_of,
    distance_of,
    empty_steps,
    first_of,
    jitter_of,
    origin_in_box,
    scale_of,
    shell_segment,
    step_at,
    steps_of,
)


@ti.func
def interval(grid: ti.template(), rays: ti.template(), r, begin, width, stretch, unit):
    """Middle and width of a step in bounded depth; `stretch`: world units in one of the box's own."""
    near = distance_of(grid, rays.origin[r], rays.direction[r], begin * stretch)
    far = distance_of(grid, rays.origin[r], rays.direction[r], (begin + width) * stretch)
    s0, s1 = near / (near + unit), far / (far + unit)
    return 0.5 * (s0 + s1), s1 - s0


@ti.func
def distortion_of_ray(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    slot,
    dt,
    min_transmittance,
    unit,
    later,
    W_end,
    S_end,
    each,
    backward: ti.template(),
):
    """(loss, W, S) of ray r; `backward` adds `each` times its gradient to the slot's density, the sums being known."""
    o, d, _ = index_ray(grid, rays, r)
    per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    T, loss = ti.cast(1.0, float), ti.cast(0.0, float)
    W, S = ti.cast(0.0, float), ti.cast(0.0, float)
    for segment in range(ti.static(grid.segments)):
        box = box_of(grid, segment)
        own, first = origin_in_box(grid, o, box), first_of(grid, box)
        near, far, _, _ = shell_segment(grid, own, d, segment)
        k, n = 0, steps_of(far - near, step, phase)
        while k <= n and far > near and is_alive(variant, T, min_transmittance):
            begin, width = step_at(variant, near, far, step, phase, k)
            p = ti.max(own + (begin + 0.5 * width) * d, 0.0) + first
            skip = empty_steps(grid, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, first + grid.max_index[None])
                f, place = p - cell, cell_index(grid, cell)
                x = gather(grid.density, place, f) + shift
                T_after = T * ti.exp(-activation.density(variant, x) * inverse_scale * width)
                w = T - T_after
                s, wide = interval(grid, rays, r, begin, width, 1.0 / scale_of(box), unit)
                loss += 2.0 * w * (s * W - S) + w * w * wide / 3.0
                if ti.static(backward):
                    W_after, S_after = W_end - W - w, S_end - S - w * s
                    g = 2.0 * (s * (W - W_after) - (S - S_after)) + 2.0 * w * wide / 3.0
                    later -= w * g
                    by_raw = inverse_scale * width * activation.density_slope(variant, x)
                    scatter(grid.d_density, slot, place, f, each * (g * T_after - later) * by_raw)
                    mark(grid, place, place)
                W, S, T = W + w, S + w * s, T_after
                k += 1
    return loss, W, S


@ti.kernel
def distortion(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,
    dt: float,
    min_transmittance: float,
    unit: float,  # rays, [world unit], 0..1, [world unit]
    weight: ti.f64,
):
    """loss += weight mean over rays of the distortion, whose sums `sum_odd` keeps for the adjoint."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        zero = ti.cast(0.0, float)
        loss, W, S = distortion_of_ray(
            grid, rays, variant, r, 0, dt, min_transmittance, unit, zero, zero, zero, zero, False
        )
        put_numbers(rays.sum_odd, r, ti.Vector([loss, W, S, 0.0]))
        rays.loss[None] += weight * ti.cast(loss, ti.f64) / count


@ti.kernel
def distortion_adjoint(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,
    dt: float,
    min_transmittance: float,
    unit: float,  # rays, [world unit], 0..1, [world unit]
    weight: ti.f64,
):
    """d_density += loss.grad times the derivative of `distortion`, in the slots of the march's adjoint."""
    if ti.static(runtime.runs_on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        each = ti.cast(weight * rays.loss.grad[None] / count, float)
                        known = rays.sum_odd[r]
                        distortion_of_ray(
                            grid,
                            rays,
                            variant,
                            r,
                            slot,
                            dt,
                            min_transmittance,
                            unit,
                            2.0 * known[0],
                            known[1],
                            known[2],
                            each,
                            True,
                        )
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            each = ti.cast(weight * rays.loss.grad[None] / count, float)
            known = rays.sum_odd[r]
            distortion_of_ray(
                grid,
                rays,
                variant,
                r,
                r % grid.slots,
                dt,
                min_transmittance,
                unit,
                2.0 * known[0],
                known[1],
                known[2],
                each,
                True,
            )

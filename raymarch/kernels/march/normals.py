"""Normals of what is composited: the mean slope of the value by the march's weights, made a unit vector."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather_slope
from raymarch.kernels.integrator.depth import MET
from raymarch.kernels.integrator.sample import in_index_space
from raymarch.kernels.light.shading import normal_of
from raymarch.kernels.march.compositing import composite, is_alive
from raymarch.kernels.march.transfer import optics
from raymarch.kernels.rays.clip import kept_segment
from raymarch.kernels.rays.nested import box_of, first_of, scale_of, seen_from
from raymarch.kernels.rays.rays import empty_steps, jitter_of, step_at, steps_of


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

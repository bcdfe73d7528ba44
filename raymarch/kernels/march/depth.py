"""Depth of rays: mean distance by the march's weights."""

import taichi as ti

from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather
from raymarch.kernels.march.compositing import composite, is_alive
from raymarch.kernels.march.sample import in_index_space
from raymarch.kernels.march.transfer import optics
from raymarch.kernels.rays.clip import kept_segment
from raymarch.kernels.rays.nested import box_of, first_of, scale_of, seen_from
from raymarch.kernels.rays.placed import distance_of
from raymarch.kernels.rays.traverse import empty_steps, jitter_of, step_at, steps_of

MET = 0.01  # opacity under which a ray counts as having met nothing


@ti.kernel
def march_depth(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], 0..1
):  # fmt: skip
    """depth = sum_k weight_k t_k / sum_k weight_k, infinite where an opacity under `MET` is met."""
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
        rays.depth[r] = ti.select(1.0 - T >= MET, total / ti.max(weights, 1e-12), ti.math.inf)

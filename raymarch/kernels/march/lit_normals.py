"""Normals of a lit transfer function: of what lights its samples, the mean by the march's weights, as a unit vector.

Each is of unit length and faces the eye, so that a steep boundary counts by its opacity alone: expected normals, as of
Verbin et al. 2022, "Ref-NeRF", equation 10. Letters as in `lit_transfer`.
"""

import taichi as ti

from raymarch.kernels.integrator.depth import MET
from raymarch.kernels.integrator.sample import fetch, located, ray_segment
from raymarch.kernels.light.shading import normal_of
from raymarch.kernels.march.compositing import composite, is_alive
from raymarch.kernels.march.transfer import optics
from raymarch.kernels.modes.lit_transfer import surface_of
from raymarch.kernels.rays.nested import box_of
from raymarch.kernels.rays.rays import empty_steps, place_of


@ti.kernel
def normals_of_lit(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], 0..1
):  # fmt: skip
    """sum_even = sum_k weight_k n_k of unit length; 0 where an opacity under `MET` is met."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, total = ti.cast(1.0, float), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            entry, d, length, _Y, step, phase, last = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= last and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, grid.cells_per_index[None], p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell, f = located(grid, p)
                    x = fetch(grid, cell, f)[3] + grid.shift[None]
                    sigma, _by_x, table, _slope = optics(rays, variant, x, grid.inverse_scale[None])
                    weight, T_after = composite(variant, T, sigma * width)
                    if weight > 0:
                        _G, _K, n, _scale, _colour, _seen = surface_of(
                            grid, rays, r, box_of(grid, s), ti.cast(p, ti.i32), f, table
                        )
                        total += weight * n
                    T = T_after
                    k += 1
        normal = ti.Vector.zero(float, 3)
        if 1.0 - T >= MET:
            normal, _ = normal_of(total, -rays.direction[r])
        rays.sum_even[r] = ti.Vector([normal[0], normal[1], normal[2], 0.0])

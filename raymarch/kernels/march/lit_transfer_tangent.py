"""Tangent of a lit transfer function by density and table: `lit_transfer`'s loop, each line differentiated.

A sample's normal turns with all samples that its central differences read. Letters are the same.
"""

import taichi as ti

from raymarch.kernels.field.gather import gather
from raymarch.kernels.integrator.sample import fetch, located, ray_segment
from raymarch.kernels.light.gradient import normal_slope_tangent
from raymarch.kernels.light.occlusion import openness_tangent
from raymarch.kernels.light.shading import AMBIENT, REACH, along_sphere, shade, shade_tangent
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.normals import world_slope
from raymarch.kernels.march.transfer import optics, table_tangent
from raymarch.kernels.modes.lit_transfer import surface_of
from raymarch.kernels.rays.nested import box_of
from raymarch.kernels.rays.rays import empty_steps, place_of


@ti.kernel
def lit_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """dot_image[r, e] = (d image / d density and table) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        eye, still = -rays.direction[r], ti.Vector.zero(float, 3)
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, d, length, _Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, grid.cells_per_index[None], p, d, step)
                if skip > 0:
                    k += skip
                else:
                    own = ti.cast(p, ti.i32)
                    cell, f = located(grid, p)
                    x = fetch(grid, cell, f)[3] + grid.shift[None]
                    sigma, by_x, table, table_by_x = optics(rays, variant, x, grid.inverse_scale[None])
                    weight, T_after = composite(variant, T, sigma * width)
                    on = contributes(variant, weight, min_weight)
                    _G, _K, normal, scale, colour, seen = surface_of(grid, rays, r, box_of(grid, s), own, f, table)
                    lit = shade(rays, colour, normal, eye)
                    ambient, reach = rays.shading[None][AMBIENT], rays.shading[None][REACH]
                    opened, dot_open = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
                    if reach > 0:
                        opened, dot_open = openness_tangent(grid, dot_grid, rays, variant, box_of(grid, s), p, reach)
                    lit -= ambient * (1.0 - opened) * colour
                    dot_x = ti.Vector.zero(float, dot_grid.columns)
                    dot_G = ti.Matrix.zero(float, 3, dot_grid.columns)
                    if ti.static(not dot_grid.still):
                        dot_x = gather(dot_grid.density, own, f)
                        dot_G = normal_slope_tangent(grid, dot_grid.density, rays, box_of(grid, s), own, f)
                    for e in range(dot_grid.columns):
                        dot_shade, dot_sigma = table_tangent(
                            rays, dot_grid.table, variant, x, grid.inverse_scale[None], e
                        )
                        dot_shade += table_by_x * dot_x[e]
                        dot_tau = (by_x * dot_x[e] + dot_sigma) * width
                        dot_N = world_slope(grid, ti.Vector([dot_G[0, e], dot_G[1, e], dot_G[2, e]]))
                        dot_own = seen * ti.Vector([dot_shade[0], dot_shade[1], dot_shade[2]])
                        dot_n = along_sphere(normal, scale, dot_N)
                        dot_lit = shade_tangent(rays, colour, normal, eye, dot_own, dot_n, still)
                        dot_lit += ambient * (dot_open[e] * colour - (1.0 - opened) * dot_own)
                        dot_weight, dot_T_after = variant.mode.tangent(T, sigma * width, dot_T[e], dot_tau)
                        if on:
                            for c in ti.static(range(3)):
                                dot_colour[e, c] += dot_weight * lit[c] + weight * dot_lit[c]
                        dot_T[e] = dot_T_after
                    T = T_after
                    k += 1
        behind = background_of(variant, background)
        for e in range(dot_grid.columns):
            image = ti.Vector([dot_colour[e, 0], dot_colour[e, 1], dot_colour[e, 2], 0.0])
            dot_image[r, e] = image + dot_T[e] * ti.Vector([behind[0], behind[1], behind[2], 1.0])

"""Tangent of the march by density and features: the same loop and letters as `march`, each line differentiated."""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.tables import optics, table_tangent
from raymarch.kernels.integrator.mode import background_of, composite, contributes, is_alive
from raymarch.kernels.integrator.sample import colour_at, fetch, located, ray_segment
from raymarch.kernels.rays.rays import empty_steps, place_of


@ti.kernel
def march_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """dot_image[r, d] = (d image / d grid) of each column d of dot_grid: `march` with each line differentiated."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, d, length, Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell, f = located(grid, p)
                    raw = fetch(grid, cell, f)
                    own = ti.cast(p, ti.i32)
                    dot_x = ti.Vector.zero(float, dot_grid.columns)
                    if ti.static(not dot_grid.still):
                        dot_x = gather(dot_grid.density, own, f)
                    x = raw[3] + shift
                    sigma, by_x, shade, shade_by_x = optics(rays, variant, x, inverse_scale)
                    tau = sigma * width
                    by_x *= width
                    weight, T_after = composite(variant, T, tau)
                    on = contributes(variant, weight, min_weight)
                    colour = ti.Vector.zero(float, 4)
                    if ti.static(variant.mode.classifies):
                        raw = shade
                    if on:
                        colour = colour_at(grid, variant, cell, f, Y, raw)
                    for e in range(dot_grid.columns):
                        dot_tau = by_x * dot_x[e]
                        if ti.static(variant.mode.classifies):
                            dot_shade, dot_sigma = table_tangent(rays, dot_grid.table, variant, x, inverse_scale, e)
                            dot_tau += dot_sigma * width
                            if on:
                                dot_shade += shade_by_x * dot_x[e]
                                for c in ti.static(range(3)):
                                    dot_colour[e, c] += weight * dot_shade[c]
                        dot_weight, dot_T_after = variant.mode.tangent(T, tau, dot_T[e], dot_tau)
                        for c in ti.static(range(3)):
                            dot_colour[e, c] += dot_weight * colour[c]
                        dot_T[e] = dot_T_after
                    if ti.static(variant.mode.colour and not variant.mode.classifies and dot_grid.channels > 0):
                        if on:
                            dot_features = gather(dot_grid.features, own, f)
                            slope = weight * activation.colour_slope(variant, colour)
                            for e in range(dot_grid.columns):
                                for b in ti.static(range((grid.degree + 1) ** 2)):
                                    for c in ti.static(range(3)):
                                        dot_colour[e, c] += (
                                            slope[c] * Y[b] * dot_features[dot_grid.channels * e + 3 * b + c]
                                        )
                    T = T_after
                    k += 1
        seen = background_of(variant, background)
        for e in range(dot_grid.columns):
            image = ti.Vector([dot_colour[e, 0], dot_colour[e, 1], dot_colour[e, 2], 0.0])
            dot_image[r, e] = image + dot_T[e] * ti.Vector([seen[0], seen[1], seen[2], 1.0])

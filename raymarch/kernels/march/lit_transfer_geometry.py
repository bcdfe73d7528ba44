"""Geometry gradients of a lit transfer function, by the rays' origin, way and heading, and the box's frame; its mode.

Loop and letters as in `geometry`, light as in `lit_transfer`. A ray's heading says where the eye is, and the headlight;
the frame A enters by the normal, as of an isosurface.
"""

import taichi as ti

from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather_slope
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.integrator.remaining import remaining_at_first
from raymarch.kernels.integrator.sample import in_index_space
from raymarch.kernels.light.occlusion import openness_slopes
from raymarch.kernels.light.shading import AMBIENT, REACH, along_sphere, shade, shade_tangent
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.lit_normals import normals_of_lit
from raymarch.kernels.march.lit_transfer_tangent import lit_tangent
from raymarch.kernels.march.normals import index_slope, world_slope
from raymarch.kernels.march.plain_transfer import as_plain, depth_gradients_of_samples, depth_of_samples
from raymarch.kernels.march.transfer import optics
from raymarch.kernels.modes.lit_transfer import adjoint_of_lit, lit_adjoint, march_lit, surface_of
from raymarch.kernels.rays.clip import kept_segment, slope_of_cut
from raymarch.kernels.rays.nested import box_of, first_of, scale_of, seen_from
from raymarch.kernels.rays.rays import empty_steps, jitter_of, step_at, steps_of, widths_of


@ti.kernel
def lit_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time; d_frame by A."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _Y = in_index_space(grid, rays, r)
        phase, stretch = jitter_of(rays, variant, r)
        step, shift = stretch * dt, grid.shift[None]
        T, d_image = ti.cast(1.0, float), rays.image.grad[r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
        remaining, carry = remaining_at_first(rays, variant, r, background)
        d_o, d_d, d_view = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_dt, d_frame = ti.cast(0.0, float), ti.Matrix.zero(float, 3, 3)
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
                skip = empty_steps(grid, grid.cells_per_index[None], p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell = cell_of(p, first + grid.max_index[None])
                    x, x0, x1, x2 = gather_slope(grid.density, where(grid, cell), p - cell)
                    T, remaining, carry, d_x, d_width, _i, _beyond, _d_shade, G, K, d_N, d_e, d_open = adjoint_of_lit(
                        grid, rays, variant, r, box, cell, p - cell, x + shift, width,
                        T, remaining, carry, d_colour, min_weight,
                    )  # fmt: skip
                    d_p = d_x * ti.Vector([x0, x1, x2]) + K.transpose() @ index_slope(grid, d_N)
                    d_frame += G.outer_product(d_N)
                    if d_open != 0:
                        reach = rays.shading[None][REACH]
                        _opened, by_p, by_A = openness_slopes(grid, rays, variant, box, p, reach)
                        d_p += d_open * by_p
                        d_frame += d_open * by_A
                    d_view -= d_e
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
        moved.d_origin[r], moved.d_index_direction[r], moved.d_view_direction[r] = d_o, d_d, d_view
        moved.d_dt[r], moved.d_iso[r], moved.d_frame[r] = d_dt, 0.0, d_frame
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place_origin, d_place_way


@ti.kernel
def lit_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _Y = in_index_space(grid, rays, r)
        phase, stretch = jitter_of(rays, variant, r)
        step, shift, eye = stretch * dt, grid.shift[None], -rays.direction[r]
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, moved.columns)
        dot_colour = ti.Matrix.zero(float, moved.columns, 3)
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
            while k <= n and far > near and is_alive(variant, T, min_transmittance):
                begin, width = step_at(variant, near, far, step, phase, k)
                begins, wide = widths_of(variant, phase, k)
                t = begin + 0.5 * width
                p = ti.max(own + t * d, 0.0) + first
                skip = empty_steps(grid, grid.cells_per_index[None], p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell = cell_of(p, first + grid.max_index[None])
                    x, x0, x1, x2 = gather_slope(grid.density, where(grid, cell), p - cell)
                    sigma, by_x, table, table_by_x = optics(rays, variant, x + shift, grid.inverse_scale[None])
                    weight, T_after = composite(variant, T, sigma * width)
                    on = contributes(variant, weight, min_weight)
                    G, K, normal, size, colour, seen = surface_of(grid, rays, r, box, cell, p - cell, table)
                    lit = shade(rays, colour, normal, eye)
                    ambient, reach = rays.shading[None][AMBIENT], rays.shading[None][REACH]
                    opened, by_p, by_A = ti.cast(1.0, float), ti.Vector.zero(float, 3), ti.Matrix.zero(float, 3, 3)
                    if reach > 0:
                        opened, by_p, by_A = openness_slopes(grid, rays, variant, box, p, reach)
                    lit -= ambient * (1.0 - opened) * colour
                    for c in range(moved.columns):
                        dot_step = stretch * moved.dot_dt[c]
                        dot_t = dot_near[c] + (begins + 0.5 * wide) * dot_step
                        dot_width = wide * dot_step
                        if k == n:
                            dot_t = 0.5 * (dot_near[c] + dot_far[c] + begins * dot_step)
                            dot_width = dot_far[c] - dot_near[c] - begins * dot_step
                        dot_p = scale * moved.dot_origin[r, c] + dot_t * d + t * moved.dot_index_direction[r, c]
                        dot_x = x0 * dot_p[0] + x1 * dot_p[1] + x2 * dot_p[2]
                        dot_own = seen * dot_x * ti.Vector([table_by_x[0], table_by_x[1], table_by_x[2]])
                        dot_N = world_slope(grid, K @ dot_p) + moved.dot_frame[c].transpose() @ G
                        dot_n = along_sphere(normal, size, dot_N)
                        dot_lit = shade_tangent(
                            rays, colour, normal, eye, dot_own, dot_n, -moved.dot_view_direction[r, c]
                        )
                        dot_open = by_p.dot(dot_p) + (by_A * moved.dot_frame[c]).sum()
                        dot_lit += ambient * (dot_open * colour - (1.0 - opened) * dot_own)
                        dot_tau = by_x * dot_x * width + sigma * dot_width
                        dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[c], dot_tau)
                        if on:
                            for b in ti.static(range(3)):
                                dot_colour[c, b] += dot_weight * lit[b] + weight * dot_lit[b]
                        dot_T[c] = dot_after
                    T = T_after
                    k += 1
        behind = background_of(variant, background)
        for c in range(moved.columns):
            image = ti.Vector([dot_colour[c, 0], dot_colour[c, 1], dot_colour[c, 2], 0.0])
            moved.dot_image[r, c] = image + dot_T[c] * ti.Vector([behind[0], behind[1], behind[2], 1.0])


LIT = RayMode(
    "transfer",
    Passes(
        as_plain(march_lit),
        as_plain(lit_adjoint),
        as_plain(lit_tangent),
        as_plain(lit_geometry_adjoint),
        as_plain(lit_geometry_tangent),
        depth_of_samples,
        as_plain(normals_of_lit),
        depth_gradients_of_samples,
    ),
    background=True,
    ends=True,
    shaded=True,
    ndc=False,
    classifies=True,
)

"""Gradient shading of a transfer function: each sample's colour is lit as a surface across the slope of the value.

The normal is the smooth one of isosurfaces, the light `shading`'s. Where the value is level there is no normal, and
what is left is the ambient light, less what `occlusion` keeps off. Levoy 1988, "Display of surfaces from volume data".

Letters as in `march` and `isosurface`: G slope of the raw density in index space, K its derivative by the place,
N = A' G with A `index_from_world`, n its unit vector that faces the eye, e. Clear samples are lit too where slopes are
asked for: a table under which they come to be seen is next to this one.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import cell_of, gather, gather_slope, scatter
from raymarch.kernels.field.tables import (
    add_to_knots,
    classified,
    extinction,
    knot_below,
    optics,
    shade_of,
    slope_of,
    table_tangent,
)
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.depth import MET, index_slope, world_slope
from raymarch.kernels.integrator.mode import RayMode, background_of, composite, contributes, is_alive
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_at_first
from raymarch.kernels.integrator.sample import fetch, in_index_space, located, ray_segment
from raymarch.kernels.light.gradient import normal_slope, normal_slope_tangent, scatter_normal_slope
from raymarch.kernels.light.occlusion import add_openness, openness, openness_slopes, openness_tangent
from raymarch.kernels.light.shading import (
    AMBIENT,
    REACH,
    along_sphere,
    normal_of,
    painted,
    shade,
    shade_adjoint,
    shade_tangent,
)
from raymarch.kernels.modes.plain_transfer import as_plain, depth_gradients_of_samples, depth_of_samples
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.meeting import kept_segment, slope_of_cut
from raymarch.kernels.rays.rays import (
    box_of,
    empty_steps,
    first_of,
    jitter_of,
    place_of,
    scale_of,
    seen_from,
    step_at,
    steps_of,
    widths_of,
)


@ti.func
def lit(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, box, p, own):
    """Colour (3,) of a sample at p, lit by the slope of the raw density, whose sign does not matter."""
    cell = ti.cast(p, ti.i32)
    slope, _K = normal_slope(grid, rays, box, cell, p - cell)
    eye = -rays.direction[r]
    n, _scale = normal_of(world_slope(grid, slope), eye)
    colour, _seen = painted(rays, ti.Vector([own[0], own[1], own[2]]))
    light, reach = shade(rays, colour, n, eye), rays.shading[None][REACH]
    if reach > 0:
        light -= colour * rays.shading[None][AMBIENT] * (1.0 - openness(grid, rays, variant, box, p, reach))
    return light


@ti.kernel
def march_lit(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """image = sum over samples of weight times lit colour, + T background."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, total = ti.cast(1.0, float), ti.Vector.zero(float, 3)
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        for s in range(ti.static(grid.segments)):
            entry, d, length, _Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell, f = located(grid, p)
                    tau, own = classified(rays, variant, fetch(grid, cell, f), shift, inverse_scale, width)
                    weight, T_after = composite(variant, T, tau)
                    if tau > 0 and contributes(variant, weight, min_weight):
                        total += weight * lit(grid, rays, variant, r, box_of(grid, s), p, own)
                    T = T_after
                    k += 1
        seen = background_of(variant, background)
        rays.image[r] = ti.Vector([total[0] + T * seen[0], total[1] + T * seen[1], total[2] + T * seen[2], T])


@ti.func
def surface_of(grid: ti.template(), rays: ti.template(), r, box, cell, f, own):
    """What a sample is lit as: G, K, n and its scale, the colour, and 1 where that is the table's, else 0."""
    G, K = normal_slope(grid, rays, box, cell, f)
    n, scale = normal_of(world_slope(grid, G), -rays.direction[r])
    colour, seen = painted(rays, ti.Vector([own[0], own[1], own[2]]))
    return G, K, n, scale, colour, seen


@ti.func
def adjoint_of_lit(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, box, cell, f, x, width,
    T, remaining, carry, d_colour, min_weight,
):  # fmt: skip
    """Adjoint of one sample of raw density with its shift x: T, `remaining` and `carry` behind it; d_x and d_width; the
    knot its shade is counted from, how far it is above that, and d_shade; G, K, d_N, d_e and d_open."""
    inverse_scale = grid.inverse_scale[None]
    value, by_x = activation.density_and_slope(variant, x)
    i, beyond = knot_below(rays.table, value * inverse_scale)
    own = shade_of(rays.table, i, beyond)
    sigma, by_opacity = extinction(rays.table, own[3])
    tau = sigma * width
    weight, T_after = composite(variant, T, tau)
    G, K = ti.Vector.zero(float, 3), ti.Matrix.zero(float, 3, 3)
    d_N, d_e, d_shade = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.Vector.zero(float, 4)
    d_weight, d_open = ti.cast(0.0, float), ti.cast(0.0, float)
    if contributes(variant, weight, min_weight):
        G, K, n, scale, colour, seen = surface_of(grid, rays, r, box, cell, f, own)
        d_weight = d_colour.dot(shade(rays, colour, n, -rays.direction[r]))
        d_own, d_n, d_eye = shade_adjoint(rays, colour, n, -rays.direction[r], weight * d_colour)
        ambient, reach = rays.shading[None][AMBIENT], rays.shading[None][REACH]
        if reach > 0:
            dimmed = ambient * (1.0 - openness(grid, rays, variant, box, cell + f, reach))
            d_weight -= dimmed * d_colour.dot(colour)
            d_own -= dimmed * weight * d_colour
            d_open = ambient * weight * d_colour.dot(colour)
        d_N, d_e = along_sphere(n, scale, d_n), d_eye
        for c in ti.static(range(3)):
            d_shade[c] = seen * d_own[c]
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    d_shade[3] = d_tau * width * by_opacity
    d_x = d_shade.dot(slope_of(rays.table, i, value * inverse_scale)) * inverse_scale * by_x
    return T_after, remaining, carry, d_x, d_tau * sigma, i, beyond, d_shade, G, K, d_N, d_e, d_open


@ti.func
def adjoint_of_ray(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot,
    dt, min_transmittance, min_weight, background,
):  # fmt: skip
    """What one ray gives the gradients of density and table, `march_lit`'s loop again."""
    T, d_image = ti.cast(1.0, float), rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    remaining, carry = remaining_at_first(rays, variant, r, background)
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
                T, remaining, carry, d_x, _d_width, i, beyond, d_shade, _G, _K, d_N, _d_e, d_open = adjoint_of_lit(
                    grid, rays, variant, r, box_of(grid, s), own, f, x, width, T, remaining, carry, d_colour, min_weight
                )
                add_to_knots(rays, slot, i, beyond, d_shade)
                scatter(grid.d_density, slot, cell, f, d_x)
                mark(grid, cell, cell)
                if ti.abs(d_N).max() > 0:
                    scatter_normal_slope(grid, rays, box_of(grid, s), slot, own, f, index_slope(grid, d_N))
                if d_open != 0:
                    reach = rays.shading[None][REACH]
                    add_openness(grid, rays, variant, slot, box_of(grid, s), p, reach, d_open)
                k += 1


@ti.kernel
def lit_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """d_density, table.d_rgba += (d image / d them)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot, dt, min_transmittance, min_weight, background)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots, dt, min_transmittance, min_weight, background)


# Tangent of a lit transfer function by density and table: `lit_transfer`'s loop, each line differentiated.
#
# A sample's normal turns with all samples that its central differences read. Letters are the same.


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


# Normals of a lit transfer function: of what lights its samples, the mean by the march's weights, as a unit vector.
#
# Each is of unit length and faces the eye, so that a steep boundary counts by its opacity alone: expected normals, as
# of Verbin et al. 2022, "Ref-NeRF", equation 10. Letters as in `lit_transfer`.


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


# Geometry gradients of a lit transfer function, by the rays' origin, way and heading, and the box's frame; its mode.
#
# Loop and letters as in `geometry`, light as in `lit_transfer`. A ray's heading says where the eye is, and the
# headlight; the frame A enters by the normal, as of an isosurface.


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

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
from raymarch.kernels.field.gather import scatter
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_at_first
from raymarch.kernels.integrator.sample import fetch, located, ray_segment
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.light.gradient import normal_slope, scatter_normal_slope
from raymarch.kernels.light.occlusion import add_openness, openness
from raymarch.kernels.light.shading import AMBIENT, REACH, along_sphere, normal_of, painted, shade, shade_adjoint
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.normals import index_slope, world_slope
from raymarch.kernels.march.transfer import classified, extinction, knot_below, shade_of, slope_of
from raymarch.kernels.modes.transfer import add_to_knots
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.nested import box_of
from raymarch.kernels.rays.rays import empty_steps, place_of


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

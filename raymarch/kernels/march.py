"""Emission and absorption along rays, and its adjoint: the same loop twice.

Letters: sigma extinction [1/world unit], tau optical depth, T = exp(-tau) transmittance, alpha = 1 - exp(-sigma dt),
weight = T alpha, t distance, dt step; gradients are d_ + name. Quadrature: midpoints of steps dt from `near`, and one
shorter last step, so that the widths add up to far - near. Max 1995, "Optical models for direct volume rendering".

`image[r]` holds the colour, background included, and the transmittance left behind the volume.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels import activation
from raymarch.kernels.gather import cell_of, gather, scatter
from raymarch.kernels.harmonics import basis
from raymarch.kernels.numeric import exp
from raymarch.kernels.traverse import clip, empty_steps

MET = 0.01  # opacity under which a ray counts as having met nothing
SERIAL = 512  # a parallel loop needs about a thousand iterations to use its threads: one in 512 works


@ti.func
def in_index_space(grid: ti.template(), rays: ti.template(), r):
    """Origin and direction of ray r in index space, and the harmonics of its direction."""
    direction = rays.direction[r]
    m = grid.index_from_world[None]
    o, d = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
    for a in ti.static(range(3)):
        o[a] = m[a, 0] * rays.origin[r][0] + m[a, 1] * rays.origin[r][1] + m[a, 2] * rays.origin[r][2] + m[a, 3]
        d[a] = m[a, 0] * direction[0] + m[a, 1] * direction[1] + m[a, 2] * direction[2]
    return o, d, basis(grid.degree, direction)


@ti.func
def colour_at(grid: ti.template(), reading: ti.template(), cell, f, Y):
    """Colour of `sum_k c_k Y_k`, interpolated before it is activated."""
    features = gather(grid.features, cell, f)
    total = ti.Vector.zero(float, 3)
    for k in ti.static(range((grid.degree + 1) ** 2)):
        for c in ti.static(range(3)):
            total[c] += Y[k] * features[3 * k + c]
    return activation.colour(reading, total)


@ti.kernel
def march(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float, least: float,
    background: ti.math.vec3,
):  # fmt: skip
    """image = sum_k T_k alpha_k colour_k + T background; no colour under weight `least`, no sample under T `stop`."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        T = ti.cast(1.0, float)
        colour = ti.Vector.zero(float, 3)
        k, n = 0, ti.cast((far - near) / dt, ti.i32)
        while k <= n and far > near and T > stop:
            t = near + k * dt
            width = ti.min(dt, far - t)
            p = ti.max(o + (t + 0.5 * width) * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, dt)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x = gather(grid.density, cell, f) + shift
                e = exp(-activation.density(reading, x) * per_scale * width)
                weight = T * (1.0 - e)
                if weight > least:
                    colour += weight * colour_at(grid, reading, cell, f, Y)
                T *= e
                k += 1
        colour += T * background
        rays.image[r] = ti.Vector([colour[0], colour[1], colour[2], T])


@ti.func
def adjoint_of_ray(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), r, slot, dt, stop, least, background,
):  # fmt: skip
    """The loop of `march` again; `rest` is what the samples still to come, background included, owe the gradient."""
    o, d, Y = in_index_space(grid, rays, r)
    top, per_index = grid.top[None], grid.cells_per_index[None]
    shift, per_scale = grid.shift[None], grid.per_scale[None]
    near, far = clip(o, d, top)
    T = ti.cast(1.0, float)
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    rest = rays.image[r].dot(d_image)
    k, n = 0, ti.cast((far - near) / dt, ti.i32)
    while k <= n and far > near and T > stop:
        t = near + k * dt
        width = ti.min(dt, far - t)
        p = ti.max(o + (t + 0.5 * width) * d, 0.0)
        skip = empty_steps(grid.leap, per_index, p, d, dt)
        if skip > 0:
            k += skip
        else:
            cell = cell_of(p, top)
            f = p - cell
            x = gather(grid.density, cell, f) + shift
            e = exp(-activation.density(reading, x) * per_scale * width)
            weight = T * (1.0 - e)
            T *= e
            owed = ti.cast(0.0, float)
            if weight > least:
                colour = colour_at(grid, reading, cell, f, Y)
                owed = colour.dot(d_colour)
                d_sum = weight * d_colour * activation.colour_slope(reading, colour)
                d_features = ti.Vector.zero(float, grid.features.n)
                for b in ti.static(range((grid.degree + 1) ** 2)):
                    for c in ti.static(range(3)):
                        d_features[3 * b + c] = Y[b] * d_sum[c]
                scatter(grid.d_features, slot, cell, f, d_features)
            rest -= weight * owed
            d_sigma = width * (T * owed - rest)
            scatter(grid.d_density, slot, cell, f, d_sigma * per_scale * activation.density_slope(reading, x))
            grid.touched[cell // grid.block] = ti.u8(1)
            k += 1


@ti.kernel
def march_adjoint(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float, least: float,
    background: ti.math.vec3,
):  # fmt: skip
    """d_density, d_features += (d image / d them)' d_image, a share of the rays to each slot's own buffer."""
    if ti.static(runtime.on_cpu()):
        for i in range(SERIAL * grid.slots):
            if i % SERIAL == 0:
                slot = i // SERIAL
                for r in range(count * slot // grid.slots, count * (slot + 1) // grid.slots):
                    adjoint_of_ray(grid, rays, reading, r, slot, dt, stop, least, background)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, reading, r, r % grid.slots, dt, stop, least, background)


@ti.kernel
def march_tangent(
    grid: ti.template(), dot_grid: ti.template(), rays: ti.template(), dot_image: ti.template(), reading: ti.template(),
    count: int, dt: float, stop: float, least: float, background: ti.math.vec3,
):  # fmt: skip
    """dot_image[r, 0] = (d image / d grid) dot_grid: the loop of `march` with each line differentiated below it."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        T, dot_T = ti.cast(1.0, float), ti.cast(0.0, float)
        dot_colour = ti.Vector.zero(float, 3)
        k, n = 0, ti.cast((far - near) / dt, ti.i32)
        while k <= n and far > near and T > stop:
            t = near + k * dt
            width = ti.min(dt, far - t)
            p = ti.max(o + (t + 0.5 * width) * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, dt)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x = gather(grid.density, cell, f) + shift
                dot_x = gather(dot_grid.density, cell, f)
                e = exp(-activation.density(reading, x) * per_scale * width)
                dot_e = -e * width * per_scale * activation.density_slope(reading, x) * dot_x
                weight = T * (1.0 - e)
                dot_weight = dot_T * (1.0 - e) - T * dot_e
                if weight > least:
                    colour = colour_at(grid, reading, cell, f, Y)
                    dot_features = gather(dot_grid.features, cell, f)
                    slope = activation.colour_slope(reading, colour)
                    dot_colour += dot_weight * colour
                    for b in ti.static(range((grid.degree + 1) ** 2)):
                        for c in ti.static(range(3)):
                            dot_colour[c] += weight * slope[c] * Y[b] * dot_features[3 * b + c]
                dot_T = dot_T * e + T * dot_e
                T *= e
                k += 1
        dot_colour += dot_T * background
        dot_image[r, 0] = ti.Vector([dot_colour[0], dot_colour[1], dot_colour[2], dot_T])


@ti.kernel
def march_depth(grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float):
    """depth = sum_k weight_k t_k / sum_k weight_k, infinite where less than `MET` is met."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        T = ti.cast(1.0, float)
        total = ti.cast(0.0, float)
        k, n = 0, ti.cast((far - near) / dt, ti.i32)
        while k <= n and far > near and T > stop:
            t = near + k * dt
            width = ti.min(dt, far - t)
            p = ti.max(o + (t + 0.5 * width) * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, dt)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                x = gather(grid.density, cell, p - cell) + shift
                e = exp(-activation.density(reading, x) * per_scale * width)
                total += T * (1.0 - e) * (t + 0.5 * width)
                T *= e
                k += 1
        rays.depth[r] = ti.select(1.0 - T >= MET, total / ti.max(1.0 - T, 1e-12), ti.math.inf)

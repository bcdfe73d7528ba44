"""Compositing along rays, its adjoint and its tangent: the same loop three times.

Letters: sigma extinction [1/world unit], tau = sigma width the optical depth of a step, T transmittance, weight what a
sample adds of its colour (`compositing` has the rules), t distance, dt step; gradients are d_ + name. Quadrature:
midpoints of steps dt from `near`, and one shorter last step, so that the widths add up to far - near. Max 1995,
"Optical models for direct volume rendering".

`image[r]` holds the colour, background included, and the transmittance left behind the volume.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels import activation
from raymarch.kernels.compositing import behind, going, lit, take, take_adjoint, take_tangent
from raymarch.kernels.gather import cell_of, gather, scatter
from raymarch.kernels.harmonics import basis
from raymarch.kernels.traverse import clip, empty_steps, jitter_of, step_at, steps_of

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
    """Colour of `sum_k c_k Y_k`, interpolated before it is activated; 1 for a line integral."""
    colour = ti.Vector.one(float, 3)
    if ti.static(reading.mode != "x-ray"):
        features = gather(grid.features, cell, f)
        total = ti.Vector.zero(float, 3)
        for k in ti.static(range((grid.degree + 1) ** 2)):
            for c in ti.static(range(3)):
                total[c] += Y[k] * features[3 * k + c]
        colour = activation.colour(reading, total)
    return colour


@ti.kernel
def march(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float, least: float,
    background: ti.math.vec3,
):  # fmt: skip
    """image = sum_k weight_k colour_k + T background; no colour under weight `least`, no sample under T `stop`."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        phase, stretch = jitter_of(rays, reading, r)
        step = stretch * dt
        T = ti.cast(1.0, float)
        colour = ti.Vector.zero(float, 3)
        k, n = 0, steps_of(near, far, step, phase)
        while k <= n and far > near and going(reading, T, stop):
            begin, width = step_at(reading, near, far, step, phase, k)
            p = ti.max(o + (begin + 0.5 * width) * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x = gather(grid.density, cell, f) + shift
                weight, T_after = take(reading, T, activation.density(reading, x) * per_scale * width)
                if lit(reading, weight, least):
                    colour += weight * colour_at(grid, reading, cell, f, Y)
                T = T_after
                k += 1
        colour += T * behind(reading, background)
        rays.image[r] = ti.Vector([colour[0], colour[1], colour[2], T])


@ti.func
def next_clamp(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), r, k, T, dt, stop, least, background,
):  # fmt: skip
    """Additive: the next sample from k on whose weight is all of T that is left, and what the image gains by T there.

    The march runs ahead to it. Without one, it is what the background and the T behind the box gain.
    """
    o, d, Y = in_index_space(grid, rays, r)
    top, per_index = grid.top[None], grid.cells_per_index[None]
    shift, per_scale = grid.shift[None], grid.per_scale[None]
    near, far = clip(o, d, top)
    phase, stretch = jitter_of(rays, reading, r)
    step = stretch * dt
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    gain, clamped = d_image[3] + d_colour.dot(behind(reading, background)), 0
    n = steps_of(near, far, step, phase)
    while k <= n and clamped == 0 and going(reading, T, stop):
        begin, width = step_at(reading, near, far, step, phase, k)
        p = ti.max(o + (begin + 0.5 * width) * d, 0.0)
        skip = empty_steps(grid.leap, per_index, p, d, step)
        if skip > 0:
            k += skip
        else:
            cell = cell_of(p, top)
            f = p - cell
            tau = activation.density(reading, gather(grid.density, cell, f) + shift) * per_scale * width
            if tau > T:
                clamped = 1
                gain = ti.cast(0.0, float)
                if lit(reading, T, least):
                    gain = colour_at(grid, reading, cell, f, Y).dot(d_colour)
            else:
                T -= tau
                k += 1
    return k, gain


@ti.func
def adjoint_of_ray(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), r, slot, dt, stop, least, background,
):  # fmt: skip
    """The loop of `march` again; `later` is what the samples still to come, background included, owe the gradient."""
    o, d, Y = in_index_space(grid, rays, r)
    top, per_index = grid.top[None], grid.cells_per_index[None]
    shift, per_scale = grid.shift[None], grid.per_scale[None]
    near, far = clip(o, d, top)
    phase, stretch = jitter_of(rays, reading, r)
    step = stretch * dt
    T = ti.cast(1.0, float)
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    later, clamp = owed_at_first(rays, reading, r)
    k, n = 0, steps_of(near, far, step, phase)
    while k <= n and far > near and going(reading, T, stop):
        begin, width = step_at(reading, near, far, step, phase, k)
        p = ti.max(o + (begin + 0.5 * width) * d, 0.0)
        skip = empty_steps(grid.leap, per_index, p, d, step)
        if skip > 0:
            k += skip
        else:
            if ti.static(reading.mode == "additive"):
                if k > clamp:
                    clamp, later = next_clamp(grid, rays, reading, r, k, T, dt, stop, least, background)
            cell = cell_of(p, top)
            f = p - cell
            x = gather(grid.density, cell, f) + shift
            tau = activation.density(reading, x) * per_scale * width
            weight, T_after = take(reading, T, tau)
            owed = ti.cast(0.0, float)
            if lit(reading, weight, least):
                colour = colour_at(grid, reading, cell, f, Y)
                owed = colour.dot(d_colour)
                if ti.static(reading.mode != "x-ray"):
                    d_sum = weight * d_colour * activation.colour_slope(reading, colour)
                    d_features = ti.Vector.zero(float, grid.features.n)
                    for b in ti.static(range((grid.degree + 1) ** 2)):
                        for c in ti.static(range(3)):
                            d_features[3 * b + c] = Y[b] * d_sum[c]
                    scatter(grid.d_features, slot, cell, f, d_features)
            if ti.static(reading.mode == "emission-absorption"):
                later -= weight * owed
            d_sigma = width * take_adjoint(reading, T, tau, T_after, owed, later)
            scatter(grid.d_density, slot, cell, f, d_sigma * per_scale * activation.density_slope(reading, x))
            grid.touched[cell // grid.block] = ti.u8(1)
            T = T_after
            k += 1


@ti.func
def owed_at_first(rays: ti.template(), reading: ti.template(), r):
    """`later` of `take_adjoint` before the first sample, and the clamp it holds up to: none is known yet."""
    d_image = rays.image.grad[r]
    later = rays.image[r].dot(d_image)
    if ti.static(reading.mode == "x-ray"):
        later = rays.image[r][3] * d_image[3]
    return later, -1


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
    """dot_image[r, d] = (d image / d grid) of each column d of dot_grid: `march` with each line differentiated."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, Y = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        phase, stretch = jitter_of(rays, reading, r)
        step = stretch * dt
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        k, n = 0, steps_of(near, far, step, phase)
        while k <= n and far > near and going(reading, T, stop):
            begin, width = step_at(reading, near, far, step, phase, k)
            p = ti.max(o + (begin + 0.5 * width) * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                f = p - cell
                x = gather(grid.density, cell, f) + shift
                dot_x = gather(dot_grid.density, cell, f)
                tau = activation.density(reading, x) * per_scale * width
                by_x = width * per_scale * activation.density_slope(reading, x)
                weight, T_after = take(reading, T, tau)
                on = lit(reading, weight, least)
                colour = ti.Vector.zero(float, 3)
                if on:
                    colour = colour_at(grid, reading, cell, f, Y)
                for e in ti.static(range(dot_grid.columns)):
                    dot_weight, dot_T_after = take_tangent(reading, T, tau, dot_T[e], by_x * dot_x[e])
                    for c in ti.static(range(3)):
                        dot_colour[e, c] += dot_weight * colour[c]
                    dot_T[e] = dot_T_after
                if ti.static(reading.mode != "x-ray" and dot_grid.channels > 0):
                    if on:
                        dot_features = gather(dot_grid.features, cell, f)
                        slope = weight * activation.colour_slope(reading, colour)
                        for e in ti.static(range(dot_grid.columns)):
                            for b in ti.static(range((grid.degree + 1) ** 2)):
                                for c in ti.static(range(3)):
                                    dot_colour[e, c] += (
                                        slope[c] * Y[b] * dot_features[dot_grid.channels * e + 3 * b + c]
                                    )
                T = T_after
                k += 1
        seen = behind(reading, background)
        for e in ti.static(range(dot_grid.columns)):
            image = ti.Vector([dot_colour[e, 0], dot_colour[e, 1], dot_colour[e, 2], 0.0])
            dot_image[r, e] = image + dot_T[e] * ti.Vector([seen[0], seen[1], seen[2], 1.0])


@ti.kernel
def march_depth(grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float):
    """depth = sum_k weight_k t_k / sum_k weight_k, infinite where an opacity under `MET` is met."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        o, d, _ = in_index_space(grid, rays, r)
        top, per_index = grid.top[None], grid.cells_per_index[None]
        shift, per_scale = grid.shift[None], grid.per_scale[None]
        near, far = clip(o, d, top)
        phase, stretch = jitter_of(rays, reading, r)
        step = stretch * dt
        T = ti.cast(1.0, float)
        total, weights = ti.cast(0.0, float), ti.cast(0.0, float)
        k, n = 0, steps_of(near, far, step, phase)
        while k <= n and far > near and going(reading, T, stop):
            begin, width = step_at(reading, near, far, step, phase, k)
            t = begin + 0.5 * width
            p = ti.max(o + t * d, 0.0)
            skip = empty_steps(grid.leap, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell = cell_of(p, top)
                x = gather(grid.density, cell, p - cell) + shift
                weight, T_after = take(reading, T, activation.density(reading, x) * per_scale * width)
                total += weight * t
                weights += weight
                T = T_after
                k += 1
        rays.depth[r] = ti.select(1.0 - T >= MET, total / ti.max(weights, 1e-12), ti.math.inf)

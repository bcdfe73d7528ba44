"""Compositing along rays, its adjoint and its tangent: the same loop three times.

Letters: sigma extinction [1/world unit], tau = sigma width the optical depth of a step, T transmittance, weight what a
sample adds of its colour (`compositing` has the rules), t distance, dt step; gradients are d_ + name. Quadrature:
midpoints of steps dt from `near`, and one shorter last step, so that the widths add up to far - near. Max 1995,
"Optical models for direct volume rendering".

`image[r]` holds the colour, background included, and the transmittance left behind the volume.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.march.compositing import (
    behind,
    going,
    lit,
    passed,
    take,
    take_adjoint,
    take_passed,
    take_tangent,
)
from raymarch.kernels.march.remaining import next_clamp, owed_at_first
from raymarch.kernels.march.sample import colour_at, lit_colour, raw_at, within
from raymarch.kernels.parallel import RUN, SERIAL
from raymarch.kernels.rays.traverse import empty_steps, place_of, steps_ahead


def paired(grid, reading) -> bool:
    """Whether whole steps go in pairs: where a sample is one read, and its step is as long as any other."""
    return grid.degree == 0 and not reading.jittered and reading.mode != "additive"


@ti.kernel
def march(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float, least: float,
    background: ti.math.vec3,
):  # fmt: skip
    """image = sum_k weight_k colour_k + T background; no colour under weight `least`, no sample under T `stop`.

    Whole steps go in pairs, so that neither sample waits for the other's memory.
    """
    ti.loop_config(block_dim=64)
    for r in range(count):
        entry, d, length, Y, step, phase, n = within(grid, rays, reading, r, dt)
        per_index, shift, per_scale = grid.cells_per_index[None], grid.shift[None], grid.per_scale[None]
        T = ti.cast(1.0, float)
        light, others = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
        k = 0
        while k <= n and length > 0 and going(reading, T, stop):
            ahead, _ = place_of(reading, entry, d, length, step, phase, k)
            empty, full = steps_ahead(grid, per_index, ahead, d, step)
            k += empty
            end = ti.min(k + full, n + 1)
            if ti.static(paired(grid, reading)):
                T_between, before, last = T, others, ti.min(end, n)
                while k + 1 < last and going(reading, T, stop):
                    t = (k + 0.5) * step
                    cell, f, raw = raw_at(grid, entry + t * d)
                    cell2, f2, raw2 = raw_at(grid, entry + (t + step) * d)
                    weight, T_between = take(reading, T, activation.density(reading, raw[3] + shift) * per_scale * step)
                    weight2, T_after = take(
                        reading, T_between, activation.density(reading, raw2[3] + shift) * per_scale * step
                    )
                    light += lit_colour(grid, reading, cell, f, Y, raw, weight, least)
                    before = others
                    others += lit_colour(grid, reading, cell2, f2, Y, raw2, weight2, least)
                    T = T_after
                    k += 2
                if not going(reading, T_between, stop):  # the ray ended within the pair
                    T, others = T_between, before
            while k < end and going(reading, T, stop):
                p, width = place_of(reading, entry, d, length, step, phase, k)
                cell, f, raw = raw_at(grid, p)
                weight, T_after = take(reading, T, activation.density(reading, raw[3] + shift) * per_scale * width)
                light += lit_colour(grid, reading, cell, f, Y, raw, weight, least)
                T = T_after
                k += 1
        rays.lanes[r], rays.others[r] = light, others
        rays.image[r][3] = T
    for r in range(count):
        light, T, seen = rays.lanes[r] + rays.others[r], rays.image[r][3], behind(reading, background)
        for c in ti.static(range(3)):
            rays.image[r][c] = light[c] + T * seen[c]


@ti.func
def optics_of(reading: ti.template(), raw, shift, per_scale, width):
    """Optical depth of a sample, its derivative by the raw density, and what passes the sample."""
    sigma, slope = activation.density_and_slope(reading, raw[3] + shift)
    tau = sigma * per_scale * width
    return tau, slope * per_scale * width, passed(reading, tau)


@ti.func
def adjoint_of_sample(
    grid: ti.template(), reading: ti.template(), slot, cell, f, raw, Y, tau, slope, e, T, later, d_colour, least, on,
):  # fmt: skip
    """Add what one sample gives the gradient: nothing if `on` is 0, else 1; T and `later` after it, and a sum of lanes.

    Factors of 0 and 1 where a `select` would do: that becomes a branch, and ends what the compiler makes vectors of.
    """
    weight, T_after = take_passed(reading, T, tau, e)
    owed = ti.cast(0.0, float)
    d_raw, lanes = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
    if ti.static(grid.degree == 0):
        seen = ti.select(lit(reading, weight, least), on, 0.0)
        shown = seen * weight
        colour = colour_at(grid, reading, cell, f, Y, raw)
        lanes = shown * raw
        owed = seen * d_colour.dot(colour)
        if ti.static(reading.mode != "x-ray"):
            d_raw = (shown * Y[0]) * d_colour * activation.colour_slope(reading, colour)
    else:
        if lit(reading, weight, least):
            colour = colour_at(grid, reading, cell, f, Y, raw)
            owed = d_colour.dot(colour)
            if ti.static(reading.mode != "x-ray"):
                d_sum = weight * d_colour * activation.colour_slope(reading, colour)
                d_features = ti.Vector.zero(float, grid.features.n)
                for b in ti.static(range((grid.degree + 1) ** 2)):
                    for c in ti.static(range(3)):
                        d_features[3 * b + c] = Y[b] * d_sum[c]
                scatter(grid.d_features, slot, cell, f, d_features)
    if ti.static(reading.mode == "emission-absorption"):
        later -= weight * owed
    d_raw[3] = on * slope * take_adjoint(reading, T, tau, T_after, owed, later)
    if ti.static(grid.degree == 0):
        scatter(grid.d_packed, slot, cell, f, d_raw)
    else:
        scatter(grid.d_density, slot, cell, f, d_raw[3])
    return T_after, later, lanes


@ti.func
def mark(grid: ti.template(), cell, cell2):
    """Note the blocks of two samples as touched."""
    shift = ti.static(grid.block.bit_length() - 1)
    block, block2 = cell >> shift, cell2 >> shift
    # A write, even of what is there, would take the line from the other threads.
    if grid.touched[block] + grid.touched[block2] < 2:
        grid.touched[block], grid.touched[block2] = ti.u8(1), ti.u8(1)


@ti.func
def adjoint_of_ray(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), r, slot, dt, stop, least, background,
):  # fmt: skip
    """The loop of `march` again; `later` is what the samples still to come, background included, owe the gradient."""
    entry, d, length, Y, step, phase, n = within(grid, rays, reading, r, dt)
    per_index, shift, per_scale = grid.cells_per_index[None], grid.shift[None], grid.per_scale[None]
    T = ti.cast(1.0, float)
    light, others = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2], 0.0])
    later, clamp = owed_at_first(rays, reading, r)
    k = 0
    while k <= n and length > 0 and going(reading, T, stop):
        ahead, _ = place_of(reading, entry, d, length, step, phase, k)
        empty, full = steps_ahead(grid, per_index, ahead, d, step)
        k += empty
        end = ti.min(k + full, n + 1)
        if ti.static(paired(grid, reading)):
            T_between, last = T, ti.min(end, n)
            while k + 1 < last and going(reading, T, stop):
                t = (k + 0.5) * step
                cell, f, raw = raw_at(grid, entry + t * d)
                cell2, f2, raw2 = raw_at(grid, entry + (t + step) * d)
                tau, slope, e = optics_of(reading, raw, shift, per_scale, step)
                tau2, slope2, e2 = optics_of(reading, raw2, shift, per_scale, step)
                T_between, later, more = adjoint_of_sample(
                    grid, reading, slot, cell, f, raw, Y, tau, slope, e, T, later, d_colour, least, 1.0
                )
                light += more
                on = ti.select(going(reading, T_between, stop), ti.cast(1.0, float), 0.0)
                T, later, more = adjoint_of_sample(
                    grid, reading, slot, cell2, f2, raw2, Y, tau2, slope2, e2, T_between, later, d_colour, least, on
                )
                others += more
                mark(grid, cell, cell2)
                k += 2
            if not going(reading, T_between, stop):  # the ray ended within the pair
                T = T_between
        while k < end and going(reading, T, stop):
            if ti.static(reading.mode == "additive"):
                if k > clamp:
                    clamp, later = next_clamp(grid, rays, reading, r, k, T, dt, stop, least, background)
            p, width = place_of(reading, entry, d, length, step, phase, k)
            cell, f, raw = raw_at(grid, p)
            tau, slope, e = optics_of(reading, raw, shift, per_scale, width)
            T, later, more = adjoint_of_sample(
                grid, reading, slot, cell, f, raw, Y, tau, slope, e, T, later, d_colour, least, 1.0
            )
            light += more
            mark(grid, cell, cell)
            k += 1
    rays.lanes[r], rays.others[r] = light, others


@ti.kernel
def march_adjoint(
    grid: ti.template(), rays: ti.template(), reading: ti.template(), count: int, dt: float, stop: float, least: float,
    background: ti.math.vec3,
):  # fmt: skip
    """d_density, d_features += (d image / d them)' d_image, every so many rays to the next slot's own buffer."""
    if ti.static(runtime.on_cpu()):
        for i in range(SERIAL * grid.slots):
            if i % SERIAL == 0:
                slot = i // SERIAL
                for run in range((count + RUN * grid.slots - 1) // (RUN * grid.slots)):
                    first = (run * grid.slots + slot) * RUN
                    for r in range(first, ti.min(first + RUN, count)):
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
        entry, d, length, Y, step, phase, n = within(grid, rays, reading, r, dt)
        per_index, shift, per_scale = grid.cells_per_index[None], grid.shift[None], grid.per_scale[None]
        T, dot_T = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns)
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        k = 0
        while k <= n and length > 0 and going(reading, T, stop):
            p, width = place_of(reading, entry, d, length, step, phase, k)
            skip = empty_steps(grid, per_index, p, d, step)
            if skip > 0:
                k += skip
            else:
                cell, f, raw = raw_at(grid, p)
                x = raw[3] + shift
                dot_x = gather(dot_grid.density, cell, f)
                tau = activation.density(reading, x) * per_scale * width
                by_x = width * per_scale * activation.density_slope(reading, x)
                weight, T_after = take(reading, T, tau)
                on = lit(reading, weight, least)
                colour = ti.Vector.zero(float, 4)
                if on:
                    colour = colour_at(grid, reading, cell, f, Y, raw)
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

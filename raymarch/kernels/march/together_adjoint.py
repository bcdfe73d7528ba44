"""Adjoint of multi-volume rendering by density, features and table of each volume: the loop of `together` again.

With L = T phi(tau) m what a sample adds, m = sum_i tau_i colour_i, and R what the image has from behind it, times
d_image: d_tau_i = T (phi colour_i + phi' m) d_image - R, d_colour_i = T phi tau_i d_image.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import scatter
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.field.touched import add_features
from raymarch.kernels.integrator.sample import colour_at, fetch, located
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.march.compositing import contributes, is_alive
from raymarch.kernels.march.transfer import extinction, knot_below, optics, shade_of
from raymarch.kernels.modes.together import (
    inside_of,
    look_ahead,
    most_harmonics,
    next_cut,
    phi,
    phi_slope,
    point_in,
    row,
    spans_of,
)
from raymarch.kernels.modes.transfer import add_to_knots
from raymarch.kernels.numeric import exp
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.rays import FAR, jitter_of, step_at, steps_of


@ti.func
def differentiable_sample(member: ti.template(), p, Y):
    """Raw density with its shift, sigma, and colour (4,) of a sample of a volume."""
    cell, f = located(member.grid, p)
    raw = fetch(member.grid, cell, f)
    x = raw[3] + member.grid.shift[None]
    sigma, _by_x, shade, _slope = optics(member.own, member.variant, x, member.grid.inverse_scale[None])
    if ti.static(member.variant.mode.classifies):
        raw = shade
    return x, sigma, colour_at(member.grid, member.variant, cell, f, Y, raw)


@ti.func
def samples_of(members: ti.template(), near, far, entry, way, Y, begin, s, width, inside, lit):
    """(x, tau) (i,) and colour (i, 3) of a sample of each volume, 0 where it is not; their sum of tau, and m (4,)."""
    count = ti.static(len(members))
    xs, taus, colours = ti.Vector.zero(float, count), ti.Vector.zero(float, count), ti.Matrix.zero(float, count, 3)
    tau, mixed = ti.cast(0.0, float), ti.Vector.zero(float, 4)
    for i in ti.static(range(count)):
        if inside[i] and lit[i]:
            x, sigma, colour = differentiable_sample(members[i], point_in(near, far, entry, way, begin, s, i), Y)
            xs[i], taus[i] = x, sigma * width
            tau += taus[i]
            for c in ti.static(range(3)):
                colours[i, c] = colour[c]
                mixed[c] += taus[i] * colour[c]
    return xs, taus, colours, tau, mixed


@ti.func
def scatter_sample(member: ti.template(), slot, p, x, Y, width, d_tau, d_colour, colour):
    """Add what optical depth and colour (3,) of one sample of a volume give its gradients."""
    cell, f = located(member.grid, p)
    inverse_scale = member.grid.inverse_scale[None]
    _sigma, by_x, _shade, shade_by_x = optics(member.own, member.variant, x, inverse_scale)
    d_x = d_tau * width * by_x
    if ti.static(member.variant.mode.classifies):
        i, beyond = knot_below(member.own.table, activation.density(member.variant, x) * inverse_scale)
        _s, by_opacity = extinction(member.own.table, shade_of(member.own.table, i, beyond)[3])
        d_shade = ti.Vector([d_colour[0], d_colour[1], d_colour[2], d_tau * width * by_opacity])
        add_to_knots(member.own, slot, i, beyond, d_shade)
        for c in ti.static(range(3)):
            d_x += d_colour[c] * shade_by_x[c]
        scatter(member.grid.d_density, slot, cell, f, d_x)
    else:
        d_sum = d_colour * activation.colour_slope(member.variant, colour)
        if ti.static(member.grid.degree == 0):
            d_raw = ti.Vector([Y[0] * d_sum[0], Y[0] * d_sum[1], Y[0] * d_sum[2], d_x])
            scatter(member.grid.d_packed, slot, cell, f, d_raw)
        else:
            d_features = ti.Vector.zero(float, member.grid.features.n)
            for b in ti.static(range((member.grid.degree + 1) ** 2)):
                for c in ti.static(range(3)):
                    d_features[3 * b + c] = Y[b] * d_sum[c]
            add_features(member.grid, slot, cell, f, d_features)
            scatter(member.grid.d_density, slot, cell, f, d_x)
    mark(member.grid, cell, cell)


@ti.func
def adjoint_of_stretch(
    members: ti.template(), rays: ti.template(), r, slot, near, far, entry, way, Y, begin, end,
    dt, min_transmittance, min_weight, d_colour,
    T: ti.template(), remaining: ti.template(),
):  # fmt: skip
    """Adjoint of a stretch of ray r, `march_stretch`'s loop again; goes on with T and what is left of the image."""
    count = ti.static(len(members))
    phase, stretch = jitter_of(rays, members[0].variant, r)
    step, inside = stretch * dt, inside_of(near, far, begin)
    lit, until = ti.Vector.zero(ti.i32, count), ti.Vector.zero(ti.i32, count)
    k, n = 0, steps_of(end - begin, step, phase)
    while k <= n and is_alive(members[0].variant, T, min_transmittance):
        first, width = step_at(members[0].variant, 0.0, end - begin, step, phase, k)
        s = first + 0.5 * width
        ahead = look_ahead(members, near, far, entry, way, begin, inside, s, step, k, lit, until)
        if ahead > 0:
            k += ahead
        else:
            xs, taus, colours, tau, mixed = samples_of(members, near, far, entry, way, Y, begin, s, width, inside, lit)
            e = exp(-tau)
            by_mixed, by_tau = ti.cast(0.0, float), ti.cast(0.0, float)
            if contributes(members[0].variant, T * (1.0 - e), min_weight):
                by_mixed, by_tau = T * phi(tau, e), T * phi_slope(tau, e)
            gain = mixed[0] * d_colour[0] + mixed[1] * d_colour[1] + mixed[2] * d_colour[2]
            remaining -= by_mixed * gain
            for i in ti.static(range(count)):
                if inside[i] and lit[i]:
                    p, colour = point_in(near, far, entry, way, begin, s, i), row(colours, i)
                    d_tau = by_mixed * colour.dot(d_colour) + by_tau * gain - remaining
                    scatter_sample(members[i], slot, p, xs[i], Y, width, d_tau, (by_mixed * taus[i]) * d_colour, colour)
            T *= e
            k += 1


@ti.func
def adjoint_of_ray(members: ti.template(), rays: ti.template(), r, slot, dt, min_transmittance, min_weight):
    """Adjoint of one ray; `remaining`: radiance still to come, with background, times d_image."""
    near, far, entry, way = spans_of(members, rays, r)
    Y = basis(ti.static(most_harmonics(members)), rays.direction[r])
    d_image = rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
    T, remaining = ti.cast(1.0, float), rays.image[r].dot(d_image)
    begin = next_cut(near, far, -1.0)
    while begin < FAR:
        end = next_cut(near, far, begin)
        if end < FAR:
            adjoint_of_stretch(
                members, rays, r, slot, near, far, entry, way, Y, begin, end, dt, min_transmittance, min_weight,
                d_colour, T, remaining,
            )  # fmt: skip
        begin = end


@ti.kernel
def march_together_adjoint(
    members: ti.template(), rays: ti.template(), count: int,  # Member (i,), RayFields (ray,), rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """d_density, d_features and tables of each += (d image / d them)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * members[0].grid.slots):
            if i % TASK_STRIDE == 0:
                slot, slots = i // TASK_STRIDE, members[0].grid.slots
                for run in range((count + RAYS_PER_CHUNK * slots - 1) // (RAYS_PER_CHUNK * slots)):
                    first = (run * slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(members, rays, r, slot, dt, min_transmittance, min_weight)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(members, rays, r, r % members[0].grid.slots, dt, min_transmittance, min_weight)

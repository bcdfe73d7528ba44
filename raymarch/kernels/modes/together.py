"""Multi-volume rendering: several grids composited along one ray, each by its own activation or transfer function.

Where volumes overlap their optical depths add up, tau = sum_i tau_i, and so does what they emit: a sample adds
T phi(tau) sum_i tau_i colour_i with phi(tau) = (1 - e^-tau) / tau, emission and absorption of the mean colour, weighted
by extinction (Max 1995, "Optical models for direct volume rendering"). Nothing is divided by an extinction of zero.

A ray is cut where it enters or leaves any of the volumes. Between two cuts the same volumes are there, and a stretch is
marched as one volume is: midpoints of steps, the last one shorter. Letters as in `march`; i counts volumes.
"""

from dataclasses import dataclass
from typing import Any

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.field.tables import (
    add_to_knots,
    classified,
    extinction,
    knot_below,
    optics,
    shade_of,
    table_tangent,
)
from raymarch.kernels.field.touched import add_features, mark
from raymarch.kernels.integrator.distance import LEAST, MET
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.mode import contributes, is_alive
from raymarch.kernels.integrator.sample import colour_at, fetch, located
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE, at_most, exp
from raymarch.kernels.rays.meeting import cut_by_planes
from raymarch.kernels.rays.rays import FAR, clip, jitter_of, placed, step_at, steps_ahead, steps_of, within_box

SMALL, TERMS = 0.3, 11  # optical depth up to which phi is summed up as a series, of so many terms


@dataclass(frozen=True)
class Member:
    """One of the volumes: fields of its grid, its settings' (`device.member_fields`), and how it is read."""

    grid: Any
    own: Any
    variant: Variant


def most_harmonics(members) -> int:
    """Highest degree of the volumes' harmonics: lower ones are the first of them."""
    return max(member.grid.degree for member in members)


def colour_at_hand(member) -> bool:
    """Whether a sample's colour comes with its density, in one read."""
    return member.grid.degree == 0 or member.variant.mode.classifies


@ti.func
def phi(tau, e):
    """(1 - e^-tau) / tau, e being e^-tau; 1 at 0."""
    y = ti.cast(1.0, float)
    if ti.abs(tau) < SMALL:
        for n in ti.static(range(TERMS, 1, -1)):
            y = 1.0 - tau * (1.0 / n) * y
    else:
        y = (1.0 - e) / tau
    return y


@ti.func
def phi_slope(tau, e):
    """Derivative of phi; -1/2 at 0."""
    y = ti.cast(1.0, float)
    if ti.abs(tau) < SMALL:
        for n in ti.static(range(TERMS, 0, -1)):
            y = 1.0 - tau * ((n + 1.0) / (n * (n + 2.0))) * y
        y *= -0.5
    else:
        y = (e * (1.0 + tau) - 1.0) / (tau * tau)
    return y


@ti.func
def spans_of(members: ti.template(), rays: ti.template(), r):
    """What ray r has of each volume: (near, far) (i,), and where it enters and its way (i, 3) in index space.

    far < near of one that it misses, or of which nothing is shown.
    """
    count = ti.static(len(members))
    near, far = ti.Vector.zero(float, count), ti.Vector.zero(float, count)
    entry, way = ti.Matrix.zero(float, count, 3), ti.Matrix.zero(float, count, 3)
    for i in ti.static(range(count)):
        top = members[i].grid.max_index[None]
        o, d = placed(members[i].grid, rays.origin[r], rays.direction[r])
        first, last = clip(o, d, top)
        if ti.static(members[i].variant.clipped):
            first, last, _, _ = cut_by_planes(
                members[i].own, rays.origin[r], rays.direction[r], 1.0, first, last, -1, -1
            )
        if members[i].own.shown[None] == 0:
            last = ti.cast(-1.0, float)
        e, w, _ = within_box(o, d, first, last, top)
        near[i], far[i] = first, last
        for a in ti.static(range(3)):
            entry[i, a], way[i, a] = e[a], w[a]
    return near, far, entry, way


@ti.func
def next_cut(near, far, t):
    """Nearest end of a span beyond t, FAR if there is none."""
    end = ti.cast(FAR, float)
    for i in ti.static(range(near.n)):
        if far[i] > near[i]:
            if near[i] > t:
                end = ti.min(end, near[i])
            if far[i] > t:
                end = ti.min(end, far[i])
    return end


@ti.func
def inside_of(near, far, begin):
    """Which of the volumes (i,) the stretch from `begin` on is in."""
    inside = ti.Vector.zero(ti.i32, near.n)
    for i in ti.static(range(near.n)):
        inside[i] = ti.cast(near[i] <= begin and begin < far[i], ti.i32)
    return inside


@ti.func
def row(matrix, i: ti.template()):
    """Row i (3,)."""
    return ti.Vector([matrix[i, 0], matrix[i, 1], matrix[i, 2]])


@ti.func
def point_in(near, far, entry, way, begin, s, i: ti.template()):
    """Where volume i has what lies s behind `begin`, in its index space; never beyond the end of its span."""
    return row(entry, i) + at_most(begin - near[i] + s, far[i] - near[i]) * row(way, i)


@ti.func
def look_ahead(
    members: ti.template(), near, far, entry, way, begin, inside, s, step, k, lit: ti.template(), until: ti.template(),
):  # fmt: skip
    """Steps to leap over: how many from step k on, s behind `begin`, are empty in all volumes.

    `lit` says which have something there, and `until` before which step that is known.
    """
    ahead, any_lit = ti.cast(1 << 30, ti.i32), 0
    for i in ti.static(range(len(members))):
        if inside[i]:
            if k >= until[i]:
                p, per_index = point_in(near, far, entry, way, begin, s, i), members[i].grid.cells_per_index[None]
                empty, full = steps_ahead(members[i].grid, per_index, p, row(way, i), step)
                lit[i], until[i] = ti.cast(full > 0, ti.i32), k + empty + full
            any_lit |= lit[i]
            ahead = ti.min(ahead, until[i] - k)
    if any_lit:
        ahead = 0
    return ahead


@ti.func
def sample_of(member: ti.template(), p, width):
    """Sample of a volume: its cell, the position in it, what is stored there, optical depth, and `colour_at`'s raw."""
    cell, f = located(member.grid, p)
    raw = fetch(member.grid, cell, f)
    shift, inverse_scale = member.grid.shift[None], member.grid.inverse_scale[None]
    tau, shade = classified(member.own, member.variant, raw, shift, inverse_scale, width)
    return cell, f, raw, tau, shade


@ti.func
def march_stretch(
    members: ti.template(), rays: ti.template(), r, near, far, entry, way, Y, begin, end,
    dt, min_transmittance, min_weight,
    T: ti.template(), light: ti.template(), met: ti.template(),
):  # fmt: skip
    """Compositing along a stretch of ray r: goes on with T, the sum of colours, and those of weights and of t."""
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
            taus, tau, mixed = ti.Vector.zero(float, count), ti.cast(0.0, float), ti.Vector.zero(float, 4)
            for i in ti.static(range(count)):
                if inside[i] and lit[i]:
                    p = point_in(near, far, entry, way, begin, s, i)
                    cell, f, _raw, taus[i], shade = sample_of(members[i], p, width)
                    tau += taus[i]
                    if ti.static(colour_at_hand(members[i])):
                        mixed += taus[i] * colour_at(members[i].grid, members[i].variant, cell, f, Y, shade)
            e = exp(-tau)
            weight = T * (1.0 - e)
            if contributes(members[0].variant, weight, min_weight):
                for i in ti.static(range(count)):
                    if ti.static(not colour_at_hand(members[i])):
                        if taus[i] != 0:
                            p, nothing = point_in(near, far, entry, way, begin, s, i), ti.Vector.zero(float, 4)
                            cell, f = located(members[i].grid, p)
                            mixed += taus[i] * colour_at(members[i].grid, members[i].variant, cell, f, Y, nothing)
                mixed[3] = 0.0
                light += T * phi(tau, e) * mixed
            met += weight * ti.Vector([1.0, begin + s])
            T *= e
            k += 1


@ti.kernel
def march_together(
    members: ti.template(), rays: ti.template(), count: int,  # Member (i,), RayFields (ray,), rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """image = sum_k T_k phi(tau_k) sum_i tau_ki colour_ki + T background, and T; depth as `distance` has it."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        near, far, entry, way = spans_of(members, rays, r)
        Y = basis(ti.static(most_harmonics(members)), rays.direction[r])
        T = ti.cast(1.0, float)
        light, met = ti.Vector.zero(float, 4), ti.Vector.zero(float, 2)
        begin = next_cut(near, far, -1.0)
        while begin < FAR:
            end = next_cut(near, far, begin)
            if end < FAR:
                march_stretch(
                    members, rays, r, near, far, entry, way, Y, begin, end, dt, min_transmittance, min_weight,
                    T, light, met,
                )  # fmt: skip
            begin = end
        rays.image[r] = light + T * ti.Vector([background[0], background[1], background[2], 1.0])
        rays.depth[r] = ti.select(1.0 - T >= MET, met[1] / ti.max(met[0], LEAST), ti.math.inf)


# Adjoint of multi-volume rendering by density, features and table of each volume: the loop of `together` again.
#
# With L = T phi(tau) m what a sample adds, m = sum_i tau_i colour_i, and R what the image has from behind it, times
# d_image: d_tau_i = T (phi colour_i + phi' m) d_image - R, d_colour_i = T phi tau_i d_image.


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


# Tangent of multi-volume rendering by density, features and table of each volume: `together`'s loop, differentiated.
#
# Letters as in `together_adjoint`: dot_L = phi (dot_T m + T dot_m) + T phi' dot_tau m.


@ti.func
def sample_tangent(member: ti.template(), dot: ti.template(), p, x, Y, colour):
    """(dot_sigma, dot_colour (3,)) of a sample of a volume whose numbers move as column 0 of `dot`."""
    lowest = ti.cast(p, ti.i32)
    f, inverse_scale = p - lowest, member.grid.inverse_scale[None]
    _sigma, by_x, _shade, shade_by_x = optics(member.own, member.variant, x, inverse_scale)
    dot_x = gather(dot.density, lowest, f)[0]
    dot_sigma, dot_colour = by_x * dot_x, ti.Vector.zero(float, 3)
    if ti.static(member.variant.mode.classifies):
        dot_shade, by_table = table_tangent(member.own, dot.table, member.variant, x, inverse_scale, 0)
        dot_sigma += by_table
        for c in ti.static(range(3)):
            dot_colour[c] = dot_shade[c] + shade_by_x[c] * dot_x
    else:
        features = gather(dot.features, lowest, f)
        for b in ti.static(range((member.grid.degree + 1) ** 2)):
            for c in ti.static(range(3)):
                dot_colour[c] += Y[b] * features[3 * b + c]
        dot_colour *= activation.colour_slope(member.variant, colour)
    return dot_sigma, dot_colour


@ti.func
def tangent_of_stretch(
    members: ti.template(), dots: ti.template(), rays: ti.template(), r, near, far, entry, way, Y, begin, end,
    dt, min_transmittance, min_weight,
    T: ti.template(), dot_T: ti.template(), dot_light: ti.template(),
):  # fmt: skip
    """Tangent of a stretch of ray r: goes on with T, dot_T and the sum of dot_L (4,)."""
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
            dot_tau, dot_mixed = ti.cast(0.0, float), ti.Vector.zero(float, 4)
            for i in ti.static(range(count)):
                if inside[i] and lit[i]:
                    p, colour = point_in(near, far, entry, way, begin, s, i), row(colours, i)
                    dot_sigma, dot_colour = sample_tangent(members[i], dots[i], p, xs[i], Y, colour)
                    dot_tau += dot_sigma * width
                    for c in ti.static(range(3)):
                        dot_mixed[c] += dot_sigma * width * colour[c] + taus[i] * dot_colour[c]
            e = exp(-tau)
            if contributes(members[0].variant, T * (1.0 - e), min_weight):
                dot_light += phi(tau, e) * (dot_T * mixed + T * dot_mixed) + T * phi_slope(tau, e) * dot_tau * mixed
            dot_T = e * (dot_T - T * dot_tau)
            T *= e
            k += 1


@ti.kernel
def march_together_tangent(
    members: ti.template(), dots: ti.template(),  # Member (i,), DotFields (i,) of one column
    rays: ti.template(), dot_image: ti.template(), count: int,  # RayFields (ray,), (ray, 1) of 4, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """dot_image[r, 0] = (d image / d members) dots."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        near, far, entry, way = spans_of(members, rays, r)
        Y = basis(ti.static(most_harmonics(members)), rays.direction[r])
        T, dot_T, dot_light = ti.cast(1.0, float), ti.cast(0.0, float), ti.Vector.zero(float, 4)
        begin = next_cut(near, far, -1.0)
        while begin < FAR:
            end = next_cut(near, far, begin)
            if end < FAR:
                tangent_of_stretch(
                    members, dots, rays, r, near, far, entry, way, Y, begin, end, dt, min_transmittance, min_weight,
                    T, dot_T, dot_light,
                )  # fmt: skip
            begin = end
        dot_image[r, 0] = dot_light + dot_T * ti.Vector([background[0], background[1], background[2], 1.0])

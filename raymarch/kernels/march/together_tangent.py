"""Tangent of multi-volume rendering by density, features and table of each volume: `together`'s loop, differentiated.

Letters as in `together_adjoint`: dot_L = phi (dot_T m + T dot_m) + T phi' dot_tau m.
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.march.compositing import contributes, is_alive
from raymarch.kernels.march.together_adjoint import samples_of
from raymarch.kernels.march.transfer import optics, table_tangent
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
from raymarch.kernels.numeric import exp
from raymarch.kernels.rays.rays import FAR, jitter_of, step_at, steps_of


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

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

from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.integrator.depth import LEAST, MET
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.sample import colour_at, fetch, located
from raymarch.kernels.march.compositing import contributes, is_alive
from raymarch.kernels.march.transfer import classified
from raymarch.kernels.numeric import at_most, exp
from raymarch.kernels.rays.clip import cut_by_planes
from raymarch.kernels.rays.placed import placed
from raymarch.kernels.rays.rays import FAR, clip, jitter_of, step_at, steps_ahead, steps_of, within_box

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
    """image = sum_k T_k phi(tau_k) sum_i tau_ki colour_ki + T background, and T; depth as `march_depth` has it."""
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

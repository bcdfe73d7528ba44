"""Stretches of a ray through several volumes: it is cut where it enters or leaves any of them.

Between two cuts the same volumes are there, and a stretch is marched as one volume is: midpoints of steps, the last one
shorter. i counts volumes.
"""

from typing import Any

from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.numeric import clamp_high
from raymarch.kernels.rays.rays import MAX_DISTANCE, clip, place_ray, steps_to_skip, within_box
from raymarch.kernels.rays.segment_ends import cut_by_planes


@record()
class Member:
    """One of the volumes: fields of its grid, its settings' (`device.member_fields`), and how it is read."""

    grid: Any
    own: Any
    variant: Variant


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
        o, d = place_ray(members[i].grid, rays.origin[r], rays.direction[r])
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
    end = ti.cast(MAX_DISTANCE, float)
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
def matrix_row(matrix, i: ti.template()):
    """Row i (3,)."""
    return ti.Vector([matrix[i, 0], matrix[i, 1], matrix[i, 2]])


@ti.func
def point_in(near, far, entry, way, begin, s, i: ti.template()):
    """Where volume i has what lies s behind `begin`, in its index space; never beyond the end of its span."""
    return matrix_row(entry, i) + clamp_high(begin - near[i] + s, far[i] - near[i]) * matrix_row(way, i)


@ti.func
def look_ahead(
    members: ti.template(), near, far, entry, way, begin, inside, s, step, k, lit: ti.template(), until: ti.template()
):
    """Steps to leap over: how many from step k on, s behind `begin`, are empty in all volumes.

    `lit` says which have something there, and `until` before which step that is known.
    """
    ahead, any_lit = ti.cast(1 << 30, ti.i32), 0
    for i in ti.static(range(len(members))):
        if inside[i]:
            if k >= until[i]:
                p, per_index = point_in(near, far, entry, way, begin, s, i), members[i].grid.cells_per_index[None]
                empty, full = steps_to_skip(members[i].grid, per_index, p, matrix_row(way, i), step)
                lit[i], until[i] = ti.cast(full > 0, ti.i32), k + empty + full
            any_lit |= lit[i]
            ahead = ti.min(ahead, until[i] - k)
    if any_lit:
        ahead = 0
    return ahead

"""Pre-integrated transfer function: what the table makes of the value along a ray, integrated cell by cell.

No step: a ray is cut at the faces of cells and where its value meets a knot of the table, so that no knot is missed,
however thin; what is between two cuts is smooth, and Gauss-Legendre points are the samples that are composited. Engel
et al. 2001, "High-quality pre-integrated volume rendering using hardware-accelerated pixel shading", has the value
linear along each step instead. Letters as in `march`; h the ray's length in a cell.

What is differentiated is the rule itself: its points move with the knots, which move by the implicit function theorem.
"""

from dataclasses import replace

from raymarch.engine import ti
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear_slope, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.loops import end_adjoint, end_tangent, leave_segment, visit
from raymarch.kernels.integrator.mode import InParts
from raymarch.kernels.integrator.scene import LEVEL, PULL, PUSH, VALUE, segment_of
from raymarch.kernels.modes.transfer import TRANSFER
from raymarch.kernels.rays.cells import cell_at, exit_of, is_empty, is_inside, leave_empty, next_cell
from raymarch.kernels.rays.first_hit import cubic_of
from raymarch.kernels.rays.first_hit import cubic_value as cubic
from raymarch.kernels.rays.knots import begin_cell, intervals_of, is_clear, move_by_value, next_knot

# Of the four Gauss-Legendre points of 0..1 the first two, from 0, and their shares.
OUTER_GAUSS, INNER_GAUSS = (0.06943184420297371, 0.17392742256872679), (0.33000947820757187, 0.3260725774312732)
GAUSS_POINTS = 4


@ti.func
def point_of(q):
    """Place of point q of an interval, from 0 to 1, and its share; not unrolled, which compiles for a minute."""
    outer = q == 0 or q == GAUSS_POINTS - 1
    place, share = ti.cast(INNER_GAUSS[0], float), ti.cast(INNER_GAUSS[1], float)
    if outer:
        place, share = ti.cast(OUTER_GAUSS[0], float), ti.cast(OUTER_GAUSS[1], float)
    if q >= GAUSS_POINTS // 2:
        place = 1.0 - place
    return place, share


# Traversal by knots: between faces of cells and knots, a few points each.


@ti.func
def along_knots(
    scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()
):
    """All cells of a ray that are not marked as empty, cut at the knots."""
    for s in range(ti.static(scene.grid.segments)):
        seg = segment_of(scene, ray, s)
        cell, t, on, face = cell_at(seg.entry, ray.top), ti.cast(0.0, float), seg.length > 0, seg.enters
        while on and scene.integrand.goes_on(scene, ray, state):
            if is_empty(scene.grid, cell + seg.first):
                cell, t, face, on = leave_empty(scene.grid, seg.first, seg.entry, seg.way, seg.length, cell, t)
            else:
                out, axis = exit_of(seg.entry, seg.way, cell, seg.length)
                out = ti.max(out, t)
                v = corners_of_cell(scene.grid.density, cell_index(scene.grid, cell + seg.first))
                i, j = intervals_of(scene.grid, scene.rays, scene.variant, v)
                shown = i != j or not is_clear(scene.rays.table, i)
                if ti.static(scene.task != VALUE):
                    shown = True  # a table under which it is seen is next to this one
                if shown:
                    leaves = ti.select(axis < 0, seg.leaves, axis)
                    cut_cell(scene, ray, seg, cell, v, i, j, t, out, face, leaves, state, back, total)
                t, cell, face = out, next_cell(cell, seg.way, axis), axis
                on = axis >= 0 and t < seg.length and is_inside(cell, ray.top)
        leave_segment(scene, seg, total)


@ti.func
def cut_cell(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    own,
    v,
    i,
    j,
    t,
    out,
    enters,
    leaves,
    state: ti.template(),
    back: ti.template(),
    total: ti.template(),
):
    """What a ray has of a cell from t to `out`, whose values are in the table's intervals i to j."""
    f, h, d_v = seg.entry + t * seg.way - own, out - t, ti.Vector.zero(float, 8)
    c = cubic_of(v, f, h * seg.way)
    e1, e2, now, piece = begin_cell(scene.grid, scene.rays, scene.variant, c, i, j)
    u, face = ti.cast(0.0, float), enters
    while u < 1.0 and scene.integrand.goes_on(scene, ray, state):
        u2, then = next_knot(scene.grid, scene.rays.table, scene.variant, c, e1, e2, u, now, piece)
        face2 = ti.select(then != now, LEVEL, leaves)
        first = ti.Struct(t=seg.near + t + u * h, face=face, f=f + u * h * seg.way, by=move_by_value(v, c, u) * h)
        last = ti.Struct(t=seg.near + t + u2 * h, face=face2, f=f + u2 * h * seg.way, by=move_by_value(v, c, u2) * h)
        open_interval(scene, ray, seg, own + seg.first, v, first, last, total)
        shown = not is_clear(scene.rays.table, now)
        if ti.static(scene.task != VALUE):
            shown = True
        if shown:
            for q in range(GAUSS_POINTS):
                share, part = point_of(q)
                place = u + share * (u2 - u)
                within = f + place * h * seg.way
                at = ti.Struct(
                    s=seg.s,
                    k=now,
                    box=seg.box,
                    scale=seg.scale,
                    cell=own + seg.first,
                    f=within,
                    t=seg.near + t + place * h,
                    width=part * (u2 - u) * h,
                    x=cubic(c, place) + ray.shift,
                    slope=trilinear_slope(v, within),
                )
                by = ti.Struct(
                    first=1.0 - share,
                    last=share,
                    step=ti.cast(0.0, float),
                    first_width=-part,
                    last_width=part,
                    step_width=ti.cast(0.0, float),
                )
                visit(scene, ray, seg, at, by, state, back, total)
                if ti.static(scene.by_volume):
                    d_v += at.x * weights(within)
        if ti.static(scene.task == PULL):
            interval_end_adjoint(scene, ray, seg, v, first, total.first, total, d_v)
            interval_end_adjoint(scene, ray, seg, v, last, total.last, total, d_v)
        u, now, face = u2, then, face2
    if ti.static(scene.by_volume):
        place = cell_index(scene.grid, own + seg.first)
        scatter_corners(scene.grid.d_density, total.slot, place, d_v)
        mark(scene.grid, place, place)


@ti.func
def open_interval(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    cell,
    v,
    first: ti.template(),
    last: ti.template(),
    total: ti.template(),
):
    """Tangents of the ends of an interval, or their gradients at nothing yet."""
    if ti.static(scene.task == PULL):
        total.first, total.last = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(scene.task == PUSH):
        interval_end_tangent(scene, ray, seg, cell, v, first, total.first)
        interval_end_tangent(scene, ray, seg, cell, v, last, total.last)


@ti.func
def interval_end_tangent(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), cell, v, end: ti.template(), dot_t: ti.template()
):
    """dot_t of an end by column: a knot stays where the density is its own, a face is met as by any ray."""
    dot_x, S = ti.Vector.zero(float, scene.columns), trilinear_slope(v, end.f)
    if ti.static(scene.dots_move):
        dot_x = gather(scene.dots.density, cell, end.f)
    for e in range(scene.columns):
        dot_t[e] = 0.0
        if end.face == LEVEL:
            moved = dot_x[e]
            if ti.static(scene.by_rays):
                dot_o, dot_d = scene.moved.dot_origin[ray.r, e], scene.moved.dot_index_direction[ray.r, e]
                moved += S.dot(seg.scale * dot_o + end.t * dot_d)
            dot_t[e] = -end.by * moved
        elif ti.static(scene.by_rays):
            dot_t[e] = end_tangent(scene, ray, seg, end.t, end.face, e)


@ti.func
def interval_end_adjoint(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    v,
    end: ti.template(),
    d_t,
    total: ti.template(),
    d_v: ti.template(),
):
    """Its transpose."""
    if end.face == LEVEL:
        q = d_t * end.by
        d_v -= q * weights(end.f)
        S = trilinear_slope(v, end.f)
        total.own -= q * S
        total.d -= end.t * q * S
    elif ti.static(scene.by_rays):
        end_adjoint(scene, ray, seg, end.t, end.face, d_t, total)


@ti.func
def at_cell(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), spot: ti.template(), t, out, state: ti.template()
):
    """What a ray has of a cell of a part of the volume."""
    v = corners_of_cell(scene.grid.density, cell_index(scene.grid, spot.cell + seg.first))
    i, j = intervals_of(scene.grid, scene.rays, scene.variant, v)
    if i != j or not is_clear(scene.rays.table, i):
        nothing = ti.Struct(none=0)
        cut_cell(scene, ray, seg, spot.cell, v, i, j, t, out, seg.enters, seg.leaves, state, nothing, nothing)


PREINTEGRATED = replace(
    TRANSFER,
    image=IMAGE,
    traverse=along_knots,
    level_ends=True,
    plain=TRANSFER,
    step=False,
    in_parts=InParts(at_cell),
)

"""Pre-integrated transfer function: what the table makes of the value along a ray, integrated cell by cell.

No step: a ray is cut at the faces of cells and where its value meets a knot of the table, so that no knot is missed,
however thin; what is between two cuts is smooth, and Gauss-Legendre points are the samples that are composited. Engel
et al. 2001, "High-quality pre-integrated volume rendering using hardware-accelerated pixel shading", has the value
linear along each step instead. Letters as in `march`; h the ray's length in a cell.

What is differentiated is the rule itself: its points move with the knots, which move by the implicit function theorem.
"""

from dataclasses import replace

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear_slope, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.tables import knot_below
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.loops import end_adjoint, end_tangent, leave_segment, visit
from raymarch.kernels.integrator.scene import LEVEL, PULL, PUSH, VALUE, segment_of
from raymarch.kernels.modes.transfer import TRANSFER
from raymarch.kernels.rays.cells import beyond_empty, cell_at, exit_of, is_empty, is_inside, next_cell
from raymarch.kernels.rays.root import NEWTON, cubic_of, extrema_of
from raymarch.kernels.rays.root import at as cubic

# Knots that a ray meets in a cell: where the value along it goes from one interval of a transfer function to the next.
#
# Along a ray a trilinear field is a cubic in each cell, and between the cubic's extrema its value rises or falls: each
# knot between the values at both ends of such a piece is met once, where Newton's method finds it. Between two knots
# colour and opacity are smooth functions of the place, which a few Gauss-Legendre points integrate.
#
# Letters: u the place in the cell, 0..1 along the ray; c the cubic of the raw density by u; i the knot below a value,
# -1 before the first; above the value's height over the first knot.

# Of the four Gauss-Legendre points of 0..1 the first two, from 0, and their shares.
OUTER, INNER = (0.06943184420297371, 0.17392742256872679), (0.33000947820757187, 0.3260725774312732)
POINTS = 4
PIECES = 3  # between a cell's ends and two extrema


@ti.func
def point_of(q):
    """Place of point q of an interval, from 0 to 1, and its share; not unrolled, which compiles for a minute."""
    outer = q == 0 or q == POINTS - 1
    place, share = ti.cast(INNER[0], float), ti.cast(INNER[1], float)
    if outer:
        place, share = ti.cast(OUTER[0], float), ti.cast(OUTER[1], float)
    if q >= POINTS // 2:
        place = 1.0 - place
    return place, share


@ti.func
def above_first(grid: ti.template(), table: ti.template(), variant: ti.template(), x):
    """Height over the table's first knot of the value of a raw density."""
    value = activation.density(variant, x + grid.shift[None]) * grid.inverse_scale[None]
    return value - table.place[None][0]


@ti.func
def interval_at(table: ti.template(), above):
    """The knot below a height over the first, -1 before that."""
    i, _beyond = knot_below(table, above + table.place[None][0])
    if above < 0:
        i = -1
    return i


@ti.func
def is_clear(table: ti.template(), i):
    """Whether an interval has no opacity."""
    return table.rgba[ti.max(i, 0)][3] + table.rgba[i + 1][3] == 0


@ti.func
def slope_at(c, u):
    """Slope of a cubic."""
    return c[1] + u * (2.0 * c[2] + u * 3.0 * c[3])


@ti.func
def met_between(grid: ti.template(), table: ti.template(), variant: ti.template(), c, low, high, rises, knot):
    """Place where the value, which rises or falls from low to high, is that of a knot."""
    level, u = table.above[knot], 0.5 * (low + high)
    scale = grid.inverse_scale[None]
    for _ in range(NEWTON):
        x = cubic(c, u)
        value = above_first(grid, table, variant, x) - level
        if (value < 0) == rises:
            low = u
        else:
            high = u
        slope = slope_at(c, u) * activation.density_slope(variant, x + grid.shift[None]) * scale
        then = u - value / ti.select(slope != 0, slope, 1.0)
        if slope == 0 or not (then >= low and then <= high):
            then = 0.5 * (low + high)
        near = ti.abs(then - u) <= ti.static(2e-7 if runtime.single_precision() else 4e-16)
        u = then
        if near:
            break
    return u


@ti.func
def next_knot(
    grid: ti.template(), table: ti.template(), variant: ti.template(), c, first, second, u, i, piece: ti.template()
):
    """Where the value leaves interval i after u, and the interval it comes to; 1 and i where it stays.

    `first` and `second` are the cubic's extrema; `piece` counts those that are behind.
    """
    place, then = ti.cast(1.0, float), i
    while piece < PIECES and then == i:
        end = ti.select(piece == 0, first, ti.select(piece == 1, second, 1.0))
        if end > u:
            value, value2 = (
                above_first(grid, table, variant, cubic(c, u)),
                above_first(grid, table, variant, cubic(c, end)),
            )
            rises = value2 > value
            if rises and table.above[i + 1] < value2:
                then = i + 1
            elif not rises and i >= 0 and table.above[ti.max(i, 0)] > value2:
                then = i - 1
            if then != i:
                place = met_between(grid, table, variant, c, u, end, rises, ti.max(i, then))
        if then == i:
            piece += 1
    return place, then


@ti.func
def move_by_value(v, c, u):
    """How far the place of a knot moves by a unit of its raw density, by u; 0 where the ray only touches it."""
    slope, by = slope_at(c, u), ti.cast(0.0, float)
    if ti.abs(slope) > ti.static(1e-6 if runtime.single_precision() else 1e-12) * (v.max() - v.min()):
        by = 1.0 / slope
    return by


@ti.func
def intervals_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), v):
    """Intervals of the table that the least and the greatest value of a cell lie in."""
    i = interval_at(rays.table, above_first(grid, rays.table, variant, v.min()))
    return i, interval_at(rays.table, above_first(grid, rays.table, variant, v.max()))


@ti.func
def begin_cell(grid: ti.template(), rays: ti.template(), variant: ti.template(), c, i, j):
    """The cubic's extrema, the interval where it begins, and the first of its pieces in which knots are looked for:
    none where all values of the cell, from intervals i to j, are in one."""
    first, second, piece = ti.cast(1.0, float), ti.cast(1.0, float), PIECES
    if i != j:
        first, second = extrema_of(c)
        i, piece = interval_at(rays.table, above_first(grid, rays.table, variant, c[0])), 0
    return first, second, i, piece


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
                cell, t, face, on = beyond_empty(scene.grid, seg.first, seg.entry, seg.way, seg.length, cell, t)
            else:
                out, axis = exit_of(seg.entry, seg.way, cell, seg.length)
                out = ti.max(out, t)
                v = corners_of_cell(scene.grid.density, where(scene.grid, cell + seg.first))
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
    scene: ti.template(), ray: ti.template(), seg: ti.template(), own, v, i, j, t, out, enters, leaves,
    state: ti.template(), back: ti.template(), total: ti.template(),
):  # fmt: skip
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
            for q in range(POINTS):
                share, part = point_of(q)
                place = u + share * (u2 - u)
                within = f + place * h * seg.way
                at = ti.Struct(
                    s=seg.s, k=now, box=seg.box, scale=seg.scale, cell=own + seg.first, f=within,
                    t=seg.near + t + place * h, width=part * (u2 - u) * h, x=cubic(c, place) + ray.shift,
                    slope=trilinear_slope(v, within),
                )  # fmt: skip
                by = ti.Struct(
                    first=1.0 - share, last=share, step=ti.cast(0.0, float),
                    first_width=-part, last_width=part, step_width=ti.cast(0.0, float),
                )  # fmt: skip
                visit(scene, ray, seg, at, by, state, back, total)
                if ti.static(scene.by_volume):
                    d_v += at.x * weights(within)
        if ti.static(scene.task == PULL):
            interval_end_adjoint(scene, ray, seg, v, first, total.first, total, d_v)
            interval_end_adjoint(scene, ray, seg, v, last, total.last, total, d_v)
        u, now, face = u2, then, face2
    if ti.static(scene.by_volume):
        place = where(scene.grid, own + seg.first)
        scatter_corners(scene.grid.d_density, total.slot, place, d_v)
        mark(scene.grid, place, place)


@ti.func
def open_interval(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), cell, v, first: ti.template(), last: ti.template(),
    total: ti.template(),
):  # fmt: skip
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
    scene: ti.template(), ray: ti.template(), seg: ti.template(), v, end: ti.template(), d_t, total: ti.template(),
    d_v: ti.template(),
):  # fmt: skip
    """Its transpose."""
    if end.face == LEVEL:
        q = d_t * end.by
        d_v -= q * weights(end.f)
        S = trilinear_slope(v, end.f)
        total.own -= q * S
        total.d -= end.t * q * S
    elif ti.static(scene.by_rays):
        end_adjoint(scene, ray, seg, end.t, end.face, d_t, total)


PREINTEGRATED = replace(TRANSFER, image=IMAGE, traverse=along_knots, level_ends=True, plain=TRANSFER, step=False)

"""Pre-integrated transfer function: what the table makes of the value along a ray, integrated cell by cell.

No step: a ray is cut at the faces of cells and where its value meets a knot of the table, so that no knot is missed,
however thin; what is between two cuts is smooth, and Gauss-Legendre points are the samples that are composited. Engel
et al. 2001, "High-quality pre-integrated volume rendering using hardware-accelerated pixel shading", has the value
linear along each step instead. Letters as in `knots` and `march`; h the ray's length in a cell.

What is differentiated is the rule itself: its points move with the knots, which move by the implicit function theorem.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear_slope, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.tables import FARTHEST, add_to_knots, extinction, knot_below, shade_of
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.mode import RayMode, background_of, composite, contributes, is_alive
from raymarch.kernels.integrator.passes import Passes
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_at_first
from raymarch.kernels.modes.plain_transfer import (
    as_plain,
    depth_gradients_of_samples,
    depth_of_samples,
    normals_of_samples,
)
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE, at_least, at_most
from raymarch.kernels.rays.cells import (
    beyond_empty,
    cell_at,
    ends_of,
    exit_of,
    first_sample,
    is_empty,
    is_inside,
    next_cell,
    segment_of,
)
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.rays import box_of, scale_of
from raymarch.kernels.rays.root import NEWTON, at, cubic_of, extrema_of

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
def beyond_knot(table: ti.template(), i, above):
    """Knot that shades of an interval are counted from, and how far a value is above it."""
    knot = ti.max(i, 0)
    return knot, at_most(at_least(above - table.above[knot], 0.0), FARTHEST)


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
        x = at(c, u)
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
            value, value2 = above_first(grid, table, variant, at(c, u)), above_first(grid, table, variant, at(c, end))
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


@ti.func
def composite_cell(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), v, f, d, h, min_transmittance, min_weight,
    T: ti.template(), total: ti.template(),
):  # fmt: skip
    """Composite what a ray has in a cell, whose corners are v, from f on by the way d, of length h."""
    i, j = intervals_of(grid, rays, variant, v)
    if i != j or not is_clear(rays.table, i):
        c = cubic_of(v, f, d)
        first, second, i, piece = begin_cell(grid, rays, variant, c, i, j)
        u = ti.cast(0.0, float)
        while u < 1.0 and is_alive(variant, T, min_transmittance):
            u2, then = next_knot(grid, rays.table, variant, c, first, second, u, i, piece)
            if not is_clear(rays.table, i):
                for q in range(POINTS):
                    share, part = point_of(q)
                    above = above_first(grid, rays.table, variant, at(c, u + share * (u2 - u)))
                    knot, beyond = beyond_knot(rays.table, i, above)
                    shade = shade_of(rays.table, knot, beyond)
                    sigma, _by_opacity = extinction(rays.table, shade[3])
                    weight, T_after = composite(variant, T, sigma * part * (u2 - u) * h)
                    if contributes(variant, weight, min_weight):
                        total += weight * shade
                    T = T_after
            u, i = u2, then


@ti.kernel
def march_preintegrated(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """image = the integral of T sigma colour, + T background."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, total, top = ti.cast(1.0, float), ti.Vector.zero(float, 4), grid.max_index[None]
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, _axis, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v = corners_of_cell(grid.density, where(grid, cell + first))
                    composite_cell(
                        grid, rays, variant, v, entry + t * way - cell, (out - t) * way, out - t, min_transmittance,
                        min_weight, T, total,
                    )  # fmt: skip
                    t, cell = out, next_cell(cell, way, axis)
                    on = axis >= 0 and t < length and is_inside(cell, top)
        seen = background_of(variant, background)
        rays.image[r] = ti.Vector([total[0] + T * seen[0], total[1] + T * seen[1], total[2] + T * seen[2], T])


@ti.func
def adjoint_of_point(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), i, x, width,
    T, remaining, carry, d_colour, min_weight,
):  # fmt: skip
    """Adjoint of one point of raw density x in interval i: T, `remaining` and `carry` behind it; d_x and d_width; the
    knot its shade is counted from, how far it is above that, and d_shade."""
    knot, beyond = beyond_knot(rays.table, i, above_first(grid, rays.table, variant, x))
    shade = shade_of(rays.table, knot, beyond)
    sigma, by_opacity = extinction(rays.table, shade[3])
    tau = sigma * width
    weight, T_after = composite(variant, T, tau)
    shown, d_weight = ti.cast(0.0, float), ti.cast(0.0, float)
    if contributes(variant, weight, min_weight):
        shown, d_weight = weight, d_colour.dot(shade)
    remaining, carry = pass_sample(variant, T, tau, weight, d_weight, remaining, carry)
    d_tau = optical_depth_gradient(variant, T, tau, T_after, d_weight, remaining, carry)
    d_shade = shown * d_colour
    d_shade[3] = d_tau * width * by_opacity
    by_x = activation.density_slope(variant, x + grid.shift[None]) * grid.inverse_scale[None]
    d_x = ti.select(i >= 0, d_shade.dot(rays.table.rise[knot]) * by_x, 0.0)
    return T_after, remaining, carry, d_x, d_tau * sigma, knot, beyond, d_shade


@ti.func
def adjoint_of_cell(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), slot, v, f, d, h,
    min_transmittance, min_weight, d_colour, T: ti.template(), remaining: ti.template(), carry: ti.template(),
):  # fmt: skip
    """Gradient (8,) of a cell's corners, `composite_cell`'s loop again; that of knots goes to the slot."""
    d_v, u = ti.Vector.zero(float, 8), ti.cast(0.0, float)
    i, j = intervals_of(grid, rays, variant, v)
    c = cubic_of(v, f, d)
    first, second, i, piece = begin_cell(grid, rays, variant, c, i, j)
    at_knot = 0
    while u < 1.0 and is_alive(variant, T, min_transmittance):
        u2, then = next_knot(grid, rays.table, variant, c, first, second, u, i, piece)
        d_u, d_u2 = ti.cast(0.0, float), ti.cast(0.0, float)
        for q in range(POINTS):
            share, part = point_of(q)
            place = u + share * (u2 - u)
            T, remaining, carry, d_x, d_width, knot, beyond, d_shade = adjoint_of_point(
                grid, rays, variant, i, at(c, place), part * (u2 - u) * h, T, remaining, carry, d_colour, min_weight
            )
            add_to_knots(rays, slot, knot, beyond, d_shade)
            d_v += d_x * weights(f + place * d)
            d_place = d_x * slope_at(c, place)
            d_u += (1.0 - share) * d_place - part * h * d_width
            d_u2 += share * d_place + part * h * d_width
        if at_knot:
            d_v -= d_u * move_by_value(v, c, u) * weights(f + u * d)
        at_knot = ti.cast(then != i, ti.i32)
        if at_knot:
            d_v -= d_u2 * move_by_value(v, c, u2) * weights(f + u2 * d)
        u, i = u2, then
    return d_v


@ti.func
def adjoint_of_ray(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot,
    min_transmittance, min_weight, background,
):  # fmt: skip
    """What one ray gives the gradients of density and table."""
    T, top, d_image = ti.cast(1.0, float), grid.max_index[None], rays.image.grad[r]
    d_colour = ti.Vector([d_image[0], d_image[1], d_image[2], 0.0])
    remaining, carry = remaining_at_first(rays, variant, r, background)
    for s in range(ti.static(grid.segments)):
        entry, way, length = segment_of(grid, rays, variant, r, s)
        first = first_sample(grid, s)
        cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
        while on and is_alive(variant, T, min_transmittance):
            if is_empty(grid, cell + first):
                cell, t, _axis, on = beyond_empty(grid, first, entry, way, length, cell, t)
            else:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, t)
                place = where(grid, cell + first)
                v = corners_of_cell(grid.density, place)
                d_v = adjoint_of_cell(
                    grid, rays, variant, slot, v, entry + t * way - cell, (out - t) * way, out - t, min_transmittance,
                    min_weight, d_colour, T, remaining, carry,
                )  # fmt: skip
                scatter_corners(grid.d_density, slot, place, d_v)
                mark(grid, place, place)
                t, cell = out, next_cell(cell, way, axis)
                on = axis >= 0 and t < length and is_inside(cell, top)


@ti.kernel
def preintegrated_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """d_density, table.d_rgba += (d image / d them)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot, min_transmittance, min_weight, background)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots, min_transmittance, min_weight, background)


# Tangent of a pre-integrated picture by density and table: `preintegrated`'s loop, each line differentiated.
#
# A knot is met sooner or later as the density there changes: dot_u = -dot_x / (slope of x by u). Letters are the same.


@ti.func
def dot_density(dot_grid: ti.template(), sample, f):
    """Columns of the raw density's tangent in a cell, whose first sample it is; 0 where none moves."""
    dot = ti.Vector.zero(float, dot_grid.columns)
    if ti.static(not dot_grid.still):
        dot = gather(dot_grid.density, sample, f)
    return dot


@ti.func
def tangent_of_cell(
    grid: ti.template(), dot_grid: ti.template(), rays: ti.template(), variant: ti.template(), v, sample, f, d, h,
    min_transmittance, min_weight, T: ti.template(), dot_T: ti.template(), dot_colour: ti.template(),
):  # fmt: skip
    """Tangent of `composite_cell`, whose first sample is given."""
    i, j = intervals_of(grid, rays, variant, v)
    c = cubic_of(v, f, d)
    first, second, i, piece = begin_cell(grid, rays, variant, c, i, j)
    u, dot_u = ti.cast(0.0, float), ti.Vector.zero(float, dot_grid.columns)
    while u < 1.0 and is_alive(variant, T, min_transmittance):
        u2, then = next_knot(grid, rays.table, variant, c, first, second, u, i, piece)
        dot_u2 = ti.Vector.zero(float, dot_grid.columns)
        if then != i:
            dot_u2 = -move_by_value(v, c, u2) * dot_density(dot_grid, sample, f + u2 * d)
        for q in range(POINTS):
            share, part = point_of(q)
            place = u + share * (u2 - u)
            x, width = at(c, place), part * (u2 - u) * h
            knot, beyond = beyond_knot(rays.table, i, above_first(grid, rays.table, variant, x))
            shade = shade_of(rays.table, knot, beyond)
            sigma, by_opacity = extinction(rays.table, shade[3])
            weight, T_after = composite(variant, T, sigma * width)
            on = contributes(variant, weight, min_weight)
            by_x = activation.density_slope(variant, x + grid.shift[None]) * grid.inverse_scale[None]
            shade_by_x = rays.table.rise[knot] * ti.select(i >= 0, by_x, 0.0)
            along, above = slope_at(c, place), beyond * rays.table.per_value[knot]
            dot_x = dot_density(dot_grid, sample, f + place * d)
            for e in range(dot_grid.columns):
                moved = dot_x[e] + along * ((1.0 - share) * dot_u[e] + share * dot_u2[e])
                dot_shade = moved * shade_by_x + dot_grid.table[knot, e]
                dot_shade += (dot_grid.table[knot + 1, e] - dot_grid.table[knot, e]) * above
                dot_tau = by_opacity * dot_shade[3] * width + sigma * part * (dot_u2[e] - dot_u[e]) * h
                dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[e], dot_tau)
                if on:
                    for k in ti.static(range(3)):
                        dot_colour[e, k] += dot_weight * shade[k] + weight * dot_shade[k]
                dot_T[e] = dot_after
            T = T_after
        u, i, dot_u = u2, then, dot_u2


@ti.kernel
def preintegrated_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """dot_image[r, e] = (d image / d density and table) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, dot_T, top = ti.cast(1.0, float), ti.Vector.zero(float, dot_grid.columns), grid.max_index[None]
        dot_colour = ti.Matrix.zero(float, dot_grid.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            first = first_sample(grid, s)
            cell, t, on = cell_at(entry, top), ti.cast(0.0, float), length > 0
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, _axis, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v = corners_of_cell(grid.density, where(grid, cell + first))
                    tangent_of_cell(
                        grid, dot_grid, rays, variant, v, cell + first, entry + t * way - cell, (out - t) * way,
                        out - t, min_transmittance, min_weight, T, dot_T, dot_colour,
                    )  # fmt: skip
                    t, cell = out, next_cell(cell, way, axis)
                    on = axis >= 0 and t < length and is_inside(cell, top)
        seen = background_of(variant, background)
        for e in range(dot_grid.columns):
            image = ti.Vector([dot_colour[e, 0], dot_colour[e, 1], dot_colour[e, 2], 0.0])
            dot_image[r, e] = image + dot_T[e] * ti.Vector([seen[0], seen[1], seen[2], 1.0])


# Geometry gradients of a pre-integrated picture, by the rays' origin and way; and the mode.
#
# Letters as in `preintegrated`; S the slope of the raw density in index space. What ends an interval is a face of a
# cell or of the box, met as `meeting` says, or a knot: the density at o + t d stays the knot's, so dot_t = -S (dot_o +
# t dot_d) / (S d).

KNOT = 1 << 20  # number of no face


@ti.func
def end_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, d, scale, v, f, by_value, t, face, d_t,
    d_own: ti.template(), d_d: ti.template(), d_place: ti.template(), d_way: ti.template(),
):  # fmt: skip
    """Adjoint of where an interval ends, at f in the cell: of a knot or of a face; `by_value` is 1 / (S d)."""
    if face == KNOT:
        q = d_t * by_value * trilinear_slope(v, f)
        d_own -= q
        d_d -= t * q
    else:
        meet_adjoint(grid, rays, variant, r, d, scale, t, face, d_t, d_own, d_d, d_place, d_way)


@ti.kernel
def preintegrated_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, top, d_image = ti.cast(1.0, float), grid.max_index[None], rays.image.grad[r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2], 0.0])
        remaining, carry = remaining_at_first(rays, variant, r, background)
        d_o, d_d = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        d_place, d_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, _far, enters, leaves = ends_of(grid, rays, variant, r, s)
            first, scale, d_own = first_sample(grid, s), scale_of(box_of(grid, s)), ti.Vector.zero(float, 3)
            cell, t, on, axis0 = cell_at(entry, top), ti.cast(0.0, float), length > 0, enters
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, axis0, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v, f, h = corners_of_cell(grid.density, where(grid, cell + first)), entry + t * way - cell, out - t
                    i, j = intervals_of(grid, rays, variant, v)
                    c = cubic_of(v, f, h * way)
                    e1, e2, i, piece = begin_cell(grid, rays, variant, c, i, j)
                    u, face = ti.cast(0.0, float), axis0
                    while u < 1.0 and is_alive(variant, T, min_transmittance):
                        u2, then = next_knot(grid, rays.table, variant, c, e1, e2, u, i, piece)
                        face2 = ti.select(then != i, KNOT, ti.select(axis < 0, leaves, axis))
                        d_t, d_t2 = ti.cast(0.0, float), ti.cast(0.0, float)
                        for q in range(POINTS):
                            share, part = point_of(q)
                            place = u + share * (u2 - u)
                            T, remaining, carry, d_x, d_width, _knot, _beyond, _d_shade = adjoint_of_point(
                                grid, rays, variant, i, at(c, place), part * (u2 - u) * h,
                                T, remaining, carry, d_colour, min_weight,
                            )  # fmt: skip
                            d_p = d_x * trilinear_slope(v, f + place * h * way)
                            d_own += d_p
                            d_d += (near + t + place * h) * d_p
                            d_t += (1.0 - share) * d_p.dot(d) - part * d_width
                            d_t2 += share * d_p.dot(d) + part * d_width
                        end_adjoint(
                            grid, rays, variant, r, d, scale, v, f + u * h * way, move_by_value(v, c, u) * h,
                            near + t + u * h, face, d_t, d_own, d_d, d_place, d_way,
                        )  # fmt: skip
                        end_adjoint(
                            grid, rays, variant, r, d, scale, v, f + u2 * h * way, move_by_value(v, c, u2) * h,
                            near + t + u2 * h, face2, d_t2, d_own, d_d, d_place, d_way,
                        )  # fmt: skip
                        u, i, face = u2, then, face2
                    t, cell, axis0 = out, next_cell(cell, way, axis), axis
                    on = axis >= 0 and t < length and is_inside(cell, top)
            d_o += scale * d_own
        moved.d_origin[r], moved.d_index_direction[r], moved.d_dt[r] = d_o, d_d, 0.0
        moved.d_view_direction[r] = ti.Vector.zero(float, 3)
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place, d_way


@ti.func
def end_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(), variant: ti.template(), r, k, d, scale, slope,
    by_value, t, face,
):  # fmt: skip
    """Tangent dot_t of where an interval ends, of column k; `slope` is S there, `by_value` 1 / (S d)."""
    dot_t = ti.cast(0.0, float)
    if face == KNOT:
        dot_t = -by_value * slope.dot(scale * moved.dot_origin[r, k] + t * moved.dot_index_direction[r, k])
    else:
        dot_t = meet_tangent(grid, rays, moved, variant, r, k, d, scale, t, face)
    return dot_t


@ti.kernel
def preintegrated_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used, 0..1, 0..1, (3,)
):  # fmt: skip
    """moved.dot_image[r, k] = (d image / d geometry) of every column k of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, dot_T, top = ti.cast(1.0, float), ti.Vector.zero(float, moved.columns), grid.max_index[None]
        dot_colour = ti.Matrix.zero(float, moved.columns, 3)
        for s in range(ti.static(grid.segments)):
            entry, way, length = segment_of(grid, rays, variant, r, s)
            d, near, _far, enters, leaves = ends_of(grid, rays, variant, r, s)
            first, scale = first_sample(grid, s), scale_of(box_of(grid, s))
            cell, t, on, axis0 = cell_at(entry, top), ti.cast(0.0, float), length > 0, enters
            while on and is_alive(variant, T, min_transmittance):
                if is_empty(grid, cell + first):
                    cell, t, axis0, on = beyond_empty(grid, first, entry, way, length, cell, t)
                else:
                    out, axis = exit_of(entry, way, cell, length)
                    out = ti.max(out, t)
                    v, f, h = corners_of_cell(grid.density, where(grid, cell + first)), entry + t * way - cell, out - t
                    i, j = intervals_of(grid, rays, variant, v)
                    c = cubic_of(v, f, h * way)
                    e1, e2, i, piece = begin_cell(grid, rays, variant, c, i, j)
                    u, dot_t, dot_t2 = ti.cast(0.0, float), dot_T, dot_T
                    for k in range(moved.columns):
                        dot_t[k] = meet_tangent(grid, rays, moved, variant, r, k, d, scale, near + t, axis0)
                    while u < 1.0 and is_alive(variant, T, min_transmittance):
                        u2, then = next_knot(grid, rays.table, variant, c, e1, e2, u, i, piece)
                        face, end = ti.select(then != i, KNOT, ti.select(axis < 0, leaves, axis)), near + t + u2 * h
                        slope, by = trilinear_slope(v, f + u2 * h * way), move_by_value(v, c, u2) * h
                        for k in range(moved.columns):
                            dot_t2[k] = end_tangent(grid, rays, moved, variant, r, k, d, scale, slope, by, end, face)
                        for q in range(POINTS):
                            share, part = point_of(q)
                            place = u + share * (u2 - u)
                            x, width, at_t = at(c, place), part * (u2 - u) * h, near + t + place * h
                            knot, beyond = beyond_knot(rays.table, i, above_first(grid, rays.table, variant, x))
                            shade = shade_of(rays.table, knot, beyond)
                            sigma, by_opacity = extinction(rays.table, shade[3])
                            weight, T_after = composite(variant, T, sigma * width)
                            on_here = contributes(variant, weight, min_weight)
                            by_x = activation.density_slope(variant, x + grid.shift[None]) * grid.inverse_scale[None]
                            shade_by_x = rays.table.rise[knot] * ti.select(i >= 0, by_x, 0.0)
                            S = trilinear_slope(v, f + place * h * way)
                            for k in range(moved.columns):
                                dot_p = scale * moved.dot_origin[r, k] + at_t * moved.dot_index_direction[r, k]
                                dot_p += ((1.0 - share) * dot_t[k] + share * dot_t2[k]) * d
                                dot_shade = S.dot(dot_p) * shade_by_x
                                dot_tau = by_opacity * dot_shade[3] * width + sigma * part * (dot_t2[k] - dot_t[k])
                                dot_weight, dot_after = variant.mode.tangent(T, sigma * width, dot_T[k], dot_tau)
                                if on_here:
                                    for b in ti.static(range(3)):
                                        dot_colour[k, b] += dot_weight * shade[b] + weight * dot_shade[b]
                                dot_T[k] = dot_after
                            T = T_after
                        u, i, dot_t = u2, then, dot_t2
                    t, cell, axis0 = out, next_cell(cell, way, axis), axis
                    on = axis >= 0 and t < length and is_inside(cell, top)
        seen = background_of(variant, background)
        for k in range(moved.columns):
            image = ti.Vector([dot_colour[k, 0], dot_colour[k, 1], dot_colour[k, 2], 0.0])
            moved.dot_image[r, k] = image + dot_T[k] * ti.Vector([seen[0], seen[1], seen[2], 1.0])


PREINTEGRATED = RayMode(
    "transfer",
    Passes(
        as_plain(march_preintegrated),
        as_plain(preintegrated_adjoint),
        as_plain(preintegrated_tangent),
        as_plain(preintegrated_geometry_adjoint),
        as_plain(preintegrated_geometry_tangent),
        depth_of_samples,
        normals_of_samples,
        depth_gradients_of_samples,
    ),
    background=True,
    ends=True,
    step=False,
    classifies=True,
)

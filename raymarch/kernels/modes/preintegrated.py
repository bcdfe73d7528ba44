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
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, weights
from raymarch.kernels.integrator.remaining import optical_depth_gradient, pass_sample, remaining_at_first
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.knots import (
    PIECES,
    POINTS,
    above_first,
    beyond_knot,
    interval_at,
    is_clear,
    move_by_value,
    next_knot,
    point_of,
    slope_at,
)
from raymarch.kernels.march.transfer import extinction, shade_of
from raymarch.kernels.modes.transfer import add_to_knots
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.cells import (
    beyond_empty,
    cell_at,
    exit_of,
    first_sample,
    is_empty,
    is_inside,
    next_cell,
    segment_of,
)
from raymarch.kernels.rays.root import at, cubic_of, extrema_of


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

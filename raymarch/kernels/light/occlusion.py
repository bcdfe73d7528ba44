"""Ambient occlusion: the share of ambient light that reaches a sample through what is around it, tangents and adjoints.

Local: along eight ways, to the corners of a cube in the world, over a short reach, each at four midpoints; the mean of
what passes. Hernell, Ljung and Ynnerman 2010, "Local ambient occlusion in direct volume rendering".
Letters: side a corner's direction in the world, way = A side with A `index_from_world`, far the distance of a midpoint,
tau the optical depth of a way. The image jumps where a midpoint leaves the box: all is clear beyond.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.gather import cell_of, gather, gather_slope, scatter
from raymarch.kernels.field.tables import add_gradient_of_sigma, optics, table_tangent
from raymarch.kernels.field.touched import mark
from raymarch.kernels.light.gradient import bounds_of
from raymarch.kernels.numeric import exp
from raymarch.kernels.rays.rays import scale_of

OCCLUSION_DIRECTIONS, POINTS_A_DIRECTION = 8, 4


@ti.func
def side_of(k):
    """Unit vector (3,) in the world to corner k of a cube."""
    return ti.Vector([2.0 * (k & 1) - 1.0, 1.0 * (k & 2) - 1.0, 0.5 * (k & 4) - 1.0]) / ti.sqrt(3.0)


@ti.func
def occlusion_direction(grid: ti.template(), side):
    """A direction of the world in index space, of unit length in the world."""
    m, way = grid.index_from_world[None], ti.Vector.zero(float, 3)
    for i, j in ti.static(ti.ndrange(3, 3)):
        way[i] += m[i, j] * side[j]
    return way


@ti.func
def width_of(box, reach):
    """What of a way each midpoint stands for."""
    return reach * scale_of(box) / POINTS_A_DIRECTION


@ti.func
def midpoint(grid: ti.template(), box, p, way, far):
    """A midpoint among all samples, its cell, and whether it is in the box."""
    first, last = bounds_of(grid, box)
    place, inside = p + far * way, True
    for a in ti.static(range(3)):
        inside = inside and place[a] >= first[a] and place[a] <= last[a]
    return place, cell_of(place, ti.cast(last, float)), inside


@ti.func
def depth_along(grid: ti.template(), rays: ti.template(), variant: ti.template(), box, p, way, width):
    """tau."""
    tau = ti.cast(0.0, float)
    for q in range(POINTS_A_DIRECTION):
        place, cell, inside = midpoint(grid, box, p, way, (q + 0.5) * width)
        if inside:
            x = gather(grid.density, cell_index(grid, cell), place - cell) + grid.shift[None]
            sigma, _by_x, _shade, _slope = optics(rays, variant, x, grid.inverse_scale[None])
            tau += sigma * width
    return tau


@ti.func
def openness(grid: ti.template(), rays: ti.template(), variant: ti.template(), box, p, reach):
    """Mean transmittance over `reach` [world unit] around a point, p among all samples; beyond its box all is clear."""
    total = ti.cast(0.0, float)
    for k in range(OCCLUSION_DIRECTIONS):
        total += exp(
            -depth_along(grid, rays, variant, box, p, occlusion_direction(grid, side_of(k)), width_of(box, reach))
        )
    return total / OCCLUSION_DIRECTIONS


@ti.func
def add_openness(grid: ti.template(), rays: ti.template(), variant: ti.template(), slot, box, p, reach, d_open):
    """Adjoint of `openness` by the volume: add to a slot what it gives the gradients of density and table."""
    width, inverse_scale = width_of(box, reach), grid.inverse_scale[None]
    for k in range(OCCLUSION_DIRECTIONS):
        way = occlusion_direction(grid, side_of(k))
        d_sigma = -d_open / OCCLUSION_DIRECTIONS * exp(-depth_along(grid, rays, variant, box, p, way, width)) * width
        for q in range(POINTS_A_DIRECTION):
            place, lowest, inside = midpoint(grid, box, p, way, (q + 0.5) * width)
            if inside:
                cell, f = cell_index(grid, lowest), place - lowest
                x = gather(grid.density, cell, f) + grid.shift[None]
                _sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                add_gradient_of_sigma(rays, variant, slot, x, inverse_scale, d_sigma)
                scatter(grid.d_density, slot, cell, f, d_sigma * by_x)
                mark(grid, cell, cell)


@ti.func
def openness_tangent(
    grid: ti.template(), dot_grid: ti.template(), rays: ti.template(), variant: ti.template(), box, p, reach
):
    """`openness`, and its tangent (column,) by density and table."""
    width, inverse_scale = width_of(box, reach), grid.inverse_scale[None]
    total, dot_total = ti.cast(0.0, float), ti.Vector.zero(float, dot_grid.columns)
    for k in range(OCCLUSION_DIRECTIONS):
        way, tau, dot_tau = (
            occlusion_direction(grid, side_of(k)),
            ti.cast(0.0, float),
            ti.Vector.zero(float, dot_grid.columns),
        )
        for q in range(POINTS_A_DIRECTION):
            place, cell, inside = midpoint(grid, box, p, way, (q + 0.5) * width)
            if inside:
                x = gather(grid.density, cell_index(grid, cell), place - cell) + grid.shift[None]
                sigma, by_x, _shade, _slope = optics(rays, variant, x, inverse_scale)
                tau += sigma * width
                if ti.static(not dot_grid.still):
                    dot_tau += by_x * width * gather(dot_grid.density, cell, place - cell)
                for e in range(dot_grid.columns):
                    _dot_shade, dot_sigma = table_tangent(rays, dot_grid.table, variant, x, inverse_scale, e)
                    dot_tau[e] += dot_sigma * width
        total += exp(-tau)
        dot_total -= exp(-tau) * dot_tau
    return total / OCCLUSION_DIRECTIONS, dot_total / OCCLUSION_DIRECTIONS


@ti.func
def openness_slopes(grid: ti.template(), rays: ti.template(), variant: ti.template(), box, p, reach):
    """`openness`, and its slopes by p (3,) and by A (3, 3), which turns and stretches the ways."""
    width, total = width_of(box, reach), ti.cast(0.0, float)
    by_p, by_A = ti.Vector.zero(float, 3), ti.Matrix.zero(float, 3, 3)
    for k in range(OCCLUSION_DIRECTIONS):
        side, tau = side_of(k), ti.cast(0.0, float)
        way, tau_by_p, tau_by_way = occlusion_direction(grid, side), ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        for q in range(POINTS_A_DIRECTION):
            place, cell, inside = midpoint(grid, box, p, way, (q + 0.5) * width)
            if inside:
                x, x0, x1, x2 = gather_slope(grid.density, cell_index(grid, cell), place - cell)
                sigma, by_x, _shade, _slope = optics(rays, variant, x + grid.shift[None], grid.inverse_scale[None])
                tau += sigma * width
                by_place = by_x * width * ti.Vector([x0, x1, x2])
                tau_by_p += by_place
                tau_by_way += (q + 0.5) * width * by_place
        passes = exp(-tau) / OCCLUSION_DIRECTIONS
        total += passes
        by_p -= passes * tau_by_p
        by_A -= passes * tau_by_way.outer_product(side)
    return total, by_p, by_A

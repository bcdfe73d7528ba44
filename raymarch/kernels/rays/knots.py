"""Knots that a ray meets in a cell: where the value along it goes from one interval of a transfer function to the next.

Along a ray a trilinear field is a cubic in each cell, and between the cubic's extrema its value rises or falls: each
knot between the values at both ends of such a piece is met once, where Newton's method finds it. Between two knots
colour and opacity are smooth functions of the place, which a few Gauss-Legendre points integrate.

Letters: u the place in the cell, 0..1 along the ray; c the cubic of the raw density by u; i the knot below a value,
-1 before the first; above the value's height over the first knot.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.tables import knot_below
from raymarch.kernels.rays.first_hit import MAX_NEWTON_STEPS, extrema_of
from raymarch.kernels.rays.first_hit import cubic_value as cubic

PIECES = 3  # between a cell's ends and two extrema


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
    for _ in range(MAX_NEWTON_STEPS):
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

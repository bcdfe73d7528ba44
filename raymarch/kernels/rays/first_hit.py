"""First hit of an isosurface: the first crossing of a level along a ray, cell by cell.

Along a ray a trilinear field is a cubic in each cell. Between the cubic's extrema it is monotone, so that a change of
sign between two of them brackets one root, which Newton's method finds, safeguarded by bisection; Parker et al. 1998,
"Interactive ray tracing for isosurface rendering". The side of the level that the ray is on is carried from cell to
cell: what rounding makes of the field on a face lets no ray slip through.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.cell import corners_of_cell, hessian_times, trilinear, trilinear_curvature, trilinear_slope
from raymarch.kernels.rays.cells import cell_at, enter_of, exit_of, is_inside, next_cell, run_ahead, segment_of
from raymarch.kernels.rays.rays import place_ray, within_box
from raymarch.kernels.rays.segment_ends import clipped_segment

MAX_NEWTON_STEPS = 60  # steps at most; a bisection alone would need about as many in double precision


@ti.func
def cubic_of(v, f, d):
    """Coefficients (4,) of the field along f + u d by powers of u."""
    slope, curvature = trilinear_slope(v, f), trilinear_curvature(v, f)
    third = (v[7] - v[6] - v[5] + v[4] - v[3] + v[2] + v[1] - v[0]) * d[0] * d[1] * d[2]
    return ti.Vector([trilinear(v, f), slope.dot(d), 0.5 * hessian_times(curvature, d).dot(d), third])


@ti.func
def cubic_value(c, u):
    """Value of a cubic."""
    return c[0] + u * (c[1] + u * (c[2] + u * c[3]))


@ti.func
def extrema_of(c):
    """Where within 0..1 the cubic has its extrema, in order; 1 for one that is not there."""
    most = ti.max(ti.abs(c[1]), ti.abs(c[2]), ti.abs(c[3]))
    by = 1.0 / ti.select(most > 0, most, 1.0)  # squares of very small or large numbers would be 0, or infinite
    a, b, e = 3.0 * by * c[3], by * c[2], by * c[1]
    discriminant = b * b - a * e
    first, second = ti.cast(1.0, float), ti.cast(1.0, float)
    if discriminant > 0:
        q = -b - ti.select(b > 0, 1.0, -1.0) * ti.sqrt(discriminant)  # of the two roots the one without cancellation
        if q * a > 0 and ti.abs(q) < ti.abs(a):
            first = q / a
        if q * e > 0 and ti.abs(e) < ti.abs(q):
            second = e / q
    return ti.min(first, second), ti.max(first, second)


@ti.func
def root_between(c, low, high):
    """Root of a cubic that is monotone and changes its sign between low and high."""
    before, behind = cubic_value(c, low), cubic_value(c, high)
    rises, u = behind > before, 0.5 * (low + high)
    if behind != before:
        u = low + (high - low) * before / (before - behind)
    for _ in range(MAX_NEWTON_STEPS):
        value = cubic_value(c, u)
        if (value < 0) == rises:
            low = u
        else:
            high = u
        slope = c[1] + u * (2.0 * c[2] + u * 3.0 * c[3])
        then = u - value / ti.select(slope != 0, slope, 1.0)
        if slope == 0 or not (then > low and then < high):
            then = 0.5 * (low + high)
        near = ti.abs(then - u) <= ti.static(2e-7 if runtime.single_precision() else 4e-16)
        u = then
        if near:
            break
    return u


@ti.func
def side_of(x):
    """Side of the level: 1 at or above it, -1 below."""
    return ti.select(x >= 0, ti.cast(1.0, float), ti.cast(-1.0, float))


@ti.func
def first_root(c, side):
    """First place within 0..1 where a cubic is on the other side; -1 where it stays there."""
    e1, e2 = extrema_of(c)
    u, low, high = ti.cast(-1.0, float), ti.cast(0.0, float), ti.cast(0.0, float)
    if side_of(c[0]) != side:
        u = ti.cast(0.0, float)
    elif side_of(cubic_value(c, e1)) != side:
        high = e1
    elif side_of(cubic_value(c, e2)) != side:
        low, high = e1, e2
    elif side_of(cubic_value(c, 1.0)) != side:
        low, high = e2, ti.cast(1.0, float)
    if high > low:
        u = root_between(c, low, high)
    return u


@ti.func
def first_hit(grid: ti.template(), entry, way, length, level):
    """Distance from the entry of the first crossing of a raw level, and its cell; -1 where there is none.

    What counts is that the field goes from one side to the other: a box's face is none, whatever lies behind it.
    """
    per_index, top = grid.cells_per_index[None], grid.max_index[None]
    t, hit, side = ti.cast(0.0, float), ti.cast(-1.0, float), ti.cast(0.0, float)  # a side of 0: not yet known
    found = ti.Vector([0, 0, 0])
    while t < length and hit < 0:
        empty, ahead = run_ahead(grid, per_index, entry + t * way, way)
        # A leap may end a rounding before the face that it leads to; a cell is looked at from face to face anyway.
        end = t + ahead + ti.static(1e-6 if runtime.single_precision() else 1e-13) * (t + length)
        if not empty:
            cell, on = cell_at(entry + t * way, top), 1
            begin = ti.min(enter_of(entry, way, cell), t)  # rounding hides on which side of a face a ray along it is
            while on and hit < 0:
                out, axis = exit_of(entry, way, cell, length)
                out = ti.max(out, begin)
                v = corners_of_cell(grid.density, cell_index(grid, cell)) - level
                low, u = side_of(v.min()), ti.cast(-1.0, float)
                if low == side_of(v.max()):
                    if low * side < 0:
                        u = ti.cast(0.0, float)
                    side = low
                else:
                    c = cubic_of(v, entry + begin * way - cell, (out - begin) * way)
                    if side == 0:
                        side = side_of(c[0])
                    u = first_root(c, side)
                if u >= 0:
                    hit, found = begin + u * (out - begin), cell
                begin = out
                if hit < 0:
                    cell = next_cell(cell, way, axis)
                    on = ti.cast(axis >= 0 and out < end and is_inside(cell, top), ti.i32)
            if begin > end:
                end = begin
        t = end
    return hit, found


@ti.kernel
def find_hits(grid: ti.template(), rays: ti.template(), variant: ti.template(), count: int, dt: float):
    """sum_odd = the cell of each ray's first hit, and its distance from where the ray enters; that is -1 for none."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        entry, way, length = segment_of(grid, rays, variant, r, 0)
        t, cell = first_hit(grid, entry, way, length, rays.iso[None])
        rays.sum_odd[r] = ti.Vector([ti.cast(cell[0], float), ti.cast(cell[1], float), ti.cast(cell[2], float), t])


@ti.func
def hit_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """Hit of ray r as found: whether there is one, its cell, position in the cell, distance, way in index space."""
    o, d = place_ray(grid, rays.origin[r], rays.direction[r])
    near, far, _enters, _leaves = clipped_segment(grid, rays, variant, r, o, d, 0)
    entry, way, _length = within_box(o, d, near, far, grid.max_index[None])
    found = rays.sum_odd[r]
    cell = ti.Vector([ti.cast(found[0], ti.i32), ti.cast(found[1], ti.i32), ti.cast(found[2], ti.i32)])
    hit, f, t = ti.select(found[3] >= 0, 1, 0), entry + found[3] * way - cell, near + found[3]
    return hit, cell, f, t, d


@ti.func
def slope_at_hit(grid: ti.template(), cell, f, d):
    """Slope S (3,) of the raw density at a hit in index space, and how far it moves by a unit of the level: 1 / (S d).

    That is 0 where a ray only touches the surface: its slope along the ray is what rounding left of the cell's range.
    """
    v = corners_of_cell(grid.density, cell_index(grid, cell))
    slope, by_level = trilinear_slope(v, f), ti.cast(0.0, float)
    along = slope.dot(d)
    if ti.abs(along) > ti.static(1e-6 if runtime.single_precision() else 1e-12) * (v.max() - v.min()) * d.norm():
        by_level = 1.0 / along
    return slope, by_level

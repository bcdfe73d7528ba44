"""Cells that a ray goes through: exact traversal of a box's voxel cells by the planes between them.

Amanatides and Woo 1987, "A fast voxel traversal algorithm for ray tracing". Where a plane is met is worked out anew in
each cell, by its index, so that nothing adds up along the ray.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.rays.rays import (
    MAX_DISTANCE,
    PARALLEL_TOLERANCE,
    box_of,
    first_of,
    origin_in_box,
    place_ray,
    within_box,
)
from raymarch.kernels.rays.segment_ends import clipped_segment


@ti.func
def ends_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s):
    """Segment s of ray r in its box's own index space: its way, near, far and the numbers of their faces."""
    o, d = place_ray(grid, rays.origin[r], rays.direction[r])
    near, far, enters, leaves = clipped_segment(grid, rays, variant, r, origin_in_box(grid, o, box_of(grid, s)), d, s)
    return d, near, far, enters, leaves


@ti.func
def segment_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, s):
    """Where segment s of ray r enters its box's own index space, its way and length, as `clip_to_box` gives them."""
    o, d = place_ray(grid, rays.origin[r], rays.direction[r])
    own = origin_in_box(grid, o, box_of(grid, s))
    near, far, _enters, _leaves = clipped_segment(grid, rays, variant, r, own, d, s)
    return within_box(own, d, near, far, grid.max_index[None])


@ti.func
def first_sample(grid: ti.template(), s):
    """Index of the first sample, among all, of the box that segment s lies in."""
    return ti.cast(first_of(grid, box_of(grid, s)), ti.i32)


@ti.func
def cell_at(p, max_index):
    """Cell of a point in a box's own index space; a point on an upper face belongs to the last cell."""
    return ti.max(ti.min(ti.cast(p, ti.i32), ti.cast(max_index, ti.i32) - 1), 0)


@ti.func
def exit_of(entry, way, cell, length):
    """Where a ray leaves a cell, by its distance from the entry, and by which axis; -1 where it ends before."""
    out, axis = length, -1
    for a in ti.static(range(3)):
        if ti.abs(way[a]) > PARALLEL_TOLERANCE:
            t = (cell[a] + ti.cast(way[a] > 0, ti.i32) - entry[a]) / way[a]
            if t < out:
                out, axis = t, a
    return out, axis


@ti.func
def enter_of(entry, way, cell):
    """Where a ray enters a cell, by its distance from the entry; 0 where it begins there."""
    t, _axis = entrance_of(entry, way, cell)
    return t


@ti.func
def entrance_of(entry, way, cell):
    """As `enter_of`, and by which axis; 0 and -1 where it begins there."""
    t, axis = ti.cast(0.0, float), -1
    for a in ti.static(range(3)):
        if ti.abs(way[a]) > PARALLEL_TOLERANCE:
            at_a = (cell[a] + ti.cast(way[a] < 0, ti.i32) - entry[a]) / way[a]
            if at_a > t:
                t, axis = at_a, a
    return t, axis


@ti.func
def next_cell(cell, way, axis):
    """Cell beyond the face that a ray leaves by."""
    beyond = cell
    for a in ti.static(range(3)):
        if a == axis:
            beyond[a] += ti.select(way[a] > 0, 1, -1)
    return beyond


@ti.func
def is_inside(cell, max_index):
    """Whether a cell is one of its box."""
    on = True
    for a in ti.static(range(3)):
        on = on and cell[a] >= 0 and cell[a] < ti.cast(max_index[a], ti.i32)
    return on


@ti.func
def is_empty(grid: ti.template(), cell):
    """Whether occupancy marks a cell, counted among all samples, as empty."""
    own = ti.cast((cell + 0.5) * grid.cells_per_index[None], ti.i32)
    for a in ti.static(range(3)):
        own[a] = ti.min(own[a], grid.cells[None][a] - 1)
    return grid.empty_distance[own] > 0


@ti.func
def leave_empty(grid: ti.template(), first, entry, way, length, cell, t):
    """Next cell of a ray in one marked as empty, where it enters that and by which axis, and whether it goes on.

    That is the first behind all that is empty, or the one beyond the face where rounding hides how far that is.
    """
    out, axis = exit_of(entry, way, cell, length)
    begin, beyond, top = ti.max(out, t), next_cell(cell, way, axis), grid.max_index[None]
    on = axis >= 0 and begin < length and is_inside(beyond, top)
    empty, ahead = run_ahead(grid, grid.cells_per_index[None], entry + t * way + first, way)
    if on and empty:  # the point, whose cells of occupancy need not be those of the cell's middle
        behind = t + ahead + ti.static(1e-6 if runtime.single_precision() else 1e-13) * (t + length)
        far = cell_at(entry + behind * way, top)
        at_far, by = entrance_of(entry, way, far)
        at_far = ti.min(at_far, behind)  # rounding hides on which side of a face a ray along it is
        if at_far > begin:
            begin, beyond, axis, on = at_far, far, by, behind < length
    return beyond, begin, axis, on


@ti.func
def run_ahead(grid: ti.template(), per_index, p, way):
    """Whether occupancy marks p's cells as empty, and how far a ray goes from p among cells marked alike."""
    q, last = p * per_index, grid.cells[None] - 1
    cell = ti.cast(q, ti.i32)
    for a in ti.static(range(3)):
        cell[a] = ti.max(ti.min(cell[a], last[a]), 0)
    distance = ti.cast(grid.empty_distance[cell], ti.i32)
    empty = distance > 0
    if not empty:
        distance = ti.cast(grid.occupied_distance[cell], ti.i32)
    ahead = ti.cast(MAX_DISTANCE, float)
    for a in ti.static(range(3)):
        speed = way[a] * per_index[a]
        if speed > PARALLEL_TOLERANCE:
            ahead = ti.min(ahead, (cell[a] + distance - q[a]) / speed)
        elif speed < -PARALLEL_TOLERANCE:
            ahead = ti.min(ahead, (cell[a] - distance + 1 - q[a]) / speed)
    return empty, ti.max(ahead, 0.0)

"""Ray traversal: box intersection (slabs) and empty-space skipping, which every march shares.

Positions are in index space, t is a distance in the world; `o + t d` with d not of unit length there.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.numeric import at_least, at_most

PARALLEL = 1e-12
FAR = 1e30


@ti.func
def slacks_of(o, d, low, high):
    """How far beyond each pair of faces a ray may lie to be in the box: what rounding hides where it goes along them.

    Rows of a detector are in planes of samples, and so in faces.
    """
    size = ti.max(ti.abs(o).max(), ti.abs(low).max(), ti.abs(high).max())
    slack = ti.static(2.0**-20 if runtime.single_precision() else 2.0**-48) * size
    along = slack * ti.abs(d).max() / (high - low).max()  # a slope that leads no farther than that within the box
    slacks = ti.Vector.zero(float, 3)
    for a in ti.static(range(3)):
        slacks[a] = ti.select(ti.abs(d[a]) <= along, slack, 0.0)
    return slacks


@ti.func
def clip(o, d, max_index):
    """`near = max(0, entry)`, `far = exit` of the box 0..top; far < near is a miss (slabs: Kay and Kajiya 1986)."""
    near, far, _enters, _leaves = clip_faces(o, d, ti.Vector.zero(float, 3), max_index)
    return near, far


@ti.func
def clip_to_box(o, d, max_index):
    """Ray-box intersection: where the ray enters, its direction and its length; under 0 for a miss.

    Both ends are moved into the box by as much as rounding put them outside, so that every sample between them has all
    corners of its cell: `entry + t d` for 0 <= t <= length needs no bounds of its own.
    """
    near, far = clip(o, d, max_index)
    return within_box(o, d, near, far, max_index)


@ti.func
def within_box(o, d, near, far, max_index):
    """A ray from near to far as `clip_to_box` gives it, both ends in the box 0..top."""
    last = max_index * (1.0 - ti.static(2.0**-21 if runtime.single_precision() else 2.0**-50))
    entry = at_most(at_least(o + near * d, 0.0), last)
    exit = at_most(at_least(o + far * d, 0.0), last)
    length = far - near
    return entry, (exit - entry) / ti.select(length > 0, length, 1.0), length


@ti.func
def clip_faces(o, d, low, high):
    """As `clip` of a box low..high, and the axes of the faces it enters and leaves by; -1 where it starts inside."""
    near, far, slack = ti.cast(0.0, float), ti.cast(FAR, float), slacks_of(o, d, low, high)
    enters, leaves = -1, -1
    for a in ti.static(range(3)):
        if ti.abs(d[a]) > PARALLEL:
            t0, t1 = (low[a] - slack[a] - o[a]) / d[a], (high[a] + slack[a] - o[a]) / d[a]
            if ti.min(t0, t1) > near:
                near, enters = ti.min(t0, t1), a
            if ti.max(t0, t1) < far:
                far, leaves = ti.max(t0, t1), a
        elif o[a] < low[a] - slack[a] or o[a] > high[a] + slack[a]:
            far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def jitter_of(rays: ti.template(), variant: ti.template(), r):
    """Ray r's own (phase, stretch): its first step is `1 - phase` of a step long, all are stretched."""
    phase, stretch = ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(variant.jittered):
        phase, stretch = rays.jitter[r][0], rays.jitter[r][1]
    return phase, stretch


@ti.func
def steps_of(length, dt, phase):
    """Index of the last, shorter step."""
    return ti.cast(length / dt + phase, ti.i32)


@ti.func
def step_at(variant: ti.template(), near, far, dt, phase, k):
    """Begin and width of step k: from one multiple of dt to the next, all moved by the phase, cut to near..far."""
    begin, width = near + k * dt, dt
    if ti.static(variant.jittered):
        begin, width = near + ti.max(k - phase, 0.0) * dt, ti.min(k + 1.0 - phase, 1.0) * dt
    return begin, at_most(width, far - begin)


@ti.func
def place_of(variant: ti.template(), entry, d, length, dt, phase, k):
    """Sample position in index space, and width, of step k of what `clip_to_box` gave."""
    begin, width = step_at(variant, 0.0, length, dt, phase, k)
    return entry + (begin + 0.5 * width) * d, width


@ti.func
def steps_within(cells_per_index, q, cell, distance, d, dt):
    """Count of steps from q, in cells, within the cube of cells less than `distance` away from q's own; 1 at least.

    So whatever the distance says, the march goes on.
    """
    exit = ti.cast(FAR, float)
    for a in ti.static(range(3)):
        speed = d[a] * cells_per_index[a]
        if speed > PARALLEL:
            exit = ti.min(exit, (cell[a] + distance - q[a]) / speed)
        elif speed < -PARALLEL:
            exit = ti.min(exit, (cell[a] - distance + 1 - q[a]) / speed)
    return ti.max(ti.cast(ti.min(exit / dt, 1e6), ti.i32), 0) + 1


@ti.func
def steps_ahead(grid: ti.template(), cells_per_index, p, d, dt):
    """Empty-space skipping: steps from p that stay in empty cells, and in occupied ones; one of them is 0.

    `empty_distance` holds each cell's chessboard distance to the nearest occupied one, `occupied_distance` that to the
    nearest empty one, so that all cells less than that away are alike.
    """
    q, last = p * cells_per_index, grid.cells[None] - 1
    cell = ti.cast(q, ti.i32)
    for a in ti.static(range(3)):
        cell[a] = ti.min(cell[a], last[a])
    empty, full = ti.cast(grid.empty_distance[cell], ti.i32), 0
    if empty > 0:
        empty = steps_within(cells_per_index, q, cell, empty, d, dt)
    else:
        full = steps_within(cells_per_index, q, cell, ti.cast(grid.occupied_distance[cell], ti.i32), d, dt)
    return empty, full


@ti.func
def empty_steps(grid: ti.template(), cells_per_index, p, d, dt):
    """Empty-space skipping alone, the first of `steps_ahead`: 0 where p's own cell is occupied."""
    q, last = p * cells_per_index, grid.cells[None] - 1
    cell = ti.cast(q, ti.i32)
    for a in ti.static(range(3)):
        cell[a] = ti.min(cell[a], last[a])
    steps = ti.cast(grid.empty_distance[cell], ti.i32)
    if steps > 0:
        steps = steps_within(cells_per_index, q, cell, steps, d, dt)
    return steps


@ti.func
def widths_of(variant: ti.template(), phase, k):
    """Begin and width of a whole step k in steps."""
    begin, width = ti.cast(k, float), ti.cast(1.0, float)
    if ti.static(variant.jittered):
        begin, width = ti.max(k - phase, 0.0), ti.min(k + 1.0 - phase, 1.0)
    return begin, width

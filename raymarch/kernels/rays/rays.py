"""Ray traversal: box intersection (slabs) and empty-space skipping, which every march shares.

Positions are in index space, t is a distance in the world; `o + t d` with d not of unit length there.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.numeric import clamp_high, clamp_low

PARALLEL_TOLERANCE = 1e-12
MAX_DISTANCE = 1e30


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
    entry = clamp_high(clamp_low(o + near * d, 0.0), last)
    exit = clamp_high(clamp_low(o + far * d, 0.0), last)
    length = far - near
    return entry, (exit - entry) / ti.select(length > 0, length, 1.0), length


@ti.func
def clip_faces(o, d, low, high):
    """As `clip` of a box low..high, and the axes of the faces it enters and leaves by; -1 where it starts inside."""
    near, far, slack = ti.cast(0.0, float), ti.cast(MAX_DISTANCE, float), slacks_of(o, d, low, high)
    enters, leaves = -1, -1
    for a in ti.static(range(3)):
        if ti.abs(d[a]) > PARALLEL_TOLERANCE:
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
    return begin, clamp_high(width, far - begin)


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
    exit = ti.cast(MAX_DISTANCE, float)
    for a in ti.static(range(3)):
        speed = d[a] * cells_per_index[a]
        if speed > PARALLEL_TOLERANCE:
            exit = ti.min(exit, (cell[a] + distance - q[a]) / speed)
        elif speed < -PARALLEL_TOLERANCE:
            exit = ti.min(exit, (cell[a] - distance + 1 - q[a]) / speed)
    return ti.max(ti.cast(ti.min(exit / dt, 1e6), ti.i32), 0) + 1


@ti.func
def steps_to_skip(grid: ti.template(), cells_per_index, p, d, dt):
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
    """Empty-space skipping alone, the first of `steps_to_skip`: 0 where p's own cell is occupied."""
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


# Rays in a grid's index space: by its affine alone, or through normalised device coordinates; `geometry/ndc` beside.
#
# Through NDC a ray is marched by its length there, which `distance_of` takes back to the world.


@ti.func
def place_ray(grid: ti.template(), origin, direction):
    """Origin and way of a ray in index space, by unit of length in the world, or in NDC."""
    from_place, way = origin, direction
    if ti.static(grid.ndc):
        from_place, way, _ = through_ndc(grid, origin, direction)
    m = grid.index_from_world[None]
    o, d = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
    for a in ti.static(range(3)):
        o[a] = m[a, 0] * from_place[0] + m[a, 1] * from_place[1] + m[a, 2] * from_place[2] + m[a, 3]
        d[a] = m[a, 0] * way[0] + m[a, 1] * way[1] + m[a, 2] * way[2]
    return o, d


@ti.func
def through_ndc(grid: ti.template(), origin, direction):
    """Origin and unit way of a ray in NDC, from half the near plane on; and (begin, w, slope of w, speed), of which
    `distance_of` is made. One that never comes there meets nothing."""
    P = grid.ndc_from_world[None]
    a, b = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
    for i in ti.static(range(4)):
        a[i] = P[i, 0] * origin[0] + P[i, 1] * origin[1] + P[i, 2] * origin[2] + P[i, 3]
        b[i] = P[i, 0] * direction[0] + P[i, 1] * direction[1] + P[i, 2] * direction[2]
    ahead, toward, begin = a[2] + 3.0 * a[3], b[2] + 3.0 * b[3], ti.cast(0.0, float)
    if ahead < 0:
        if toward > PARALLEL_TOLERANCE:
            begin = -ahead / toward
            a += begin * b
        else:
            a, b = ti.Vector([0.0, 0.0, -3.0, 1.0]), ti.Vector([0.0, 0.0, -1.0, 0.0])
    place = ti.Vector([a[0], a[1], a[2]]) / a[3]
    way = (ti.Vector([b[0], b[1], b[2]]) - place * b[3]) / a[3]
    speed = way.norm()
    return place, way / speed, ti.Vector([begin, a[3], b[3], speed])


@ti.func
def distance_of(grid: ti.template(), origin, direction, t):
    """Distance in the world at t along a ray."""
    distance = t
    if ti.static(grid.ndc):
        _, _, by = through_ndc(grid, origin, direction)
        left = by[3] * by[1] - t * by[2]
        distance = by[0] + (t * by[1] / left if left > 0 else ti.cast(MAX_DISTANCE, float))
    return distance


# Nested boxes for unbounded scenes: each twice as large as the last about one centre, all of as many samples.
#
# A ray through `boxes` of them is 2 boxes - 1 straight segments: inward through the shells, through the innermost box,
# and out again. In a unit of length twice as long a box, each is like the one within it: a ray has the same direction
# and the same steps there, and only its origin is nearer to the centre. So a shell is marched as any box is, and a raw
# density means as much opacity over one of its own voxels in each. Samples of the boxes lie one behind the other along
# x, the innermost first. Cascades as in Mueller et al. 2022, "Instant neural graphics primitives".


@ti.func
def box_of(grid: ti.template(), s):
    """Number of the box that segment s of a ray lies in: 0 the innermost."""
    return ti.abs(s - ti.static(grid.boxes - 1))


@ti.func
def scale_of(box):
    """Length of an innermost voxel, in those of a box: 2^-box."""
    return 1.0 / ti.cast(1 << box, float)


@ti.func
def origin_in_box(grid: ti.template(), o, box):
    """A ray's origin in a box's own index space, which spans 0..top as the innermost one's does."""
    own = o
    if ti.static(grid.boxes > 1):
        middle = 0.5 * grid.max_index[None]
        own = middle + (o - middle) * scale_of(box)
    return own


@ti.func
def first_of(grid: ti.template(), box):
    """Index of a box's first sample."""
    return ti.Vector([box * (grid.max_index[None][0] + 1.0), 0.0, 0.0])


@ti.func
def shell_segment(grid: ti.template(), o, d, s):
    """near, far and the axes of their faces of segment s, o in its box's own index space; far < near is none.

    What a ray that misses the box within has of a shell is all inward.
    """
    top = grid.max_index[None]
    near, far, enters, leaves = clip_faces(o, d, ti.Vector.zero(float, 3), top)
    if ti.static(grid.boxes > 1):
        inward, outward = s < ti.static(grid.boxes - 1), s > ti.static(grid.boxes - 1)
        if inward or outward:
            inner, outer, first, last = clip_faces(o, d, 0.25 * top, 0.75 * top)
            if outer >= inner and inward:
                far, leaves = inner, first
            elif outer >= inner:
                near, enters = outer, last
            elif outward:
                far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def clip_to_boxes(grid: ti.template(), o, d, s):
    """Segment s of a ray: where it enters among all samples, direction and length, as `clip_to_box` gives them."""
    top = grid.max_index[None]
    entry, direction, length = clip_to_box(o, d, top)
    if ti.static(grid.boxes > 1):
        box = box_of(grid, s)
        own = origin_in_box(grid, o, box)
        near, far, _, _ = shell_segment(grid, own, d, s)
        entry, direction, length = within_box(own, d, near, far, top)
        entry += first_of(grid, box)
    return entry, direction, length

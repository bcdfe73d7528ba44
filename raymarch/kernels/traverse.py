"""Where a ray meets the box and how far it can leap: what every march shares.

Positions are in index space, t is a distance in the world; `o + t d` with d not of unit length there.
"""

import taichi as ti

PARALLEL = 1e-12
FAR = 1e30


@ti.func
def clip(o, d, top):
    """`near = max(0, entry)`, `far = exit` of the box 0..top; far < near is a miss (slabs: Kay and Kajiya 1986)."""
    near, far = ti.cast(0.0, float), ti.cast(FAR, float)
    for a in ti.static(range(3)):
        if ti.abs(d[a]) > PARALLEL:
            t0, t1 = -o[a] / d[a], (top[a] - o[a]) / d[a]
            near, far = ti.max(near, ti.min(t0, t1)), ti.min(far, ti.max(t0, t1))
        elif o[a] < 0 or o[a] > top[a]:
            far = ti.cast(-1.0, float)
    return near, far


@ti.func
def clip_faces(o, d, top):
    """As `clip`, with the axes whose faces the ray enters and leaves by; -1 where it starts inside."""
    near, far = ti.cast(0.0, float), ti.cast(FAR, float)
    enters, leaves = -1, -1
    for a in ti.static(range(3)):
        if ti.abs(d[a]) > PARALLEL:
            t0, t1 = -o[a] / d[a], (top[a] - o[a]) / d[a]
            if ti.min(t0, t1) > near:
                near, enters = ti.min(t0, t1), a
            if ti.max(t0, t1) < far:
                far, leaves = ti.max(t0, t1), a
        elif o[a] < 0 or o[a] > top[a]:
            far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def jitter_of(rays: ti.template(), reading: ti.template(), r):
    """Ray r's own (phase, stretch): its first step is `1 - phase` of a step long, all are stretched."""
    phase, stretch = ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(reading.jittered):
        phase, stretch = rays.jitter[r][0], rays.jitter[r][1]
    return phase, stretch


@ti.func
def steps_of(near, far, dt, phase):
    """Index of the last, shorter step."""
    return ti.cast((far - near) / dt + phase, ti.i32)


@ti.func
def step_at(reading: ti.template(), near, far, dt, phase, k):
    """Begin and width of step k: from one multiple of dt to the next, all moved by the phase, cut to near..far."""
    begin, width = near + k * dt, dt
    if ti.static(reading.jittered):
        begin, width = near + ti.max(k - phase, 0.0) * dt, ti.min(k + 1.0 - phase, 1.0) * dt
    return begin, ti.min(width, far - begin)


@ti.func
def empty_steps(leap: ti.template(), cells_per_index, p, d, dt):
    """How many steps from p stay in empty cells; 0 where p's own cell is occupied.

    `leap` holds each cell's chessboard distance D to the nearest occupied one, so that the cube of cells less than
    D away is empty: the ray may step until it leaves that cube.
    """
    q = p * cells_per_index
    cell = ti.cast(q, ti.i32)
    for a in ti.static(range(3)):
        cell[a] = ti.min(cell[a], leap.shape[a] - 1)
    distance = ti.cast(leap[cell], ti.i32)
    steps = 0
    if distance > 0:
        exit = ti.cast(FAR, float)
        for a in ti.static(range(3)):
            speed = d[a] * cells_per_index[a]
            if speed > PARALLEL:
                exit = ti.min(exit, (cell[a] + distance - q[a]) / speed)
            elif speed < -PARALLEL:
                exit = ti.min(exit, (cell[a] - distance + 1 - q[a]) / speed)
        steps = ti.cast(ti.min(exit / dt, 1e6), ti.i32) + 1
    return steps

"""Rays in a grid's index space: by its affine alone, or through normalised device coordinates; `geometry/ndc` beside.

Through NDC a ray is marched by its length there, which `distance_of` takes back to the world.
"""

import taichi as ti

from raymarch.kernels.rays.rays import FAR, PARALLEL


@ti.func
def placed(grid: ti.template(), origin, direction):
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
        if toward > PARALLEL:
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
        distance = by[0] + (t * by[1] / left if left > 0 else ti.cast(FAR, float))
    return distance

"""Where a ray meets a plane, to first order: a plane between samples, a face of the box, or a plane that cuts the ray.

Across axis a of index space it is met at t with dot_t = -(dot_own + t dot_d) / d by that axis; own is the ray's origin
in its box, d its way. A plane (n, c) of the world is met with dot_t = -n . (dot_place + t dot_way) / (n . way).
"""

from raymarch.engine import ti
from raymarch.kernels.rays.rays import (
    PARALLEL_TOLERANCE,
    box_of,
    clip_to_boxes,
    first_of,
    origin_in_box,
    scale_of,
    shell_segment,
    through_ndc,
    within_box,
)

# Clipping of rays by half-spaces: what all marches share; `geometry/clip` beside.
#
# A plane (n, c) keeps the points with n . x >= c, x of the world, or of NDC where the grid lies there, so that a moved
# box does not move them. A segment's ends carry a number: 0 to 2 the axis of a face of the box, from `FIRST_PLANE` on
# the plane that cut it, -1 where the ray begins.

FIRST_PLANE = 3
MAX_FACES = 12  # six faces of a box, and six planes


@ti.func
def place_ray(grid: ti.template(), rays: ti.template(), r):
    """Origin and way of ray r where the grid's affine leads to: in the world, or in NDC."""
    origin, way = rays.origin[r], rays.direction[r]
    if ti.static(grid.ndc):
        origin, way, _ = through_ndc(grid, origin, way)
    return origin, way


@ti.func
def normal_of_plane(rays: ti.template(), i):
    """Normal of plane i."""
    plane = rays.planes[i]
    return ti.Vector([plane[0], plane[1], plane[2]])


@ti.func
def cut_by_planes(rays: ti.template(), origin, way, scale, near, far, enters, leaves):
    """What planes leave of near..far, and the numbers of the faces at its ends; `scale` is that of distances."""
    for i in range(rays.plane_count[None]):
        normal = normal_of_plane(rays, i)
        ahead, toward = normal.dot(origin) - rays.planes[i][3], normal.dot(way)
        if ti.abs(toward) > PARALLEL_TOLERANCE:
            t = -scale * ahead / toward
            if toward > 0 and t > near:
                near, enters = t, FIRST_PLANE + i
            elif toward < 0 and t < far:
                far, leaves = t, FIRST_PLANE + i
        elif ahead < 0:
            far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def clipped_segment(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, own, d, s):
    """near, far and the numbers of their faces of what is kept of segment s of ray r, `own` its origin in its box.

    As `shell_segment` gives them; far < near is none.
    """
    near, far, enters, leaves = shell_segment(grid, own, d, s)
    if ti.static(variant.clipped):
        origin, way = place_ray(grid, rays, r)
        scale = scale_of(box_of(grid, s))
        near, far, enters, leaves = cut_by_planes(rays, origin, way, scale, near, far, enters, leaves)
    return near, far, enters, leaves


@ti.func
def clip_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, o, d, s):
    """Segment s of ray r: where it enters among all samples, direction and length, as `clip_to_box` gives them."""
    entry, direction, length = clip_to_boxes(grid, o, d, s)
    if ti.static(variant.clipped):
        box = box_of(grid, s)
        own = origin_in_box(grid, o, box)
        near, far, _, _ = clipped_segment(grid, rays, variant, r, own, d, s)
        entry, direction, length = within_box(own, d, near, far, grid.max_index[None])
        entry += first_of(grid, box)
    return entry, direction, length


@ti.func
def slope_of_cut(grid: ti.template(), rays: ti.template(), r, face):
    """n / (n . w) of the plane that cut ray r, w its way: the cut moves by less this times its point; 0 for a face."""
    slope = ti.Vector.zero(float, 3)
    if face >= FIRST_PLANE:
        _, way = place_ray(grid, rays, r)
        normal = normal_of_plane(rays, face - FIRST_PLANE)
        slope = normal / normal.dot(way)
    return slope


@ti.func
def meet_adjoint(
    grid: ti.template(),
    rays: ti.template(),
    variant: ti.template(),
    r,
    d,
    scale,
    t,
    face,
    d_t,
    d_own: ti.template(),
    d_d: ti.template(),
    d_place: ti.template(),
    d_way: ti.template(),
):
    """Adjoint: what d_t is to the last four; nothing for face -1, where the ray begins."""
    for a in ti.static(range(3)):
        if a == face:
            d_own[a] -= d_t / d[a]
            d_d[a] -= d_t * t / d[a]
    if ti.static(variant.clipped):
        if face >= FIRST_PLANE:
            slope = d_t * slope_of_cut(grid, rays, r, face)
            d_place -= scale * slope
            d_way -= t * slope


@ti.func
def meet_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(), variant: ti.template(), r, c, d, scale, t, face
):
    """Tangent dot_t of column c; 0 for face -1."""
    dot_t = ti.cast(0.0, float)
    for a in ti.static(range(3)):
        if a == face:
            dot_t = -(scale * moved.dot_origin[r, c][a] + t * moved.dot_index_direction[r, c][a]) / d[a]
    if ti.static(variant.clipped):
        if face >= FIRST_PLANE:
            dot_place = scale * moved.dot_place_origin[r, c] + t * moved.dot_place_way[r, c]
            dot_t = -slope_of_cut(grid, rays, r, face).dot(dot_place)
    return dot_t

"""Clipping of rays by half-spaces: what all marches share; `geometry/clip` beside.

A plane (n, c) keeps the points with n . x >= c, x of the world, or of NDC where the grid lies there, so that a moved
box does not move them. A segment's ends carry a number: 0 to 2 the axis of a face of the box, from `PLANE` on the plane
that cut it, -1 where the ray begins.
"""

import taichi as ti

from raymarch.kernels.rays.nested import box_of, clip_to_boxes, first_of, scale_of, seen_from, shell_segment
from raymarch.kernels.rays.placed import through_ndc
from raymarch.kernels.rays.rays import PARALLEL, within_box

PLANE = 3
MOST = 12  # six faces of a box, and six planes


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
        if ti.abs(toward) > PARALLEL:
            t = -scale * ahead / toward
            if toward > 0 and t > near:
                near, enters = t, PLANE + i
            elif toward < 0 and t < far:
                far, leaves = t, PLANE + i
        elif ahead < 0:
            far = ti.cast(-1.0, float)
    return near, far, enters, leaves


@ti.func
def kept_segment(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, own, d, s):
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
def kept_of_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, o, d, s):
    """Segment s of ray r: where it enters among all samples, direction and length, as `clip_to_box` gives them."""
    entry, direction, length = clip_to_boxes(grid, o, d, s)
    if ti.static(variant.clipped):
        box = box_of(grid, s)
        own = seen_from(grid, o, box)
        near, far, _, _ = kept_segment(grid, rays, variant, r, own, d, s)
        entry, direction, length = within_box(own, d, near, far, grid.max_index[None])
        entry += first_of(grid, box)
    return entry, direction, length


@ti.func
def slope_of_cut(grid: ti.template(), rays: ti.template(), r, face):
    """n / (n . w) of the plane that cut ray r, w its way: the cut moves by less this times its point; 0 for a face."""
    slope = ti.Vector.zero(float, 3)
    if face >= PLANE:
        _, way = place_ray(grid, rays, r)
        normal = normal_of_plane(rays, face - PLANE)
        slope = normal / normal.dot(way)
    return slope

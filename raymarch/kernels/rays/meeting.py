"""Where a ray meets a plane, to first order: a plane between samples, a face of the box, or a plane that cuts the ray.

Across axis a of index space it is met at t with dot_t = -(dot_own + t dot_d) / d by that axis; own is the ray's origin
in its box, d its way. A plane (n, c) of the world is met with dot_t = -n . (dot_place + t dot_way) / (n . way).
"""

import taichi as ti

from raymarch.kernels.rays.clip import PLANE, slope_of_cut


@ti.func
def meet_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(), r, d, scale,
    t, face, d_t, d_own: ti.template(), d_d: ti.template(), d_place: ti.template(), d_way: ti.template(),
):  # fmt: skip
    """Adjoint: what d_t is to the last four; nothing for face -1, where the ray begins."""
    for a in ti.static(range(3)):
        if a == face:
            d_own[a] -= d_t / d[a]
            d_d[a] -= d_t * t / d[a]
    if ti.static(variant.clipped):
        if face >= PLANE:
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
        if face >= PLANE:
            dot_place = scale * moved.dot_place_origin[r, c] + t * moved.dot_place_way[r, c]
            dot_t = -slope_of_cut(grid, rays, r, face).dot(dot_place)
    return dot_t

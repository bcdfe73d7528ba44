"""Geometry gradients of an isosurface: by the rays' origin and way, the level and the box's frame; normals and depth.

Letters as in `isosurface`. The frame A enters by the normal: index space turned and stretched turns what is seen of G.
"""

import taichi as ti

from raymarch.kernels.integrator.passes import DepthPasses, Passes, after
from raymarch.kernels.light.gradient import normal_slope
from raymarch.kernels.light.shading import along_sphere, normal_of, painted, shade_tangent
from raymarch.kernels.march.isosurface_depth import (
    by_value,
    distance_adjoint,
    distance_geometry_adjoint,
    distance_geometry_tangent,
    distance_tangent,
)
from raymarch.kernels.march.normals import world_slope
from raymarch.kernels.modes.isosurface import (
    Surface,
    adjoint_of_hit,
    shade_hits,
    shade_hits_adjoint,
    shade_hits_tangent,
    shaded,
)
from raymarch.kernels.rays.root import find_hits, hit_of


@ti.kernel
def move_hits_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time; d_iso by the value, d_frame by A."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, t, d = hit_of(grid, rays, variant, r)
        d_o, d_view, d_iso = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.cast(0.0, float)
        d_frame = ti.Matrix.zero(float, 3, 3)
        if hit:
            d_p, _d_G, d_N, _d_total, d_view_here, q, slope, G = adjoint_of_hit(grid, rays, variant, r, cell, f, d)
            d_o, d_view, d_iso = d_p - q * slope, d_view_here, by_value(grid, rays, variant, q)
            d_frame = G.outer_product(d_N)
        moved.d_origin[r], moved.d_index_direction[r], moved.d_view_direction[r] = d_o, t * d_o, d_view
        moved.d_dt[r], moved.d_iso[r], moved.d_frame[r] = 0.0, d_iso, d_frame
        if ti.static(variant.clipped):  # which planes cut a ray does not move what it hits
            moved.d_place_origin[r], moved.d_place_way[r] = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)


@ti.kernel
def move_hits_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, t, d = hit_of(grid, rays, variant, r)
        for c in range(moved.columns):
            moved.dot_image[r, c] = ti.Vector.zero(float, 4)
        if hit:
            S, by_level, G, K, n, scale, own, by_position, by_heading = shaded(grid, rays, variant, r, cell, f, d)
            colour, seen = painted(rays, own)
            for c in range(moved.columns):
                dot_p = moved.dot_origin[r, c] + t * moved.dot_index_direction[r, c]
                dot_level = by_value(grid, rays, variant, moved.dot_iso[c])
                dot_p += (dot_level - S.dot(dot_p)) * by_level * d
                dot_N = world_slope(grid, K @ dot_p) + moved.dot_frame[c].transpose() @ G
                dot_view = moved.dot_view_direction[r, c]
                dot_colour = seen * (by_position @ dot_p + by_heading @ dot_view)
                lit = shade_tangent(
                    rays, colour, n, -rays.direction[r], dot_colour, along_sphere(n, scale, dot_N), -dot_view
                )
                moved.dot_image[r, c] = ti.Vector([lit[0], lit[1], lit[2], 0.0])


@ti.kernel
def distance_of_hits(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, not used
):  # fmt: skip
    """depth = distance of the hit, infinite for none."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, _cell, _f, t, _d = hit_of(grid, rays, variant, r)
        rays.depth[r] = t if hit else ti.cast(ti.math.inf, float)


@ti.kernel
def normals_of_hits(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, not used
):  # fmt: skip
    """sum_even = the unit normal of the hit in the world, facing the eye; 0 for none."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, _t, _d = hit_of(grid, rays, variant, r)
        normal = ti.Vector.zero(float, 3)
        if hit:
            G, _K = normal_slope(grid, rays, 0, cell, f)
            normal, _ = normal_of(world_slope(grid, G), -rays.direction[r])
        rays.sum_even[r] = ti.Vector([normal[0], normal[1], normal[2], 0.0])


ISOSURFACE = Surface(
    "isosurface",
    after(
        find_hits,
        Passes(
            shade_hits,
            shade_hits_adjoint,
            shade_hits_tangent,
            move_hits_adjoint,
            move_hits_tangent,
            distance_of_hits,
            normals_of_hits,
            DepthPasses(distance_adjoint, distance_tangent, distance_geometry_adjoint, distance_geometry_tangent),
        ),
    ),
    colour=True,
    background=True,
    step=False,
    shaded=True,
    boxes=False,
    ndc=False,
    parameters=("iso",),
)

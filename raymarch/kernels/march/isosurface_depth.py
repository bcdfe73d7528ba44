"""Depth of an isosurface to first order: distance of the hit by the volume, the rays and the level.

Letters as in `isosurface`: as F(o + t d) stays the level, dot_t = (dot_level - dot_F - S (dot_o + t dot_d)) / (S d), so
that with q = d_depth / (S d) the adjoint is d_F = -q, d_o = -q S, d_d = -q t S and d_level = q.
"""

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.root import hit_of, slope_at_hit


@ti.func
def value_by_level(grid: ti.template(), rays: ti.template(), variant: ti.template()):
    """Slope of the value by the raw level."""
    return activation.density_slope(variant, rays.iso[None] + grid.shift[None]) * grid.inverse_scale[None]


@ti.func
def by_value(grid: ti.template(), rays: ti.template(), variant: ti.template(), by_level):
    """Slope by the value of what has one by the raw level; 0 where the activation is flat: at a kink there is none."""
    slope = value_by_level(grid, rays, variant)
    return ti.select(slope != 0, by_level / ti.select(slope != 0, slope, 1.0), 0.0)


@ti.func
def adjoint_of_distance(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot):
    """What the distance of one ray's hit gives the gradient of density."""
    hit, cell, f, _, d = hit_of(grid, rays, variant, r)
    if hit:
        place = where(grid, cell)
        _S, by_level = slope_at_hit(grid, cell, f, d)
        scatter(grid.d_density, slot, place, f, -rays.depth.grad[r] * by_level)
        mark(grid, place, place)


@ti.kernel
def distance_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, not used
):  # fmt: skip
    """d_density += (d depth / d density)' depth.grad, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_distance(grid, rays, variant, r, slot)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_distance(grid, rays, variant, r, r % grid.slots)


@ti.kernel
def distance_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_depth: ti.template(),  # RayFields (ray,), (ray, column)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, not used
):  # fmt: skip
    """dot_depth[r, e] = (d depth / d density) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, _, d = hit_of(grid, rays, variant, r)
        for e in range(dot_grid.columns):
            dot_depth[r, e] = 0.0
        if hit:
            _S, by_level = slope_at_hit(grid, cell, f, d)
            dot_F = gather(dot_grid.density, cell, f)
            for e in range(dot_grid.columns):
                dot_depth[r, e] = -dot_F[e] * by_level


@ti.kernel
def distance_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), gradients (ray,)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, not used
):  # fmt: skip
    """moved.d_* = (d depth / d geometry)' depth.grad, a ray at a time; d_iso by the value."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, t, d = hit_of(grid, rays, variant, r)
        d_o, d_iso = ti.Vector.zero(float, 3), ti.cast(0.0, float)
        if hit:
            S, by_level = slope_at_hit(grid, cell, f, d)
            q = rays.depth.grad[r] * by_level
            d_o, d_iso = -q * S, by_value(grid, rays, variant, q)
        moved.d_origin[r], moved.d_index_direction[r] = d_o, t * d_o
        moved.d_view_direction[r], moved.d_dt[r], moved.d_iso[r] = ti.Vector.zero(float, 3), 0.0, d_iso
        moved.d_frame[r] = ti.Matrix.zero(float, 3, 3)
        if ti.static(variant.clipped):  # as of the image
            moved.d_place_origin[r], moved.d_place_way[r] = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)


@ti.kernel
def distance_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    dot_depth: ti.template(),  # (ray, column)
    variant: ti.template(), count: int, dt: float, min_transmittance: float,  # Variant, rays, not used
):  # fmt: skip
    """dot_depth[r, c] = (d depth / d geometry) of every column c of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, t, d = hit_of(grid, rays, variant, r)
        for c in range(moved.columns):
            dot_depth[r, c] = 0.0
        if hit:
            S, by_level = slope_at_hit(grid, cell, f, d)
            for c in range(moved.columns):
                dot_p = moved.dot_origin[r, c] + t * moved.dot_index_direction[r, c]
                dot_level = by_value(grid, rays, variant, moved.dot_iso[c])
                dot_depth[r, c] = (dot_level - S.dot(dot_p)) * by_level

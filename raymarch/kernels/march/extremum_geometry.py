"""Geometry gradients of maximum and minimum intensity, the winner's distance, and the two modes.

A winner moves as any sample does: with the ray, with where the ray enters the box and leaves it, and with the step.
"""

from dataclasses import dataclass

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, trilinear, trilinear_slope
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import Passes, after
from raymarch.kernels.modes.extremum import (
    extremum,
    extremum_adjoint,
    extremum_tangent,
    find_winners,
    place_of_winner,
    unit_of,
    winner_of,
)
from raymarch.kernels.rays.cells import ends_of, segment_of
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.nested import box_of, scale_of
from raymarch.kernels.rays.placed import distance_of
from raymarch.kernels.rays.rays import jitter_of, steps_of


@dataclass(frozen=True)
class Extremum(RayMode):
    """Extremum of the value along a ray: of `sign` times it the largest."""

    sign: float = 1.0


@ti.func
def moving(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, dt, s, k):
    """How the winner's value changes: by its place (3,), and its place along the ray by near, far and dt."""
    cell, f, t = place_of_winner(grid, rays, variant, r, dt, s, k)
    v = corners_of_cell(grid.density, where(grid, cell))
    slope = activation.density_slope(variant, trilinear(v, f) + grid.shift[None]) * unit_of(grid, s)
    phase, stretch = jitter_of(rays, variant, r)
    _entry, _way, length = segment_of(grid, rays, variant, r, s)
    begins, wide = ti.cast(k, float), ti.cast(1.0, float)
    if ti.static(variant.jittered):
        begins, wide = ti.max(k - phase, 0.0), ti.min(k + 1.0 - phase, 1.0)
    by_near, by_far, by_dt = ti.cast(1.0, float), ti.cast(0.0, float), stretch * (begins + 0.5 * wide)
    if k >= steps_of(length, stretch * dt, phase):
        by_near, by_far, by_dt = ti.cast(0.5, float), ti.cast(0.5, float), 0.5 * stretch * begins
    return slope * trilinear_slope(v, f), t, by_near, by_far, by_dt


@ti.kernel
def extremum_geometry_adjoint(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit]; the rest not used
):  # fmt: skip
    """moved.d_* = (d image / d geometry)' d_image, a ray at a time."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        _x, s, k = winner_of(rays, r)
        d_o, d_d, d_dt = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3), ti.cast(0.0, float)
        d_place, d_way = ti.Vector.zero(float, 3), ti.Vector.zero(float, 3)
        if s >= 0:
            scale = scale_of(box_of(grid, s))
            d, near, far, enters, leaves = ends_of(grid, rays, variant, r, s)
            by_place, t, by_near, by_far, by_dt = moving(grid, rays, variant, r, dt, s, k)
            d_p = (rays.image.grad[r][0] + rays.image.grad[r][1] + rays.image.grad[r][2]) * by_place
            d_t = d_p.dot(d)
            d_own = d_p
            d_d, d_dt = t * d_p, by_dt * d_t
            meet_adjoint(grid, rays, variant, r, d, scale, near, enters, by_near * d_t, d_own, d_d, d_place, d_way)
            meet_adjoint(grid, rays, variant, r, d, scale, far, leaves, by_far * d_t, d_own, d_d, d_place, d_way)
            d_o = scale * d_own
        moved.d_origin[r], moved.d_index_direction[r], moved.d_dt[r] = d_o, d_d, d_dt
        moved.d_view_direction[r] = ti.Vector.zero(float, 3)
        if ti.static(variant.clipped):
            moved.d_place_origin[r], moved.d_place_way[r] = d_place, d_way


@ti.kernel
def extremum_geometry_tangent(
    grid: ti.template(), rays: ti.template(), moved: ti.template(),  # (x, y, z), (ray,), tangents (ray, column)
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit]; the rest not used
):  # fmt: skip
    """moved.dot_image[r, c] = (d image / d geometry) of every column c of tangents."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        _x, s, k = winner_of(rays, r)
        for c in range(moved.columns):
            moved.dot_image[r, c] = ti.Vector.zero(float, 4)
        if s >= 0:
            d, near, far, enters, leaves = ends_of(grid, rays, variant, r, s)
            by_place, t, by_near, by_far, by_dt = moving(grid, rays, variant, r, dt, s, k)
            scale = scale_of(box_of(grid, s))
            for c in range(moved.columns):
                dot_near = meet_tangent(grid, rays, moved, variant, r, c, d, scale, near, enters)
                dot_far = meet_tangent(grid, rays, moved, variant, r, c, d, scale, far, leaves)
                dot_t = by_near * dot_near + by_far * dot_far + by_dt * moved.dot_dt[c]
                dot_p = scale * moved.dot_origin[r, c] + t * moved.dot_index_direction[r, c] + dot_t * d
                dot = by_place.dot(dot_p)
                moved.dot_image[r, c] = ti.Vector([dot, dot, dot, 0.0])


@ti.kernel
def extremum_depth(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int, dt: float, min_transmittance: float,  # rays, [world unit], not used
):  # fmt: skip
    """depth = distance of the winner, infinite for a ray that has no samples."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        _x, s, k = winner_of(rays, r)
        distance = ti.cast(ti.math.inf, float)
        if s >= 0:
            _cell, _f, t = place_of_winner(grid, rays, variant, r, dt, s, k)
            distance = distance_of(grid, rays.origin[r], rays.direction[r], t / scale_of(box_of(grid, s)))
        rays.depth[r] = distance


PASSES = after(
    find_winners,
    Passes(
        extremum,
        extremum_adjoint,
        extremum_tangent,
        extremum_geometry_adjoint,
        extremum_geometry_tangent,
        extremum_depth,
    ),
)
MAXIMUM, MINIMUM = Extremum("maximum", PASSES), Extremum("minimum", PASSES, sign=-1.0)

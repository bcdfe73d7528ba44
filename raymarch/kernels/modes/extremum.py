"""Maximum and minimum intensity: the largest or smallest value among a ray's samples, in each channel.

Samples are the march's, midpoints of steps. It is raw numbers that are compared, which activations do not put into
another order; of equals the first along the ray wins. Gradients are those of the sample that wins. T is 0 where a ray
has samples; a ray that has none is 0 in all channels, with T 1.
"""

from dataclasses import dataclass

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.cell import corners_of_cell, scatter_corners, trilinear, trilinear_slope, weights
from raymarch.kernels.field.gather import gather
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import Passes, after
from raymarch.kernels.integrator.sample import located
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.cells import cell_at, ends_of, first_sample, segment_of
from raymarch.kernels.rays.meeting import meet_adjoint, meet_tangent
from raymarch.kernels.rays.rays import box_of, distance_of, jitter_of, scale_of, step_at, steps_of


@ti.func
def unit_of(grid: ti.template(), s):
    """What makes of an activated number the value in the world: in a box of twice the size it means half as much."""
    return grid.inverse_scale[None] * scale_of(box_of(grid, s))


@ti.func
def winner_along(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, dt):
    """Sample of ray r that wins: raw number, its segment and step there; segment -1 where the ray has no samples."""
    phase, stretch = jitter_of(rays, variant, r)
    step = stretch * dt
    best, most, at_s, at_k = ti.cast(0.0, float), ti.cast(0.0, float), -1, 0
    for s in range(ti.static(grid.segments)):
        entry, way, length = segment_of(grid, rays, variant, r, s)
        entry += first_sample(grid, s)
        n = steps_of(length, step, phase)
        for k in range(ti.select(length > 0, n + 1, 0)):
            begin, width = step_at(variant, 0.0, length, step, phase, k)
            if width > 0:
                cell, f = located(grid, entry + (begin + 0.5 * width) * way)
                x = gather(grid.density, cell, f)
                high = variant.mode.sign * x
                if ti.static(grid.boxes > 1):
                    high = variant.mode.sign * activation.density(variant, x + grid.shift[None]) * unit_of(grid, s)
                if at_s < 0 or high > most:
                    best, most, at_s, at_k = x, high, s, k
    return best, at_s, at_k


@ti.kernel
def find_winners(grid: ti.template(), rays: ti.template(), variant: ti.template(), count: int, dt: float):
    """sum_odd = each ray's winner as `winner_along` has it; the other kernels come after."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        x, s, k = winner_along(grid, rays, variant, r, dt)
        rays.sum_odd[r] = ti.Vector([x, ti.cast(s, float), ti.cast(k, float), 0.0])


@ti.func
def winner_of(rays: ti.template(), r):
    """Winner of ray r as found."""
    found = rays.sum_odd[r]
    return found[0], ti.cast(found[1], ti.i32), ti.cast(found[2], ti.i32)


@ti.func
def place_of_winner(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, dt, s, k):
    """Sample k of segment s of ray r: the cell's lower corner, position in it, and distance from where it enters."""
    phase, stretch = jitter_of(rays, variant, r)
    entry, way, length = segment_of(grid, rays, variant, r, s)
    _d, near, _far, _enters, _leaves = ends_of(grid, rays, variant, r, s)
    begin, width = step_at(variant, 0.0, length, stretch * dt, phase, k)
    p = entry + (begin + 0.5 * width) * way
    cell = cell_at(p, grid.max_index[None])
    return cell + first_sample(grid, s), p - cell, near + begin + 0.5 * width


@ti.kernel
def extremum(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit]; the rest not used
):  # fmt: skip
    """image = the winner's value, three times, and T."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        x, s, _ = winner_of(rays, r)
        value, T = activation.density(variant, x + grid.shift[None]) * unit_of(grid, s), ti.cast(0.0, float)
        if s < 0:
            value, T = ti.cast(0.0, float), ti.cast(1.0, float)
        rays.image[r] = ti.Vector([value, value, value, T])


@ti.func
def adjoint_of_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot, dt):
    """What one ray gives the gradient of density: all of it to the cell of its winner."""
    x, s, k = winner_of(rays, r)
    if s >= 0:
        cell, f, _ = place_of_winner(grid, rays, variant, r, dt, s, k)
        place = where(grid, cell)
        d_value = rays.image.grad[r][0] + rays.image.grad[r][1] + rays.image.grad[r][2]
        slope = activation.density_slope(variant, x + grid.shift[None]) * unit_of(grid, s)
        scatter_corners(grid.d_density, slot, place, d_value * slope * weights(f))
        mark(grid, place, place)


@ti.kernel
def extremum_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit]; the rest not used
):  # fmt: skip
    """d_density += (d image / d density)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot, dt)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots, dt)


@ti.kernel
def extremum_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit]; the rest not used
):  # fmt: skip
    """dot_image[r, e] = (d image / d density) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        x, s, k = winner_of(rays, r)
        for e in range(dot_grid.columns):
            dot_image[r, e] = ti.Vector.zero(float, 4)
        if s >= 0:
            cell, f, _ = place_of_winner(grid, rays, variant, r, dt, s, k)
            slope = activation.density_slope(variant, x + grid.shift[None]) * unit_of(grid, s)
            dot_x = gather(dot_grid.density, cell, f)
            for e in range(dot_grid.columns):
                dot = slope * dot_x[e]
                dot_image[r, e] = ti.Vector([dot, dot, dot, 0.0])


# Geometry gradients of maximum and minimum intensity, the winner's distance, and the two modes.
#
# A winner moves as any sample does: with the ray, with where the ray enters the box and leaves it, and with the step.


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

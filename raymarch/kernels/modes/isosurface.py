"""Isosurface: the shaded surface of a level at a ray's first hit, with the adjoint and tangent by the volume.

Letters: F raw density, t distance of the hit p = o + t d where F(p) = level, S slope of F in index space, G that by
central differences, K its derivative by the place, A `index_from_world` without its shift, N = A' G, n the unit normal
that faces the eye, q = d_t / (S d). By the implicit function theorem F(p) = level moves the hit by
dot_t = (dot_level - dot_F - S dot_p) / (S d).
T is 0 where a ray hits, 1 where it does not. Kernels ask `first_hit.hit_of`: `find_hits` goes before each.
"""

from dataclasses import dataclass

import taichi as ti

from raymarch import runtime
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import where
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.field.harmonics import basis, basis_slope
from raymarch.kernels.field.touched import add_features, mark
from raymarch.kernels.integrator.depth import index_slope, world_slope
from raymarch.kernels.integrator.geometry import colour_slopes
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.passes import DepthPasses, Passes, after
from raymarch.kernels.integrator.sample import colour_at, fetch
from raymarch.kernels.light.gradient import normal_slope, normal_slope_tangent, scatter_normal_slope
from raymarch.kernels.light.shading import along_sphere, normal_of, painted, shade, shade_adjoint, shade_tangent
from raymarch.kernels.numeric import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.root import find_hits, hit_of, slope_at_hit


@dataclass(frozen=True)
class Surface(RayMode):
    """Surface that a ray meets first, at a level of its own at run time: `rays.iso`, raw."""


@ti.kernel
def shade_hits(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used but the last, (3,)
):  # fmt: skip
    """image = shaded colour of the first hit, or the background; T."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, _t, _d = hit_of(grid, rays, variant, r)
        image = ti.Vector([background[0], background[1], background[2], 1.0])
        if hit:
            place, e = where(grid, cell), -rays.direction[r]
            G, _K = normal_slope(grid, rays, 0, cell, f)
            n, _ = normal_of(world_slope(grid, G), e)
            Y = basis(grid.degree, rays.direction[r])
            own = colour_at(grid, variant, place, f, Y, fetch(grid, place, f))
            colour, _ = painted(rays, ti.Vector([own[0], own[1], own[2]]))
            lit = shade(rays, colour, n, e)
            image = ti.Vector([lit[0], lit[1], lit[2], 0.0])
        rays.image[r] = image


@ti.func
def shaded(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, cell, f, d):
    """What the image of a hit is made of: S, 1 / (S d), G, K, n and its scale, and the colour with its slopes."""
    place = where(grid, cell)
    slope, by_level = slope_at_hit(grid, cell, f, d)
    G, K = normal_slope(grid, rays, 0, cell, f)
    n, scale = normal_of(world_slope(grid, G), -rays.direction[r])
    Y, slope_of_Y = basis(grid.degree, rays.direction[r]), basis_slope(grid.degree, rays.direction[r])
    none = ti.Vector.zero(float, 3)  # of a transfer function
    colour, by_position, by_heading = colour_slopes(grid, variant, place, f, Y, slope_of_Y, none, none, none)
    return slope, by_level, G, K, n, scale, colour, by_position, by_heading


@ti.func
def adjoint_of_hit(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, cell, f, d):
    """d_ of the place p, G, N, colour and view direction by those of the image; q, slope of F and G."""
    slope, by_level, G, K, n, scale, own, by_position, by_heading = shaded(grid, rays, variant, r, cell, f, d)
    colour, seen = painted(rays, own)
    d_image = rays.image.grad[r]
    d_lit = ti.Vector([d_image[0], d_image[1], d_image[2]])
    d_colour, d_n, d_e = shade_adjoint(rays, colour, n, -rays.direction[r], d_lit)
    d_colour *= seen
    d_N = along_sphere(n, scale, d_n)
    d_G = index_slope(grid, d_N)
    d_p = by_position.transpose() @ d_colour + K.transpose() @ d_G
    q = d_p.dot(d) * by_level
    return (
        d_p,
        d_G,
        d_N,
        d_colour * activation.colour_slope(variant, own),
        (by_heading.transpose() @ d_colour - d_e),
        q,
        slope,
        G,
    )


@ti.func
def adjoint_of_ray(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, slot):
    """What one ray gives the gradient of density and features."""
    hit, cell, f, _t, d = hit_of(grid, rays, variant, r)
    if hit:
        place, Y = where(grid, cell), basis(grid.degree, rays.direction[r])
        _d_p, d_G, _d_N, d_total, _d_view, q, _slope, _G = adjoint_of_hit(grid, rays, variant, r, cell, f, d)
        scatter(grid.d_density, slot, place, f, -q)
        scatter_normal_slope(grid, rays, 0, slot, cell, f, d_G)
        d_features = ti.Vector.zero(float, grid.features.n)
        for b in ti.static(range((grid.degree + 1) ** 2)):
            for c in ti.static(range(3)):
                d_features[3 * b + c] = Y[b] * d_total[c]
        add_features(grid, slot, place, f, d_features)
        mark(grid, place, place)


@ti.kernel
def shade_hits_adjoint(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """d_density, d_features += (d image / d them)' d_image, by slots as `march_adjoint`."""
    if ti.static(runtime.on_cpu()):
        for i in range(TASK_STRIDE * grid.slots):
            if i % TASK_STRIDE == 0:
                slot = i // TASK_STRIDE
                for run in range((count + RAYS_PER_CHUNK * grid.slots - 1) // (RAYS_PER_CHUNK * grid.slots)):
                    first = (run * grid.slots + slot) * RAYS_PER_CHUNK
                    for r in range(first, ti.min(first + RAYS_PER_CHUNK, count)):
                        adjoint_of_ray(grid, rays, variant, r, slot)
    else:
        ti.loop_config(block_dim=64)
        for r in range(count):
            adjoint_of_ray(grid, rays, variant, r, r % grid.slots)


@ti.kernel
def shade_hits_tangent(
    grid: ti.template(), dot_grid: ti.template(),  # Fields (x, y, z), and its tangents (x, y, z, column)
    rays: ti.template(), dot_image: ti.template(),  # RayFields (ray,), (ray, column) of 4
    variant: ti.template(), count: int,  # Variant, rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # not used
):  # fmt: skip
    """dot_image[r, e] = (d image / d grid) of each column e of dot_grid."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        hit, cell, f, _t, d = hit_of(grid, rays, variant, r)
        for e in range(dot_grid.columns):
            dot_image[r, e] = ti.Vector.zero(float, 4)
        if hit:
            _S, by_level, _G, K, n, scale, own, by_position, _ = shaded(grid, rays, variant, r, cell, f, d)
            colour, seen = painted(rays, own)
            Y, eye = basis(grid.degree, rays.direction[r]), -rays.direction[r]
            dot_F = gather(dot_grid.density, cell, f)
            dot_slopes = normal_slope_tangent(grid, dot_grid.density, rays, 0, cell, f)
            for e in range(dot_grid.columns):
                dot_p = -dot_F[e] * by_level * d
                dot_G = K @ dot_p + ti.Vector([dot_slopes[0, e], dot_slopes[1, e], dot_slopes[2, e]])
                dot_n = along_sphere(n, scale, world_slope(grid, dot_G))
                dot_colour = by_position @ dot_p
                if ti.static(dot_grid.channels > 0):
                    dot_features, by_total = gather(dot_grid.features, cell, f), activation.colour_slope(variant, own)
                    for b in ti.static(range((grid.degree + 1) ** 2)):
                        for c in ti.static(range(3)):
                            dot_colour[c] += by_total[c] * Y[b] * dot_features[dot_grid.channels * e + 3 * b + c]
                lit = shade_tangent(rays, colour, n, eye, seen * dot_colour, dot_n, ti.Vector.zero(float, 3))
                dot_image[r, e] = ti.Vector([lit[0], lit[1], lit[2], 0.0])


# Depth of an isosurface to first order: distance of the hit by the volume, the rays and the level.
#
# Letters as in `isosurface`: as F(o + t d) stays the level, dot_t = (dot_level - dot_F - S (dot_o + t dot_d)) / (S d),
# so that with q = d_depth / (S d) the adjoint is d_F = -q, d_o = -q S, d_d = -q t S and d_level = q.


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


# Geometry gradients of an isosurface: by the rays' origin and way, the level and the box's frame; normals and depth.
#
# Letters as in `isosurface`. The frame A enters by the normal: index space turned and stretched turns what is seen of
# G.


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

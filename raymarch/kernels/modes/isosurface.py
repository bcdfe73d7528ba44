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
from raymarch.kernels.field.touched import add_features
from raymarch.kernels.integrator.geometry import colour_slopes
from raymarch.kernels.integrator.mode import RayMode
from raymarch.kernels.integrator.sample import colour_at, fetch
from raymarch.kernels.integrator.sample_adjoint import mark
from raymarch.kernels.light.gradient import normal_slope, normal_slope_tangent, scatter_normal_slope
from raymarch.kernels.light.shading import along_sphere, normal_of, painted, shade, shade_adjoint, shade_tangent
from raymarch.kernels.march.normals import index_slope, world_slope
from raymarch.kernels.parallel import RAYS_PER_CHUNK, TASK_STRIDE
from raymarch.kernels.rays.root import hit_of, slope_at_hit


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

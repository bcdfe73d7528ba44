"""Gradient shading of a transfer function: each sample's colour is lit as a surface across the slope of the value.

The normal is the smooth one of isosurfaces, the light `shading`'s. Where the value is level there is no normal, and
what is left is the ambient light, less what `occlusion` keeps off. Levoy 1988, "Display of surfaces from volume data".
"""

import taichi as ti

from raymarch.kernels.march.central_difference import normal_slope
from raymarch.kernels.march.compositing import background_of, composite, contributes, is_alive
from raymarch.kernels.march.mode import RayMode
from raymarch.kernels.march.normals import world_slope
from raymarch.kernels.march.occlusion import openness
from raymarch.kernels.march.passes import Passes
from raymarch.kernels.march.plain_transfer import as_plain, depth_of_samples, normals_of_samples, refusing
from raymarch.kernels.march.sample import fetch, located, ray_segment
from raymarch.kernels.march.shading import AMBIENT, REACH, normal_of, painted, shade
from raymarch.kernels.march.transfer import classified
from raymarch.kernels.rays.nested import box_of
from raymarch.kernels.rays.traverse import empty_steps, place_of


@ti.func
def lit(grid: ti.template(), rays: ti.template(), variant: ti.template(), r, box, p, own):
    """Colour (3,) of a sample at p, lit by the slope of the raw density, whose sign does not matter."""
    cell = ti.cast(p, ti.i32)
    slope, _K = normal_slope(grid, rays, box, cell, p - cell)
    eye = -rays.direction[r]
    n, _scale = normal_of(world_slope(grid, slope), eye)
    colour, _seen = painted(rays, ti.Vector([own[0], own[1], own[2]]))
    light, reach = shade(rays, colour, n, eye), rays.shading[None][REACH]
    if reach > 0:
        light -= colour * rays.shading[None][AMBIENT] * (1.0 - openness(grid, rays, variant, box, p, reach))
    return light


@ti.kernel
def march_lit(
    grid: ti.template(), rays: ti.template(), variant: ti.template(),  # Fields (x, y, z), RayFields (ray,), Variant
    count: int,  # rays
    dt: float, min_transmittance: float, min_weight: float, background: ti.math.vec3,  # [world unit], 0..1, 0..1, (3,)
):  # fmt: skip
    """image = sum over samples of weight times lit colour, + T background."""
    ti.loop_config(block_dim=64)
    for r in range(count):
        T, total = ti.cast(1.0, float), ti.Vector.zero(float, 3)
        per_index, shift, inverse_scale = grid.cells_per_index[None], grid.shift[None], grid.inverse_scale[None]
        for s in range(ti.static(grid.segments)):
            entry, d, length, _Y, step, phase, n = ray_segment(grid, rays, variant, r, s, dt)
            k = 0
            while k <= n and length > 0 and is_alive(variant, T, min_transmittance):
                p, width = place_of(variant, entry, d, length, step, phase, k)
                skip = empty_steps(grid, per_index, p, d, step)
                if skip > 0:
                    k += skip
                else:
                    cell, f = located(grid, p)
                    tau, own = classified(rays, variant, fetch(grid, cell, f), shift, inverse_scale, width)
                    weight, T_after = composite(variant, T, tau)
                    if tau > 0 and contributes(variant, weight, min_weight):
                        total += weight * lit(grid, rays, variant, r, box_of(grid, s), p, own)
                    T = T_after
                    k += 1
        seen = background_of(variant, background)
        rays.image[r] = ti.Vector([total[0] + T * seen[0], total[1] + T * seen[1], total[2] + T * seen[2], T])


WHY = "mode transfer has no gradient when it is shaded; leave shading out, or take mode isosurface"
none = refusing(WHY)

LIT = RayMode(
    "transfer",
    Passes(as_plain(march_lit), none, none, none, none, depth_of_samples, normals_of_samples),
    background=True,
    ends=True,
    ndc=False,
    classifies=True,
    no_gradient=WHY,
)

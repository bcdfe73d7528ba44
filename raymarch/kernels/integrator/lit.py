"""Lit colours: a sample's colour, lit as a surface across the slope of the value; and the normals that light it.

The normal is the smooth one of isosurfaces, the light `shading`'s. Where the value is level there is no normal, and
what is left is the ambient light, of a transfer function less what `occlusion` keeps off. Levoy 1988, "Display of
surfaces from volume data". Letters: G slope of the raw density in index space, K its derivative by the place,
N = A' G with A `index_from_world`, n its unit vector that faces the eye, e. Clear samples are lit too where slopes are
asked for: a table under which they come to be seen is next to this one.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator import colour
from raymarch.kernels.integrator.colour import image_of
from raymarch.kernels.integrator.composited import Quantity, composited
from raymarch.kernels.integrator.normal import write_normal
from raymarch.kernels.light.gradient import normal_slope, normal_slope_tangent, scatter_normal_slope, seen_slope
from raymarch.kernels.light.occlusion import add_openness, openness, openness_slopes, openness_tangent
from raymarch.kernels.light.shading import (
    AMBIENT,
    OCCLUSION_REACH,
    along_sphere,
    index_slope,
    normal_of,
    shade,
    shade_adjoint,
    shade_tangent,
    surface_colour,
    world_slope,
)


@ti.func
def point_of(at: ti.template()):
    """Place of a sample among all."""
    return at.cell + at.f


@ti.func
def reach_of(scene: ti.template()):
    """How far occlusion looks [world unit]; 0 for none."""
    return scene.rays.shading[None][OCCLUSION_REACH]


@ti.func
def normal_at(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """n of a sample and how many N it is, G and K."""
    G, K = normal_slope(scene.grid, scene.rays, at.box, at.cell, at.f)
    n, scale = normal_of(world_slope(scene.grid, G), -ray.heading)
    return n, scale, G, K


@ti.func
def seen_normal(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """n of a sample, for pictures."""
    G = at.slope
    if ti.static(not scene.grid.holds_slopes):
        G = seen_slope(scene.grid, scene.rays, at.box, at.cell, at.f)
    n, _scale = normal_of(world_slope(scene.grid, G), -ray.heading)
    return n


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), table):
    """Colour (3,), lit by the slope of the raw density, whose sign does not matter."""
    n = seen_normal(scene, ray, at)
    own, _seen = surface_colour(scene.rays, colour.read(scene, ray, at, table))
    lit = shade(scene.rays, own, n, -ray.heading)
    if ti.static(scene.variant.mode.classifies):  # an isosurface has no occlusion
        if reach_of(scene) > 0:
            opened = openness(scene.grid, scene.rays, scene.variant, at.box, point_of(at), reach_of(scene))
            lit -= own * scene.rays.shading[None][AMBIENT] * (1.0 - opened)
    return lit


@ti.func
def look(scene: ti.template(), ray: ti.template(), at: ti.template(), o: ti.template(), on):
    """Lit colour, and what it is made of; `dots` G and openness of each column of moved samples."""
    seen = ti.Struct(
        y=ti.Vector.zero(float, 3),
        own=colour.look(scene, ray, at, o, on),
        painted=ti.Vector.zero(float, 3),
        shown=ti.cast(0.0, float),
        n=ti.Vector.zero(float, 3),
        scale=ti.cast(0.0, float),
        G=ti.Vector.zero(float, 3),
        K=ti.Matrix.zero(float, 3, 3),
        ambient=scene.rays.shading[None][AMBIENT],
        open=ti.cast(1.0, float),
        open_by_p=ti.Vector.zero(float, 3),
        open_by_A=ti.Matrix.zero(float, 3, 3),
        dot_G=ti.Matrix.zero(float, 3, ti.static(scene.dot_columns)),
        dot_open=ti.Vector.zero(float, ti.static(scene.dot_columns)),
    )
    if on:
        seen.n, seen.scale, seen.G, seen.K = normal_at(scene, ray, at)
        seen.painted, seen.shown = surface_colour(scene.rays, seen.own.y)
        seen.y = shade(scene.rays, seen.painted, seen.n, -ray.heading)
        if ti.static(scene.dots_move):
            seen.dot_G = normal_slope_tangent(scene.grid, scene.dots.density, scene.rays, at.box, at.cell, at.f)
        if ti.static(scene.variant.mode.classifies):
            if reach_of(scene) > 0:
                look_around(scene, at, seen)
    return seen


@ti.func
def look_around(scene: ti.template(), at: ti.template(), seen: ti.template()):
    """Occlusion of a sample, and how it moves."""
    reach, p = reach_of(scene), point_of(at)
    if ti.static(scene.by_dots):
        seen.open, seen.dot_open = openness_tangent(scene.grid, scene.dots, scene.rays, scene.variant, at.box, p, reach)
    elif ti.static(scene.by_rays):
        seen.open, seen.open_by_p, seen.open_by_A = openness_slopes(
            scene.grid, scene.rays, scene.variant, at.box, p, reach
        )
    else:
        seen.open = openness(scene.grid, scene.rays, scene.variant, at.box, p, reach)
    seen.y -= seen.ambient * (1.0 - seen.open) * seen.painted


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), d_y, slot, d: ti.template()):
    d_own, d_n, d_e = shade_adjoint(scene.rays, seen.painted, seen.n, -ray.heading, d_y)
    d_own -= seen.ambient * (1.0 - seen.open) * d_y
    d_open = seen.ambient * d_y.dot(seen.painted)
    d_N = along_sphere(seen.n, seen.scale, d_n)
    d_G = index_slope(scene.grid, d_N)
    d.p += seen.K.transpose() @ d_G
    d.view -= d_e
    d.frame += seen.G.outer_product(d_N)
    d.p += d_open * seen.open_by_p
    d.frame += d_open * seen.open_by_A
    colour.pull(scene, ray, at, seen.own, seen.shown * d_own, slot, d)
    if ti.static(scene.by_volume):
        if ti.abs(d_N).max() > 0:
            scatter_normal_slope(scene.grid, scene.rays, at.box, slot, at.cell, at.f, d_G)
    if ti.static(scene.by_volume and scene.variant.mode.classifies):
        if reach_of(scene) > 0 and d_open != 0:
            add_openness(scene.grid, scene.rays, scene.variant, slot, at.box, point_of(at), reach_of(scene), d_open)


@ti.func
def push(
    scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), dot_shade, e, move: ti.template()
):
    dot_own = seen.shown * colour.push(scene, ray, at, seen.own, dot_shade, e, move)
    dot_N, dot_open = world_slope(scene.grid, seen.K @ move.p), seen.open_by_p.dot(move.p)
    if ti.static(scene.by_rays):
        dot_N += scene.moved.dot_frame[e].transpose() @ seen.G
        dot_open += (seen.open_by_A * scene.moved.dot_frame[e]).sum()
    if ti.static(scene.by_dots):
        dot_N += world_slope(scene.grid, ti.Vector([seen.dot_G[0, e], seen.dot_G[1, e], seen.dot_G[2, e]]))
        dot_open += seen.dot_open[e]
    dot_n = along_sphere(seen.n, seen.scale, dot_N)
    dot_lit = shade_tangent(scene.rays, seen.painted, seen.n, -ray.heading, dot_own, dot_n, -move.view)
    return dot_lit + seen.ambient * (dot_open * seen.painted - (1.0 - seen.open) * dot_own)


LIT_IMAGE = image_of(Quantity(3, read, look, pull, push))


# Normals: the mean by weight of those that light samples, each of unit length, so that a steep boundary counts by its
# opacity alone: expected normals, as of Verbin et al. 2022, "Ref-NeRF", equation 10.


@ti.func
def read_normal(scene: ti.template(), ray: ti.template(), at: ti.template(), table):
    return seen_normal(scene, ray, at)


@ti.func
def finish_normal(scene: ti.template(), ray: ti.template(), state: ti.template()):
    write_normal(scene, ray, state.sum, state.T)


LIT_NORMAL = composited("lit normals", Quantity(3, read_normal), finish_normal)

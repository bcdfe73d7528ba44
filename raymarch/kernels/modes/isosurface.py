"""Isosurface: the shaded surface of a level at a ray's first hit.

Letters: F raw density, t distance of the hit p = o + t d where F(p) = level, S slope of F in index space, and
q = d_t / (S d). By the implicit function theorem F(p) = level moves the hit by

    dot_t = (dot_level - dot_F - S (dot_o + t dot_d)) / (S d)

so that the adjoint is d_F = -q, d_o = -q S, d_d = -q t S and d_level = q. What is seen of the hit moves with it, and by
itself as `lit` says. T is 0 where a ray hits, 1 where it does not. `find_hits` goes before each pass.
"""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.cell import corners_of_cell
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.field.touched import mark
from raymarch.kernels.integrator.found import FOUND
from raymarch.kernels.integrator.lit import LIT_IMAGE, LIT_NORMAL
from raymarch.kernels.integrator.loops import visit
from raymarch.kernels.integrator.mode import InParts, Mode
from raymarch.kernels.integrator.scene import PULL, PUSH
from raymarch.kernels.rays.first_hit import cubic_of, find_hits, first_root, hit_of, side_of, slope_at_hit


@ti.func
def slope_by_value(scene: ti.template(), ray: ti.template(), by_level):
    """Slope by the value of what has one by the raw level; 0 where the activation is flat: at a kink there is none."""
    slope = activation.density_slope(scene.variant, scene.rays.iso[None] + ray.shift) * ray.inverse_scale
    return ti.select(slope != 0, by_level / ti.select(slope != 0, slope, 1.0), 0.0)


@ti.func
def to_hit(scene: ti.template(), ray: ti.template(), state: ti.template(), back: ti.template(), total: ti.template()):
    """Traversal to the first hit alone, which moves along the ray as the volume, the level and the ray do."""
    hit, cell, f, t, d = hit_of(scene.grid, scene.rays, scene.variant, ray.r)
    if hit:
        none, one = ti.cast(0.0, float), ti.cast(1.0, float)
        seg = ti.Struct(scale=one)  # of the only box
        S, by_level = slope_at_hit(scene.grid, cell, f, d)
        at = ti.Struct(
            s=0, k=0, box=0, scale=one, cell=cell, f=f, t=t, width=none, x=scene.rays.iso[None] + ray.shift, slope=S
        )
        by = ti.Struct(first=one, last=none, step=none, first_width=none, last_width=none, step_width=none)
        if ti.static(scene.task == PUSH):
            hit_tangent(scene, ray, at, S, by_level, total)
        visit(scene, ray, seg, at, by, state, back, total)
        if ti.static(scene.task == PULL):
            q = total.first * by_level
            total.o = total.own - q * S
            total.d -= t * q * S
            total.iso = slope_by_value(scene, ray, q)
            if ti.static(scene.by_volume):
                place = cell_index(scene.grid, cell)
                scatter(scene.grid.d_density, total.slot, place, f, -q)
                mark(scene.grid, place, place)


@ti.func
def hit_tangent(scene: ti.template(), ray: ti.template(), at: ti.template(), S, by_level, total: ti.template()):
    """dot_t of the hit, by column."""
    dot_F = ti.Vector.zero(float, scene.columns)
    if ti.static(scene.dots_move):
        dot_F = gather(scene.dots.density, at.cell, at.f)
    for e in range(scene.columns):
        ahead = -dot_F[e]
        if ti.static(scene.by_rays):
            dot_p = scene.moved.dot_origin[ray.r, e] + at.t * scene.moved.dot_index_direction[ray.r, e]
            ahead += slope_by_value(scene, ray, scene.moved.dot_iso[e]) - S.dot(dot_p)
        total.first[e] = ahead * by_level


@ti.func
def at_cell(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), spot: ti.template(), t, out, state: ti.template()
):
    """The hit, if it is in this cell of a part of the volume; else the side of the level that the ray is on."""
    own, level = spot.cell + seg.first, scene.rays.iso[None]
    v, u = corners_of_cell(scene.grid.density, cell_index(scene.grid, own)) - level, ti.cast(-1.0, float)
    low = side_of(v.min())
    if low == side_of(v.max()):
        if low * spot.side < 0:
            u = ti.cast(0.0, float)
        spot.side = low
    else:
        c = cubic_of(v, seg.entry + t * seg.way - spot.cell, (out - t) * seg.way)
        if spot.side == 0:
            spot.side = side_of(c[0])
        u = first_root(c, spot.side)
    if u >= 0 and state.T > 0:
        hit = t + u * (out - t)
        f, none, one = seg.entry + hit * seg.way - spot.cell, ti.cast(0.0, float), ti.cast(1.0, float)
        S, _by_level = slope_at_hit(scene.grid, own, f, ray.d)
        at = ti.Struct(
            s=0, k=0, box=0, scale=one, cell=own, f=f, t=seg.near + hit, width=none, x=level + ray.shift, slope=S
        )
        scene.integrand.value(scene, ray, at, state)


ISOSURFACE = Mode(
    "isosurface",
    **FOUND,
    search=find_hits,
    traverse=to_hit,
    level_ends=True,
    image=LIT_IMAGE,
    normal=LIT_NORMAL,
    step=False,
    shaded=True,
    boxes=False,
    ndc=False,
    parameters=("iso",),
    in_parts=InParts(at_cell),
)

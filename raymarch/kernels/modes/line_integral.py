"""Line integral of the value along a ray: by two Gauss-Legendre points a cell, and its mean; or by planes of samples.

Along a ray a trilinear field is a cubic in each cell, for which two points are exact: with an activation that is the
identity, or relu where no number is negative, there is no step and no error of one. Of any other activation's value it
is the Gauss-Legendre rule of fourth order in the size of cells, and gradients are those of the rule.

By planes, mode "x-ray-joseph", it is the trapezoid rule between those that a ray meets across the axis that it mostly
goes along, and where it enters and leaves the box (Joseph 1982, "An improved algorithm for reprojecting rays through
pixel images"): half the points, and exact where the field is linear between two planes.

What is differentiated is the rule itself: its points move with the planes between cells, so that slopes are the
image's for any activation.

Letters: t0, t1 where a ray enters and leaves a cell, h = t1 - t0, I the integral, L the length in the box. The integral
is I in each channel, T = e^-I; the mean is I / L, with T 0 where the ray meets the box, else 1.
"""

from dataclasses import dataclass

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.integrator.distance import MIN_OPACITY, distance, gradient_of_sums, write_depth
from raymarch.kernels.integrator.integrand import Integrand, always
from raymarch.kernels.integrator.loops import along_cells, along_planes, move_of, whole_cell
from raymarch.kernels.integrator.mode import MAX_TRANSMITTANCE, InParts, Mode, unclamped
from raymarch.kernels.modes.x_ray import adjoint, composite, tangent
from raymarch.kernels.numeric import clamp_high, exp
from raymarch.kernels.rays.cells import segment_of
from raymarch.kernels.rays.rays import box_of, scale_of


@dataclass(frozen=True)
class LineIntegral(Mode):
    """Line integral of the value along a ray, or its `mean` over the length in the box."""

    mean: bool = False


@ti.func
def length_of(grid: ti.template(), rays: ti.template(), variant: ti.template(), r):
    """L [world unit]."""
    total = ti.cast(0.0, float)
    for s in range(ti.static(grid.segments)):
        _entry, _way, length = segment_of(grid, rays, variant, r, s)
        total += ti.max(length, 0.0) / scale_of(box_of(grid, s))
    return total


@ti.func
def image_of(variant: ti.template(), total, length):
    """Image (4,) of an integral and the length it is over."""
    value, T = total, clamp_high(exp(-total), MAX_TRANSMITTANCE)
    if ti.static(variant.mode.mean):
        value, T = ti.cast(0.0, float), ti.cast(1.0, float)
        if length > 0:
            value, T = total / length, ti.cast(0.0, float)
    return ti.Vector([value, value, value, T])


@ti.func
def dot_of(variant: ti.template(), dot_total, dot_length, total, T, length):
    """Tangent (4,) of `image_of`."""
    dot, dot_T = dot_total, -unclamped(T) * dot_total
    if ti.static(variant.mode.mean):
        dot, dot_T = ti.cast(0.0, float), ti.cast(0.0, float)
        if length > 0:
            dot = (dot_total - total / length * dot_length) / length
    return ti.Vector([dot, dot, dot, dot_T])


@ti.func
def length_along(scene: ti.template(), ray: ti.template()):
    """L [world unit] of a ray."""
    return length_of(scene.grid, scene.rays, scene.variant, ray.r)


@ti.func
def start(scene: ti.template(), ray: ti.template()):
    return ti.Struct(total=ti.cast(0.0, float))


@ti.func
def value(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    state.total += at.width * activation.density(scene.variant, at.x)


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    total = state.total * ray.inverse_scale
    scene.rays.image[ray.r] = image_of(scene.variant, total, length_along(scene, ray))


@ti.func
def start_pull(scene: ti.template(), ray: ti.template()):
    """Gradients by the integral and by the length, from d_image and the image as it was marched."""
    image, d_image = scene.rays.image[ray.r], scene.rays.image.grad[ray.r]
    d_total, d_length = d_image[0] + d_image[1] + d_image[2], ti.cast(0.0, float)
    if ti.static(scene.variant.mode.mean):
        d_total /= ti.max(length_along(scene, ray), 1e-30)
        d_length = -d_total * image[0]
    else:
        d_total -= unclamped(image[3]) * d_image[3]
    return ti.Struct(total=d_total * ray.inverse_scale, length=d_length)


@ti.func
def pull(
    scene: ti.template(),
    ray: ti.template(),
    at: ti.template(),
    state: ti.template(),
    back: ti.template(),
    slot,
    d: ti.template(),
):
    d.x += back.total * at.width * activation.density_slope(scene.variant, at.x)
    if ti.static(scene.by_rays):
        d.width += back.total * activation.density(scene.variant, at.x) + back.length / at.scale


@ti.func
def start_push(scene: ti.template(), ray: ti.template()):
    return ti.Struct(total=ti.Vector.zero(float, scene.columns), length=ti.Vector.zero(float, scene.columns))


@ti.func
def push(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    at: ti.template(),
    by: ti.template(),
    dot_x,
    state: ti.template(),
    dot: ti.template(),
    total: ti.template(),
):
    y, slope = activation.density(scene.variant, at.x), activation.density_slope(scene.variant, at.x)
    state.total += at.width * y
    for e in range(scene.columns):
        move = move_of(scene, ray, seg, at, by, dot_x, total, e)
        dot.total[e] += move.width * y + at.width * slope * move.x
        dot.length[e] += move.width / at.scale


@ti.func
def finish_push(scene: ti.template(), ray: ti.template(), state: ti.template(), dot: ti.template()):
    total, length = state.total * ray.inverse_scale, length_along(scene, ray)
    T = image_of(scene.variant, total, length)[3]
    for e in range(scene.columns):
        dot_total = dot.total[e] * ray.inverse_scale
        scene.out[ray.r, e] = dot_of(scene.variant, dot_total, dot.length[e], total, T, length)


# Depth: mean distance of the points by what they add; of the mean, whose values are no extinction, by the size of it.


@ti.func
def sign_of(scene: ti.template(), y):
    """Factor of what a point adds in its weight."""
    sign = ti.cast(1.0, float)
    if ti.static(scene.variant.mode.mean):
        sign = ti.select(y < 0, ti.cast(-1.0, float), sign)
    return sign


@ti.func
def start_depth(scene: ti.template(), ray: ti.template()):
    return ti.Struct(weights=ti.cast(0.0, float), moment=ti.cast(0.0, float))


@ti.func
def add_depth(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    y = activation.density(scene.variant, at.x)
    weight = sign_of(scene, y) * at.width * ray.inverse_scale * y
    state.weights += weight
    state.moment += weight * distance(scene, ray, at)


@ti.func
def finish_depth(scene: ti.template(), ray: ti.template(), state: ti.template()):
    """Infinite where less than `MIN_OPACITY` of the light is stopped; of the mean where there is nothing at all."""
    met = 1.0 - ti.exp(-state.weights) >= MIN_OPACITY
    if ti.static(scene.variant.mode.mean):
        met = state.weights > 0
    write_depth(scene, ray, met, state.moment, state.weights)


@ti.func
def start_pull_depth(scene: ti.template(), ray: ti.template()):
    return ti.Struct(d_y=gradient_of_sums(scene, ray) * ray.inverse_scale)


@ti.func
def pull_depth(
    scene: ti.template(),
    ray: ti.template(),
    at: ti.template(),
    state: ti.template(),
    back: ti.template(),
    slot,
    d: ti.template(),
):
    y = activation.density(scene.variant, at.x)
    worth = sign_of(scene, y) * (back.d_y[0] * distance(scene, ray, at) + back.d_y[1])
    d.x += worth * at.width * activation.density_slope(scene.variant, at.x)
    if ti.static(scene.by_rays):
        d.width += worth * y
        d.t += sign_of(scene, y) * back.d_y[0] * at.width * y / at.scale


@ti.func
def start_push_depth(scene: ti.template(), ray: ti.template()):
    return ti.Struct(mean=ti.Vector.zero(float, scene.columns))


@ti.func
def push_depth(
    scene: ti.template(),
    ray: ti.template(),
    seg: ti.template(),
    at: ti.template(),
    by: ti.template(),
    dot_x,
    state: ti.template(),
    dot: ti.template(),
    total: ti.template(),
):
    y, slope = activation.density(scene.variant, at.x), activation.density_slope(scene.variant, at.x)
    apart = distance(scene, ray, at) - scene.rays.depth[ray.r]
    for e in range(scene.columns):
        move = move_of(scene, ray, seg, at, by, dot_x, total, e)
        dot_weight = move.width * y + at.width * slope * move.x
        dot.mean[e] += sign_of(scene, y) * (dot_weight * apart + at.width * y * move.t / at.scale)


@ti.func
def finish_push_depth(scene: ti.template(), ray: ti.template(), state: ti.template(), dot: ti.template()):
    weights = scene.rays.weights[ray.r]
    for e in range(scene.columns):
        moved = ti.cast(0.0, float)
        if weights > 0:
            moved = dot.mean[e] * ray.inverse_scale / weights
        scene.out[ray.r, e] = moved


# In parts of a volume: the sum so far, or both sums of depth, is all that a ray carries.


@ti.func
def pause(scene: ti.template(), state: ti.template()):
    return ti.Vector([state.total, 0.0, 0.0, 0.0])


@ti.func
def resume(scene: ti.template(), numbers):
    return ti.Struct(total=numbers[0])


@ti.func
def pause_depth(scene: ti.template(), state: ti.template()):
    return ti.Vector([state.weights, state.moment, 0.0, 0.0])


@ti.func
def resume_depth(scene: ti.template(), numbers):
    return ti.Struct(weights=numbers[0], moment=numbers[1])


@ti.func
def at_cell(
    scene: ti.template(), ray: ti.template(), seg: ti.template(), spot: ti.template(), t, out, state: ti.template()
):
    nothing = ti.Struct(none=0)
    whole_cell(scene, ray, seg, spot.cell, t, out, state, nothing, nothing)


IMAGE = Integrand(
    "line integral",
    start,
    value,
    always,
    finish,
    start_pull,
    pull,
    start_push,
    push,
    finish_push,
    pause=pause,
    resume=resume,
)
DEPTH = Integrand(
    "depth of a line integral",
    start_depth,
    add_depth,
    always,
    finish_depth,
    start_pull_depth,
    pull_depth,
    start_push_depth,
    push_depth,
    finish_push_depth,
    pause=pause_depth,
    resume=resume_depth,
)
RULE = {"composite": composite, "tangent": tangent, "adjoint": adjoint, "power": 0}
HOW = {
    "colour": False, "background": False, "ends": False, "step": False, "has_normals": False,
    "image": IMAGE, "distance": DEPTH,
}  # fmt: skip
BY_CELLS = InParts(at_cell)
X_RAY_EXACT = LineIntegral("x-ray-exact", **RULE, **HOW, traverse=along_cells, in_parts=BY_CELLS)
X_RAY_JOSEPH = LineIntegral("x-ray-joseph", **RULE, **HOW, traverse=along_planes, in_parts=None)
AVERAGE = LineIntegral("average", **RULE, **HOW, traverse=along_cells, in_parts=BY_CELLS, mean=True)

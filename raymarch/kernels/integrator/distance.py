"""Depth of a mode: mean distance of its samples by their weights, its adjoint and its tangent.

    depth = sum_k weight_k t_k / W,   W = sum_k weight_k

Both sums are composited as one quantity (t, 1), so that with d_y = (d_depth, -d_depth depth) / W a weight is worth
d_depth (t_k - depth) / W: what is left of T behind the last sample counts for nothing. Where nothing is met depth is
infinite and has no slope. In NDC a distance has slopes of its own by the rays, which are not here.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.composited import Quantity, composited, worth_of_light
from raymarch.kernels.rays.rays import distance_of

MIN_OPACITY = 0.01  # opacity under which a ray counts as having met nothing
MIN_WEIGHT_SUM = 1e-12  # of the weights' sum


@ti.func
def distance(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """Distance of a sample in the world."""
    return distance_of(scene.grid, scene.rays.origin[ray.r], scene.rays.direction[ray.r], at.t / at.scale)


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), shade):
    return ti.Vector([distance(scene, ray, at), 1.0])


@ti.func
def look(scene: ti.template(), ray: ti.template(), at: ti.template(), o: ti.template(), on):
    return ti.Struct(y=ti.Vector([distance(scene, ray, at), 1.0]))


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), d_y, slot, d: ti.template()):
    d.t += d_y[0] / at.scale


@ti.func
def push(
    scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), dot_shade, e, move: ti.template()
):
    return ti.Vector([move.t / at.scale, 0.0])


@ti.func
def write_depth(scene: ti.template(), ray: ti.template(), met, moment, weights):
    """depth and the sum that it is the mean by: infinite and 0 where nothing is met."""
    scene.rays.depth[ray.r] = ti.select(met, moment / ti.select(met, weights, 1.0), ti.math.inf)
    scene.rays.weights[ray.r] = ti.select(met, weights, 0.0)


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    write_depth(scene, ray, 1.0 - state.T >= MIN_OPACITY, state.sum[0], ti.max(state.sum[1], MIN_WEIGHT_SUM))


@ti.func
def gradient_of_sums(scene: ti.template(), ray: ti.template()):
    """Gradients (2,) of both sums; of a ray that meets nothing 0, whatever d_depth is."""
    d_y = ti.Vector.zero(float, 2)
    if scene.rays.weights[ray.r] > 0:
        d_y[0] = scene.rays.depth.grad[ray.r] / scene.rays.weights[ray.r]
        d_y[1] = -d_y[0] * scene.rays.depth[ray.r]
    return d_y


@ti.func
def start_pull(scene: ti.template(), ray: ti.template()):
    zero, carry = ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(scene.variant.mode.looks_ahead):
        carry = zero
    return worth_of_light(gradient_of_sums(scene, ray), zero, carry, zero)


@ti.func
def finish_push(scene: ti.template(), ray: ti.template(), state: ti.template(), dot: ti.template()):
    weights = scene.rays.weights[ray.r]
    for e in range(scene.columns):
        moved = ti.cast(0.0, float)
        if weights > 0:
            moved = (dot.sum[e, 0] - scene.rays.depth[ray.r] * dot.sum[e, 1]) / weights
        scene.out[ray.r, e] = moved


DISTANCE = composited("depth", Quantity(2, read, look, pull, push), finish, start_pull, finish_push)

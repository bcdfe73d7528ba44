"""Depth loss of rays whose distance is known: the mean, over where a ray's light ends, of a robust penalty.

    loss = sum_k weight_k rho((t_k - target) / delta) + T miss,   rho(x) = x^2 / (1 + x^2)   (Geman and McClure 1985)

All light at the target costs nothing; light that ends elsewhere, or does not end (T behind the last sample), costs up
to 1. So it is of where the light ends, not of its mean alone: what hangs before the surface goes, where the mean would
be right too (Deng et al. 2022, "Depth-supervised NeRF", has the same aim). An error far over delta has a bounded cost
and no slope, so that wrong depths do little.

A ray's `target` is (target, delta, miss, its weight among rays); its `image` becomes (loss, sum of weight t, sum of
weight, T).
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.composited import Quantity, composited, worth_of_light
from raymarch.kernels.integrator.distance import distance

LANES = 3


@ti.func
def penalty(x):
    """x^2 / (1 + x^2)."""
    return x * x / (1.0 + x * x)


@ti.func
def penalty_slope(x):
    return 2.0 * x / (1.0 + x * x) ** 2


@ti.func
def values(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """Penalty, distance and 1 of a sample."""
    t, target = distance(scene, ray, at), scene.rays.target[ray.r]
    return ti.Vector([penalty((t - target[0]) / target[1]), t, 1.0])


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), shade):
    return values(scene, ray, at)


@ti.func
def look(scene: ti.template(), ray: ti.template(), at: ti.template(), o: ti.template(), on):
    return ti.Struct(y=values(scene, ray, at))


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), d_y, slot, d: ti.template()):
    target = scene.rays.target[ray.r]
    d.t += d_y[0] * penalty_slope((seen.y[1] - target[0]) / target[1]) / (target[1] * at.scale)


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    loss = state.sum[0] + state.T * scene.rays.target[ray.r][2]
    scene.rays.image[ray.r] = ti.Vector([loss, state.sum[1], state.sum[2], state.T])


@ti.func
def start_pull(scene: ti.template(), ray: ti.template()):
    d_loss, zero, carry = scene.rays.image.grad[ray.r][0], ti.cast(0.0, float), ti.cast(1.0, float)
    if ti.static(scene.variant.mode.looks_ahead):
        carry = zero
    behind = d_loss * scene.rays.target[ray.r][2]
    return worth_of_light(ti.Vector([d_loss, zero, zero]), d_loss * scene.rays.image[ray.r][0], carry, behind)


DEPTH_LOSS = composited("depth loss", Quantity(LANES, read, look, pull), finish, start_pull)


@ti.kernel
def add_depth_loss(
    depths: ti.template(),
    rays: ti.template(),  # RayFields twice: of the depths, and of the fit, which has the loss
    count: int,
    weight: ti.f64,
):
    """loss += weight mean over rays of their depth loss, each by its own weight, `target[3]`."""
    for r in range(count):
        rays.loss[None] += weight * ti.cast(depths.target[r][3] * depths.image[r][0], ti.f64) / count


@ti.kernel
def add_depth_loss_adjoint(depths: ti.template(), rays: ti.template(), count: int, weight: ti.f64):
    """image.grad of the depths' rays: loss.grad times the derivative of `add_depth_loss`."""
    for r in range(count):
        each = ti.cast(weight * rays.loss.grad[None] / count, float)
        depths.image.grad[r] = ti.Vector([each * depths.target[r][3], 0.0, 0.0, 0.0])

"""Compositing of any quantity by a mode's rule: sum over samples of weight times quantity, its adjoint and tangent.

Colour, distance and normal of a mode differ in the quantity alone. Letters as in `march`: T transmittance, tau optical
depth, y the quantity of a sample; with d_y the gradient of the sum, a weight is worth d_y y. What the sum still gains
by the light behind a sample is carried along as in `remaining`.
"""

from collections.abc import Callable

from raymarch.engine import ti
from raymarch.engine.record import record, replace
from raymarch.kernels.field import activation
from raymarch.kernels.field.tables import (
    MAX_KNOT_VALUE,
    add_to_knots,
    classify,
    extinction,
    knot_below,
    shade_of,
    slope_of,
)
from raymarch.kernels.integrator.integrand import KEPT_NUMBERS, Integrand
from raymarch.kernels.integrator.lookahead import LOOKAHEAD_FRACTION, optical_depth_gradient, pass_sample
from raymarch.kernels.integrator.loops import along_steps, move_of
from raymarch.kernels.integrator.mode import composite, contributes, is_alive
from raymarch.kernels.integrator.scene import Scene
from raymarch.kernels.numeric import clamp_high, clamp_low

AS_IMAGE = 0  # lanes of a colour


@record()
class Quantity:
    """Quantity of a sample that is composited, `@ti.func`s; `shade` is the table's colour and opacity, if there is one.

    Attributes:
        lanes: how many numbers it is; `AS_IMAGE` for as many as a pixel's colour has.
        read: (scene, ray, at, shade) -> y.
        look: (scene, ray, at, optics, on) -> struct of y and what its derivatives are made of; y is 0 where not `on`.
        pull: (scene, ray, at, seen, d_y, slot, d): adds to the struct d, as `Integrand.pull`, and to d.shade.
        push: (scene, ray, at, seen, dot_shade, e, move) -> dot_y of column e.
    """

    lanes: int
    read: Callable
    look: Callable | None = None
    pull: Callable | None = None
    push: Callable | None = None


def lanes_of(scene: Scene) -> int:
    """Count of the numbers of the scene's quantity."""
    return scene.integrand.quantity.lanes or scene.rays.colours


def within_interval(scene: Scene) -> bool:
    """Whether the traversal says in which interval of the table a sample lies, as `at.k`."""
    return scene.variant.mode.level_ends and scene.variant.mode.classifies


@ti.func
def optics_of(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """sigma and its slope by x; of a table the shade, with its slope by x, and where in the table that is."""
    sigma = activation.density(scene.variant, at.x) * ray.inverse_scale
    by_x = activation.density_slope(scene.variant, at.x) * ray.inverse_scale
    o = ti.Struct(
        sigma=sigma,
        by_x=by_x,
        knot=0,
        beyond=ti.cast(0.0, float),
        by_opacity=ti.cast(0.0, float),
        shade=ti.Vector.zero(float, 4),
        shade_by_x=ti.Vector.zero(float, 4),
    )
    if ti.static(scene.variant.mode.classifies):
        if ti.static(within_interval(scene)):
            o.knot = ti.max(at.k, 0)
            above = sigma - scene.rays.table.place[None][0] - scene.rays.table.above[o.knot]
            o.beyond = clamp_high(clamp_low(above, 0.0), MAX_KNOT_VALUE)
            o.shade_by_x = scene.rays.table.rise[o.knot] * ti.select(at.k >= 0, by_x, 0.0)
        else:
            o.knot, o.beyond = knot_below(scene.rays.table, sigma)
            o.shade_by_x = slope_of(scene.rays.table, o.knot, sigma) * by_x
        o.shade = shade_of(scene.rays.table, o.knot, o.beyond)
        o.sigma, o.by_opacity = extinction(scene.rays.table, o.shade[3])
        o.by_x = o.by_opacity * o.shade_by_x[3]
    return o


@ti.func
def depth_and_shade(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """tau of a sample, and its shade where there is a table."""
    tau, shade = ti.cast(0.0, float), ti.Vector.zero(float, 4)
    if ti.static(within_interval(scene)):
        o = optics_of(scene, ray, at)
        tau, shade = o.sigma * at.width, o.shade
    else:
        shade[3] = at.x
        tau, shade = classify(scene.rays, scene.variant, shade, ti.cast(0.0, float), ray.inverse_scale, at.width)
    return tau, shade


@ti.func
def start(scene: ti.template(), ray: ti.template()):
    return ti.Struct(T=ti.cast(1.0, float), sum=ti.Vector.zero(float, ti.static(lanes_of(scene))))


@ti.func
def goes_on(scene: ti.template(), ray: ti.template(), state: ti.template()):
    return is_alive(scene.variant, state.T, ray.min_transmittance)


@ti.func
def value(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    tau, shade = depth_and_shade(scene, ray, at)
    weight, T_after = composite(scene.variant, state.T, tau)
    if weight != 0 and contributes(scene.variant, weight, ray.min_weight):
        state.sum += weight * scene.integrand.quantity.read(scene, ray, at, shade)
    state.T = T_after


@ti.func
def pause(scene: ti.template(), state: ti.template()):
    """T and the sums, as numbers."""
    numbers = ti.Vector.zero(float, KEPT_NUMBERS)
    numbers[0] = state.T
    for c in ti.static(range(lanes_of(scene))):
        numbers[ti.static(1 + c)] = state.sum[c]
    return numbers


@ti.func
def resume(scene: ti.template(), numbers):
    """T and the sums again."""
    state = start(scene, numbers)
    state.T = numbers[0]
    for c in ti.static(range(lanes_of(scene))):
        state.sum[c] = numbers[ti.static(1 + c)]
    return state


@ti.func
def worth_of_light(d_y, remaining, carry, behind):
    """What a pull carries: gradient of the sum, what is still to come, what T behind the last sample is worth."""
    return ti.Struct(d_y=d_y, remaining=remaining, carry=carry, behind=behind)


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
    if ti.static(scene.variant.mode.looks_before):
        look_ahead(scene, ray, at.s, at.k, state.T, back)
    o = optics_of(scene, ray, at)
    tau = o.sigma * at.width
    weight, T_after = composite(scene.variant, state.T, tau)
    on = contributes(scene.variant, weight, ray.min_weight)
    seen = scene.integrand.quantity.look(scene, ray, at, o, on)
    d_weight = back.d_y.dot(seen.y)
    back.remaining, back.carry = pass_sample(scene.variant, state.T, tau, weight, d_weight, back.remaining, back.carry)
    if ti.static(scene.variant.mode.looks_behind):
        look_ahead(scene, ray, at.s, at.k + 1, T_after, back)
    d_tau = optical_depth_gradient(scene.variant, state.T, tau, T_after, d_weight, back.remaining, back.carry)
    d.width += d_tau * o.sigma
    d.shade[3] += d_tau * at.width * o.by_opacity
    if on:
        scene.integrand.quantity.pull(scene, ray, at, seen, weight * back.d_y, slot, d)
    if ti.static(scene.variant.mode.classifies):
        d.x += d.shade.dot(o.shade_by_x)
        if ti.static(scene.by_volume):
            add_to_knots(scene.rays, slot, o.knot, o.beyond, d.shade)
    else:
        d.x += d_tau * at.width * o.by_x
    state.T = T_after


@ti.func
def look_ahead(scene: ti.template(), ray: ti.template(), s, k, T, back: ti.template()):
    """Find anew what light before sample k of segment s is worth, where what was known of it has faded."""
    if ti.abs(back.carry) < LOOKAHEAD_FRACTION:
        on = ti.Struct(T=T, dot_T=ti.cast(1.0, float), gain=ti.cast(0.0, float), d_y=back.d_y)
        nothing = ti.Struct(none=0)
        along_steps(scene.ahead, ray, s, k, on, nothing, nothing)
        back.remaining, back.carry = on.gain + on.dot_T * back.behind, ti.cast(1.0, float)


@ti.func
def value_ahead(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    """Tangent of the sum by T alone."""
    tau, shade = depth_and_shade(scene, ray, at)
    weight, T_after = composite(scene.variant, state.T, tau)
    dot_weight, dot_T_after = scene.variant.mode.tangent(state.T, tau, state.dot_T, ti.cast(0.0, float))
    if dot_weight != 0 and contributes(scene.variant, weight, ray.min_weight):
        state.gain += dot_weight * state.d_y.dot(scene.integrand.quantity.read(scene, ray, at, shade))
    state.T, state.dot_T = T_after, dot_T_after


@ti.func
def goes_on_ahead(scene: ti.template(), ray: ti.template(), state: ti.template()):
    return state.dot_T != 0 and is_alive(scene.variant, state.T, ray.min_transmittance)


@ti.func
def start_push(scene: ti.template(), ray: ti.template()):
    return ti.Struct(
        T=ti.Vector.zero(float, scene.columns),
        sum=ti.Matrix.zero(float, scene.columns, ti.static(lanes_of(scene))),
    )


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
    o = optics_of(scene, ray, at)
    tau = o.sigma * at.width
    weight, T_after = composite(scene.variant, state.T, tau)
    on = contributes(scene.variant, weight, ray.min_weight)
    seen = scene.integrand.quantity.look(scene, ray, at, o, on)
    for e in range(scene.columns):
        move = move_of(scene, ray, seg, at, by, dot_x, total, e)
        dot_shade, dot_sigma = move.x * o.shade_by_x, move.x * o.by_x
        if ti.static(scene.variant.mode.classifies and scene.by_dots):
            low, high = scene.dots.table[o.knot, e], scene.dots.table[o.knot + 1, e]
            of_table = low + (high - low) * (o.beyond * scene.rays.table.per_value[o.knot])
            dot_shade += of_table
            dot_sigma += o.by_opacity * of_table[3]
        dot_weight, dot_T_after = scene.variant.mode.tangent(
            state.T, tau, dot.T[e], dot_sigma * at.width + o.sigma * move.width
        )
        if on:
            dot_sum = dot_weight * seen.y + weight * scene.integrand.quantity.push(
                scene, ray, at, seen, dot_shade, e, move
            )
            for c in ti.static(range(lanes_of(scene))):
                dot.sum[e, c] += dot_sum[c]
        dot.T[e] = dot_T_after
    state.T = T_after


def composited(
    name: str, quantity: Quantity, finish: Callable, start_pull=None, finish_push=None, sloped=False
) -> Integrand:
    """Integrand that composites a quantity; `finish` and the like say where the sums go, and come from."""
    whole = Integrand(
        name, start, value, goes_on, finish, start_pull, pull, start_push, push, finish_push, sloped, quantity
    )
    whole = replace(whole, pause=pause, resume=resume)
    return replace(whole, ahead=replace(whole, value=value_ahead, goes_on=goes_on_ahead))

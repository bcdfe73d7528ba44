"""Multi-volume rendering: several grids composited along one ray, each by its own activation or transfer function.

Where volumes overlap their optical depths add up, tau = sum_i tau_i, and so does what they emit: a sample adds
T phi(tau) sum_i tau_i colour_i with phi(tau) = (1 - e^-tau) / tau, emission and absorption of the mean colour, weighted
by extinction (Max 1995, "Optical models for direct volume rendering"). Nothing is divided by an extinction of zero.

Rays are cut into stretches (`integrator/stretches`). Letters as in `march`; i counts volumes.
"""

from collections.abc import Callable
from typing import Any

from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import gather, scatter
from raymarch.kernels.field.harmonics import basis
from raymarch.kernels.field.tables import (
    add_to_knots,
    classify,
    extinction,
    knot_below,
    optics,
    shade_of,
    table_tangent,
)
from raymarch.kernels.field.touched import add_features, mark
from raymarch.kernels.integrator.distance import MIN_OPACITY, MIN_WEIGHT_SUM
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.loops import integrate, integrate_pull, integrate_push
from raymarch.kernels.integrator.mode import contributes, is_alive
from raymarch.kernels.integrator.sample import colour_at, fetch, locate
from raymarch.kernels.integrator.scene import PULL, PUSH, VALUE
from raymarch.kernels.integrator.stretches import (
    Member,
    inside_of,
    look_ahead,
    matrix_row,
    next_cut,
    point_in,
    spans_of,
)
from raymarch.kernels.numeric import exp
from raymarch.kernels.rays.rays import (
    MAX_DISTANCE,
    jitter_of,
    step_at,
    steps_of,
)

MAX_SERIES_DEPTH, SERIES_TERMS = 0.3, 11  # optical depth up to which phi is summed up as a series, of so many terms


@record()
class Together:
    """Scene of several volumes: what the loop along rays is compiled for, as `Scene` of one.

    Attributes:
        members: the volumes, unrolled over.
        rays: fields of the rays.
        task: `VALUE`, `PULL` by all volumes, or `PUSH`.
        dots: of a push the tangents of each, of one column.
        out: of a push where it goes, (ray, 1).
    """

    members: tuple[Member, ...]
    rays: Any
    task: str = VALUE
    dots: Any = None
    out: Any = None

    @property
    def by_volume(self) -> bool:
        """Whether a pass adds to gradients of samples, so that rays are dealt to slots."""
        return self.task == PULL

    @property
    def grid(self) -> Any:
        """Grid whose slots are all volumes'."""
        return self.members[0].grid

    @property
    def variant(self) -> Variant:
        """Variant whose jitter and rule are all volumes'."""
        return self.members[0].variant

    @property
    def go(self) -> Callable:
        """What goes along one ray."""
        return go_together


def max_degree(members) -> int:
    """Highest degree of the volumes' harmonics: lower ones are the first of them."""
    return max(member.grid.degree for member in members)


def has_colour(member) -> bool:
    """Whether a sample's colour comes with its density, in one read."""
    return member.grid.degree == 0 or member.variant.mode.classifies


@ti.func
def phi(tau, e):
    """(1 - e^-tau) / tau, e being e^-tau; 1 at 0."""
    y = ti.cast(1.0, float)
    if ti.abs(tau) < MAX_SERIES_DEPTH:
        for n in ti.static(range(SERIES_TERMS, 1, -1)):
            y = 1.0 - tau * (1.0 / n) * y
    else:
        y = (1.0 - e) / tau
    return y


@ti.func
def phi_slope(tau, e):
    """Derivative of phi; -1/2 at 0."""
    y = ti.cast(1.0, float)
    if ti.abs(tau) < MAX_SERIES_DEPTH:
        for n in ti.static(range(SERIES_TERMS, 0, -1)):
            y = 1.0 - tau * ((n + 1.0) / (n * (n + 2.0))) * y
        y *= -0.5
    else:
        y = (e * (1.0 + tau) - 1.0) / (tau * tau)
    return y


@ti.func
def sample_of(member: ti.template(), p, width):
    """Sample of a volume: its cell, the position in it, what is stored there, optical depth, and `colour_at`'s raw."""
    cell, f = locate(member.grid, p)
    raw = fetch(member.grid, cell, f)
    shift, inverse_scale = member.grid.shift[None], member.grid.inverse_scale[None]
    tau, shade = classify(member.own, member.variant, raw, shift, inverse_scale, width)
    return cell, f, raw, tau, shade


@ti.func
def place_in(ray: ti.template(), at: ti.template(), i: ti.template()):
    """Where volume i has a sample, in its index space."""
    return point_in(ray.near, ray.far, ray.entry, ray.way, at.begin, at.s, i)


# The loop, of all tasks: from cut to cut, and step by step between two of them.


@ti.func
def go_together(scene: ti.template(), r, slot, dt, min_transmittance, min_weight, background):
    """Ray r by the scene's task."""
    near, far, entry, way = spans_of(scene.members, scene.rays, r)
    phase, stretch = jitter_of(scene.rays, scene.variant, r)
    ray = ti.Struct(
        r=r,
        slot=slot,
        near=near,
        far=far,
        entry=entry,
        way=way,
        phase=phase,
        step=stretch * dt,
        Y=basis(ti.static(max_degree(scene.members)), scene.rays.direction[r]),
        min_transmittance=min_transmittance,
        min_weight=min_weight,
        behind=ti.Vector([background[0], background[1], background[2], 1.0]),
    )
    state = start(scene, ray)
    begin = next_cut(near, far, -1.0)
    while begin < MAX_DISTANCE:
        end = next_cut(near, far, begin)
        if end < MAX_DISTANCE:
            along_stretch(scene, ray, begin, end, state)
        begin = end
    finish(scene, ray, state)


@ti.func
def along_stretch(scene: ti.template(), ray: ti.template(), begin, end, state: ti.template()):
    """Samples of a ray between two cuts."""
    inside = inside_of(ray.near, ray.far, begin)
    lit, until = ti.Vector.zero(ti.i32, inside.n), ti.Vector.zero(ti.i32, inside.n)
    k, n = 0, steps_of(end - begin, ray.step, ray.phase)
    while k <= n and is_alive(scene.variant, state.T, ray.min_transmittance):
        first, width = step_at(scene.variant, 0.0, end - begin, ray.step, ray.phase, k)
        s = first + 0.5 * width
        ahead = look_ahead(
            scene.members, ray.near, ray.far, ray.entry, ray.way, begin, inside, s, ray.step, k, lit, until
        )
        if ahead > 0:
            k += ahead
        else:
            at = ti.Struct(begin=begin, s=s, width=width, shown=inside * lit)
            if ti.static(scene.task == PULL):
                pull(scene, ray, at, state)
            elif ti.static(scene.task == PUSH):
                push(scene, ray, at, state)
            else:
                value(scene, ray, at, state)
            k += 1


@ti.func
def start(scene: ti.template(), ray: ti.template()):
    """T, and what the task carries beside it: sums of colours, of weights and of t; or what is left of the image; or
    tangents."""
    one, none = ti.cast(1.0, float), ti.Vector.zero(float, 4)
    if ti.static(scene.task == PULL):
        d_image = scene.rays.image.grad[ray.r]
        d_colour = ti.Vector([d_image[0], d_image[1], d_image[2]])
        return ti.Struct(T=one, remaining=scene.rays.image[ray.r].dot(d_image), d_colour=d_colour)
    elif ti.static(scene.task == PUSH):
        return ti.Struct(T=one, dot_T=ti.cast(0.0, float), dot_light=none)
    else:
        return ti.Struct(T=one, light=none, met=ti.Vector.zero(float, 2))


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    """What is seen goes to the rays' fields: image and depth, or the image's tangent."""
    if ti.static(scene.task == PUSH):
        scene.out[ray.r, 0] = state.dot_light + state.dot_T * ray.behind
    if ti.static(scene.task == VALUE):
        scene.rays.image[ray.r] = state.light + state.T * ray.behind
        met = 1.0 - state.T >= MIN_OPACITY
        scene.rays.depth[ray.r] = ti.select(met, state.met[1] / ti.max(state.met[0], MIN_WEIGHT_SUM), ti.math.inf)


# Value, adjoint and tangent of a sample.
#
# With L = T phi(tau) m what a sample adds, m = sum_i tau_i colour_i, and R what the image has from behind it, times
# d_image: d_tau_i = T (phi colour_i + phi' m) d_image - R, d_colour_i = T phi tau_i d_image; and
# dot_L = phi (dot_T m + T dot_m) + T phi' dot_tau m.


@ti.func
def value(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    taus, tau = ti.Vector.zero(float, at.shown.n), ti.cast(0.0, float)
    mixed = ti.Vector.zero(float, 4)
    for i in ti.static(range(len(scene.members))):
        if at.shown[i]:
            cell, f, _raw, taus[i], shade = sample_of(scene.members[i], place_in(ray, at, i), at.width)
            tau += taus[i]
            if ti.static(has_colour(scene.members[i])):
                at_hand = colour_at(scene.members[i].grid, scene.members[i].variant, cell, f, ray.Y, shade)
                mixed += taus[i] * at_hand
    e = exp(-tau)
    weight = state.T * (1.0 - e)
    if contributes(scene.variant, weight, ray.min_weight):
        for i in ti.static(range(len(scene.members))):
            if ti.static(not has_colour(scene.members[i])):
                if taus[i] != 0:
                    cell, f = locate(scene.members[i].grid, place_in(ray, at, i))
                    nothing = ti.Vector.zero(float, 4)
                    own = colour_at(scene.members[i].grid, scene.members[i].variant, cell, f, ray.Y, nothing)
                    mixed += taus[i] * own
        mixed[3] = 0.0
        state.light += state.T * phi(tau, e) * mixed
    state.met += weight * ti.Vector([1.0, at.begin + at.s])
    state.T *= e


@ti.func
def differentiable_sample(member: ti.template(), p, Y):
    """Raw density with its shift, sigma, and colour (4,) of a sample of a volume."""
    cell, f = locate(member.grid, p)
    raw = fetch(member.grid, cell, f)
    x = raw[3] + member.grid.shift[None]
    sigma, _by_x, shade, _slope = optics(member.own, member.variant, x, member.grid.inverse_scale[None])
    if ti.static(member.variant.mode.classifies):
        raw = shade
    return x, sigma, colour_at(member.grid, member.variant, cell, f, Y, raw)


@ti.func
def samples_of(scene: ti.template(), ray: ti.template(), at: ti.template()):
    """(x, tau) (i,) and colour (i, 3) of a sample of each volume, 0 where it is not; their sum of tau, and m (4,)."""
    xs, taus = ti.Vector.zero(float, at.shown.n), ti.Vector.zero(float, at.shown.n)
    colours, tau, mixed = ti.Matrix.zero(float, at.shown.n, 3), ti.cast(0.0, float), ti.Vector.zero(float, 4)
    for i in ti.static(range(len(scene.members))):
        if at.shown[i]:
            x, sigma, colour = differentiable_sample(scene.members[i], place_in(ray, at, i), ray.Y)
            xs[i], taus[i] = x, sigma * at.width
            tau += taus[i]
            for c in ti.static(range(3)):
                colours[i, c] = colour[c]
                mixed[c] += taus[i] * colour[c]
    return xs, taus, colours, tau, mixed


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    xs, taus, colours, tau, mixed = samples_of(scene, ray, at)
    e = exp(-tau)
    by_mixed, by_tau = ti.cast(0.0, float), ti.cast(0.0, float)
    if contributes(scene.variant, state.T * (1.0 - e), ray.min_weight):
        by_mixed, by_tau = state.T * phi(tau, e), state.T * phi_slope(tau, e)
    gain = mixed[0] * state.d_colour[0] + mixed[1] * state.d_colour[1] + mixed[2] * state.d_colour[2]
    state.remaining -= by_mixed * gain
    for i in ti.static(range(len(scene.members))):
        if at.shown[i]:
            colour = matrix_row(colours, i)
            d_tau = by_mixed * colour.dot(state.d_colour) + by_tau * gain - state.remaining
            scatter_sample(
                scene.members[i],
                ray.slot,
                place_in(ray, at, i),
                xs[i],
                ray.Y,
                at.width,
                d_tau,
                (by_mixed * taus[i]) * state.d_colour,
                colour,
            )
    state.T *= e


@ti.func
def scatter_sample(member: ti.template(), slot, p, x, Y, width, d_tau, d_colour, colour):
    """Add what optical depth and colour (3,) of one sample of a volume give its gradients."""
    cell, f = locate(member.grid, p)
    inverse_scale = member.grid.inverse_scale[None]
    _sigma, by_x, _shade, shade_by_x = optics(member.own, member.variant, x, inverse_scale)
    d_x = d_tau * width * by_x
    if ti.static(member.variant.mode.classifies):
        i, beyond = knot_below(member.own.table, activation.density(member.variant, x) * inverse_scale)
        _s, by_opacity = extinction(member.own.table, shade_of(member.own.table, i, beyond)[3])
        d_shade = ti.Vector([d_colour[0], d_colour[1], d_colour[2], d_tau * width * by_opacity])
        add_to_knots(member.own, slot, i, beyond, d_shade)
        for c in ti.static(range(3)):
            d_x += d_colour[c] * shade_by_x[c]
        scatter(member.grid.d_density, slot, cell, f, d_x)
    else:
        d_sum = d_colour * activation.colour_slope(member.variant, colour)
        if ti.static(member.grid.degree == 0):
            d_raw = ti.Vector([Y[0] * d_sum[0], Y[0] * d_sum[1], Y[0] * d_sum[2], d_x])
            scatter(member.grid.d_packed, slot, cell, f, d_raw)
        else:
            d_features = ti.Vector.zero(float, member.grid.features.n)
            for b in ti.static(range((member.grid.degree + 1) ** 2)):
                for c in ti.static(range(3)):
                    d_features[3 * b + c] = Y[b] * d_sum[c]
            add_features(member.grid, slot, cell, f, d_features)
            scatter(member.grid.d_density, slot, cell, f, d_x)
    mark(member.grid, cell, cell)


@ti.func
def sample_tangent(member: ti.template(), dot: ti.template(), p, x, Y, colour):
    """(dot_sigma, dot_colour (3,)) of a sample of a volume whose numbers move as column 0 of `dot`."""
    lowest = ti.cast(p, ti.i32)
    f, inverse_scale = p - lowest, member.grid.inverse_scale[None]
    _sigma, by_x, _shade, shade_by_x = optics(member.own, member.variant, x, inverse_scale)
    dot_x = gather(dot.density, lowest, f)[0]
    dot_sigma, dot_colour = by_x * dot_x, ti.Vector.zero(float, 3)
    if ti.static(member.variant.mode.classifies):
        dot_shade, by_table = table_tangent(member.own, dot.table, member.variant, x, inverse_scale, 0)
        dot_sigma += by_table
        for c in ti.static(range(3)):
            dot_colour[c] = dot_shade[c] + shade_by_x[c] * dot_x
    else:
        features = gather(dot.features, lowest, f)
        for b in ti.static(range((member.grid.degree + 1) ** 2)):
            for c in ti.static(range(3)):
                dot_colour[c] += Y[b] * features[3 * b + c]
        dot_colour *= activation.colour_slope(member.variant, colour)
    return dot_sigma, dot_colour


@ti.func
def push(scene: ti.template(), ray: ti.template(), at: ti.template(), state: ti.template()):
    xs, taus, colours, tau, mixed = samples_of(scene, ray, at)
    dot_tau, dot_mixed = ti.cast(0.0, float), ti.Vector.zero(float, 4)
    for i in ti.static(range(len(scene.members))):
        if at.shown[i]:
            p, colour = place_in(ray, at, i), matrix_row(colours, i)
            dot_sigma, dot_colour = sample_tangent(scene.members[i], scene.dots[i], p, xs[i], ray.Y, colour)
            dot_tau += dot_sigma * at.width
            for c in ti.static(range(3)):
                dot_mixed[c] += dot_sigma * at.width * colour[c] + taus[i] * dot_colour[c]
    e = exp(-tau)
    if contributes(scene.variant, state.T * (1.0 - e), ray.min_weight):
        state.dot_light += phi(tau, e) * (state.dot_T * mixed + state.T * dot_mixed)
        state.dot_light += state.T * phi_slope(tau, e) * dot_tau * mixed
    state.dot_T = e * (state.dot_T - state.T * dot_tau)
    state.T *= e


# Passes, as those of one volume: `call` is (count, dt, min_transmittance, min_weight, background).


def march_together(members: tuple[Member, ...], rays: Any, *call: Any) -> None:
    """image = sum_k T_k phi(tau_k) sum_i tau_ki colour_ki + T background, and T; depth as `distance` has it."""
    integrate(Together(members, rays), *call)


def march_together_adjoint(members: tuple[Member, ...], rays: Any, *call: Any) -> None:
    """d_density, d_features and tables of each += (d image / d them)' d_image, by slots as `march_adjoint`."""
    integrate_pull(Together(members, rays, PULL), *call)


def march_together_tangent(members: tuple[Member, ...], dots: Any, rays: Any, dot_image: Any, *call: Any) -> None:
    """dot_image[r, 0] = (d image / d members) dots."""
    integrate_push(Together(members, rays, PUSH, dots, dot_image), *call)

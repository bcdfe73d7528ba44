"""Image of a mode that composites: each sample's own colour, or the one that a transfer function has for its value."""

from raymarch.engine import ti
from raymarch.kernels.field import activation
from raymarch.kernels.field.bricks import cell_index
from raymarch.kernels.field.gather import gather, gather_slope
from raymarch.kernels.field.harmonics import basis_slope
from raymarch.kernels.field.touched import add_features
from raymarch.kernels.integrator.composited import AS_IMAGE, Quantity, composited, worth_of_light
from raymarch.kernels.integrator.lookahead import background_gain, remaining_at_first
from raymarch.kernels.integrator.mode import background_of
from raymarch.kernels.integrator.sample import colour_at, fetch
from raymarch.kernels.integrator.scene import Scene


def has_own_colour(scene: Scene) -> bool:
    """Whether features make the colours."""
    return scene.variant.mode.colour and not scene.variant.mode.classifies


def features_move(scene: Scene) -> bool:
    """Whether a push moves features."""
    return has_own_colour(scene) and scene.dots is not None and scene.dots.channels > 0


def feature_columns(scene: Scene) -> int:
    """Count of numbers by which the features of a sample move; 1 where none does."""
    return scene.dots.channels * scene.dots.columns if features_move(scene) else 1


@ti.func
def read(scene: ti.template(), ray: ti.template(), at: ti.template(), shade):
    """Colour, a number a channel."""
    colour = ti.Vector.one(float, scene.rays.colours)
    if ti.static(scene.variant.mode.classifies):
        colour = ti.Vector([shade[0], shade[1], shade[2]])
    elif ti.static(scene.variant.mode.colour):
        place = cell_index(scene.grid, at.cell)
        own = colour_at(scene.grid, scene.variant, place, at.f, ray.Y, fetch(scene.grid, place, at.f))
        colour = ti.Vector([own[c] for c in ti.static(range(scene.rays.colours))])
    return colour


@ti.func
def look(scene: ti.template(), ray: ti.template(), at: ti.template(), o: ti.template(), on):
    """Colour, and its derivatives by place and heading (channel, 3), and the features' tangents."""
    seen = ti.Struct(
        y=ti.Vector.zero(float, scene.rays.colours),
        by_place=ti.Matrix.zero(float, scene.rays.colours, 3),
        by_heading=ti.Matrix.zero(float, scene.rays.colours, 3),
        dots=ti.Vector.zero(float, ti.static(feature_columns(scene))),
    )
    if on:
        if ti.static(has_own_colour(scene) and scene.sloped):
            own_slopes(scene, ray, at, seen)
        else:
            seen.y = read(scene, ray, at, o.shade)
        if ti.static(features_move(scene)):
            seen.dots = gather(scene.dots.features, at.cell, at.f)
    return seen


@ti.func
def own_slopes(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template()):
    """Colour of `sum_k c_k Y_k` and its derivatives."""
    v, vx, vy, vz = gather_slope(scene.grid.features, cell_index(scene.grid, at.cell), at.f)
    slope_of_Y, total = basis_slope(scene.grid.degree, ray.heading), ti.Vector.zero(float, scene.grid.colours)
    by_place = ti.Matrix.zero(float, scene.grid.colours, 3)
    by_heading = ti.Matrix.zero(float, scene.grid.colours, 3)
    for k in ti.static(range((scene.grid.degree + 1) ** 2)):
        for c in ti.static(range(scene.grid.colours)):
            n = ti.static(scene.grid.colours * k + c)
            total[c] += ray.Y[k] * v[n]
            by_place[c, 0] += ray.Y[k] * vx[n]
            by_place[c, 1] += ray.Y[k] * vy[n]
            by_place[c, 2] += ray.Y[k] * vz[n]
            for a in ti.static(range(3)):
                by_heading[c, a] += slope_of_Y[k, a] * v[n]
    seen.y = activation.colour(scene.variant, total)
    s = activation.colour_slope(scene.variant, seen.y)
    for c, a in ti.static(ti.ndrange(scene.grid.colours, 3)):
        by_place[c, a] *= s[c]
        by_heading[c, a] *= s[c]
    seen.by_place, seen.by_heading = by_place, by_heading


@ti.func
def pull(scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), d_y, slot, d: ti.template()):
    if ti.static(scene.variant.mode.classifies):
        for c in ti.static(range(3)):
            d.shade[c] += d_y[c]
    elif ti.static(scene.variant.mode.colour):
        if ti.static(scene.by_volume):
            d_sum = d_y * activation.colour_slope(scene.variant, seen.y)
            d_features = ti.Vector.zero(float, scene.grid.features.n)
            for b in ti.static(range((scene.grid.degree + 1) ** 2)):
                for c in ti.static(range(scene.grid.colours)):
                    d_features[ti.static(scene.grid.colours * b + c)] = ray.Y[b] * d_sum[c]
            add_features(scene.grid, slot, cell_index(scene.grid, at.cell), at.f, d_features)
        d.p += seen.by_place.transpose() @ d_y
        d.view += seen.by_heading.transpose() @ d_y


@ti.func
def push(
    scene: ti.template(), ray: ti.template(), at: ti.template(), seen: ti.template(), dot_shade, e, move: ti.template()
):
    dot = ti.Vector.zero(float, scene.rays.colours)
    if ti.static(scene.variant.mode.classifies):
        dot = ti.Vector([dot_shade[0], dot_shade[1], dot_shade[2]])
    elif ti.static(scene.variant.mode.colour):
        dot = seen.by_place @ move.p + seen.by_heading @ move.view
        if ti.static(features_move(scene)):
            slope = activation.colour_slope(scene.variant, seen.y)
            for b in ti.static(range((scene.grid.degree + 1) ** 2)):
                for c in ti.static(range(scene.grid.colours)):
                    dot[c] += slope[c] * ray.Y[b] * seen.dots[scene.dots.channels * e + scene.grid.colours * b + c]
    return dot


@ti.func
def finish(scene: ti.template(), ray: ti.template(), state: ti.template()):
    """image = sum of weight times colour + T background, and T."""
    seen = background_of(scene.variant, ray.background)
    light = state.sum + state.T * seen
    scene.rays.image[ray.r] = ti.Vector([light[c] for c in ti.static(range(light.n))] + [state.T])


@ti.func
def start_pull(scene: ti.template(), ray: ti.template()):
    d_image = scene.rays.image.grad[ray.r]
    remaining, carry = remaining_at_first(scene.rays, scene.variant, ray.r, ray.background)
    behind = background_gain(scene.variant, d_image, ray.background)
    d_y = ti.Vector([d_image[c] for c in ti.static(range(scene.rays.colours))])
    return worth_of_light(d_y, remaining, carry, behind)


@ti.func
def finish_push(scene: ti.template(), ray: ti.template(), state: ti.template(), dot: ti.template()):
    seen = background_of(scene.variant, ray.background)
    for e in range(scene.columns):
        light = ti.Vector([dot.sum[e, c] for c in ti.static(range(seen.n))] + [0.0])
        behind = ti.Vector([seen[c] for c in ti.static(range(seen.n))] + [1.0])
        scene.out[ray.r, e] = light + dot.T[e] * behind


COLOUR = Quantity(AS_IMAGE, read, look, pull, push)


def image_of(quantity: Quantity):
    """Integrand of an image whose samples have such colours."""
    return composited("image", quantity, finish, start_pull, finish_push)


IMAGE = image_of(COLOUR)

"""Losses of rendered pixels and their slopes: a robust function of each colour's residual, and the opacity's square.

A robust function comes as two functions that are compiled in, its value and its slope, of a residual in units of its
scale; scale^2 in front makes what is x^2 near 0 the squared error there, whatever the scale.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.mode import behind_of
from raymarch.kernels.rays.camera import pixel_seen

UNKNOWN = -1e30  # up to which a target's number says that its view does not have the channel


@ti.func
def squared(x):
    """x^2."""
    return x * x


@ti.func
def squared_slope(x):
    return 2.0 * x


@ti.func
def huber(x):
    """Huber's function (1964): x^2 within 1 and 2 |x| - 1 beyond."""
    return ti.select(ti.abs(x) < 1.0, x * x, 2.0 * ti.abs(x) - 1.0)


@ti.func
def huber_slope(x):
    return ti.select(ti.abs(x) < 1.0, 2.0 * x, 2.0 * ti.math.sign(x))


@ti.func
def charbonnier(x):
    """Charbonnier's function (1994): 2 (sqrt(1 + x^2) - 1), smooth everywhere, like 2 |x| far out."""
    return 2.0 * x * x / (1.0 + ti.sqrt(1.0 + x * x))


@ti.func
def charbonnier_slope(x):
    return 2.0 * x / ti.sqrt(1.0 + x * x)


@ti.func
def has_target(rays: ti.template(), p):
    """Whether pixel p has a target: no mask takes it out."""
    return rays.target[p][ti.static(rays.colours)] >= 0.0


@ti.kernel
def count_targets(rays: ti.template(), count: int) -> int:
    """Count of the pixels that have a target."""
    found = 0
    for p in range(count):
        if has_target(rays, p):
            found += 1
    return found


@ti.func
def target_colour(rays: ti.template(), p, background):
    """Target colour of pixel p, over the background."""
    t = rays.target[p]
    last = ti.static(rays.colours)
    return ti.Vector([t[c] for c in ti.static(range(last))]) * t[last] + background * (1.0 - t[last])


@ti.func
def has_channel(rays: ti.template(), p, c: ti.template()):
    """Whether the target of pixel p has channel c; of a colour it has all."""
    there = True
    if ti.static(rays.of_channels):
        there = rays.target[p][c] > UNKNOWN
    return there


@ti.func
def residual(rays: ti.template(), seen, p, background, c: ti.template()):
    """Residual of channel c of pixel p; 0 for one that its target has not."""
    d = seen[c] - target_colour(rays, p, background)[c]
    if ti.static(rays.of_channels):
        d = ti.select(has_channel(rays, p, c), d, 0.0)
    return d


@ti.kernel
def robust_loss(
    rays: ti.template(),
    value: ti.template(),
    slope: ti.template(),  # RayFields
    count: int,
    parts: int,
    background: ti.math.vec3,
    scale: float,
    opacity: float,
    counted: int,  # pixels, rays of one
):
    """loss += mean over pixels of scale^2 sum value((colour - truth) / scale) / n + opacity (T - (1 - alpha))^2.

    n is the count of channels, 3 of a colour; one that a target has not adds nothing. The mean is over the `counted`
    ones of the pixels that have a target. image.grad += the derivative, to each ray of a pixel its part.
    """
    for p in range(count):
        total, behind = 0.0, behind_of(rays, background)
        last = ti.static(rays.colours)
        if has_target(rays, p):
            each = ti.cast(ti.cast(1.0, ti.f64) / counted, float) / parts
            seen, d_seen = pixel_seen(rays, p, parts), ti.Vector.zero(float, rays.image.n)
            for c in ti.static(range(rays.colours)):
                d = residual(rays, seen, p, behind, c)
                total += scale * scale * value(d / scale) / ti.static(float(rays.colours))
                d_seen[c] = each / ti.static(float(rays.colours)) * scale * slope(d / scale)
            off = seen[last] - (1.0 - rays.target[p][last])
            total += opacity * off**2
            d_seen[last] = each * opacity * (2.0 * off)
            for part in range(parts):
                rays.image.grad[p * parts + part] = rays.image.grad[p * parts + part] + d_seen
        rays.loss[None] += ti.cast(total, ti.f64) / counted


@ti.kernel
def colour_error(rays: ti.template(), count: int, parts: int, background: ti.math.vec3) -> ti.f64:
    """Mean squared error of the colour, clipped to 0..1 as it is for PSNR, of pixels with a target; no gradient.

    Of channels, whose numbers have no such bounds, it is of those that the targets have.
    """
    total, counted = ti.cast(0.0, ti.f64), 0
    for p in range(count):
        if has_target(rays, p):
            seen, behind = pixel_seen(rays, p, parts), behind_of(rays, background)
            for c in ti.static(range(rays.colours)):
                d = ti.cast(0.0, float)
                if ti.static(not rays.of_channels):
                    d = ti.min(ti.max(seen[c], 0.0), 1.0) - target_colour(rays, p, background)[c]
                else:
                    d = residual(rays, seen, p, behind, c)
                total += ti.cast(d * d, ti.f64)
                counted += ti.select(has_channel(rays, p, c), 1, 0)
    return total / ti.max(counted, 1)

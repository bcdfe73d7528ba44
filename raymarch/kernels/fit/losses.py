"""Losses of a rendered image, and their adjoint: a robust function of each colour's residual, and the opacity's square.

A robust function comes as two functions that are compiled in, its value and its slope, of a residual in units of its
scale; scale^2 in front makes what is x^2 near 0 the squared error there, whatever the scale.
"""

import taichi as ti


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
def counts(rays: ti.template(), r):
    """Whether ray r has a target: no mask takes its pixel out."""
    return rays.target[r][3] >= 0.0


@ti.kernel
def counting(rays: ti.template(), count: int) -> int:
    """Count of the rays that have a target."""
    found = 0
    for r in range(count):
        if counts(rays, r):
            found += 1
    return found


@ti.func
def truth(rays: ti.template(), r, background):
    """Target colour of ray r: its pixel over the background."""
    t = rays.target[r]
    return ti.Vector([t[0], t[1], t[2]]) * t[3] + background * (1.0 - t[3])


@ti.kernel
def robust_loss(
    rays: ti.template(), value: ti.template(), count: int, background: ti.math.vec3, scale: float, opacity: float,
    counted: int,
):  # fmt: skip
    """loss += mean over rays of scale^2 sum value((colour - truth) / scale) / 3 + opacity (T - (1 - alpha))^2.

    The mean is over the `counted` ones of them that have a target.
    """
    for r in range(count):
        total = 0.0
        if counts(rays, r):
            for c in ti.static(range(3)):
                d = rays.image[r][c] - truth(rays, r, background)[c]
                total += scale * scale * value(d / scale) / 3.0
            total += opacity * (rays.image[r][3] - (1.0 - rays.target[r][3])) ** 2
        rays.loss[None] += ti.cast(total, ti.f64) / counted


@ti.kernel
def robust_loss_adjoint(
    rays: ti.template(), slope: ti.template(), count: int, background: ti.math.vec3, scale: float, opacity: float,
    counted: int,
):  # fmt: skip
    """image.grad += loss.grad times the derivative of `robust_loss`."""
    for r in range(count):
        if counts(rays, r):
            each = ti.cast(rays.loss.grad[None] / counted, float)
            for c in ti.static(range(3)):
                d = rays.image[r][c] - truth(rays, r, background)[c]
                rays.image.grad[r][c] = rays.image.grad[r][c] + each / 3.0 * scale * slope(d / scale)
            d = rays.image[r][3] - (1.0 - rays.target[r][3])
            rays.image.grad[r][3] = rays.image.grad[r][3] + each * opacity * (2.0 * d)


@ti.kernel
def colour_error(rays: ti.template(), count: int, background: ti.math.vec3) -> ti.f64:
    """Mean squared error of the colour, clipped to 0..1 as it is for PSNR, of rays with a target; no gradient."""
    total, counted = ti.cast(0.0, ti.f64), 0
    for r in range(count):
        if counts(rays, r):
            counted += 1
            for c in ti.static(range(3)):
                d = ti.min(ti.max(rays.image[r][c], 0.0), 1.0) - truth(rays, r, background)[c]
                total += ti.cast(d * d, ti.f64)
    return total / (3.0 * ti.max(counted, 1))

"""Losses: kernels of their own that read the rendered image and add to a 0-D f64 loss; Taichi differentiates them."""

import taichi as ti


@ti.func
def truth(rays: ti.template(), r, background):
    """The colour ray r should have: its pixel over the background."""
    t = rays.target[r]
    return ti.Vector([t[0], t[1], t[2]]) * t[3] + background * (1.0 - t[3])


@ti.kernel
def squared_error(rays: ti.template(), count: int, background: ti.math.vec3, opacity: float):
    """loss += mean over rays of |colour - truth|^2 / 3 + opacity (T - (1 - alpha))^2."""
    for r in range(count):
        total = 0.0
        for c in ti.static(range(3)):
            total += (rays.image[r][c] - truth(rays, r, background)[c]) ** 2 / 3.0
        total += opacity * (rays.image[r][3] - (1.0 - rays.target[r][3])) ** 2
        rays.loss[None] += ti.cast(total, ti.f64) / count


@ti.kernel
def huber(rays: ti.template(), count: int, background: ti.math.vec3, opacity: float, delta: float):
    """loss += mean over rays of Huber's function (1964), d^2 within `delta` and 2 delta |d| - delta^2 beyond, / 3."""
    for r in range(count):
        total = 0.0
        for c in ti.static(range(3)):
            d = rays.image[r][c] - truth(rays, r, background)[c]
            total += ti.select(ti.abs(d) < delta, d * d, 2.0 * delta * ti.abs(d) - delta * delta) / 3.0
        total += opacity * (rays.image[r][3] - (1.0 - rays.target[r][3])) ** 2
        rays.loss[None] += ti.cast(total, ti.f64) / count


@ti.kernel
def colour_error(rays: ti.template(), count: int, background: ti.math.vec3) -> ti.f64:
    """Mean squared error of the colour, clipped to 0..1 as it is for PSNR; not differentiated."""
    total = ti.cast(0.0, ti.f64)
    for r in range(count):
        for c in ti.static(range(3)):
            d = ti.min(ti.max(rays.image[r][c], 0.0), 1.0) - truth(rays, r, background)[c]
            total += ti.cast(d * d, ti.f64)
    return total / (3.0 * count)

"""Raw numbers to physics, after interpolation, with the derivative beside each.

`variant` is a compile-time record: `variant.density`, `variant.colour` (names) and `variant.degree`.
"""

import taichi as ti

from raymarch.data.volume import MAX_EXPONENT
from raymarch.kernels.numeric import at_least, at_most, exp, log1p_unit


@ti.func
def density(variant: ti.template(), x):
    """sigma times scale, of raw + shift."""
    y = at_least(x, 0.0)
    if ti.static(variant.density == "softplus"):
        y += log1p_unit(exp(-ti.abs(x)))
    elif ti.static(variant.density == "exponential"):
        y = exp(at_most(x, MAX_EXPONENT))
    elif ti.static(variant.density == "identity"):
        y = x
    return y


@ti.func
def density_slope(variant: ti.template(), x):
    """d density / d x; at the kinks the slope from below: 0 for relu at x = 0, e^15 for exponential at its bound."""
    y = ti.cast(0.0, float)
    if ti.static(variant.density == "softplus"):
        y = 1.0 / (1.0 + exp(-x))
    elif ti.static(variant.density == "exponential"):
        y = ti.select(x <= MAX_EXPONENT, exp(ti.min(x, MAX_EXPONENT)), 0.0)
    elif ti.static(variant.density == "identity"):
        y = ti.cast(1.0, float)
    else:
        y = ti.select(x > 0, 1.0, 0.0)
    return y


@ti.func
def density_and_slope(variant: ti.template(), x):
    """`density` and `density_slope` of one x, by one exponential."""
    y, s = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(variant.density == "softplus"):
        e = exp(-ti.abs(x))
        y = at_least(x, 0.0) + log1p_unit(e)
        s = ti.select(x > 0, 1.0, e) / (1.0 + e)
    else:
        y, s = density(variant, x), density_slope(variant, x)
    return y, s


@ti.func
def colour(variant: ti.template(), x):
    """Colour of the sum over harmonics, lane by lane."""
    y = x
    for c in ti.static(range(x.n)):
        if ti.static(variant.colour == "sigmoid"):
            y[c] = 1.0 / (1.0 + exp(-x[c]))
        elif ti.static(variant.colour == "clamped"):
            y[c] = at_least(x[c] + 0.5, 0.0)
    return y


@ti.func
def colour_slope(variant: ti.template(), y):
    """d colour / d sum, of the colour itself; 0 where "clamped" is at its clamp."""
    s = y
    for c in ti.static(range(y.n)):
        if ti.static(variant.colour == "sigmoid"):
            s[c] = y[c] * (1.0 - y[c])
        elif ti.static(variant.colour == "identity"):
            s[c] = 1.0
        else:
            s[c] = ti.select(y[c] > 0, 1.0, 0.0)
    return s

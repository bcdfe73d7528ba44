"""Activation functions of kernels: raw numbers to physics, after interpolation, with the derivative beside each.

`variant.density` and `variant.colour` are the records of this module; `Activation` has the same functions in NumPy.
"""

from collections.abc import Callable

from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.numeric import clamp_high, clamp_low, exp, log1p_unit
from raymarch.volumes.activation import MAX_EXPONENT
from raymarch.volumes.channels import CENTRED_SLOPE


@record()
class DensityFunctions:
    """Density activation of kernels: sigma times scale of raw + shift, its slope, and both where that is less work."""

    value: Callable
    slope: Callable
    value_and_slope: Callable | None = None


@record()
class ColourFunctions:
    """Colour activation of kernels: colour of a sum over harmonics, and its slope by that sum from the colour."""

    value: Callable
    slope: Callable


@ti.func
def softplus(x):
    return clamp_low(x, 0.0) + log1p_unit(exp(-ti.abs(x)))


@ti.func
def softplus_slope(x):
    return 1.0 / (1.0 + exp(-x))


@ti.func
def softplus_and_slope(x):
    """Softplus and its slope by one exponential."""
    e = exp(-ti.abs(x))
    return clamp_low(x, 0.0) + log1p_unit(e), ti.select(x > 0, 1.0, e) / (1.0 + e)


@ti.func
def relu(x):
    return clamp_low(x, 0.0)


@ti.func
def relu_slope(x):
    """Slope of ReLU; at the kink that from below."""
    return ti.select(x > 0, 1.0, 0.0)


@ti.func
def exponential(x):
    return exp(clamp_high(x, MAX_EXPONENT))


@ti.func
def exponential_slope(x):
    """Slope of the exponential; at the bound that from below."""
    return ti.select(x <= MAX_EXPONENT, exp(ti.min(x, MAX_EXPONENT)), 0.0)


@ti.func
def identity(x):
    return x


@ti.func
def constant_one(x):
    return ti.cast(1.0, float)


@ti.func
def sigmoid(x):
    return 1.0 / (1.0 + exp(-x))


@ti.func
def sigmoid_slope(y):
    return y * (1.0 - y)


@ti.func
def clamped(x):
    return clamp_low(x + 0.5, 0.0)


@ti.func
def centred(x):
    return 0.5 + ti.static(CENTRED_SLOPE) * x


@ti.func
def centred_slope(y):
    return ti.cast(ti.static(CENTRED_SLOPE), float)


DENSITY_FUNCTIONS = {
    "softplus": DensityFunctions(softplus, softplus_slope, softplus_and_slope),
    "relu": DensityFunctions(relu, relu_slope),
    "exponential": DensityFunctions(exponential, exponential_slope),
    "identity": DensityFunctions(identity, constant_one),
}
COLOUR_FUNCTIONS = {
    "sigmoid": ColourFunctions(sigmoid, sigmoid_slope),
    "clamped": ColourFunctions(clamped, relu_slope),
    "identity": ColourFunctions(identity, constant_one),
    "centred": ColourFunctions(centred, centred_slope),
}


@ti.func
def density(variant: ti.template(), x):
    """Density activation: sigma times scale, of raw + shift."""
    return variant.density.value(x)


@ti.func
def density_slope(variant: ti.template(), x):
    """Slope of the density activation, d density / d x; at a kink that from below."""
    return variant.density.slope(x)


@ti.func
def density_and_slope(variant: ti.template(), x):
    """Density activation and its slope of one x."""
    y, s = ti.cast(0.0, float), ti.cast(0.0, float)
    if ti.static(variant.density.value_and_slope):
        y, s = variant.density.value_and_slope(x)
    else:
        y, s = variant.density.value(x), variant.density.slope(x)
    return y, s


@ti.func
def colour(variant: ti.template(), x):
    """Colour activation of the sum over harmonics, lane by lane."""
    y = x
    for c in ti.static(range(x.n)):
        y[c] = variant.colour.value(x[c])
    return y


@ti.func
def colour_slope(variant: ti.template(), y):
    """Slope of the colour activation, d colour / d sum, of the colour; 0 where "clamped" is at its clamp."""
    s = y
    for c in ti.static(range(y.n)):
        s[c] = variant.colour.slope(y[c])
    return s

"""Transfer function: optical depth and colour of a sample by its value, looked up in the rays' table.

A value is classified after interpolation. Between knots colour and opacity are linear; opacity a is that of a way of
`unit_length`, so that tau = -ln(1 - a) width / unit_length (Engel et al. 2006, "Real-time volume graphics", 1.4.1).
Letters: i the knot below a value, beyond how far that is above it, shade (red, green, blue, opacity).
"""

import taichi as ti

from raymarch.kernels.field import activation
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.emission_absorption import adjoint, composite, tangent
from raymarch.kernels.numeric import at_least, at_most, log_of_rest
from raymarch.volumes.transfer_function import MOST_OPAQUE

FARTHEST = 1e37  # above the first knot, which infinite values are too: before the knot that ends every table
TRANSFER = Mode("transfer", composite, tangent, adjoint, power=1, classifies=True)


@ti.func
def knot_below(table: ti.template(), value):
    """(i, how far above it), by bins of equal width, each of which knows the knot below it.

    Behind the last knot lies another, infinitely far, to which nothing rises; what is before the first is at it.
    """
    place = table.place[None]
    above = at_least(value - place[0], 0.0)
    i = table.first[ti.cast(at_most(above * place[1], place[2]), ti.i32)]
    above = at_most(above, FARTHEST)
    while above >= table.above[i + 1]:
        i += 1
    return i, above - table.above[i]


@ti.func
def shade_of(table: ti.template(), i, beyond):
    """Colour and opacity."""
    return table.rgba[i] + table.rise[i] * beyond


@ti.func
def slope_of(table: ti.template(), i, value):
    """Slope of colour and opacity by the value: that to greater ones, 0 before the first knot."""
    return table.rise[i] * ti.select(value >= table.place[None][0], ti.cast(1.0, float), 0.0)


@ti.func
def extinction(table: ti.template(), opacity):
    """Opacity correction: extinction [1/world unit] of an opacity over `unit_length`, and its slope by it; at the bound
    that from below."""
    bounded = at_most(opacity, ti.static(MOST_OPAQUE))
    per_length = table.place[None][3]
    slope = ti.select(opacity <= ti.static(MOST_OPAQUE), per_length / (1.0 - bounded), 0.0)
    return -log_of_rest(bounded) * per_length, slope


@ti.func
def classified(rays: ti.template(), variant: ti.template(), raw, shift, inverse_scale, width):
    """Optical depth of a sample, and what `colour_at` makes its colour of: as it was stored, or the table's shade."""
    tau, shade = ti.cast(0.0, float), raw
    if ti.static(variant.mode.classifies):
        value = activation.density(variant, raw[3] + shift) * inverse_scale
        i, beyond = knot_below(rays.table, value)
        shade = shade_of(rays.table, i, beyond)
        if shade[3] != 0.0:
            sigma, _by_opacity = extinction(rays.table, shade[3])
            tau = sigma * width
    else:
        tau = activation.density(variant, raw[3] + shift) * inverse_scale * width
    return tau, shade


@ti.func
def optics(rays: ti.template(), variant: ti.template(), x, inverse_scale):
    """(sigma, its slope by x, shade, its slope by x) of raw density with its shift x; shades where the mode has any."""
    shade, slope = ti.Vector.zero(float, 4), ti.Vector.zero(float, 4)
    sigma = activation.density(variant, x) * inverse_scale
    by_x = inverse_scale * activation.density_slope(variant, x)
    if ti.static(variant.mode.classifies):
        i, beyond = knot_below(rays.table, sigma)
        shade = shade_of(rays.table, i, beyond)
        slope = slope_of(rays.table, i, sigma) * by_x
        sigma, by_opacity = extinction(rays.table, shade[3])
        by_x = by_opacity * slope[3]
    return sigma, by_x, shade, slope


@ti.func
def table_tangent(rays: ti.template(), dot_table: ti.template(), variant: ti.template(), x, inverse_scale, e):
    """(dot_shade, dot_sigma) of a sample that stays where it is, the table moving as column e of (knot, column)."""
    i, beyond = knot_below(rays.table, activation.density(variant, x) * inverse_scale)
    shade = shade_of(rays.table, i, beyond)
    _sigma, by_opacity = extinction(rays.table, shade[3])
    dot_shade = dot_table[i, e] + (dot_table[i + 1, e] - dot_table[i, e]) * (beyond * rays.table.per_value[i])
    return dot_shade, by_opacity * dot_shade[3]

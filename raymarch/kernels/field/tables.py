"""Tables of transfer functions on the device: how a value is looked up, with its tangent and its adjoint.

A value is classified after interpolation. Between knots colour and opacity are linear; opacity a is that of a way of
`unit_length`, so that tau = -ln(1 - a) width / unit_length (Engel et al. 2006, "Real-time volume graphics", 1.4.1).
Letters: i the knot below a value, beyond how far that is above it, shade (red, green, blue, opacity).
"""

from functools import cache
from typing import Any

from raymarch.engine import MatrixField, ScalarField, ti
from raymarch.engine.record import record
from raymarch.kernels.field import activation
from raymarch.kernels.field.gather import accumulate
from raymarch.kernels.numeric import clamp_high, clamp_low, log_of_rest
from raymarch.volumes.transfer_function import MAX_OPACITY


@record()
class FieldNames:
    """Names of fields, for `numbers_in`: the same object for the same names, by which a compiled kernel is found."""

    names: tuple[str, ...]


field_names = cache(FieldNames)


def elements(owner: Any, chosen: FieldNames) -> list[ScalarField]:
    """Elements of fields of an owner, row by row, one field behind the other."""
    fields = (getattr(owner, name) for name in chosen.names)
    each = (map(ScalarField, field.vars) if isinstance(field, MatrixField) else [field] for field in fields)
    return [element for some in each for element in some]


@ti.kernel
def numbers_in(values: ti.types.ndarray(dtype=ti.f64, ndim=1), owner: ti.template(), chosen: ti.template()):
    """Copy an array to fields that have one scalar, vector or matrix each, in the order of their names."""
    for _ in range(1):  # one task, whatever else
        for k, element in ti.static(list(enumerate(elements(owner, chosen)))):
            element[None] = ti.cast(values[k], element.dtype)


@ti.kernel
def table_in(
    knots: ti.types.ndarray(dtype=ti.f64, ndim=2),
    first: ti.types.ndarray(dtype=ti.i32, ndim=1),  # (knot, 10), (bin,)
    table: ti.template(),
):
    """Copy the knots of a transfer function, (above, per_value, rgba, rise), and the bins that find them."""
    for k in range(knots.shape[0]):
        table.above[k], table.per_value[k] = ti.cast(knots[k, 0], float), ti.cast(knots[k, 1], float)
        for c in ti.static(range(4)):
            table.rgba[k][c], table.rise[k][c] = ti.cast(knots[k, 2 + c], float), ti.cast(knots[k, 6 + c], float)
    for b in range(first.shape[0]):
        table.first[b] = first[b]


MAX_KNOT_VALUE = 1e37  # above the first knot, which infinite values are too: before the knot that ends every table


@ti.func
def knot_below(table: ti.template(), value):
    """(i, how far above it), by bins of equal width, each of which knows the knot below it.

    Behind the last knot lies another, infinitely far, to which nothing rises; what is before the first is at it.
    """
    place = table.place[None]
    above = clamp_low(value - place[0], 0.0)
    i = table.first[ti.cast(clamp_high(above * place[1], place[2]), ti.i32)]
    above = clamp_high(above, MAX_KNOT_VALUE)
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
    bounded = clamp_high(opacity, ti.static(MAX_OPACITY))
    per_length = table.place[None][3]
    slope = ti.select(opacity <= ti.static(MAX_OPACITY), per_length / (1.0 - bounded), 0.0)
    return -log_of_rest(bounded) * per_length, slope


@ti.func
def classify(rays: ti.template(), variant: ti.template(), raw, shift, inverse_scale, width):
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
        tau = activation.density(variant, raw[ti.static(raw.n - 1)] + shift) * inverse_scale * width
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


# Adjoint of one sample that a transfer function classified: its part of the gradient of density and table.


@ti.func
def add_to_knots(rays: ti.template(), slot, i, beyond, d_shade):
    """Add the gradient by a shade to that of the knots around it."""
    above = ti.cast(d_shade * (beyond * rays.table.per_value[i]), ti.f64)
    accumulate(rays.table.d_rgba, ti.Vector([slot, i]), ti.cast(d_shade, ti.f64) - above)
    accumulate(rays.table.d_rgba, ti.Vector([slot, i + 1]), above)


@ti.func
def add_gradient_of_sigma(rays: ti.template(), variant: ti.template(), slot, x, inverse_scale, d_sigma):
    """Add what the extinction of a sample of raw density with its shift x gives the gradient of the table."""
    i, beyond = knot_below(rays.table, activation.density(variant, x) * inverse_scale)
    _sigma, by_opacity = extinction(rays.table, shade_of(rays.table, i, beyond)[3])
    d_shade = ti.Vector.zero(float, 4)
    d_shade[3] = d_sigma * by_opacity
    add_to_knots(rays, slot, i, beyond, d_shade)

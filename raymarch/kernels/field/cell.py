"""Trilinear field within one cell by its eight corners: value and its transpose, slope and curvature.

Corners are numbered 4 a + 2 b + c, each of a, b, c 0 or 1 along x, y, z; `f` is the position in the cell, 0..1 an axis.
"""

from raymarch.engine import ti
from raymarch.kernels.field.bricks import mask_of
from raymarch.kernels.field.gather import accumulate, corner_index, lowest_of_slot, steps_of


@ti.func
def corners_of_cell(values: ti.template(), cell):
    """Numbers (8,) at a cell's corners, of what `bricks.cell_index` gave."""
    v = ti.Vector.zero(float, 8)
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        v[ti.static(4 * a + 2 * b + c)] = values[corner_index(cell, values, a, b, c)]
    return v


@ti.func
def trilinear(v, f):
    """Value at f."""
    v00, v01 = v[0] + (v[4] - v[0]) * f[0], v[1] + (v[5] - v[1]) * f[0]
    v10, v11 = v[2] + (v[6] - v[2]) * f[0], v[3] + (v[7] - v[3]) * f[0]
    v00 += (v10 - v00) * f[1]
    v01 += (v11 - v01) * f[1]
    return v00 + (v01 - v00) * f[2]


@ti.func
def bilinear(v00, v01, v10, v11, f, g):
    """Interpolation of four numbers, the first index by f."""
    v0, v1 = v00 + (v10 - v00) * f, v01 + (v11 - v01) * f
    return v0 + (v1 - v0) * g


@ti.func
def trilinear_slope(v, f):
    """Derivative (3,) of the value by f."""
    return ti.Vector(
        [
            bilinear(v[4] - v[0], v[5] - v[1], v[6] - v[2], v[7] - v[3], f[1], f[2]),
            bilinear(v[2] - v[0], v[3] - v[1], v[6] - v[4], v[7] - v[5], f[0], f[2]),
            bilinear(v[1] - v[0], v[3] - v[2], v[5] - v[4], v[7] - v[6], f[0], f[1]),
        ]
    )


@ti.func
def trilinear_curvature(v, f):
    """Mixed second derivatives by (y z, x z, x y); those by one axis twice are zero."""
    return ti.Vector(
        [
            _mix(v[0] - v[1] - v[2] + v[3], v[4] - v[5] - v[6] + v[7], f[0]),
            _mix(v[0] - v[1] - v[4] + v[5], v[2] - v[3] - v[6] + v[7], f[1]),
            _mix(v[0] - v[2] - v[4] + v[6], v[1] - v[3] - v[5] + v[7], f[2]),
        ]
    )


@ti.func
def _mix(low, high, f):
    return low + (high - low) * f


@ti.func
def hessian_times(curvature, d):
    """Matrix of second derivatives times a direction: how the slope changes along d."""
    return ti.Vector(
        [
            curvature[2] * d[1] + curvature[1] * d[2],
            curvature[2] * d[0] + curvature[0] * d[2],
            curvature[1] * d[0] + curvature[0] * d[1],
        ]
    )


@ti.func
def weights(f):
    """Weight (8,) of each corner in the value at f."""
    w = ti.Vector.zero(float, 8)
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        w[ti.static(4 * a + 2 * b + c)] = _hat(f[0], a) * _hat(f[1], b) * _hat(f[2], c)
    return w


@ti.func
def _hat(f, upper: ti.template()):
    h = 1.0 - f
    if ti.static(upper):
        h = ti.cast(f, float)
    return h


@ti.func
def scatter_corners(part: ti.template(), slot, cell, values):
    """Transpose of `corners_of_cell`: add eight numbers to a slot's buffer."""
    at, n = ti.Vector([0, 0, 0, 0]), cell
    if ti.static(cell.n == 8):
        n = (cell + slot * ti.static(part.shape[3])) & ti.static(mask_of(part))
    else:
        at = lowest_of_slot(part, slot, cell)
    x = ti.Vector(ti.static(steps_of(part)[0]))
    y = ti.Vector(ti.static(steps_of(part)[1]))
    z = ti.Vector(ti.static(steps_of(part)[2]))
    for a, b, c in ti.static(ti.ndrange(2, 2, 2)):
        there = at + a * x + b * y + c * z
        if ti.static(cell.n == 8):
            there[3] = n[ti.static(4 * a + 2 * b + c)]
        value = values[ti.static(4 * a + 2 * b + c)]
        accumulate(part, there, value)

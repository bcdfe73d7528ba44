"""Trilinear interpolation and its transpose: samples at integer indices, p in index space, 0 <= p <= shape - 1."""

import taichi as ti

from raymarch import runtime


@ti.func
def cell_of(p, top):
    """Lower corner of the cell that holds p; a point on the last face belongs to the last cell."""
    return ti.min(ti.cast(p, ti.i32), ti.cast(top, ti.i32) - 1)


@ti.func
def gather(values: ti.template(), cell, f):
    """Interpolated value, a number or a vector; `f` is the position within the cell, 0..1 an axis."""
    i, j, k = cell[0], cell[1], cell[2]
    v00, v01 = values[i, j, k], values[i, j, k + 1]
    v10, v11 = values[i, j + 1, k], values[i, j + 1, k + 1]
    v00 += (values[i + 1, j, k] - v00) * f[0]
    v01 += (values[i + 1, j, k + 1] - v01) * f[0]
    v10 += (values[i + 1, j + 1, k] - v10) * f[0]
    v11 += (values[i + 1, j + 1, k + 1] - v11) * f[0]
    v00 += (v10 - v00) * f[1]
    v01 += (v11 - v01) * f[1]
    return v00 + (v01 - v00) * f[2]


@ti.func
def gather_slope(values: ti.template(), cell, f):
    """Interpolated value and its derivative along each axis of index space."""
    i, j, k = cell[0], cell[1], cell[2]
    x00, x01 = values[i + 1, j, k] - values[i, j, k], values[i + 1, j, k + 1] - values[i, j, k + 1]
    x10, x11 = values[i + 1, j + 1, k] - values[i, j + 1, k], values[i + 1, j + 1, k + 1] - values[i, j + 1, k + 1]
    v00, v01 = values[i, j, k] + x00 * f[0], values[i, j, k + 1] + x01 * f[0]
    y0 = values[i, j + 1, k] + x10 * f[0] - v00
    y1 = values[i, j + 1, k + 1] + x11 * f[0] - v01
    v0, v1 = v00 + y0 * f[1], v01 + y1 * f[1]
    x0, x1 = x00 + (x10 - x00) * f[1], x01 + (x11 - x01) * f[1]
    return v0 + (v1 - v0) * f[2], x0 + (x1 - x0) * f[2], y0 + (y1 - y0) * f[2], v1 - v0


@ti.func
def add(part: ti.template(), slot, i, j, k, value: ti.template()):
    """part[slot, i, j, k] += value; on the CPU a slot has one writer, so a plain add does."""
    if ti.static(runtime.on_cpu()):
        part[slot, i, j, k] = part[slot, i, j, k] + value
    else:
        ti.atomic_add(part[slot, i, j, k], value)


@ti.func
def scatter(part: ti.template(), slot, cell, f, value):
    """Transpose of `gather`: add `value` to the eight corners, weighted."""
    i, j, k = cell[0], cell[1], cell[2]
    x1 = value * f[0]
    x0 = value - x1
    for a in ti.static(range(2)):
        x = x1 if ti.static(a) else x0
        y1 = x * f[1]
        y0 = x - y1
        for b in ti.static(range(2)):
            y = y1 if ti.static(b) else y0
            z1 = y * f[2]
            add(part, slot, i + a, j + b, k, y - z1)
            add(part, slot, i + a, j + b, k + 1, z1)

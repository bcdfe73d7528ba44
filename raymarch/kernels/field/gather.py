"""Trilinear interpolation and its transpose: samples at integer indices, p in index space, 0 <= p <= shape - 1.

A field that lies flat in memory is asked by its last axis alone, `values[0, 0, n]`, with n the sample's place: then the
eight corners of a cell are one address and eight constants beside it. For the compiler to see that no sum of them can
overflow, n passes through a mask that changes nothing. Blocked fields are asked by all three axes, and of a pool of
bricks each corner's place is looked up in their table (`bricks.cell_index`): then "cell" below is these eight places,
as it is the one place of the lower corner where a march has that of a flat field already.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels import gpu_switches
from raymarch.kernels.field.bricks import mask_of


def is_flat(field) -> bool:
    """Flat layout: whether samples lie in memory in the order of their indices, without blocks."""
    return len(field.parent(2).shape) <= len(field.shape) - 3


def steps_of(field) -> tuple[tuple[int, ...], ...]:
    """Strides: what the next sample along x, y and z adds to the index of `lower_corner`."""
    before = (0,) * (len(field.shape) - 3)
    if is_flat(field):
        _, ny, nz = field.shape[-3:]
        return tuple((*before, 0, 0, step) for step in (ny * nz, nz, 1))
    return (*before, 1, 0, 0), (*before, 0, 1, 0), (*before, 0, 0, 1)


@ti.func
def cell_of(p, max_index):
    """Lower corner of the cell that holds p; a point on the last face belongs to the last cell."""
    return ti.min(ti.cast(p, ti.i32), ti.cast(max_index, ti.i32) - 1)


@ti.func
def place_of_cell(values: ti.template(), cell):
    """Place of a cell's lower corner in a field that lies flat; itself where that is what `cell` is."""
    place = cell[0]
    if ti.static(cell.n == 3):
        place = (cell[0] * ti.static(values.shape[1]) + cell[1]) * ti.static(values.shape[2]) + cell[2]
    return place


@ti.func
def lower_corner(values: ti.template(), cell):
    """Index of a cell's lower corner."""
    if ti.static(is_flat(values)):
        return ti.Vector([0, 0, place_of_cell(values, cell) & ti.static(mask_of(values))])
    else:
        return cell


@ti.func
def lowest_of_slot(part: ti.template(), slot, cell):
    """As `lower_corner`, in a slot's own buffer."""
    at = ti.Vector([slot, cell[0], cell[1], cell[2]])
    if ti.static(is_flat(part)):
        place = slot * ti.static(part.shape[1]) + cell[0]
        place = (place * ti.static(part.shape[2]) + cell[1]) * ti.static(part.shape[3]) + cell[2]
        at = ti.Vector([0, 0, 0, place & ti.static(mask_of(part))])
    return at


@ti.func
def pool_index(values: ti.template(), n):
    """Index of place n in a field of a pool of bricks, or in the first slot of one that has slots."""
    if ti.static(len(values.shape) == 4):
        return ti.Vector([0, 0, 0, n])
    else:
        return ti.Vector([0, 0, n])


@ti.func
def gather(values: ti.template(), cell, f):
    """Trilinear interpolation of a number or a vector; `f` is the position within the cell, 0..1 an axis."""
    if ti.static(cell.n == 8):
        n = cell & ti.static(mask_of(values))
        v00, v01 = values[pool_index(values, n[0])], values[pool_index(values, n[1])]
        v10, v11 = values[pool_index(values, n[2])], values[pool_index(values, n[3])]
        v00 += (values[pool_index(values, n[4])] - v00) * f[0]
        v01 += (values[pool_index(values, n[5])] - v01) * f[0]
        v10 += (values[pool_index(values, n[6])] - v10) * f[0]
        v11 += (values[pool_index(values, n[7])] - v11) * f[0]
        v00 += (v10 - v00) * f[1]
        v01 += (v11 - v01) * f[1]
        return v00 + (v01 - v00) * f[2]
    else:
        at = lower_corner(values, cell)
        x = ti.Vector(ti.static(steps_of(values)[0]))
        y = ti.Vector(ti.static(steps_of(values)[1]))
        z = ti.Vector(ti.static(steps_of(values)[2]))
        v00, v01 = values[at], values[at + z]
        v10, v11 = values[at + y], values[at + y + z]
        v00 += (values[at + x] - v00) * f[0]
        v01 += (values[at + x + z] - v01) * f[0]
        v10 += (values[at + x + y] - v10) * f[0]
        v11 += (values[at + x + y + z] - v11) * f[0]
        v00 += (v10 - v00) * f[1]
        v01 += (v11 - v01) * f[1]
        return v00 + (v01 - v00) * f[2]


@ti.func
def corner_index(cell, values: ti.template(), a: ti.template(), b: ti.template(), c: ti.template()):
    """Index in a field of a cell's corner (a, b, c), each 0 or 1."""
    if ti.static(cell.n == 8):
        return ti.Vector([0, 0, cell[ti.static(4 * a + 2 * b + c)] & ti.static(mask_of(values))])
    else:
        return cell + ti.Vector([a, b, c])


@ti.func
def gather_slope(values: ti.template(), cell, f):
    """Trilinear interpolation and its derivative along each axis of index space."""
    c00, c01 = values[corner_index(cell, values, 0, 0, 0)], values[corner_index(cell, values, 0, 0, 1)]
    c10, c11 = values[corner_index(cell, values, 0, 1, 0)], values[corner_index(cell, values, 0, 1, 1)]
    x00, x01 = values[corner_index(cell, values, 1, 0, 0)] - c00, values[corner_index(cell, values, 1, 0, 1)] - c01
    x10, x11 = values[corner_index(cell, values, 1, 1, 0)] - c10, values[corner_index(cell, values, 1, 1, 1)] - c11
    v00, v01 = c00 + x00 * f[0], c01 + x01 * f[0]
    y0 = c10 + x10 * f[0] - v00
    y1 = c11 + x11 * f[0] - v01
    v0, v1 = v00 + y0 * f[1], v01 + y1 * f[1]
    x0, x1 = x00 + (x10 - x00) * f[1], x01 + (x11 - x01) * f[1]
    return v0 + (v1 - v0) * f[2], x0 + (x1 - x0) * f[2], y0 + (y1 - y0) * f[2], v1 - v0


@ti.func
def accumulate(part: ti.template(), at, value: ti.template()):
    """Accumulation part[at] += value; on the CPU a slot has one writer, so a plain add does."""
    if ti.static(runtime.runs_on_cpu()):
        part[at] = part[at] + value
    else:
        ti.atomic_add(part[at], value)


FIRST_CORNER_SCALE = 1024.0


@ti.func
def first_corner(f):
    """Corner (3,), 0 or 1 along each axis, that additions to a cell begin at: by the tenth binary digits of where the
    ray is in it, in which neighbouring rays differ as if by chance."""
    return ti.cast(f * FIRST_CORNER_SCALE, ti.i32) & 1


@ti.func
def turned_places(n, first):
    """The places of eight corners, counted from corner `first` on: corner c of them is the cell's c xor `first`."""
    for a in ti.static(range(3)):
        before = n
        for c in ti.static(range(8)):
            n[c] = ti.select(first[a] == 1, before[ti.static(c ^ (4 >> a))], before[c])
    return n


@ti.func
def scatter(part: ti.template(), slot, cell, f, value):
    """Transpose of `gather`: add `value` to the eight corners, weighted."""
    at, n = ti.Vector([0, 0, 0, 0]), cell
    if ti.static(cell.n == 8):
        n = (cell + slot * ti.static(part.shape[3])) & ti.static(mask_of(part))
    else:
        at = lowest_of_slot(part, slot, cell)
    x = ti.Vector(ti.static(steps_of(part)[0]))
    y = ti.Vector(ti.static(steps_of(part)[1]))
    z = ti.Vector(ti.static(steps_of(part)[2]))
    if ti.static(gpu_switches.chosen().turned_corners):
        first = first_corner(f)
        f = first + (1 - 2 * first) * f
        if ti.static(cell.n == 8):
            n = turned_places(n, first)
        else:
            at += first[0] * x + first[1] * y + first[2] * z
            x, y, z = (1 - 2 * first[0]) * x, (1 - 2 * first[1]) * y, (1 - 2 * first[2]) * z
    x1 = value * f[0]
    x0 = value - x1
    for a in ti.static(range(2)):
        in_x = x1 if ti.static(a) else x0
        y1 = in_x * f[1]
        y0 = in_x - y1
        for b in ti.static(range(2)):
            in_y = y1 if ti.static(b) else y0
            z1 = in_y * f[2]
            lower = at + a * x + b * y
            upper = lower + z
            if ti.static(cell.n == 8):
                lower[3] = n[ti.static(4 * a + 2 * b)]
                upper[3] = n[ti.static(4 * a + 2 * b + 1)]
            accumulate(part, lower, in_y - z1)
            accumulate(part, upper, z1)


def axes_of_plane(axis: int) -> tuple[int, int]:
    """The two axes beside `axis`."""
    return (1, 2) if axis == 0 else (0, 2) if axis == 1 else (0, 1)


@ti.func
def gather_in_plane(values: ti.template(), cell, f, axis: ti.template()):
    """Bilinear interpolation of a number in the plane of samples across `axis` that a cell's lower corner lies in."""
    at = lower_corner(values, cell)
    u, fu = ti.Vector(ti.static(steps_of(values)[axes_of_plane(axis)[0]])), f[ti.static(axes_of_plane(axis)[0])]
    v, fv = ti.Vector(ti.static(steps_of(values)[axes_of_plane(axis)[1]])), f[ti.static(axes_of_plane(axis)[1])]
    v0, v1 = values[at], values[at + v]
    v0 += (values[at + u] - v0) * fu
    v1 += (values[at + u + v] - v1) * fu
    return v0 + (v1 - v0) * fv


@ti.func
def scatter_in_plane(part: ti.template(), slot, cell, f, axis: ti.template(), value):
    """Transpose of `gather_in_plane`."""
    at = lowest_of_slot(part, slot, cell)
    u, fu = ti.Vector(ti.static(steps_of(part)[axes_of_plane(axis)[0]])), f[ti.static(axes_of_plane(axis)[0])]
    v, fv = ti.Vector(ti.static(steps_of(part)[axes_of_plane(axis)[1]])), f[ti.static(axes_of_plane(axis)[1])]
    upper = value * fu
    lower = value - upper
    accumulate(part, at, lower - lower * fv)
    accumulate(part, at + v, lower * fv)
    accumulate(part, at + u, upper - upper * fv)
    accumulate(part, at + u + v, upper * fv)

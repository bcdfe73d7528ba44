"""Splatting by multilinear weights, in 2-D or 3-D: the transpose of `gather` over points.

    target[I, c] = sum over points p of w(I, p) values[p, c],   w(I, p) = product over axes of hat(positions[p] - I)

with hat(x) = max(1 - |x|, 0): a point reaches the 2^axes samples of its cell, and the share of those outside the target
is lost. Samples are at integer indices, positions in index space, in the order of the target's axes; target has
a last axis of channels. A point on a sample belongs to the cell above it: derivatives by position are those from the
right.

On the CPU each band of rows goes through all points in order and adds what falls into it, so the bits depend neither
on the number of threads nor on that of the bands. Elsewhere points add by atomics.
"""

from raymarch import runtime
from raymarch.engine import ti
from raymarch.kernels.numeric import TASK_STRIDE

BANDS = 16  # row i of the target belongs to band i mod BANDS


@ti.func
def cell_below(positions: ti.template(), p, axes: ti.template()):
    """Lower corner of the cell that holds point p, which may be outside, and where in it the point is, 0..1."""
    cell, f = ti.Vector.zero(ti.i32, axes), ti.Vector.zero(float, axes)
    for a in ti.static(range(axes)):
        low = ti.floor(positions[p, a])
        cell[a], f[a] = ti.cast(low, ti.i32), positions[p, a] - low
    return cell, f


@ti.func
def corner_of(cell, corner: ti.template(), axes: ti.template()):
    """The cell's corner whose bit a says lower or upper along axis a."""
    I = cell
    for a in ti.static(range(axes)):
        I[a] += (corner >> a) & 1
    return I


@ti.func
def is_inside(target: ti.template(), I, axes: ti.template()):
    """Whether the target has a sample I."""
    yes = True
    for a in ti.static(range(axes)):
        yes = yes and 0 <= I[a] < target.shape[a]
    return yes


@ti.func
def weight_of(f, corner: ti.template(), axes: ti.template()):
    """Multilinear weight of a corner."""
    w = ti.cast(1.0, float)
    for a in ti.static(range(axes)):
        w *= f[a] if ti.static((corner >> a) & 1) else 1.0 - f[a]
    return w


@ti.func
def slope_of(f, corner: ti.template(), axes: ti.template()):
    """Slope of the multilinear weight along each axis."""
    slope = ti.Vector.one(float, axes)
    for a, b in ti.static(ti.ndrange(axes, axes)):
        upper = ti.static((corner >> b) & 1)
        if ti.static(a == b):
            slope[a] *= 1.0 if ti.static(upper) else -1.0
        else:
            slope[a] *= f[b] if ti.static(upper) else 1.0 - f[b]
    return slope


@ti.func
def reaches_band(positions: ti.template(), p, band):
    """Whether point p reaches a row of the band: its lower row or the next."""
    return (band - ti.cast(ti.floor(positions[p, 0]), ti.i32)) % BANDS < 2


@ti.func
def splat_point(positions: ti.template(), values: ti.template(), target: ti.template(), p, band):
    """Deposit point p in the band's rows, or in all of them for a band of -1."""
    axes = ti.static(len(target.shape) - 1)
    cell, f = cell_below(positions, p, axes)
    for corner in ti.static(range(2**axes)):
        I = corner_of(cell, corner, axes)
        if (band < 0 or I[0] % BANDS == band) and is_inside(target, I, axes):
            w = weight_of(f, corner, axes)
            for c in range(values.shape[1]):
                add_value(target, I, c, w * values[p, c])


@ti.func
def tangent_point(
    positions: ti.template(),
    values: ti.template(),
    dot_positions: ti.template(),
    dot_values: ti.template(),
    dot_target: ti.template(),
    p,
    band,
):
    """Deposit the tangent of point p in the band's rows, or in all of them for a band of -1."""
    axes = ti.static(len(dot_target.shape) - 1)
    cell, f = cell_below(positions, p, axes)
    for corner in ti.static(range(2**axes)):
        I = corner_of(cell, corner, axes)
        if (band < 0 or I[0] % BANDS == band) and is_inside(dot_target, I, axes):
            w, slope = weight_of(f, corner, axes), slope_of(f, corner, axes)
            dot_w = ti.cast(0.0, float)
            for a in ti.static(range(axes)):
                dot_w += slope[a] * dot_positions[p, a]
            for c in range(values.shape[1]):
                add_value(dot_target, I, c, w * dot_values[p, c] + dot_w * values[p, c])


@ti.func
def add_value(target: ti.template(), I, c, value):
    """target[I, c] += value; on the CPU a row has one writer, so a plain add does."""
    if ti.static(runtime.runs_on_cpu()):
        target[I, c] = target[I, c] + value
    else:
        ti.atomic_add(target[I, c], value)


@ti.func
def splat_all(positions: ti.template(), values: ti.template(), target: ti.template()):
    """target += sum over points."""
    if ti.static(runtime.runs_on_cpu()):
        for i in range(TASK_STRIDE * BANDS):
            if i % TASK_STRIDE == 0:
                for p in range(positions.shape[0]):
                    if reaches_band(positions, p, i // TASK_STRIDE):
                        splat_point(positions, values, target, p, i // TASK_STRIDE)
    else:
        for p in range(positions.shape[0]):
            splat_point(positions, values, target, p, -1)


@ti.kernel
def splat(points: ti.template()):
    """target = sum over points of weight times value."""
    for I in ti.grouped(points.target):
        points.target[I] = 0
    splat_all(points.positions, points.values, points.target)


@ti.kernel
def splat_arrays(positions: ti.types.ndarray(), values: ti.types.ndarray(), target: ti.types.ndarray()):
    """The same of arrays, added to a target."""
    splat_all(positions, values, target)


@ti.kernel
def splat_adjoint(points: ti.template()):
    """positions.grad, values.grad += (d target / d them)' target.grad."""
    for p in range(points.positions.shape[0]):
        axes = ti.static(len(points.target.shape) - 1)
        cell, f = cell_below(points.positions, p, axes)
        d_p = ti.Vector.zero(float, axes)
        for corner in ti.static(range(2**axes)):
            I = corner_of(cell, corner, axes)
            if is_inside(points.target, I, axes):
                w, slope = weight_of(f, corner, axes), slope_of(f, corner, axes)
                d_w = ti.cast(0.0, float)
                for c in range(points.values.shape[1]):
                    d_w += points.values[p, c] * points.target.grad[I, c]
                    points.values.grad[p, c] += w * points.target.grad[I, c]
                d_p += slope * d_w
        for a in ti.static(range(axes)):
            points.positions.grad[p, a] += d_p[a]


@ti.kernel
def splat_tangent(
    points: ti.template(),
    dot_positions: ti.types.ndarray(),
    dot_values: ti.types.ndarray(),
    dot_target: ti.types.ndarray(),
):
    """dot_target += d target / d positions dot_positions + d target / d values dot_values."""
    if ti.static(runtime.runs_on_cpu()):
        for i in range(TASK_STRIDE * BANDS):
            if i % TASK_STRIDE == 0:
                for p in range(points.positions.shape[0]):
                    if reaches_band(points.positions, p, i // TASK_STRIDE):
                        tangent_point(
                            points.positions, points.values, dot_positions, dot_values, dot_target, p, i // TASK_STRIDE
                        )
    else:
        for p in range(points.positions.shape[0]):
            tangent_point(points.positions, points.values, dot_positions, dot_values, dot_target, p, -1)

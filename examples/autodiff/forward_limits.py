"""Limits of forward mode.

The parameters are one scalar field of at most one axis: of two axes (1) or of vectors (2) are refused. Seeds pass
through f32 even in f64 (3). `while` (4) and, unlike in reverse mode, `ti.floor` (5) are refused. So the seeds should
be 0 and 1, and parameters of other shapes are copied to a flat field first.

Trap: what forward mode refuses
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_dual=True)
grid = ti.field(float, shape=(2, 2), needs_dual=True)
vector = ti.Vector.field(2, float, shape=(), needs_dual=True)
y = ti.field(float, shape=(), needs_dual=True)


@ti.kernel
def total():
    for i in x:
        y[None] += x[i]


@ti.kernel
def by_while():
    for i in x:
        k = 0
        while k < 2:
            y[None] += x[i]
            k += 1


@ti.kernel
def floored():
    for i in x:
        y[None] += x[i] * ti.floor(x[i])


def refused(field, seed, kernel):
    try:
        with ti.ad.FwdMode(y, field, seed=seed):
            kernel()
    except (ValueError, AssertionError, RuntimeError):
        return True
    return False


assert refused(grid, [1.0, 0.0, 0.0, 0.0], total)  # (1) trap
assert refused(vector, [1.0, 0.0], total)  # (2) trap
assert not refused(x, [0.1, 0.0], total)
assert y.dual[None] != 0.1 and abs(y.dual[None] - 0.1) < 1e-8  # (3) trap
assert refused(x, [1.0, 0.0], by_while)  # (4) trap
assert refused(x, [1.0, 0.0], floored)  # (5) trap

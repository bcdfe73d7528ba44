"""Read, then overwritten.

This is the first half of the global data access rule: an element that was read must not be written again before the
backward pass has used it. In one kernel `y = a * b; y = y * b` is such a case: the derivative by `b` needs the first
`y`, but finds the last (1). `y *= b` is the same (2). Give each value a field, or an element, of its own (3), or keep
it in a local variable (4). In a linear step nothing is needed from the old value, so `y = y + b`, that is `y += b`,
is exempt (5).

Trap: element overwritten after it was read
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
a, b, y, z, loss = (ti.field(float, shape=(), needs_grad=True) for _ in range(5))
a[None], b[None] = 2.0, 3.0


@ti.kernel
def overwrite():
    y[None] = a[None] * b[None]
    y[None] = y[None] * b[None]
    loss[None] += y[None]


@ti.kernel
def in_place():
    y[None] = a[None] * b[None]
    y[None] *= b[None]
    loss[None] += y[None]


@ti.kernel
def two_fields():
    y[None] = a[None] * b[None]
    z[None] = y[None] * b[None]
    loss[None] += z[None]


@ti.kernel
def local():
    v = a[None] * b[None]
    v *= b[None]
    loss[None] += v


@ti.kernel
def linear():
    y[None] = a[None] * b[None]
    y[None] += b[None]
    loss[None] += y[None]


def derivative(kernel):
    with ti.ad.Tape(loss):
        kernel()
    return loss[None], b.grad[None]


right = 18, 2 * 2 * 3  # the loss is a b^2
assert derivative(overwrite)[0] == right[0]
assert not np.isclose(derivative(overwrite)[1], right[1])  # (1) trap
assert derivative(in_place)[0] == right[0]
assert not np.isclose(derivative(in_place)[1], right[1])  # (2) trap
assert np.allclose(derivative(two_fields), right)  # (3)
assert np.allclose(derivative(local), right)  # (4)
assert np.allclose(derivative(linear), (9, 2 + 1))  # (5)

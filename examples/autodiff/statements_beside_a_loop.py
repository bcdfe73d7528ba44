"""Statements beside a top-level loop are refused.

A kernel with statements and loops side by side at its top runs forward and raises when it is differentiated (1).
Several top-level loops in one kernel are right, even where one reads what the one before it wrote (2), and so is a
kernel of statements alone (3). So move the statements to a kernel of their own.

Trap: statements beside a top-level loop
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 3
x, y = (ti.field(float, shape=n, needs_grad=True) for _ in range(2))
scale, loss = (ti.field(float, shape=(), needs_grad=True) for _ in range(2))
values = np.array([1.0, 2.0, 3.0])
x.from_numpy(values)


@ti.kernel
def mixed():
    scale[None] = x[0] ** 2
    for i in x:
        loss[None] += scale[None] * x[i]


@ti.kernel
def loops():
    for i in x:
        y[i] = x[i] ** 2
    for i in y:
        loss[None] += y[i] ** 2


@ti.kernel
def statements():
    scale[None] = x[0] ** 2
    loss[None] += scale[None] ** 2


try:
    with ti.ad.Tape(loss):
        mixed()
    message = ""
except RuntimeError as error:
    message = str(error)
assert np.isclose(loss[None], values.sum())
assert "Mixed usage of for-loops and statements" in message  # (1) trap

with ti.ad.Tape(loss):
    loops()
assert np.allclose(x.grad.to_numpy(), 4 * values**3)  # (2)
with ti.ad.Tape(loss):
    statements()
assert np.allclose(x.grad.to_numpy(), [4, 0, 0])  # (3)

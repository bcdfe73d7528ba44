"""A local variable above an inner loop.

Inside a parallel loop, an inner loop may stand beside statements that write fields (1) and beside a second inner loop
(2). But a value computed in a local variable above an inner loop and used within it gets a wrong gradient (3),
whether the loop sums into a field or into a local variable (4). Even a plain copy of an element does where the outer
loop is over a field, `for i in a` (5), while under `for i in range(n)` it is right (6). Compute the value inside the
loop (7), keep it in a field written by an earlier kernel (8), or unroll the loop with `ti.static` (9).

Trap: local variable above an inner loop
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n, m = 2, 3
a, y, square = (ti.field(float, shape=n, needs_grad=True) for _ in range(3))
x = ti.field(float, shape=(n, m), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
av, xv = np.array([0.5, 2.0]), np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
a.from_numpy(av)
x.from_numpy(xv)


@ti.kernel
def statement_beside():
    for i in a:
        loss[None] += a[i] ** 3
        for j in range(m):
            loss[None] += x[i, j] * a[i] ** 2


@ti.kernel
def two_loops():
    for i in a:
        for j in range(m):
            loss[None] += x[i, j] * a[i] ** 2
        for _j in range(m):
            loss[None] += a[i] ** 3


@ti.kernel
def local_above():
    for i in a:
        b = a[i] ** 2
        for j in range(m):
            loss[None] += x[i, j] * b


@ti.kernel
def local_sum():
    for i in a:
        b = a[i] ** 2
        s = 0.0
        for j in range(m):
            s += x[i, j] * b
        loss[None] += s


@ti.kernel
def copy_above():
    for i in a:
        b = a[i]
        for j in range(m):
            loss[None] += x[i, j] * b


@ti.kernel
def copy_above_range():
    for i in range(n):
        b = a[i]
        for j in range(m):
            loss[None] += x[i, j] * b


@ti.kernel
def inside():
    for i in a:
        for j in range(m):
            b = a[i] ** 2
            loss[None] += x[i, j] * b


@ti.kernel
def squares():
    for i in a:
        square[i] = a[i] ** 2


@ti.kernel
def from_field():
    for i in a:
        for j in range(m):
            loss[None] += x[i, j] * square[i]


@ti.kernel
def unrolled():
    for i in a:
        b = a[i] ** 2
        for j in ti.static(range(m)):
            loss[None] += x[i, j] * b


def gradient(*kernels):
    with ti.ad.Tape(loss):
        for kernel in kernels:
            kernel()
    return a.grad.to_numpy()


right = 2 * av * xv.sum(axis=1)
assert np.allclose(gradient(statement_beside), right + 3 * av**2)  # (1)
assert np.allclose(gradient(two_loops), right + 3 * m * av**2)  # (2)
assert not np.allclose(gradient(local_above), right, rtol=0.1)  # (3) trap
assert not np.allclose(gradient(local_sum), right, rtol=0.1)  # (4) trap
assert not np.allclose(gradient(copy_above), xv.sum(axis=1), rtol=0.1)  # (5) trap
assert np.allclose(gradient(copy_above_range), xv.sum(axis=1))  # (6)
assert np.allclose(gradient(inside), right)  # (7)
assert np.allclose(gradient(squares, from_field), right)  # (8)
assert np.allclose(gradient(unrolled), right)  # (9)

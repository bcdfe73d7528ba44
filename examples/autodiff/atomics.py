"""Atomic operations.

`+=` and `-=` on a field are atomic and differentiated as they should be (1). `ti.atomic_max`, `ti.atomic_min` (2) and
`ti.atomic_mul` (3) are differentiated as if they were additions. For a maximum, let a kernel find the place, outside
the gradient, and another read the value there (4).

Trap: atomic_max, atomic_min and atomic_mul
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=3, needs_grad=True)
result = ti.field(float, shape=(), needs_grad=True)
place = ti.field(int, shape=())
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([1.0, 5.0, 3.0])
x.from_numpy(values)


@ti.kernel
def add_and_subtract():
    for i in x:
        result[None] += x[i] ** 2
        result[None] -= x[i]


@ti.kernel
def largest():
    for i in x:
        ti.atomic_max(result[None], x[i])


@ti.kernel
def smallest():
    for i in x:
        ti.atomic_min(result[None], x[i])


@ti.kernel
def product():
    for i in x:
        ti.atomic_mul(result[None], x[i])


@ti.kernel
def total():
    loss[None] += result[None]


@ti.kernel
def find():
    for i in x:
        if x[i] == result[None]:
            place[None] = i


@ti.kernel
def read():
    loss[None] += x[place[None]]


def run(kernel, start):
    result[None] = start
    with ti.ad.Tape(loss):
        kernel()
        total()
    return loss[None], x.grad.to_numpy()


assert np.allclose(run(add_and_subtract, 0.0)[1], 2 * values - 1)  # (1)
high, low = run(largest, -9.0), run(smallest, 9.0)
assert high[0] == 5 and low[0] == 1
assert not np.allclose(high[1], [0, 1, 0]) and not np.allclose(low[1], [1, 0, 0])  # (2) trap
multiplied = run(product, 1.0)
assert multiplied[0] == 15
assert not np.allclose(multiplied[1], 15 / values)  # (3) trap

result[None] = -9.0
largest()
find()
with ti.ad.Tape(loss):
    read()
assert loss[None] == 5 and x.grad.to_numpy().tolist() == [0, 1, 0]  # (4)

"""Accumulated, then read.

The second half: an element that is summed up is to be written with `+=` alone, and read only when the sum is
complete, in a later kernel. Sums from many threads and several calls are then right (1). Reading the running sum in
the kernel that goes on adding to it is not, when the reading is not linear (2).

Trap: a running sum is read
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 4
x = ti.field(float, shape=n, needs_grad=True)
total = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([1.0, 2.0, 3.0, 4.0])
x.from_numpy(values)


@ti.kernel
def accumulate(weight: float):
    for i in x:
        total[None] += weight * x[i]


@ti.kernel
def finish():
    loss[None] += total[None] ** 2


@ti.kernel
def accumulate_and_read():
    for _ in range(1):
        for i in range(n):
            total[None] += x[i]
            loss[None] += total[None] ** 2


with ti.ad.Tape(loss):
    accumulate(1.0)
    accumulate(2.0)
    finish()
assert np.allclose(x.grad.to_numpy(), 2 * 3 * 3 * values.sum())  # (1)

total[None] = 0.0
with ti.ad.Tape(loss):
    accumulate_and_read()
sums = np.cumsum(values)
assert np.isclose(loss[None], np.sum(sums**2))
assert not np.allclose(x.grad.to_numpy(), 2 * np.cumsum(sums[::-1])[::-1])  # (2) trap

"""Values that steer the way.

Indices, `if` conditions and trip counts need no gradient, yet the backward pass reads them again to know which way
the forward went. Overwriting one makes it differentiate another branch (1) or fewer iterations (2), even though no
value that has a gradient was touched. Leave them alone until the Tape ends (3).

Trap: control values overwritten before the backward pass
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 4
x = ti.field(float, shape=n, needs_grad=True)
chosen = ti.field(int, shape=n)
count = ti.field(int, shape=())
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([1.0, 2.0, 3.0, 4.0])
x.from_numpy(values)


@ti.kernel
def branch():
    for i in x:
        if chosen[i] == 1:
            loss[None] += x[i] ** 2
        else:
            loss[None] += x[i]


@ti.kernel
def some():
    for i in range(count[None]):
        loss[None] += x[i] ** 2


@ti.kernel
def unchoose():
    for i in chosen:
        chosen[i] = 0


def gradient(*calls):
    chosen.fill(1)
    count[None] = n
    with ti.ad.Tape(loss):
        for call in calls:
            call()
    assert np.isclose(loss[None], np.sum(values**2))
    return x.grad.to_numpy()


def shorten():
    count[None] = 1


assert not np.allclose(gradient(branch, unchoose), 2 * values)  # (1) trap
assert not np.allclose(gradient(some, shorten), 2 * values)  # (2) trap
assert np.allclose(gradient(branch), 2 * values) and np.allclose(gradient(some), 2 * values)  # (3)

"""Two checkers.

`ti.ad.Tape(loss, validation=True)` finds an overwritten element and names the line, if `ti.init` had `debug=True`
(1). It does not see a recursion that a top-level serial loop carries through a field, though the gradient is wrong
(2). `ti.ad.Tape(loss, grad_check=[x])` compares with central differences and finds that too, by an `AssertionError`
(3). The recursion is right in a loop inside another (4).

Trap: validation misses a serial loop
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64, debug=True)
n = 4
x = ti.field(float, shape=n, needs_grad=True)
trans = ti.field(float, shape=(), needs_grad=True)
state = ti.field(float, shape=n + 1, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([0.2, 0.4, 0.6, 0.8])
x.from_numpy(values)
trans[None] = 1.0
state[0] = 1.0


@ti.kernel
def in_place():
    for _ in range(1):
        for i in range(n):
            loss[None] += trans[None] * x[i]
            trans[None] *= 1 - x[i]


@ti.kernel
def serial():
    ti.loop_config(serialize=True)
    for i in range(n):
        state[i + 1] = state[i] * x[i]


@ti.kernel
def nested():
    for _ in range(1):
        for i in range(n):
            state[i + 1] = state[i] * x[i]


@ti.kernel
def last():
    loss[None] += state[n]


def complaint(*kernels, **options):
    try:
        with ti.ad.Tape(loss, **options):
            for kernel in kernels:
                kernel()
    except AssertionError as error:  # Taichi's own assertion error is one
        return str(error)
    return ""


found = complaint(in_place, validation=True)
assert "Breaks the global data access rule" in found and "trans[None] *= 1 - x[i]" in found  # (1)
right = np.prod(values) / values
assert complaint(serial, last, validation=True) == "" and np.isclose(loss[None], np.prod(values))
assert not np.allclose(x.grad.to_numpy(), right)  # (2) trap
assert "Not all variables pass grad check" in complaint(serial, last, grad_check=[x])  # (3) trap
assert complaint(nested, last, validation=True) == "" and np.allclose(x.grad.to_numpy(), right)  # (4)

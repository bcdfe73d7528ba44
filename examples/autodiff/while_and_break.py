"""`while`, `break`, `continue`.

All three run forward and raise when differentiated, `while` and `break` (1) as well as `continue` (2). Write a
`range` with an `if` around its body (3).

Trap: while, break and continue
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 5
x = ti.field(float, shape=n, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x.fill(0.5)


@ti.kernel
def by_while():
    for _ in range(1):
        s = 0.0
        k = 0
        while s < 0.6:
            s += x[k] ** 2
            k += 1
        loss[None] += s


@ti.kernel
def by_break():
    for _ in range(1):
        s = 0.0
        for k in range(n):
            if s >= 0.6:
                break
            s += x[k] ** 2
        loss[None] += s


@ti.kernel
def by_continue():
    for _ in range(1):
        s = 0.0
        for k in range(n):
            if s >= 0.6:
                continue
            s += x[k] ** 2
        loss[None] += s


@ti.kernel
def by_if():
    for _ in range(1):
        s = 0.0
        for k in range(n):
            if s < 0.6:
                s += x[k] ** 2
        loss[None] += s


def refused(kernel):
    try:
        with ti.ad.Tape(loss):
            kernel()
    except RuntimeError as error:
        assert "Not supported" in str(error)
        assert np.isclose(loss[None], 0.75)
        return True
    return False


assert refused(by_while) and refused(by_break)  # (1) trap
assert refused(by_continue)  # (2) trap
assert not refused(by_if) and x.grad.to_numpy().tolist() == [1, 1, 1, 0, 0]  # (3)

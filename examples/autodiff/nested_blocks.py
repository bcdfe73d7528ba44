"""Nested blocks, and everything at once.

The configuration asked about in taichi#2485, nested dense blocks with `needs_grad`, `place(x.grad)` and `lazy_grad()`
all together, is legal: the gradient is where `place(x.grad)` put it and is right (1). The gradient's blocks may
differ from the field's (2), and with `lazy_grad()` alone they are the same cells (3).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
everything = ti.field(float, needs_grad=True)
different, lazy = (ti.field(float) for _ in range(2))
ti.root.dense(ti.ijk, 2).dense(ti.ijk, 4).place(everything)
ti.root.dense(ti.ijk, 2).dense(ti.ijk, 4).place(everything.grad)
ti.root.dense(ti.ijk, 2).dense(ti.ijk, 4).place(different)
ti.root.dense(ti.ijk, 8).place(different.grad)
ti.root.dense(ti.ijk, 2).dense(ti.ijk, 4).place(lazy)
ti.root.lazy_grad()
loss = ti.field(float, shape=(), needs_grad=True)
values = np.random.default_rng(0).normal(size=(8, 8, 8))


@ti.kernel
def squares(x: ti.template()):
    for i, j, k in x:
        loss[None] += x[i, j, k] ** 2


def right(x):
    x.from_numpy(values)
    with ti.ad.Tape(loss):
        squares(x)
    return np.allclose(x.grad.to_numpy(), 2 * values)


def shared(x):
    return x.snode.parent() == x.grad.snode.parent()


assert right(everything) and not shared(everything)  # (1)
assert right(different) and not shared(different)  # (2)
assert right(lazy) and shared(lazy)  # (3)

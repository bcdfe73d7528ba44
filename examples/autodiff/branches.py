"""Branches.

An `if` is differentiated along the branch that was taken (1). `ti.select` computes both sides; the gradient is right
as long as both are finite (2). A side that is not taken but has an infinite derivative turns the gradient to NaN (3),
as `torch.where` does. Use `if` there (4), or make the argument harmless first.

Trap: select with a derivative that is not finite
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x.from_numpy(np.array([-4.0, 4.0]))


def derivative(function):
    @ti.kernel
    def kernel():
        for i in x:
            loss[None] += function(x[i])

    with ti.ad.Tape(loss):
        kernel()
    return x.grad.to_numpy()


@ti.func
def by_if(v):
    r = 3 * v
    if v > 0:
        r = v * v
    return r


@ti.func
def by_select(v):
    return ti.select(v > 0, v * v, 3 * v)


@ti.func
def root_by_select(v):
    return ti.select(v > 0, ti.sqrt(v), 0.0)


@ti.func
def root_by_if(v):
    r = 0.0
    if v > 0:
        r = ti.sqrt(v)
    return r


assert np.allclose(derivative(by_if), [3, 8])  # (1)
assert np.allclose(derivative(by_select), [3, 8])  # (2)
assert np.isnan(derivative(root_by_select)[0]) and loss[None] == 2  # (3) trap
assert np.allclose(derivative(root_by_if), [0, 0.25])  # (4)

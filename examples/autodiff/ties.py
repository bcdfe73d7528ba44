"""Ties and corners.

Where a function has no derivative, one is chosen. At a tie, `ti.max` and `ti.min` give all of it to the second
argument (1), where PyTorch's `maximum` halves it; `ti.abs` at 0 gives 0 (2). `ti.sqrt` at 0 gives infinity (3), and
`sqrt(x * x)` and a vector's `norm()` NaN (4). `norm(eps)` is `sqrt(x . x + eps)`: finite, and zero at zero (5).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)


def derivative(function, at):
    @ti.kernel
    def kernel():
        loss[None] += function(x[None])

    x[None] = at
    with ti.ad.Tape(loss):
        kernel()
    return x.grad[None]


@ti.func
def max_first(v):
    return ti.max(v, 2.0)


@ti.func
def max_second(v):
    return ti.max(2.0, v)


@ti.func
def min_first(v):
    return ti.min(v, 2.0)


@ti.func
def min_second(v):
    return ti.min(2.0, v)


@ti.func
def root_of_square(v):
    return ti.sqrt(v * v)


@ti.func
def norm(v):
    return ti.Vector([v, 0.0]).norm()


@ti.func
def norm_eps(v):
    return ti.Vector([v, 0.0]).norm(1e-6)


ties = [derivative(f, 2.0) for f in (max_first, max_second, min_first, min_second)]
assert ties == [0, 1, 0, 1]  # (1)
assert derivative(ti.abs, 0.0) == 0  # (2)
assert derivative(ti.sqrt, 0.0) == np.inf  # (3)
assert np.isnan(derivative(root_of_square, 0.0)) and np.isnan(derivative(norm, 0.0))  # (4)
assert derivative(norm_eps, 0.0) == 0 and np.isclose(loss[None], 1e-3)  # (5)

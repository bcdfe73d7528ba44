"""Rounding and integers.

A cast to `int` has the gradient zero, so what is rounded is a constant (1); likewise `ti.floor` and `ti.ceil` (2).
The fraction `x - ti.floor(x)` has the gradient 1, which is what linear interpolation needs (3), and so has `x % 1.0`
(4). An optimiser sees no slope through a cast even though the value does change (5). `ti.round`, `ti.tan` and
`ti.random` are refused (6).

Trap: round, tan and random
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=3, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([0.4, 1.5, 2.6])
x.from_numpy(values)


def derivative(function):
    @ti.kernel
    def kernel():
        for i in x:
            loss[None] += function(x[i])

    with ti.ad.Tape(loss):
        kernel()
    return x.grad.to_numpy()


@ti.func
def times_int(v):
    return v * int(v)


@ti.func
def floor_ceil(v):
    return v * ti.floor(v) * ti.ceil(v)


@ti.func
def fraction(v):
    return (v - ti.floor(v)) ** 2


@ti.func
def modulo(v):
    return (v % 1.0) ** 2


@ti.func
def only_int(v):
    return float(int(v))


@ti.func
def noisy(v):
    return v * ti.random()


def refused(function):
    try:
        derivative(function)
    except RuntimeError as error:
        return "ot supported" in str(error)
    return False


assert np.allclose(derivative(times_int), [0, 1, 2])  # (1)
assert np.allclose(derivative(floor_ceil), np.floor(values) * np.ceil(values))  # (2)
assert np.allclose(derivative(fraction), 2 * (values % 1))  # (3)
assert np.allclose(derivative(modulo), 2 * (values % 1))  # (4)
assert np.allclose(derivative(only_int), 0) and loss[None] == 0 + 1 + 2  # (5)
assert refused(ti.round) and refused(ti.tan) and refused(noisy)  # (6) trap

"""Dynamic loops with exp.

A loop over `range(n)` that carries a local variable forgets the result of `exp` in all iterations but the last: the
gradient is wrong (1). So do `tanh` (2) and `rsqrt` (3), a local vector that is multiplied on (4), and `ti.max` of
what is carried on (12). Right are `sin` (5), `sqrt` (6), `if` (7) and scalars in place of the vector (8). For `exp`
itself: `ti.pow(ti.math.e, x)` (9), a `ti.static` loop (10), which is unrolled and so for a handful of iterations, a
sum straight into a field (11), or an adjoint of your own (`own_adjoint.py`).

Trap: exp in a dynamic loop
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 4
x = ti.field(float, shape=n, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.array([0.3, 0.6, 0.9, 1.2])
x.from_numpy(values)


def summed(function):
    @ti.kernel
    def kernel():
        for _ in range(1):
            s = 0.0
            for k in range(n):
                s += function(x[k])
            loss[None] += s

    return kernel


@ti.func
def either(v):
    r = v**3
    if v > 0.5:
        r = v**2
    return r


@ti.func
def power(v):
    return ti.pow(ti.math.e, v)


@ti.kernel
def vector():
    for _ in range(1):
        s = ti.Vector([1.0, 1.0])
        for k in range(n):
            s = ti.Vector([s[0] * x[k], s[1] * x[k]])
        loss[None] += s[0] * s[1]


@ti.kernel
def scalars():
    for _ in range(1):
        s, t = 1.0, 1.0
        for k in range(n):
            s = s * x[k]
            t = t * x[k]
        loss[None] += s * t


@ti.kernel
def maximum():
    for _ in range(1):
        s = 0.0
        for k in range(n):
            s = ti.max(s * x[k], 2 - x[k])
        loss[None] += s


@ti.kernel
def static_loop():
    for _ in range(1):
        s = 0.0
        for k in ti.static(range(n)):
            s += ti.exp(x[k])
        loss[None] += s


@ti.kernel
def into_field():
    for _ in range(1):
        for k in range(n):
            loss[None] += ti.exp(x[k])


def gradient(kernel, forward):
    with ti.ad.Tape(loss):
        kernel()
    assert np.isclose(loss[None], forward)
    return x.grad.to_numpy()


exp, tanh, rsqrt = np.exp(values), np.tanh(values), values**-0.5
product = np.prod(values) ** 2
assert not np.allclose(gradient(summed(ti.exp), exp.sum()), exp, rtol=0.1)  # (1) trap
assert not np.allclose(gradient(summed(ti.tanh), tanh.sum()), 1 - tanh**2, rtol=0.1)  # (2) trap
assert not np.allclose(gradient(summed(ti.rsqrt), rsqrt.sum()), -0.5 * rsqrt**3, rtol=0.1)  # (3) trap
assert not np.allclose(gradient(vector, product), 2 * product / values, rtol=0.1)  # (4) trap
assert np.allclose(gradient(summed(ti.sin), np.sin(values).sum()), np.cos(values))  # (5)
assert np.allclose(gradient(summed(ti.sqrt), np.sqrt(values).sum()), 0.5 * rsqrt)  # (6)
small = values < 0.5
either_sum = np.where(small, values**3, values**2).sum()
assert np.allclose(gradient(summed(either), either_sum), np.where(small, 3 * values**2, 2 * values))  # (7)
assert np.allclose(gradient(scalars, product), 2 * product / values)  # (8)
assert np.allclose(gradient(summed(power), exp.sum()), exp)  # (9)
assert np.allclose(gradient(static_loop, exp.sum()), exp)  # (10)
assert np.allclose(gradient(into_field, exp.sum()), exp)  # (11)


def carried(v):
    s = 0.0
    for q in v:
        s = max(s * q, 2 - q)
    return s


bumps = 1e-6 * np.eye(n)
maximum_gradient = [(carried(values + e) - carried(values - e)) / 2e-6 for e in bumps]
assert not np.allclose(gradient(maximum, carried(values)), maximum_gradient, rtol=0.1)  # (12) trap

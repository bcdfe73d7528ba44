"""A first gradient.

A field is declared with its gradient, kernels fill fields, and a `ti.ad.Tape` around the calls runs the derivative of
each call when its body ends: there is no `backward()`. The gradient is then in `x.grad` (1). The names `ti.Tape` and
`ti.no_grad`, which older texts use, are gone; both live in `ti.ad` (2).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=3, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x.from_numpy(np.array([1.0, 2.0, 3.0]))


@ti.kernel
def energy():
    for i in x:
        loss[None] += x[i] ** 3


with ti.ad.Tape(loss):
    energy()

assert np.allclose(x.grad.to_numpy(), 3 * x.to_numpy() ** 2)  # (1)
assert not hasattr(ti, "Tape") and not hasattr(ti, "no_grad") and hasattr(ti.ad, "no_grad")  # (2)

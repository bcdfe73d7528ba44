"""Leaving something out.

`ti.stop_grad(x)` makes the field `x` a constant in that kernel (1). It takes a field; a value does not compile (4).
PyTorch's `detach` of an expression is a kernel of its own whose result goes to a field without gradient (2). A
function under `@ti.ad.no_grad` is left out whole (3).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x, y, loss = (ti.field(float, shape=(), needs_grad=True) for _ in range(3))
fixed = ti.field(float, shape=())
x[None], y[None] = 2.0, 3.0


@ti.kernel
def stopped():
    ti.stop_grad(x)
    loss[None] += x[None] * y[None]


@ti.kernel
def detach():
    fixed[None] = x[None] ** 2


@ti.kernel
def with_detached():
    loss[None] += fixed[None] * x[None]


@ti.kernel
def product():
    loss[None] += x[None] * y[None]


@ti.ad.no_grad
def unseen():
    product()


with ti.ad.Tape(loss):
    stopped()
assert (x.grad[None], y.grad[None]) == (0, 2)  # (1)

with ti.ad.Tape(loss):
    detach()
    with_detached()
assert loss[None] == 8 and x.grad[None] == 4  # (2)

with ti.ad.Tape(loss):
    unseen()
    product()
assert loss[None] == 12 and x.grad[None] == 3  # (3)


@ti.kernel
def stopped_value():
    v = x[None] ** 2
    ti.stop_grad(v)
    loss[None] += v


try:
    stopped_value()
    compiled = True
except ti.TaichiCompilationError:
    compiled = False
assert not compiled  # (4)

"""What goes wrong with own gradients.

Keyword arguments reach the forward function but not its adjoint, which falls back to its default, without a word (1):
pass by position (2). If the adjoint was forgotten, the Tape raises a `TypeError` as it exits (3). A kernel itself
cannot be given an adjoint; wrap it (4).

Trap: keyword arguments of a replaced gradient
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x[None] = 3.0


@ti.kernel
def scale_kernel(rate: float):
    loss[None] += rate * x[None]


@ti.kernel
def scale_adjoint(rate: float):
    x.grad[None] += rate * loss.grad[None]


@ti.ad.grad_replaced
def scale(rate=1.0):
    scale_kernel(rate)


@ti.ad.grad_for(scale)
def _(rate=1.0):
    scale_adjoint(rate)


with ti.ad.Tape(loss):
    scale(rate=4.0)
assert loss[None] == 12
assert x.grad[None] != 4  # (1) trap
with ti.ad.Tape(loss):
    scale(4.0)
assert x.grad[None] == 4  # (2)


@ti.ad.grad_replaced
def orphan():
    scale_kernel(1.0)


try:
    with ti.ad.Tape(loss):
        orphan()
    raised = False
except TypeError:
    raised = True
assert raised  # (3)

try:
    ti.ad.grad_for(scale_kernel)(lambda rate: None)
    message = ""
except RuntimeError as error:
    message = str(error)
assert "must be a **python** function" in message  # (4)

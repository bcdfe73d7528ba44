"""Values are not recorded.

PyTorch saves what backward needs, and complains if it was changed in place. Taichi saves nothing: the backward pass
reads the fields as they are then. If `x` is overwritten between forward and backward, the gradient is not that of the
loss (1) but is taken at the new `x` (2), and no error says so. With the value put back in time it is right (3). So
keep every value that a derivative needs until the Tape ends, or bring it back by running the forward again
(checkpoints (`checkpoints.py`)).

Trap: value overwritten before the backward pass
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)


@ti.kernel
def square():
    loss[None] += x[None] ** 2


x[None] = 3.0
with ti.ad.Tape(loss):
    square()
    x[None] = 10.0
assert loss[None] == 9
assert x.grad[None] != 6  # (1) trap
assert x.grad[None] == 20  # (2)

x[None] = 3.0
with ti.ad.Tape(loss):
    square()
    x[None] = 10.0
    x[None] = 3.0
assert x.grad[None] == 6  # (3)

"""A field is memory, not a value.

A PyTorch operation makes a new tensor that remembers its parents. A kernel writes into fields that exist already and
remembers nothing: calling it outside a Tape leaves no graph behind (1). `x.grad` is a field of the same shape (2),
which you may read and write like any other (3). A field declared without a gradient is a constant: a gradient that
must pass through it does not arrive, and nothing says so (4). So every float field between the parameters and the
loss needs a gradient, the intermediate ones too (5).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
middle = ti.field(float, shape=(), needs_grad=True)
bare = ti.field(float, shape=())
loss = ti.field(float, shape=(), needs_grad=True)
x[None] = 3.0


@ti.kernel
def square(out: ti.template()):
    out[None] = x[None] ** 2


@ti.kernel
def total(part: ti.template()):
    loss[None] += 5 * part[None]


square(middle)
with ti.ad.Tape(loss):
    total(middle)
assert x.grad[None] == 0 and middle.grad[None] == 5  # (1)
assert x.grad.shape == x.shape  # (2)
x.grad[None] = 7.0
assert x.grad[None] == 7  # (3)

with ti.ad.Tape(loss):
    square(bare)
    total(bare)
assert loss[None] == 45 and x.grad[None] == 0  # (4)

with ti.ad.Tape(loss):
    square(middle)
    total(middle)
assert loss[None] == 45 and x.grad[None] == 30  # (5)

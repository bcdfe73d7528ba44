"""Assignment cuts.

`y[i] = v` passes on the gradient of `y[i]` and sets it to zero: what was in `y[i]` before had no influence (1). So
after the Tape, the gradient of an assigned intermediate field is zero, not what PyTorch's `retain_grad` would show
(2), while one that was added to with `+=` keeps its own (3).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
assigned = ti.field(float, shape=(), needs_grad=True)
added = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x[None] = 2.0


@ti.kernel
def assign(weight: float):
    assigned[None] = weight * x[None]


@ti.kernel
def add():
    added[None] += 3 * x[None]


@ti.kernel
def total():
    loss[None] += 5 * assigned[None] + 7 * added[None]


with ti.ad.Tape(loss):
    assign(100.0)
    assign(2.0)
    add()
    total()
assert x.grad[None] == 5 * 2 + 7 * 3  # (1)
assert assigned.grad[None] == 0  # (2)
assert added.grad[None] == 7  # (3)

"""Gradients add up; who clears them.

As in PyTorch, a backward pass adds to gradients. Unlike there, `ti.ad.Tape(loss)` first clears every gradient of
every field (1), fields that this Tape never touches included (2). `clear_gradients=False` leaves them, so two passes
give twice the gradient (3), and clearing is yours: `x.grad.fill(0)` for one field (4), `ti.ad.clear_all_gradients()`
for all (5). Of large fields, clear only what you touched. Gradients of `ti.ndarray` are not cleared even by the
default (6).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
other = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
array = ti.ndarray(float, shape=2, needs_grad=True)
x[None] = 3.0
array.fill(3.0)


@ti.kernel
def square():
    loss[None] += x[None] ** 2


@ti.kernel
def squares(a: ti.types.ndarray()):
    for i in a:
        loss[None] += a[i] ** 2


other.grad[None] = 1.0
for _ in range(2):
    with ti.ad.Tape(loss):
        square()
assert x.grad[None] == 6  # (1)
assert other.grad[None] == 0  # (2)
with ti.ad.Tape(loss, clear_gradients=False):
    square()
assert x.grad[None] == 12  # (3)
x.grad.fill(0)
assert x.grad[None] == 0 and loss.grad[None] == 1  # (4)
ti.ad.clear_all_gradients()
assert loss.grad[None] == 0  # (5)

for _ in range(2):
    with ti.ad.Tape(loss):
        squares(array)
assert array.grad.to_numpy().tolist() == [12, 12]  # (6)

"""Fields without gradient are written twice.

The backward pass of a kernel runs again what it does to fields that have no gradient: a counter counts twice, an
integer one (1) or a float one (2), while a field with a gradient is written once (3). Count in a kernel of its own,
under `@ti.ad.no_grad` if it is called inside the Tape (4).

Trap: counter runs again in the backward pass
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 4
x = ti.field(float, shape=n, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
integer = ti.field(int, shape=())
bare = ti.field(float, shape=())
with_gradient = ti.field(float, shape=(), needs_grad=True)
x.fill(2.0)


@ti.kernel
def squares():
    for i in x:
        loss[None] += x[i] ** 2
        integer[None] += 1
        bare[None] += 1.0
        with_gradient[None] += 1.0


@ti.kernel
def count_kernel():
    for _ in range(n):
        integer[None] += 1


@ti.ad.no_grad
def count():
    count_kernel()


with ti.ad.Tape(loss):
    squares()
assert integer[None] != n  # (1) trap
assert bare[None] != n  # (2) trap
assert with_gradient[None] == n and x.grad.to_numpy().tolist() == [4] * n  # (3)

integer[None] = 0
with ti.ad.Tape(loss):
    count()
assert integer[None] == n  # (4)

"""A kernel with an adjoint of its own.

What Taichi cannot differentiate, or not well, gets an adjoint written by hand, as a `torch.autograd.Function` does. A
Python function that calls the kernel is decorated with `ti.ad.grad_replaced`; what it calls is hidden from the Tape
(1). Its partner under `ti.ad.grad_for` gets the same arguments in the backward pass (2), reads the gradient of what
the forward wrote, and adds to the gradient of what it read. Here it mends the sum of `exp` of `exp_in_a_loop.py` (3).
Adjoint kernels are not transformed, so `while` and long loops are fine in them. They must add: here two calls
contribute to the same gradient.
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 50
x = ti.field(float, shape=n, needs_grad=True)
y = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.linspace(0, 1, n)
x.from_numpy(values)


@ti.kernel
def sum_exp(rate: float):
    for _ in range(1):
        s = 0.0
        for k in range(n):
            s += ti.exp(rate * x[k])
        y[None] += s


@ti.kernel
def sum_exp_adjoint(rate: float):
    for _ in range(1):
        k = 0
        while k < n:
            x.grad[k] += y.grad[None] * rate * ti.exp(rate * x[k])
            k += 1


@ti.ad.grad_replaced
def summed(rate):
    sum_exp(rate)


seen = []


@ti.ad.grad_for(summed)
def summed_adjoint(rate):
    seen.append(rate)
    sum_exp_adjoint(rate)


@ti.kernel
def square():
    loss[None] += y[None] ** 2


with ti.ad.Tape(loss) as tape:
    summed(1.0)
    summed(-2.0)
    square()
assert len(tape.calls) == 3  # (1)
assert seen == [-2.0, 1.0]  # (2)
total = np.exp(values).sum() + np.exp(-2 * values).sum()
right = 2 * total * (np.exp(values) - 2 * np.exp(-2 * values))
assert np.allclose(x.grad.to_numpy(), right)  # (3)

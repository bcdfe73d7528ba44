"""`kernel.grad()` and several outputs.

Without a Tape, call `kernel.grad()` with the kernel's own arguments. It leaves the outputs as they are (1), clears
nothing beforehand, and takes the gradients of the outputs as you set them: one vector-Jacobian product (2). It uses
up the gradient of an output that the kernel assigns (3) but not of one that it adds to (4), so set all of them again
before the next call. For a row of the Jacobian, set a single 1 (5). A Tape without a loss, which would do this for
many kernels, does not work in 1.7.4 (6): call each kernel's `grad` in reverse order.

Trap: Tape without a loss
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_grad=True)
product = ti.field(float, shape=(), needs_grad=True)
total = ti.field(float, shape=(), needs_grad=True)
x.from_numpy(np.array([2.0, 3.0]))


@ti.kernel
def outputs(weight: float):
    product[None] = weight * x[0] * x[1]
    total[None] += x[0] + x[1] ** 2


outputs(2.0)
assert (product[None], total[None]) == (12, 11)
product.grad[None], total.grad[None] = 10.0, 100.0
outputs.grad(2.0)
assert (product[None], total[None]) == (12, 11)  # (1)
assert x.grad.to_numpy().tolist() == [10 * 6 + 100, 10 * 4 + 100 * 6]  # (2)
assert product.grad[None] == 0  # (3)
assert total.grad[None] == 100  # (4)

jacobian = []
for row in (0, 1):
    x.grad.fill(0)
    product.grad[None], total.grad[None] = np.eye(2)[row]
    outputs.grad(2.0)
    jacobian.append(x.grad.to_numpy().tolist())
assert jacobian == [[6, 4], [1, 6]]  # (5)

try:
    with ti.ad.Tape():
        outputs(2.0)
    refused = False
except (ImportError, AttributeError):
    refused = True
assert refused  # (6) trap

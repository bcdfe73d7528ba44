"""`needs_grad`, `place(x.grad)`, `lazy_grad`.

`shape` with `needs_grad=True` puts the gradient into a block of its own (1). `place(x, x.grad)` interleaves the two:
cells are twice as large and the gradient sits behind the value (2). `place(x.grad)` in a block of its own keeps them
apart (3). `lazy_grad()` interleaves (4). All give the same gradient (5).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
n = 4
shaped = ti.field(float, shape=n, needs_grad=True)
together, apart, lazy = (ti.field(float) for _ in range(3))
ti.root.dense(ti.i, n).place(together, together.grad)
ti.root.dense(ti.i, n).place(apart)
ti.root.dense(ti.i, n).place(apart.grad)
ti.root.dense(ti.i, n).place(lazy)
ti.root.lazy_grad()
loss = ti.field(float, shape=(), needs_grad=True)


@ti.kernel
def squares(x: ti.template()):
    for i in x:
        loss[None] += x[i] ** 2


def layout(x):
    """Whether value and gradient share a block, the bytes of the value's cell, and the gradient's place in its cell."""
    block, grad_block = x.snode.parent(), x.grad.snode.parent()
    return block == grad_block, block._cell_size_bytes, x.grad.snode._offset_bytes_in_parent_cell


right = []
for x in (shaped, together, apart, lazy):
    x.from_numpy(np.arange(n) + 1.0)
    with ti.ad.Tape(loss):
        squares(x)
    right.append(x.grad.to_numpy().tolist() == [2, 4, 6, 8])

assert layout(shaped) == (False, 8, 0)  # (1)
assert layout(together) == (True, 16, 8)  # (2)
assert layout(apart) == (False, 8, 0)  # (3)
assert layout(lazy) == (True, 16, 8)  # (4)
assert right == [True] * 4  # (5)

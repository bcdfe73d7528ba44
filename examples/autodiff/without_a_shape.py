"""`needs_grad` without a shape.

`needs_grad=True` on a field without `shape` is a promise that the gradient will be placed, by `place(x.grad)` (1) or
`lazy_grad()` (2). If it is not, the first use of any field raises and names the field's line (3). For an integer
field `needs_grad` raises at once (4) and leaves a half-made field behind, which the next use of any field complains
about (5): go back to `ti.init`.
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
placed, lazy = (ti.field(float, needs_grad=True) for _ in range(2))
ti.root.dense(ti.i, 4).place(placed)
ti.root.dense(ti.i, 4).place(placed.grad)
ti.root.dense(ti.i, 4).place(lazy)
ti.root.lazy_grad()
placed.fill(1.0)
assert placed.grad.shape == (4,) and placed.grad.snode.parent() != placed.snode.parent()  # (1)
assert lazy.grad.shape == (4,) and lazy.grad.snode.parent() == lazy.snode.parent()  # (2)

forgotten = ti.field(float, needs_grad=True)
ti.root.dense(ti.i, 4).place(forgotten)
try:
    placed.fill(2.0)
    message = ""
except RuntimeError as error:
    message = str(error)
assert "grad field(s) are not placed" in message and "forgotten = ti.field" in message  # (3)

ti.init(ti.cpu, default_fp=ti.f64)
try:
    ti.field(int, shape=4, needs_grad=True)
    message = ""
except RuntimeError as error:
    message = str(error)
assert "i32 is not supported for field with `needs_grad=True`" in message  # (4)
other = ti.field(float, shape=4)
try:
    other.fill(1.0)
    message = ""
except RuntimeError as error:
    message = str(error)
assert "are not placed" in message  # (5)

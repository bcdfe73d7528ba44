"""A tree of its own.

A `ti.FieldsBuilder` is a root apart: its tree can be built after kernels have run (1) and be freed again. It has its
own `lazy_grad()`, to be called before `finalize()` (2), after which it raises (3). `ti.root.lazy_grad()` does not
reach it (4). After `destroy()` the next default Tape, which clears the gradients of every tree, takes the process
down (6): use `clear_gradients=False` from then on, and clear by hand (5).

Trap: Tape after a tree was destroyed
"""

import subprocess
import sys

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
loss = ti.field(float, shape=(), needs_grad=True)
kept = ti.field(float, shape=4, needs_grad=True)
kept.fill(1.0)


@ti.kernel
def squares(x: ti.template()):
    for i in x:
        loss[None] += x[i] ** 2


squares(kept)
x = ti.field(float)
builder = ti.FieldsBuilder()
builder.dense(ti.i, 4).place(x)
builder.lazy_grad()
tree = builder.finalize()
x.from_numpy(np.arange(4.0))
with ti.ad.Tape(loss):
    squares(x)
assert loss[None] == 14  # (1)
assert x.grad.to_numpy().tolist() == [0, 2, 4, 6]  # (2)
try:
    builder.lazy_grad()
    message = ""
except RuntimeError as error:
    message = str(error)
assert "FieldsBuilder finalized" in message  # (3)

other = ti.field(float)
second = ti.FieldsBuilder()
second.dense(ti.i, 4).place(other)
ti.root.lazy_grad()
second.finalize()
try:
    other.grad[0]
    missing = False
except AttributeError:
    missing = True
assert missing  # (4)

tree.destroy()
kept.grad.fill(0)
with ti.ad.Tape(loss, clear_gradients=False):
    squares(kept)
assert kept.grad.to_numpy().tolist() == [2, 2, 2, 2]  # (5)

child = "clear" in sys.argv  # a second process of this file, which crashes
if child:
    with ti.ad.Tape(loss):
        squares(kept)
crashed = child or subprocess.run([sys.executable, __file__, "clear"], capture_output=True, check=False).returncode != 0
assert crashed  # (6) trap

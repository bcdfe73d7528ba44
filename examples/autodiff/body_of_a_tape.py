"""What else may stand in the body.

Reading fields from Python is harmless (1). `x.from_numpy(...)` counts as an assignment: the gradient of `x` ends as
zero, since its value no longer comes from before (2); but `x[0] = v` does not (3). `field.fill()` raises when the
Tape ends, whatever field it fills (4), and a second Tape inside the first raises too (5). Fill before the Tape.
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
inner = ti.field(float, shape=(), needs_grad=True)
scratch = ti.field(float, shape=())
x.fill(2.0)


@ti.kernel
def squares():
    for i in x:
        loss[None] += x[i] ** 2


with ti.ad.Tape(loss):
    squares()
    seen = loss[None], x.to_numpy()
assert seen[0] == 8 and x.grad[0] == 4  # (1)

with ti.ad.Tape(loss):
    x.from_numpy(np.array([2.0, 2.0]))
    squares()
assert loss[None] == 8 and x.grad[0] == 0  # (2)

with ti.ad.Tape(loss):
    x[0] = 2.0
    squares()
assert x.grad[0] == 4  # (3)


def message(body):
    try:
        with ti.ad.Tape(loss):
            body()
    except RuntimeError as error:
        return str(error)
    return ""


def nest():
    with ti.ad.Tape(inner):
        squares()


assert "Mixed usage of for-loops and statements" in message(lambda: scratch.fill(0))  # (4)
assert "Mixed usage of for-loops and statements" in message(nest)  # (5)

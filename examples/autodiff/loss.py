"""The loss.

The loss is a field of shape `()`; a field with one element is refused (1), as is one without a gradient (2). The Tape
sets it to zero on entry, so a kernel may add to it without clearing it (3). Sum the loss in f64: a sum in f32 stands
still when its terms fall below its rounding (4).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
single = ti.field(float, shape=1, needs_grad=True)
bare = ti.field(float, shape=())
loss = ti.field(float, shape=(), needs_grad=True)
loss32 = ti.field(ti.f32, shape=(), needs_grad=True)
x = ti.field(float, shape=(), needs_grad=True)


def refusal(field):
    try:
        with ti.ad.Tape(field):
            pass
    except RuntimeError as error:
        return str(error)
    return ""


assert "must be a 0-D field" in refusal(single)  # (1)
assert "Gradients of loss are not allocated" in refusal(bare)  # (2)


@ti.kernel
def add(out: ti.template()):
    out[None] += x[None]


x[None] = 2.0
loss[None] = 100.0
with ti.ad.Tape(loss):
    add(loss)
assert loss[None] == 2  # (3)

x[None] = 1.0
loss32[None] = 2.0**24
add(loss32)
assert loss32[None] == 2.0**24  # (4)

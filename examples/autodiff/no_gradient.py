"""No gradient at all.

Declared without `needs_grad` and placed without a gradient, a float field still has an attribute `grad`, but using it
raises: an `AttributeError` from Python (1), and in a kernel an error that says what is missing (2). An integer
field's `grad` is `None` (3). A kernel that only reads such a field can be differentiated by the others (4).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
bare = ti.field(float, shape=())
number = ti.field(int, shape=())
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
bare[None], x[None] = 2.0, 3.0


@ti.kernel
def product():
    loss[None] += bare[None] * x[None]


@ti.kernel
def write():
    bare.grad[None] = 1.0


def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


assert error_of(lambda: bare.grad[None])[0] == "AttributeError"  # (1)
assert "has not been placed, check whether `needs_grad=True`" in error_of(write)[1]  # (2)
assert number.grad is None  # (3)
with ti.ad.Tape(loss):
    product()
assert x.grad[None] == 2  # (4)

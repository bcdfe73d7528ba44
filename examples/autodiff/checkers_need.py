"""Two checkers, continued.

Without `debug=True`, `validation=True` checks nothing and says so in a warning (1). `grad_check` works without, but
only for an f64 loss (2), and runs the calls of the body again for each of its differences (3).
"""

import contextlib
import io
import warnings

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
loss32 = ti.field(ti.f32, shape=(), needs_grad=True)
x.fill(2.0)


@ti.kernel
def squares():
    for i in x:
        loss[None] += x[i] ** 2


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    ti.ad.Tape(loss, validation=True)
assert "autodiff valid check will not work" in str(caught[0].message)  # (1)

runs = []


@ti.ad.grad_replaced
def counted():
    runs.append(1)
    squares()


@ti.ad.grad_for(counted)
def counted_gradient():
    squares.grad()


with contextlib.redirect_stdout(io.StringIO()), ti.ad.Tape(loss, grad_check=[x]):
    counted()
assert len(runs) > 2  # (3)

try:
    with ti.ad.Tape(loss32, grad_check=[x]):
        pass
    message = ""
except AssertionError as error:
    message = str(error)
assert "Only f64 is supported" in message  # (2)

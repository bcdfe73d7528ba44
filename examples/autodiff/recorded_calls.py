"""Calls are recorded with their arguments, and run backwards.

The Tape keeps a list of calls and their arguments (1). On exit it sets `loss.grad` to 1 (2) and runs the derivative
of each, last call first (7); so kernels must be called in the order in which data flows, as any program would. An
argument such as a step's number is kept as it was at the call (3). Scalar arguments and return values carry no
gradient: what a kernel returns is cut off (4). The backward pass runs even if the body raised (5), and the Tape
records everything called inside, so calls that do not concern the loss cost a derivative each (6).
"""

import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x[None] = 2.0


@ti.kernel
def add(weight: float):
    loss[None] += weight * x[None]


@ti.kernel
def value() -> float:
    return x[None] ** 2


with ti.ad.Tape(loss) as tape:
    for weight in (1.0, 2.0, 3.0):
        add(weight)
    value()
assert [list(arguments) for _, arguments in tape.calls][:3] == [[1.0], [2.0], [3.0]]  # (1)
assert loss.grad[None] == 1  # (2)
assert x.grad[None] == 1 + 2 + 3  # (3)
assert len(tape.calls) == 4  # (6)

with ti.ad.Tape(loss):
    returned = value()
assert returned == 4 and x.grad[None] == 0  # (4)

try:
    with ti.ad.Tape(loss):
        add(5.0)
        raise KeyError
except KeyError:
    pass
assert x.grad[None] == 5  # (5)

order = []


@ti.ad.grad_replaced
def note(name):
    add(1.0)


@ti.ad.grad_for(note)
def note_gradient(name):
    order.append(name)


with ti.ad.Tape(loss):
    note("first")
    note("second")
assert order == ["second", "first"]  # (7)

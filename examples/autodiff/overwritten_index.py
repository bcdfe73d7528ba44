"""The index that is overwritten.

Taking the step's number from a field that counts up while the kernel runs gives the same averages (1) and destroys
the gradient (2). The backward pass reads the counter as it stands at the end and even goes on counting
(`written_twice.py`) (3), so it differentiates elements that are not part of the average (4). They exist below because
the fields are twice as wide as needed; otherwise the backward pass would write out of bounds. The cure is to tape the
indices as well, written by a kernel of their own before (5).

Trap: index overwritten while the kernel runs
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
rows, steps = 2, 4
width = 2 * steps
signal = ti.field(float, shape=(rows, width), needs_grad=True)
smooth = ti.field(float, shape=(rows, width), needs_grad=True)
counter = ti.field(int, shape=rows)
index = ti.field(int, shape=(rows, steps))
loss = ti.field(float, shape=(), needs_grad=True)
values = np.random.default_rng(0).normal(size=(rows, width))
signal.from_numpy(values)


@ti.func
def average(row, k):
    if k == 0:
        smooth[row, k] = signal[row, k]
    else:
        smooth[row, k] = 0.5 * (smooth[row, k - 1] + signal[row, k])


@ti.kernel
def counted():
    for row in range(rows):
        for _ in range(steps):
            average(row, counter[row])
            counter[row] += 1


@ti.kernel
def number():
    for row, j in index:
        index[row, j] = j


@ti.kernel
def taped():
    for row in range(rows):
        for j in range(steps):
            average(row, index[row, j])


@ti.kernel
def last_squared():
    for row in range(rows):
        loss[None] += smooth[row, steps - 1] ** 2


weights = 0.5 ** np.concatenate([[steps - 1], np.arange(steps - 1, 0, -1)])
ends = values[:, :steps] @ weights
right = 2 * np.outer(ends, weights)

with ti.ad.Tape(loss):
    counted()
    last_squared()
assert np.isclose(loss[None], np.sum(ends**2))  # (1)
wrong = signal.grad.to_numpy()
assert not np.allclose(wrong[:, :steps], right)  # (2) trap
assert counter.to_numpy().tolist() == [2 * steps] * rows  # (3) trap
assert np.all(wrong[:, :steps] == 0)  # (4) trap

number()
with ti.ad.Tape(loss):
    taped()
    last_squared()
assert np.allclose(signal.grad.to_numpy()[:, :steps], right)  # (5)

"""Explicit taping.

A recursion such as the exponentially weighted moving average, `s[k] = (s[k-1] + x[k]) / 2`, has to keep each of its
states: a field with one more axis than PyTorch's code would have. That is explicit taping. Then the gradient is
right, with the loop over steps inside a parallel loop (1) or one kernel call a step (2).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
rows, steps = 3, 6
signal = ti.field(float, shape=(rows, steps), needs_grad=True)
smooth = ti.field(float, shape=(rows, steps), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
values = np.random.default_rng(0).normal(size=(rows, steps))
signal.from_numpy(values)


@ti.kernel
def average_all():
    for row in range(rows):
        for k in range(steps):
            if k == 0:
                smooth[row, k] = signal[row, k]
            else:
                smooth[row, k] = 0.5 * (smooth[row, k - 1] + signal[row, k])


@ti.kernel
def first():
    for row in range(rows):
        smooth[row, 0] = signal[row, 0]


@ti.kernel
def average(k: int):
    for row in range(rows):
        smooth[row, k] = 0.5 * (smooth[row, k - 1] + signal[row, k])


@ti.kernel
def last_squared():
    for row in range(rows):
        loss[None] += smooth[row, steps - 1] ** 2


weights = 0.5 ** np.concatenate([[steps - 1], np.arange(steps - 1, 0, -1)])  # of each sample in the last average
right = 2 * np.outer(values @ weights, weights)

with ti.ad.Tape(loss):
    average_all()
    last_squared()
assert np.allclose(signal.grad.to_numpy(), right)  # (1)

with ti.ad.Tape(loss):
    first()
    for k in range(1, steps):
        average(k)
    last_squared()
assert np.allclose(signal.grad.to_numpy(), right)  # (2)

"""Checkpoints by replay.

A recursion that keeps all states needs memory for each step. Keep every 8th instead, as `torch.utils.checkpoint`
does: the forward pass runs a segment of 8 steps in a small field and stores its last state alone. The adjoint of a
segment runs it again from its checkpoint, then calls `step.grad` backwards. The gradients by the start and by the
parameter equal those of the full recursion (1) and of central differences (2), at a quarter of the memory here (3).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
cells, every, segments = 3, 8, 8
steps = every * segments
full = ti.field(float, shape=(steps + 1, cells), needs_grad=True)
saved = ti.field(float, shape=(segments + 1, cells), needs_grad=True)  # the checkpoints
work = ti.field(float, shape=(every + 1, cells), needs_grad=True)  # the states of one segment
rate = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
start = np.array([0.2, 0.5, 0.8])


@ti.kernel
def step(state: ti.template(), k: int):
    for i in range(cells):
        state[k + 1, i] = state[k, i] + 0.1 * ti.sin(rate[None] * state[k, i])


@ti.kernel
def load(segment: int):
    for i in range(cells):
        work[0, i] = saved[segment, i]


@ti.kernel
def store(segment: int):
    for i in range(cells):
        saved[segment + 1, i] = work[every, i]


@ti.kernel
def squares(state: ti.template(), last: int):
    for i in range(cells):
        loss[None] += state[last, i] ** 2


def replay(segment):
    load(segment)
    for k in range(every):
        step(work, k)


@ti.ad.grad_replaced
def advance(segment):
    replay(segment)
    store(segment)


@ti.ad.grad_for(advance)
def _(segment):
    replay(segment)
    work.grad.fill(0)
    store.grad(segment)
    for k in reversed(range(every)):
        step.grad(work, k)
    load.grad(segment)


def place(field):
    values = np.zeros(field.shape)
    values[0] = start
    field.from_numpy(values)


rate[None] = 1.5
place(full)
with ti.ad.Tape(loss):
    for k in range(steps):
        step(full, k)
    squares(full, steps)
kept = rate.grad[None], full.grad.to_numpy()[0]

place(saved)
with ti.ad.Tape(loss):
    for segment in range(segments):
        advance(segment)
    squares(saved, segments)
assert np.isclose(rate.grad[None], kept[0]) and np.allclose(saved.grad.to_numpy()[0], kept[1])  # (1)


def forward(r):
    s = start
    for _ in range(steps):
        s = s + 0.1 * np.sin(r * s)
    return np.sum(s**2)


assert np.isclose(rate.grad[None], (forward(1.5 + 1e-6) - forward(1.5 - 1e-6)) / 2e-6)  # (2)
assert saved.shape[0] + work.shape[0] < 0.3 * full.shape[0]  # (3)

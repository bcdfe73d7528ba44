"""Loops longer than the stack.

The local variables that a dynamic loop carries are kept on a stack, which is large enough for 30 iterations (4) and
not checked: a longer loop crashes or gives a wrong gradient (1). `ti.init(ad_stack_size=...)` with a few more places
than iterations makes it right (2). Of nested loops, the iterations of all levels count together (3).

Trap: loop longer than the stack
"""

import subprocess
import sys

import numpy as np
import taichi as ti

child = "default" in sys.argv  # a second process of this file, which may crash
ti.init(ti.cpu, default_fp=ti.f64, ad_stack_size=0 if child else 48)
steps = 30 if "short" in sys.argv else 40
x = ti.field(float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
x[None] = 0.9


@ti.kernel
def recursion(n: int):
    for _ in range(1):
        s = 1.0
        for _k in range(n):
            s = s * x[None] + ti.sin(s)
        loss[None] += s


@ti.kernel
def nested(n: int, m: int):
    for _ in range(1):
        s = 1.0
        for _k in range(n):
            for _j in range(m):
                s = s * x[None] + ti.sin(s)
        loss[None] += s


def forward(v):
    s = 1.0
    for _ in range(steps):
        s = s * v + np.sin(s)
    return s


with ti.ad.Tape(loss):
    if "nested" in sys.argv:
        nested(5, steps // 5)
    else:
        recursion(steps)
right = (forward(0.9 + 1e-6) - forward(0.9 - 1e-6)) / 2e-6
assert np.isclose(x.grad[None], right)  # (2)


def fails(*arguments):
    command = [sys.executable, __file__, "default", *arguments]
    return child or subprocess.run(command, capture_output=True, check=False).returncode != 0


assert fails("flat")  # (1) trap
assert fails("nested")  # (3) trap
assert child or not fails("short")  # (4)

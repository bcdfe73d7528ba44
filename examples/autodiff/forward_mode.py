"""Forward mode.

`ti.ad.FwdMode(output, parameters, seed=...)` pushes a direction forward with the values: after it, `output.dual` is
the Jacobian times the seed (1). The fields need `needs_dual=True` (4). One pass with a seed of a single 1 gives one
column, so a Jacobian of few parameters and many outputs is cheap; for many parameters and few outputs take reverse
mode. It is right through long dynamic loops with `exp`, where reverse mode is not (2). `output` may be a list (3).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
x = ti.field(float, shape=2, needs_dual=True)
y = ti.field(float, shape=3, needs_dual=True)
z = ti.field(float, shape=(), needs_dual=True)
x.from_numpy(np.array([0.5, 2.0]))


@ti.kernel
def outputs():
    for i in y:
        s = 0.0
        for k in range(100):
            s += ti.exp(-x[0] * k) * (i + 1) * x[1]
        y[i] = s


@ti.kernel
def product():
    z[None] = x[0] * x[1]


def column(seed):
    with ti.ad.FwdMode([y, z], x, seed=seed):
        outputs()
        product()
    return y.dual.to_numpy()


k, i = np.arange(100), np.arange(3) + 1
sums = np.exp(-0.5 * k).sum(), (-k * np.exp(-0.5 * k)).sum()
right = np.stack([i * 2.0 * sums[1], i * sums[0]], axis=1)
assert np.allclose(column([1.0, 2.0]), right @ [1, 2])  # (1)
assert np.allclose(np.stack([column([1.0, 0.0]), column([0.0, 1.0])], axis=1), right)  # (2)
assert z.dual[None] == 0.5  # (3)
bare = ti.field(float, shape=2)
try:
    with ti.ad.FwdMode(y, bare, seed=[1.0, 0.0]):
        outputs()
    refused = False
except AttributeError:
    refused = True
assert refused  # (4)

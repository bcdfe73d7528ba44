"""Vectors and matrices.

Vector and matrix fields take `needs_grad` like scalar ones, and their products and norms are differentiated (1).
Locals of these types are right outside of dynamic loops that carry them (`exp_in_a_loop.py`).
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
point = ti.Vector.field(3, float, shape=2, needs_grad=True)
matrix = ti.Matrix.field(3, 3, float, shape=(), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
rng = np.random.default_rng(0)
p, m = rng.normal(size=(2, 3)), rng.normal(size=(3, 3))
point.from_numpy(p)
matrix.from_numpy(m)


@ti.kernel
def energy():
    for i in point:
        v = matrix[None] @ point[i]
        loss[None] += v.dot(v) + v.norm()


with ti.ad.Tape(loss):
    energy()
mapped = p @ m.T
outer = 2 * mapped + mapped / np.linalg.norm(mapped, axis=1, keepdims=True)
right = np.allclose(point.grad.to_numpy(), outer @ m), np.allclose(matrix.grad.to_numpy(), outer.T @ p)
assert right == (True, True)  # (1)

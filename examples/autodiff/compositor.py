"""The compositor that works in place.

Emission and absorption along a ray, front to back, is where a raymarcher meets the rule (taichi#2241). With the
transmittance in a field that each sample multiplies, the image is right (1) and the gradient is not (2). With the
transmittance of every sample in an element of its own, both are right (3); so they are with local variables (4).

Trap: in-place compositor of taichi#2241
"""

import numpy as np
import taichi as ti

ti.init(ti.cpu, default_fp=ti.f64)
rays, samples = 3, 5
alpha = ti.field(float, shape=(rays, samples), needs_grad=True)
colour = ti.field(float, shape=(rays, samples), needs_grad=True)
trans = ti.field(float, shape=rays, needs_grad=True)
every_trans = ti.field(float, shape=(rays, samples + 1), needs_grad=True)
loss = ti.field(float, shape=(), needs_grad=True)
rng = np.random.default_rng(0)
opacities, colours = rng.uniform(0.1, 0.6, (2, rays, samples))
alpha.from_numpy(opacities)
colour.from_numpy(colours)


@ti.kernel
def start():
    for r in trans:
        trans[r] = 1.0
        every_trans[r, 0] = 1.0


@ti.kernel
def in_place():
    for r in range(rays):
        for k in range(samples):
            loss[None] += trans[r] * alpha[r, k] * colour[r, k]
            trans[r] *= 1 - alpha[r, k]


@ti.kernel
def taped():
    for r in range(rays):
        for k in range(samples):
            loss[None] += every_trans[r, k] * alpha[r, k] * colour[r, k]
            every_trans[r, k + 1] = every_trans[r, k] * (1 - alpha[r, k])


@ti.kernel
def local():
    for r in range(rays):
        t = 1.0
        light = 0.0
        for k in range(samples):
            light += t * alpha[r, k] * colour[r, k]
            t *= 1 - alpha[r, k]
        loss[None] += light


def image(a):
    before = np.cumprod(np.concatenate([np.ones((rays, 1)), 1 - a[:, :-1]], axis=1), axis=1)
    return np.sum(before * a * colours)


right = np.empty_like(opacities)
for where in np.ndindex(*right.shape):
    step = np.zeros_like(opacities)
    step[where] = 1e-6
    right[where] = (image(opacities + step) - image(opacities - step)) / 2e-6


def gradient(kernel):
    with ti.ad.Tape(loss):
        start()
        kernel()
    return alpha.grad.to_numpy()


wrong = gradient(in_place)
assert np.isclose(loss[None], image(opacities))  # (1)
assert not np.allclose(wrong, right, rtol=0.1)  # (2) trap
assert np.allclose(gradient(taped), right, rtol=1e-7)  # (3)
assert np.allclose(gradient(local), right, rtol=1e-7)  # (4)

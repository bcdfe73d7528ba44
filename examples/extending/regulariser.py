"""A regulariser: a penalty of density differences that stops growing, after Geman and McClure, against grain."""

import numpy as np
import taichi as ti

import raymarch as rm


@ti.func
def capped(x):
    return x * x / (1.0 + x * x)


@ti.func
def capped_slope(x):
    return 2.0 * x / (1.0 + x * x) ** 2


SMOOTH = rm.Regulariser("smooth", "density difference", capped, capped_slope, weight=0.03)

ball = rm.Volume.from_function(lambda p: 30.0 * (np.linalg.norm(p, axis=-1) < 0.7), shape=(24, 24, 24))
cameras = rm.orbit_of_volume(ball.box, 12, size=32)
images = 255 * np.stack([rm.render(ball, camera) for camera in cameras])
noise = np.random.default_rng(0).normal(0, 40, images.shape)
true, noisy = (rm.Views(cameras, np.clip(i, 0, 255).astype(np.uint8)) for i in (images, images + noise))

psnr, small = {}, {"resolution": 24, "sh_degree": 0, "steps": 150, "rays": 2048, "box": ball.box}
for name, regularisers in (("without", []), ("with", [SMOOTH])):
    found = rm.fit(noisy, "quick", objective=rm.Objective(regularisers=regularisers), **small)
    psnr[name] = found.evaluate(true).psnr
assert psnr["with"] > psnr["without"] + 1, psnr

"""A robust loss, Welsch's: every fifth pixel of each image is spoilt, and it does not pay for that."""

import numpy as np
import taichi as ti

import raymarch as rm


@ti.func
def welsch(x):
    return 1.0 - ti.exp(-x * x)


@ti.func
def welsch_slope(x):
    return 2.0 * x * ti.exp(-x * x)


WELSCH = rm.Loss("welsch", welsch, welsch_slope, scale=0.3)

ball = rm.Volume.from_function(lambda p: 30.0 * (np.linalg.norm(p, axis=-1) < 0.7), shape=(24, 24, 24))
cameras = rm.orbit_of_volume(ball.box, 12, size=32)
images = np.round(255 * np.stack([rm.render(ball, camera) for camera in cameras])).astype(np.uint8)
true = rm.Views(cameras, images)
spoilt = images.copy()
spoilt[np.random.default_rng(0).random(images.shape[:3]) < 0.2] = (0, 255, 0)

psnr, small = {}, {"resolution": 24, "sh_degree": 0, "steps": 80, "rays": 2048, "box": ball.box}
for loss in (rm.Loss.named("squared"), WELSCH):
    found = rm.fit(rm.Views(cameras, spoilt), "quick", objective=rm.Objective(robust=loss), **small)
    psnr[loss.name] = found.evaluate(true).psnr
assert psnr["welsch"] > psnr["squared"] + 3, psnr

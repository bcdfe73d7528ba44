"""A compositing mode: a medium whose absorbers come in clumps, which lets 1 / (1 + tau) of the light through."""

import numpy as np
import taichi as ti

import raymarch as rm


@ti.func
def passing(tau):
    return 1.0 / (1.0 + tau)


@ti.func
def composite(T, tau, e):
    return T * (1.0 - e), T * e


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = 1.0 / (1.0 + tau)
    return dot_T * (1.0 - e) + T * e * e * dot_tau, dot_T * e - T * e * e * dot_tau


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    e = 1.0 / (1.0 + tau)
    return e * (T_after * d_weight - remaining)


CLUMPS = rm.Mode("clumps", composite, tangent, adjoint, step_transmittance=passing, power=1)


rm.start("cpu", "f64")  # a mode of one's own is checked in this process, so in double precision from the start
cloud = rm.Volume.from_function(
    lambda p: 3 * np.exp(-4 * (p**2).sum(-1)), lambda p: 0.5 + 0.4 * np.sin(3 * p), shape=(12, 12, 12)
)
camera = rm.Camera.look_at((0.5, -4, 1), width=32, height=32)
march = rm.March(mode=CLUMPS, min_transmittance=0, min_weight=0)

image = rm.render(cloud, camera, march=march)
report = rm.check_gradients(cloud, camera, ["density", "colour", "pose"], march=march, rays=64)
print(report)
assert report.good and all(row.dot < 1e-12 for row in report.rows)

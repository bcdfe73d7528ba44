"""Modes of one sample of a ray, that a search finds before each pass: as if all light ended there.

The sample's weight is 1 and T behind it 0, whatever its optical depth, and neither has a slope: so image, depth and
normal are those of the sample, and their gradients too.
"""

from raymarch.engine import ti


@ti.func
def composite(T, tau, e):
    return ti.cast(1.0, float), ti.cast(0.0, float)


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    return ti.cast(0.0, float), ti.cast(0.0, float)


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return ti.cast(0.0, float)


@ti.func
def nothing(tau):
    return ti.cast(0.0, float)


FOUND = {"composite": composite, "tangent": tangent, "adjoint": adjoint, "step_transmittance": nothing, "power": 1}

"""Additive: weight = min(tau, T), T after it = T - weight (Lombardi et al. 2019, "Neural Volumes").

At the clamp, tau = T, derivatives are those of the side below.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.mode import Mode


@ti.func
def no_step(tau):
    return ti.cast(0.0, float)


@ti.func
def composite(T, tau, e):
    weight = ti.min(tau, T)
    return weight, T - weight


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    dot_weight = ti.select(tau <= T, dot_tau, dot_T)
    return dot_weight, dot_T - dot_weight


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return ti.select(tau <= T, d_weight - remaining, 0.0)


ADDITIVE = Mode("additive", composite, tangent, adjoint, step_transmittance=no_step, saturates=True)

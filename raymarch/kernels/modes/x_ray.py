"""X-ray: weight = tau in each channel, T after it = T e^-tau: the line integral, without colour or background.

Where depths are under 0, T is over 1. At `MAX_TRANSMITTANCE` it stays, and has no derivative.
"""

from raymarch.engine import ti
from raymarch.kernels.integrator.mode import MAX_TRANSMITTANCE, Mode
from raymarch.kernels.numeric import clamp_high, exp


@ti.func
def composite(T, tau, e):
    return tau, ti.select(T < MAX_TRANSMITTANCE, clamp_high(T * e, MAX_TRANSMITTANCE), MAX_TRANSMITTANCE)


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = exp(-tau)
    return dot_tau, ti.select(T < MAX_TRANSMITTANCE and T * e < MAX_TRANSMITTANCE, dot_T * e - T * e * dot_tau, 0.0)


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return d_weight - remaining


X_RAY = Mode("x-ray", composite, tangent, adjoint, colour=False, background=False, ends=False, power=0)

"""X-ray: weight = tau in each channel, T after it = T e^-tau: the line integral, without colour or background.

Where depths are under 0, T is over 1. At `MOST` it stays, and has no derivative.
"""

import taichi as ti

from raymarch.kernels.integrator.mode import MOST, Mode
from raymarch.kernels.numeric import at_most, exp


@ti.func
def composite(T, tau, e):
    return tau, ti.select(T < MOST, at_most(T * e, MOST), MOST)


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = exp(-tau)
    return dot_tau, ti.select(T < MOST and T * e < MOST, dot_T * e - T * e * dot_tau, 0.0)


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return d_weight - remaining


X_RAY = Mode("x-ray", composite, tangent, adjoint, colour=False, background=False, ends=False, power=0)

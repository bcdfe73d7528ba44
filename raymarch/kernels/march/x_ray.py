"""X-ray: weight = tau in each channel, T after it = T e^-tau: the line integral, without colour or background."""

import taichi as ti

from raymarch.kernels.march.mode import Mode
from raymarch.kernels.numeric import exp


@ti.func
def composite(T, tau, e):
    return tau, T * e


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = exp(-tau)
    return dot_tau, dot_T * e - T * e * dot_tau


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return d_weight - remaining


X_RAY = Mode("x-ray", composite, tangent, adjoint, colour=False, background=False, ends=False, power=0)

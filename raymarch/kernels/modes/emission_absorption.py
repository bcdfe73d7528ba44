"""Emission-absorption: alpha = 1 - e^-tau of a sample's density and step, weight = T alpha, T after it = T e^-tau (Max
1995)."""

from raymarch.engine import ti
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.numeric import exp


@ti.func
def composite(T, tau, e):
    return T * (1.0 - e), T * e


@ti.func
def tangent(T, tau, dot_T, dot_tau):
    e = exp(-tau)
    return dot_T * (1.0 - e) + T * e * dot_tau, dot_T * e - T * e * dot_tau


@ti.func
def adjoint(T, tau, T_after, d_weight, remaining):
    return T_after * d_weight - remaining


EMISSION_ABSORPTION = Mode("emission-absorption", composite, tangent, adjoint, power=1)

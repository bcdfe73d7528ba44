"""Evaluation of a compositing mode at one sample, its tangent and adjoint, to hold against each other."""

import taichi as ti


@ti.kernel
def probe_composite(mode: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = weight, T after."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        weight, after = mode.composite(t, depth, mode.step_transmittance(depth))
        out[i, 0], out[i, 1] = weight, after


@ti.kernel
def probe_tangent(mode: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = derivatives of weight and T after by T, then by tau."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        one, none = ti.cast(1.0, float), ti.cast(0.0, float)
        weight, after = mode.tangent(t, depth, one, none)
        out[i, 0], out[i, 1] = weight, after
        weight2, after2 = mode.tangent(t, depth, none, one)
        out[i, 2], out[i, 3] = weight2, after2


@ti.kernel
def probe_adjoint(mode: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = d_tau of a unit of d_weight, and of a unit of `remaining`."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        one, none = ti.cast(1.0, float), ti.cast(0.0, float)
        _weight, after = mode.composite(t, depth, mode.step_transmittance(depth))
        out[i, 0] = mode.adjoint(t, depth, after, one, none)
        out[i, 1] = mode.adjoint(t, depth, after, none, one)

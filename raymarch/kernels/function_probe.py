"""Evaluation of a function of one number at given places: what an activation, a loss or a regulariser is held against
before it is compiled into a march or a fit."""

from typing import Any

from raymarch.engine import Expr, ti
from raymarch.engine.record import record

NUMBER_ARRAY = ti.types.ndarray(dtype=ti.f64, ndim=1)


class NotANumber(Exception):
    """Error of a function that gives something else than one number; Taichi aborts where that is stored as one."""


def is_number(result) -> bool:
    """True for one number as Taichi sees it while it compiles; else NotANumber says what came."""
    if result is None:
        raise NotANumber("it returns nothing")
    if isinstance(result, (tuple, list)):
        raise NotANumber(f"it returns {len(result)} values")
    if isinstance(result, Expr) and (result.is_tensor() or result.is_struct()):
        raise NotANumber("it returns a vector")
    return True


def reason_of(error: Exception) -> str:
    """Last line of what a user's function made Taichi's compiler, or Python inside it, raise."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition("NotANumber: ")[2]


@ti.kernel
def evaluate(function: ti.template(), x: NUMBER_ARRAY, y: NUMBER_ARRAY):
    """y = function(x) in the process's precision, x and y of one length."""
    for i in range(x.shape[0]):
        if ti.static(is_number(function(ti.cast(x[i], float)))):
            y[i] = ti.cast(function(ti.cast(x[i], float)), ti.f64)


# Evaluation of a compositing mode at one sample, its tangent and adjoint, to hold against each other.


@record(eq=False)
class Probed:
    """Mode that is evaluated."""

    mode: Any


@ti.kernel
def probe_composite(probed: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = weight, T after."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        weight, after = probed.mode.composite(t, depth, probed.mode.step_transmittance(depth))
        out[i, 0], out[i, 1] = weight, after


@ti.kernel
def probe_tangent(probed: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = derivatives of weight and T after by T, then by tau."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        one, none = ti.cast(1.0, float), ti.cast(0.0, float)
        weight, after = probed.mode.tangent(t, depth, one, none)
        out[i, 0], out[i, 1] = weight, after
        weight2, after2 = probed.mode.tangent(t, depth, none, one)
        out[i, 2], out[i, 3] = weight2, after2


@ti.kernel
def probe_adjoint(probed: ti.template(), T: ti.types.ndarray(), tau: ti.types.ndarray(), out: ti.types.ndarray()):
    """out[i] = d_tau of a unit of d_weight, and of a unit of `remaining`."""
    for i in range(T.shape[0]):
        t, depth = ti.cast(T[i], float), ti.cast(tau[i], float)
        one, none = ti.cast(1.0, float), ti.cast(0.0, float)
        _weight, after = probed.mode.composite(t, depth, probed.mode.step_transmittance(depth))
        out[i, 0] = probed.mode.adjoint(t, depth, after, one, none)
        out[i, 1] = probed.mode.adjoint(t, depth, after, none, one)

"""Evaluation of a function of one number at given places: what an activation, a loss or a regulariser is held against
before it is compiled into a march or a fit."""

import taichi as ti
from taichi.lang.expr import Expr

NUMBERS = ti.types.ndarray(dtype=ti.f64, ndim=1)


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
def evaluate(function: ti.template(), x: NUMBERS, y: NUMBERS):
    """y = function(x) in the process's precision, x and y of one length."""
    for i in range(x.shape[0]):
        if ti.static(is_number(function(ti.cast(x[i], float)))):
            y[i] = ti.cast(function(ti.cast(x[i], float)), ti.f64)

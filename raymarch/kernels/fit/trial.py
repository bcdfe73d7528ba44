"""Evaluation of a function of one number at given places: for the proof of a slope before it is compiled into a fit."""

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


@ti.kernel
def evaluate(function: ti.template(), x: NUMBERS, y: NUMBERS):
    """y = function(x) in the fit's precision, x and y of one length."""
    for i in range(x.shape[0]):
        if ti.static(is_number(function(ti.cast(x[i], float)))):
            y[i] = ti.cast(function(ti.cast(x[i], float)), ti.f64)

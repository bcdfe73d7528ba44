"""Gradient check of an objective before its fit: every slope against differences of its value, in its precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.fitting.settings.objective import LOSSES, REGULARISERS, Objective
from raymarch.kernels.field.probe import evaluate, reason_of
from raymarch.kernels.fit.regularise import OPTICAL_DEPTH

PLACES = (0.03, 0.1, 0.3, 0.7, 1.5, 3.0, 10.0)
STEP = 0.01  # of a place: roundings of single precision stay under a thousandth of most slopes
TOLERANCE = 1e-3  # of a slope
# Proven by tests.
OURS = {(each.value, each.slope) for each in LOSSES.values()}
OURS |= {(each.value, each.slope) for each in REGULARISERS.values()}


def prove(objective: Objective) -> None:
    """Slope check: RaymarchError, with object and part, where a slope is not its value's or a part gives no number.

    A slope between the one-sided differences is right: functions may have kinks.
    """
    loss = objective.robust
    _prove(f"loss {loss.name!r}", loss.value, loss.slope, True, loss.scale)
    for each in objective.regularisers:
        _prove(f"regulariser {each.name!r}", each.value, each.slope, each.of != OPTICAL_DEPTH)


@lru_cache(256)  # a fit after another with the same functions
def _prove(name: str, value: Callable, slope: Callable, signed: bool, scale: float = 1.0) -> None:
    if (value, slope) in OURS:
        return
    dtype = np.dtype(runtime.dtype())
    places = np.unique([*PLACES, 0.1 / scale, 1 / scale])
    if signed:
        places = np.concatenate([places, [0.0], -places])
    else:  # from 0 on, where both must be numbers; a bend there that differences miss is no fault
        _values(f"{name}: value", value, np.zeros(1))
        _values(f"{name}: slope", slope, np.zeros(1))
    h = STEP * np.where(places == 0, 0.1, np.abs(places))
    below, x, above = (at.astype(dtype).astype(float) for at in (places - h, places, places + h))
    slopes = _values(f"{name}: slope", slope, x)
    before, at, after = (_values(f"{name}: value", value, each) for each in (below, x, above))
    left, right = (at - before) / (x - below), (after - at) / (above - x)
    rounding = 8 * np.finfo(dtype).eps * np.maximum(1, np.abs(at)) / h
    allowed = TOLERANCE * np.maximum(np.abs(slopes), np.maximum(np.abs(left), np.abs(right))) + rounding
    off = np.maximum(np.minimum(left, right) - slopes, slopes - np.maximum(left, right)) - allowed
    if (off > 0).any():
        worst = int(np.argmax(off > 0.9 * off.max()))
        raise RaymarchError(
            f"{name}: slope is {slopes[worst]:.4g} at {x[worst]:.4g}, differences of value give"
            f" {(left + right)[worst] / 2:.4g}; make slope the derivative of value"
        )


def _values(part: str, function: Callable, x: np.ndarray) -> np.ndarray:
    """A function at places x, all finite; else RaymarchError."""
    y = np.zeros(len(x))
    try:
        evaluate(function, np.ascontiguousarray(x), y)
    except Exception as error:  # whatever Taichi's compiler, or Python inside it, makes of a user's function
        why = reason_of(error)[:160]
        raise RaymarchError(f"{part} is no function of one number: {why}; docs/extending.md shows one") from None
    if (bad := ~np.isfinite(y)).any():
        raise RaymarchError(f"{part} is {y[bad][0]} at {x[bad][0]:.4g}, want a finite number everywhere")
    return y

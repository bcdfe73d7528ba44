"""Activation functions for kernels; those of a user's own are first checked against their NumPy side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from raymarch import runtime
from raymarch.kernels.field.activation import (
    COLOUR_FUNCTIONS,
    DENSITY_FUNCTIONS,
    ColourFunctions,
    DensityFunctions,
)
from raymarch.kernels.probe import evaluate, reason_of
from raymarch.volumes.activation import (
    COLOURS,
    DENSITIES,
    Activation,
    ColourActivation,
    DensityActivation,
    numbers_of,
    wrong_part,
)

PLACES = np.array([-7.3, -2.9, -1.1, -0.37, -0.013, 0.021, 0.43, 1.3, 2.7, 5.9])
H = 4e-3  # differences are good to its square
GOOD = 1e-2  # of the derivative, or of 1


def density_functions(activation: Activation) -> DensityFunctions:
    """Kernel functions of a volume's density activation; RaymarchError that names a wrong part of a user's own."""
    rule = activation.density_rule
    if DENSITIES.get(rule.name) is rule:
        return DENSITY_FUNCTIONS[rule.name]
    return _density(rule, runtime.single_precision())


def colour_functions(activation: Activation) -> ColourFunctions:
    """Kernel functions of a volume's colour activation, as `density_functions`."""
    rule = activation.colour_rule
    if COLOURS.get(rule.name) is rule:
        return COLOUR_FUNCTIONS[rule.name]
    return _colour(rule, runtime.single_precision())


@cache
def _density(rule: DensityActivation, single: bool) -> DensityFunctions:
    made = DensityFunctions(*_kernel_side(rule))
    values = _forward(rule, PLACES)
    _require(rule, "value", _numbers(rule, "value", made.value, PLACES), values, "forward gives")
    _compare_slope(rule, _numbers(rule, "slope", made.slope, PLACES))
    back = _finite(rule, "inverse", values)
    _require(rule, "inverse", _forward(rule, back), values, "it should be the inverse of forward:")
    return made


@cache
def _colour(rule: ColourActivation, single: bool) -> ColourFunctions:
    made = ColourFunctions(*_kernel_side(rule))
    values = _forward(rule, PLACES)
    _require(rule, "value", _numbers(rule, "value", made.value, PLACES), values, "forward gives")
    _compare_slope(rule, _numbers(rule, "slope", made.slope, values))
    return made


def _kernel_side(rule: DensityActivation | ColourActivation) -> tuple[Callable, Callable]:
    if rule.value is None or rule.slope is None:
        raise wrong_part(rule, "value" if rule.value is None else "slope", "is None, want a ti.func of one number")
    return rule.value, rule.slope


def _forward(rule: DensityActivation | ColourActivation, x: np.ndarray) -> np.ndarray:
    y = _finite(rule, "forward", x)
    if (np.diff(y) < 0).any() and x is PLACES:
        raise wrong_part(rule, "forward", "falls, want a function that does not")
    return y


def _finite(rule: DensityActivation | ColourActivation, part: str, x: np.ndarray) -> np.ndarray:
    y = numbers_of(rule, part, x)
    if not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise wrong_part(rule, part, f"gives {y[i]} at {x[i]:g}, want finite numbers")
    return y


def _numbers(rule: DensityActivation | ColourActivation, part: str, function: Callable, x: np.ndarray) -> np.ndarray:
    out = np.empty(len(x))
    try:
        evaluate(function, x.astype(float), out)
    except Exception as error:  # whatever Taichi's compiler, or Python inside it, makes of a user's function
        raise wrong_part(rule, part, f"is no function of one number: {reason_of(error)[:160]}") from error
    if not np.isfinite(out).all():
        raise wrong_part(rule, part, f"gives {out[~np.isfinite(out)][0]}, want finite numbers")
    return out


def _compare_slope(rule: DensityActivation | ColourActivation, given: np.ndarray) -> None:
    ahead, here, back = (_forward(rule, PLACES + s * H) for s in (1, 0, -1))
    right, left = (ahead - here) / H, (here - back) / H
    smooth = np.abs(right - left) <= 0.1 * np.maximum(np.abs(right), 1)
    _require(rule, "slope", np.where(smooth, given, 0), np.where(smooth, (right + left) / 2, 0), "differences give")


def _require(
    rule: DensityActivation | ColourActivation, part: str, given: np.ndarray, wanted: np.ndarray, by: str
) -> None:
    gap = np.abs(given - wanted) / np.maximum(np.abs(wanted), 1)
    if gap.max() > GOOD:
        i = int(gap.argmax())
        raise wrong_part(rule, part, f"gives {given[i]:.4g} at {PLACES[i]:g}, {by} {wanted[i]:.4g}")

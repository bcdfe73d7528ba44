"""A user's own functions, held against what they should be before kernels take them.

Activations and compositing modes are held here, penalties of a fit beside their records; all by `hold_against`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from raymarch import engine, runtime
from raymarch.errors import RaymarchError, one_line
from raymarch.kernels.field.activation import COLOUR_FUNCTIONS, DENSITY_FUNCTIONS, ColourFunctions, DensityFunctions
from raymarch.kernels.function_probe import Probed, evaluate, probe_adjoint, probe_composite, probe_tangent, reason_of
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.modes.registry import MODES
from raymarch.volumes.activation import (
    COLOURS,
    DENSITIES,
    Activation,
    ColourActivation,
    DensityActivation,
    numbers_of,
    wrong_part,
)
from raymarch.volumes.channels import CENTRED

AnyActivation: TypeAlias = "DensityActivation | ColourActivation"
Complain: TypeAlias = "Callable[[int, float, float], RaymarchError]"  # of a place's number, what came, what was wanted

DIFFERENCE_STEP = 4e-3  # of differences, which are good to its square
TOLERANCE = 1e-2  # of a derivative, or of 1


def hold_against(
    slope: np.ndarray,
    values: Sequence[np.ndarray],
    places: Sequence[np.ndarray],
    complain: Complain,
    *,
    tolerance: float = TOLERANCE,
    least: float = 1.0,
    rounding: np.ndarray | float = 0.0,
) -> None:
    """Slope check: a slope is right that lies between the differences of a function to either side of a place.

    Two differences differ at a kink, where any slope between them is one.

    Args:
        slope: (n,) as given.
        values: of the function (n,) below, at and above each of n places.
        places: those places (n,).
        complain: error for the worst slope.
        tolerance: of the slope or the differences, or of `least` where they are smaller.
        rounding: by how much rounding moves the differences.
    """
    (below, here, above), (before, at, after) = values, places
    left, right = (here - below) / (at - before), (above - here) / (after - at)
    size = np.maximum(np.maximum(np.abs(slope), least), np.maximum(np.abs(left), np.abs(right)))
    off = np.maximum(np.minimum(left, right) - slope, slope - np.maximum(left, right)) - tolerance * size - rounding
    if (off > 0).any():
        worst = int(np.argmax(off > 0.9 * off.max()))
        raise complain(worst, float(slope[worst]), float(left[worst] + right[worst]) / 2)


def hold_equal(given: np.ndarray, wanted: np.ndarray, complain: Complain) -> None:
    """Check of values (n,) against those that they should be, within `TOLERANCE`."""
    gap = np.abs(given - wanted) / np.maximum(np.abs(wanted), 1)
    if gap.max() > TOLERANCE:
        worst = int(gap.argmax())
        raise complain(worst, float(given[worst]), float(wanted[worst]))


def values_of(function: Callable, x: np.ndarray, refuse: Callable[[str], RaymarchError]) -> np.ndarray:
    """Values (n,) of a `@ti.func` of one number on the device; the error that `refuse` makes of why it is none."""
    out = np.empty(len(x))
    try:
        evaluate(function, np.ascontiguousarray(x, float), out)
    except Exception as error:  # whatever Taichi's compiler, or Python inside it, makes of a user's function
        raise refuse(f"is no function of one number: {reason_of(error)[:160]}") from error
    return out


# Activations: the functions that kernels take, against the NumPy side of their record.

TEST_POINTS = np.array([-7.3, -2.9, -1.1, -0.37, -0.013, 0.021, 0.43, 1.3, 2.7, 5.9])
AROUND = (TEST_POINTS - DIFFERENCE_STEP, TEST_POINTS, TEST_POINTS + DIFFERENCE_STEP)


def density_functions(activation: Activation) -> DensityFunctions:
    """Kernel functions of a volume's density activation; RaymarchError that names a wrong part of a user's own."""
    rule = activation.density_rule
    if DENSITIES.get(rule.name) is rule:
        return DENSITY_FUNCTIONS[rule.name]
    return _density(rule, runtime.single_precision())


def colour_functions(activation: Activation) -> ColourFunctions:
    """Kernel functions of a volume's colour activation, as `density_functions`."""
    rule = activation.colour_rule
    if rule is CENTRED:
        return COLOUR_FUNCTIONS["centred"]
    if COLOURS.get(rule.name) is rule:
        return COLOUR_FUNCTIONS[rule.name]
    return _colour(rule, runtime.single_precision())


@cache
def _density(rule: DensityActivation, single: bool) -> DensityFunctions:
    made, values = DensityFunctions(*_kernel_side(rule)), _forward(rule, TEST_POINTS)
    _hold_value(rule, made.value, values)
    _hold_slope(rule, made.slope, TEST_POINTS)
    back = _require_finite(rule, "inverse", values)
    hold_equal(_forward(rule, back), values, _complaint(rule, "inverse", "it should be the inverse of forward:"))
    return made


@cache
def _colour(rule: ColourActivation, single: bool) -> ColourFunctions:
    made, values = ColourFunctions(*_kernel_side(rule)), _forward(rule, TEST_POINTS)
    _hold_value(rule, made.value, values)
    _hold_slope(rule, made.slope, values)  # a colour's slope is a function of its value
    return made


def _kernel_side(rule: AnyActivation) -> tuple[Callable, Callable]:
    if rule.value is None or rule.slope is None:
        raise wrong_part(rule, "value" if rule.value is None else "slope", "is None, want a ti.func of one number")
    return rule.value, rule.slope


def _hold_value(rule: AnyActivation, value: Callable, wanted: np.ndarray) -> None:
    hold_equal(_numbers(rule, "value", value, TEST_POINTS), wanted, _complaint(rule, "value", "forward gives"))


def _hold_slope(rule: AnyActivation, slope: Callable, x: np.ndarray) -> None:
    values = [_forward(rule, places) for places in AROUND]
    hold_against(_numbers(rule, "slope", slope, x), values, AROUND, _complaint(rule, "slope", "differences give"))


def _complaint(rule: AnyActivation, part: str, by: str) -> Complain:
    return lambda i, given, wanted: wrong_part(
        rule, part, f"gives {given:.4g} at {TEST_POINTS[i]:g}, {by} {wanted:.4g}"
    )


def _forward(rule: AnyActivation, x: np.ndarray) -> np.ndarray:
    y = _require_finite(rule, "forward", x)
    if (np.diff(y) < 0).any() and x is TEST_POINTS:
        raise wrong_part(rule, "forward", "falls, want a function that does not")
    return y


def _require_finite(rule: AnyActivation, part: str, x: np.ndarray) -> np.ndarray:
    y = numbers_of(rule, part, x)
    if not np.isfinite(y).all():
        i = int(np.flatnonzero(~np.isfinite(y))[0])
        raise wrong_part(rule, part, f"gives {y[i]} at {x[i]:g}, want finite numbers")
    return y


def _numbers(rule: AnyActivation, part: str, function: Callable, x: np.ndarray) -> np.ndarray:
    out = values_of(function, x, lambda why: wrong_part(rule, part, why))
    if not np.isfinite(out).all():
        raise wrong_part(rule, part, f"gives {out[~np.isfinite(out)][0]}, want finite numbers")
    return out


# Compositing modes: tangent, adjoint and power, against differences of the rule itself.

T, TAU = (each.ravel() for each in np.meshgrid([0.93, 0.61, 0.27, 0.08], [0.011, 0.13, 0.46, 1.37], indexing="ij"))


def require_mode(mode: Mode) -> None:
    """Mode check: RaymarchError, with mode and part, where one lacks or a derivative is wrong; ours are right."""
    if mode.image is None and not any(mode is ours for ours in MODES.values()):
        _require(mode, runtime.single_precision())


@cache
def _require(mode: Mode, single: bool) -> None:
    probed = Probed(mode)  # one for all: kernels are compiled for it
    here = weight, after = _composite(probed, T, TAU)
    along = {
        by: [_composite(probed, T - dT, TAU - dtau), here, _composite(probed, T + dT, TAU + dtau)]
        for by, dT, dtau in (("T", DIFFERENCE_STEP, 0.0), ("tau", 0.0, DIFFERENCE_STEP))
    }
    places = {
        "T": [T - DIFFERENCE_STEP, T, T + DIFFERENCE_STEP],
        "tau": [TAU - DIFFERENCE_STEP, TAU, TAU + DIFFERENCE_STEP],
    }
    tangent = _passes(probed, "tangent", probe_tangent, 4, T, TAU)
    for column, (by, of) in enumerate([("T", 0), ("T", 1), ("tau", 0), ("tau", 1)]):
        what = f"of {('weight', 'T_after')[of]} by {by}"
        values = [both[of] for both in along[by]]
        hold_against(tangent[:, column], values, places[by], _complaint_of_mode(mode, "tangent", what))
    adjoint = _passes(probed, "adjoint", probe_adjoint, 2, T, TAU)
    unit = 1.0 if mode.power is None else after  # of `remaining`
    for column, what in enumerate(("by weight", "by remaining")):
        values = [both[column] / (unit if column else 1.0) for both in along["tau"]]
        hold_against(adjoint[:, column], values, places["tau"], _complaint_of_mode(mode, "adjoint", what))
    if mode.power is not None:
        half, half_after = _composite(probed, T / 2, TAU)
        hold_equal(weight / 2**mode.power, half, _complaint_of_mode(mode, "power", "weight at T / 2"))
        hold_equal(after / 2, half_after, _complaint_of_mode(mode, "power", "T_after at T / 2"))


def _composite(probed: Probed, at_T: np.ndarray, at_tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weight, after = _passes(probed, "composite", probe_composite, 2, at_T, at_tau).T
    return weight, after


def _passes(
    probed: Probed, part: str, kernel: Callable[..., None], columns: int, at_T: np.ndarray, at_tau: np.ndarray
) -> np.ndarray:
    """Numbers (n, column) that a part of a mode gives, all finite; else RaymarchError."""
    out = np.empty((len(at_T), columns), runtime.dtype())
    try:
        kernel(probed, at_T.astype(out.dtype), at_tau.astype(out.dtype), out)
    except (*engine.COMPILER_ERRORS, TypeError, ValueError) as error:
        last = one_line(error).split("^")[-1].strip(" ~")
        raise _wrong(probed.mode, part, f"does not compile: {last[-200:]}") from error
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        i, j = bad[0]
        raise _wrong(probed.mode, part, f"gives {out[i, j]} at T {at_T[i]:g}, tau {at_tau[i]:g}, want finite numbers")
    return out.astype(float)


def _complaint_of_mode(mode: Mode, part: str, what: str) -> Complain:
    def complain(i: int, given: float, wanted: float) -> RaymarchError:
        at = f"at T {T[i]:g}, tau {TAU[i]:g}"
        return _wrong(mode, part, f"gives {given:.4g} {what} {at}, differences of composite give {wanted:.4g}")

    return complain


def _wrong(mode: Mode, part: str, why: str) -> RaymarchError:
    return RaymarchError(f"mode {mode.name!r}: {part} {why}; rm.Mode says what each part is")

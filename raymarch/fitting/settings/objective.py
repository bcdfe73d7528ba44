"""Objective of a fit: a robust loss of colours, the opacity's error and regularisers, ours or a user's, in one form.

A penalty is two functions of one number, value and slope, as `@ti.func`s that are compiled into the fit's kernels. To
add one of ours: the two in `kernels/fit`, and a line in a table here. Before a fit `check_slopes` holds a user's slopes
against differences of their values, in the fit's precision."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from raymarch import engine, runtime
from raymarch.arguments.checks import Check, Wrong, describe_value, instance_of, number, one_of, optional, text
from raymarch.arguments.declared import checked, checked_field, validate_fields
from raymarch.device.activation_functions import hold_against, values_of
from raymarch.errors import RaymarchError
from raymarch.kernels.fit import losses, regularise
from raymarch.kernels.fit.regularise import OPTICAL_DEPTH

WEIGHT = number(0, 1e6)
SCALE = number(1e-6, 1e6)


def _function(value: Callable) -> Callable:
    if not engine.is_function(value):
        raise TypeError
    if (count := len(inspect.signature(value).parameters)) != 1:
        raise Wrong(f"has {count} arguments")
    return value


FUNCTION = Check("a @ti.func of one number", _function, "docs/extending.md shows one")


@dataclass(frozen=True)
class Loss:
    """Robust loss: a function of one colour's residual (rendered less true, in display values 0..1), and its slope.

    What is minimised is the mean over rays and channels of `scale`^2 value(residual / scale). Two losses of the same
    functions share their compiled kernels: define the functions once, and vary the scale.

    Attributes:
        name: for messages and the volume's provenance.
        value: `@ti.func` of a residual in units of the scale; x^2 near 0 keeps weights comparable to the squared error.
        slope: `@ti.func`, its derivative; compared with differences of `value` before a fit begins.
        scale: residual from which on it is robust [display value], 1e-6 to 1e6.

    Raises RaymarchError, with the loss and the part, for a part that is missing or no `@ti.func` of one number; a fit
    raises it where the slope is not the value's, or either is not one finite number.

    Example:
        >>> Loss.named("huber", scale=0.05).scale
        0.05
    """

    name: str = checked_field(text, "")
    value: Callable[..., Any] = checked_field(FUNCTION, None)
    slope: Callable[..., Any] = checked_field(FUNCTION, None)
    scale: float = checked_field(SCALE, 1.0)

    def __post_init__(self) -> None:
        validate_fields(self, f"loss {describe_value(self.name)}")

    @staticmethod
    @checked(scale=optional(SCALE))
    def named(name: str, scale: float | None = None) -> Loss:
        """Loss of ours by name: "squared"; "huber", linear beyond its scale; "charbonnier", the same without a kink.

        Without a `scale` that of the last two is 0.1.
        """
        ours = LOSSES[one_of(*LOSSES)("loss", name)]
        return ours if scale is None else replace(ours, scale=scale)


@dataclass(frozen=True)
class Regulariser:
    """Regulariser: a penalty of a number that voxels have, and its slope, summed over the volume.

    What is added is `weight` times the sum over the level's voxels (for differences over its edges) by their number.

    Attributes:
        name: for messages and the volume's provenance.
        of: what it is of, "density difference" or "colour difference" (of raw numbers, the upper neighbour along each
            axis less the lower; every colour coefficient on its own) or "optical depth" (over one finest voxel, 0 or
            more).
        value: `@ti.func` of that number.
        slope: `@ti.func`, its derivative; compared with differences of `value` before a fit begins.
        weight: 0 to 1e6.

    Raises RaymarchError as `Loss` does.

    Example:
        >>> Regulariser.named("tv_density", 1e-3).of
        'density difference'
    """

    name: str = checked_field(text, "")
    of: str = checked_field(one_of(*regularise.QUANTITIES), None)
    value: Callable[..., Any] = checked_field(FUNCTION, None)
    slope: Callable[..., Any] = checked_field(FUNCTION, None)
    weight: float = checked_field(WEIGHT, 1.0)

    def __post_init__(self) -> None:
        validate_fields(self, f"regulariser {describe_value(self.name)}")

    @staticmethod
    @checked(weight=WEIGHT)
    def named(name: str, weight: float) -> Regulariser:
        """Regulariser of ours by name: "tv_density", "tv_colour" (total variation), "sparsity" (of optical depth)."""
        return replace(REGULARISERS[one_of(*REGULARISERS)("regulariser", name)], weight=weight)


LOSSES = {
    "squared": Loss("squared", losses.squared, losses.squared_slope),
    "huber": Loss("huber", losses.huber, losses.huber_slope, scale=0.1),
    "charbonnier": Loss("charbonnier", losses.charbonnier, losses.charbonnier_slope, scale=0.1),
}
REGULARISERS = {
    each.name: each
    for each in (
        Regulariser(
            "tv_density",
            regularise.DENSITY_DIFFERENCE,
            regularise.variation_of_density,
            regularise.variation_of_density_slope,
        ),
        Regulariser(
            "tv_colour",
            regularise.COLOUR_DIFFERENCE,
            regularise.variation_of_colour,
            regularise.variation_of_colour_slope,
        ),
        Regulariser("sparsity", regularise.OPTICAL_DEPTH, regularise.sparsity, regularise.sparsity_slope),
    )
}


def _regularisers(value: Regulariser | Iterable[Regulariser]) -> tuple[Regulariser, ...]:
    if isinstance(value, str):
        raise TypeError
    several = (value,) if isinstance(value, Regulariser) else tuple(value)
    for one in several:
        if not isinstance(one, Regulariser):
            raise Wrong(f"has {describe_value(one)}")
    return several


@dataclass(frozen=True)
class Objective:
    """Objective of a fit: what its steps make smaller.

    Attributes:
        robust: the `Loss` of the colours.
        regularisers: any number of `Regulariser`s, each with its weight.
        opacity_weight: of the squared error of the opacity, where the images have alpha.
        distortion_weight: of the distortion loss, the mean over rays of how far apart their weights lie in depth.

    Raises RaymarchError for what is none of these.

    Example:
        >>> mine = Objective(Loss.named("huber", 0.05), [Regulariser.named("sparsity", 1e-3)])
        >>> fit(views, "quick", objective=mine)  # doctest: +SKIP
    """

    robust: Loss = checked_field(
        instance_of(Loss, "an rm.Loss", "rm.Loss.named('huber', scale=0.1) is one"), LOSSES["squared"]
    )
    regularisers: tuple[Regulariser, ...] = checked_field(
        Check("rm.Regularisers in a list", _regularisers, "rm.Regulariser.named('sparsity', 1e-3) is one"), ()
    )
    opacity_weight: float = checked_field(WEIGHT, 0.1)
    distortion_weight: float = checked_field(WEIGHT, 0.0)

    def __post_init__(self) -> None:
        validate_fields(self)

    def record(self) -> dict[str, Any]:
        """Objective in plain names and numbers, for a volume's provenance."""
        robust = {"name": self.robust.name, "scale": self.robust.scale}
        regularisers = [{"name": r.name, "of": r.of, "weight": r.weight} for r in self.regularisers]
        weights = {"opacity_weight": self.opacity_weight, "distortion_weight": self.distortion_weight}
        return {"robust": robust, "regularisers": regularisers, **weights}


OBJECTIVE = instance_of(Objective, "an rm.Objective", "rm.Objective(robust=rm.Loss(...)) is one")


# Slopes of a user's own, held against differences of their value before a fit, in its precision.

TEST_RESIDUALS = (0.03, 0.1, 0.3, 0.7, 1.5, 3.0, 10.0)
DIFFERENCE_STEP = 0.01  # of a place: roundings of single precision stay under a thousandth of most slopes
SLOPE_TOLERANCE = 1e-3  # of a slope
# Proven by tests.
BUILT_IN_FUNCTIONS = {(each.value, each.slope) for each in LOSSES.values()}
BUILT_IN_FUNCTIONS |= {(each.value, each.slope) for each in REGULARISERS.values()}


def check_slopes(objective: Objective) -> None:
    """Slope check: RaymarchError, with object and part, where a slope is not its value's or a part gives no number."""
    loss = objective.robust
    _check_slope(f"loss {loss.name!r}", loss.value, loss.slope, True, loss.scale)
    for each in objective.regularisers:
        _check_slope(f"regulariser {each.name!r}", each.value, each.slope, each.of != OPTICAL_DEPTH)


@lru_cache(256)  # a fit after another with the same functions
def _check_slope(name: str, value: Callable, slope: Callable, signed: bool, scale: float = 1.0) -> None:
    if (value, slope) in BUILT_IN_FUNCTIONS:
        return
    dtype = np.dtype(runtime.dtype())
    x = np.unique([*TEST_RESIDUALS, 0.1 / scale, 1 / scale])
    if signed:
        x = np.concatenate([x, [0.0], -x])
    else:  # from 0 on, where both must be numbers; a bend there that differences miss is no fault
        _values(f"{name}: value", value, np.zeros(1))
        _values(f"{name}: slope", slope, np.zeros(1))
    h = DIFFERENCE_STEP * np.where(x == 0, 0.1, np.abs(x))
    places = [each.astype(dtype).astype(float) for each in (x - h, x, x + h)]
    slopes = _values(f"{name}: slope", slope, places[1])
    values = [_values(f"{name}: value", value, each) for each in places]
    rounding = 8 * np.finfo(dtype).eps * np.maximum(1, np.abs(values[1])) / h

    def complain(i: int, given: float, wanted: float) -> RaymarchError:
        came = f"{name}: slope is {given:.4g} at {places[1][i]:.4g}"
        return RaymarchError(f"{came}, differences of value give {wanted:.4g}; make slope the derivative of value")

    hold_against(slopes, values, places, complain, tolerance=SLOPE_TOLERANCE, least=0.0, rounding=rounding)


def _values(part: str, function: Callable, x: np.ndarray) -> np.ndarray:
    """A function at places x, all finite; else RaymarchError."""
    y = values_of(function, x, lambda why: RaymarchError(f"{part} {why}; docs/extending.md shows one"))
    if (bad := ~np.isfinite(y)).any():
        raise RaymarchError(f"{part} is {y[bad][0]} at {x[bad][0]:.4g}, want a finite number everywhere")
    return y

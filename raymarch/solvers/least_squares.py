"""Nonlinear least squares: Gauss-Newton and Levenberg-Marquardt, dense or matrix-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.arguments.checks import callback, describe_value, number
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.solvers.linear import (
    EPS,
    STEP_COUNT,
    TOLERANCE,
    DenseModel,
    Jacobian,
    MatrixFreeModel,
    Step,
    linear_model,
    sized_operator,
)
from raymarch.solvers.linear import Operator as Operator
from raymarch.solvers.linear import cgls as cgls
from raymarch.solvers.linear import conjugate_gradients as conjugate_gradients
from raymarch.volumes.samples import RAW

MIN_DROP_FRACTION = 1e-2  # of what a step promised, is enough to believe the model
MAX_LAST_STEP = 1e-6  # a last step within this is taken where the cost cannot tell: its model can


@dataclass(frozen=True)
class Solution:
    """Solution of a least-squares problem.

    Attributes:
        x: the parameters, of whatever kind `retract` makes.
        cost: half the squared norm of the residual there, to rounding.
        costs: the same at the start and after each step that was kept.
        steps: steps that were tried, the last one included.
        converged: whether nothing was left to do: the undamped step was within the tolerance, or promised to lower the
            cost by less than rounding hides (the residual's own, or what was seen of its noise where no step went down
            any more). False where the steps ran out, where no step goes down though the model promises one, where the
            residual does not move as the Jacobian says, and where no parameter moves it. A stationary place is all
            that is meant: not that it is the lowest one, nor that a Jacobian which is wrong there is found out.
    """

    x: object
    cost: float
    costs: tuple[float, ...]
    steps: int
    converged: bool


def _add(x: Any, move: np.ndarray) -> Any:
    return x + np.reshape(move, np.shape(x))


@checked(linearise=callback, steps=STEP_COUNT, tolerance=TOLERANCE, retract=callback)
def gauss_newton(
    linearise: Callable[[Any], tuple[np.ndarray, Jacobian]],
    start: Any,
    *,
    steps: int = 20,
    tolerance: float = 1e-10,
    retract: Callable[[Any, np.ndarray], Any] = _add,
) -> Solution:
    """Gauss-Newton, nonlinear least squares by undamped steps: x <- retract(x, -J^+ r).

    Args:
        linearise: x -> (r, J): the residual (number,) and its Jacobian, (number, parameter) or an `Operator`; a
            residual of float32 is taken to be rounded as such.
        start: the first x; an array unless `retract` is given.
        steps: how many at most.
        tolerance: an undamped step within this is the last. Its numbers count relative to those of x where they are
            over 1, and as they are where `retract` is given: 1 is the size `x` is scaled to.
        retract: (x, move) -> x, addition if not given; for a pose the product with its exponential.

    Raises RaymarchError where residual or Jacobian are not finite.

    Example:
        >>> line = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> gauss_newton(lambda x: (line @ x - [1.0, 3.0, 5.0], line), np.zeros(2)).x.round(6)
        array([1., 2.])
    """
    return _search(linearise, start, steps, tolerance, retract, None)


@checked(linearise=callback, steps=STEP_COUNT, tolerance=TOLERANCE, retract=callback, damping=number(0, above=True))
def levenberg_marquardt(
    linearise: Callable[[Any], tuple[np.ndarray, Jacobian]],
    start: Any,
    *,
    steps: int = 50,
    tolerance: float = 1e-10,
    retract: Callable[[Any, np.ndarray], Any] = _add,
    damping: float = 1e-3,
) -> Solution:
    """Levenberg-Marquardt: damped steps, kept if the cost does not go up (Marquardt 1963; damping as in Nielsen 1999).

    The arguments are `gauss_newton`'s, and `damping`, the first weight of the diagonal of J'J (where the Jacobian is
    an `Operator`, of its curvature along the gradient). A step to where the residual is not finite is not kept.

    Example:
        >>> def rosenbrock(x):
        ...     return np.array([1 - x[0], 10 * (x[1] - x[0] ** 2)]), np.array([[-1.0, 0.0], [-20 * x[0], 10.0]])
        >>> levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0])).x.round(6)
        array([1., 1.])
    """
    return _search(linearise, start, steps, tolerance, retract, damping)


@dataclass(frozen=True, eq=False)
class _Point:
    """The linear model of the residual at an x, its cost and its rounding."""

    r: np.ndarray
    model: DenseModel | MatrixFreeModel
    rounding: float  # the least change of the cost that is not its rounding
    unit: np.ndarray  # what a step's numbers are measured by
    flat: bool  # whether no parameter moves the residual, though it is not nothing

    def length(self, step: Step) -> float:
        return float(np.linalg.norm(step.move / self.unit))


def _make_point(size: np.ndarray, r: np.ndarray, J: Jacobian, precision: float, damped: bool) -> _Point:
    """Rounding of r as of sums of terms J x and of r itself, each to `precision`; that of the squares' sum besides."""
    model, norm = linear_model(r, J, damped), float(np.linalg.norm(r))
    spread = model.spread(np.maximum(size, EPS))
    noise = 4 * precision * np.sqrt(model.parameters) * (norm + spread)
    rounding = noise * (norm + noise) + EPS * np.sqrt(r.size) * norm**2
    return _Point(r, model, rounding, np.maximum(size, 1.0), spread == 0 and norm > 0)


def _search(
    linearise: Callable[[Any], tuple[np.ndarray, Jacobian]],
    x: Any,
    steps: int,
    tolerance: float,
    retract: Callable[[Any, np.ndarray], Any],
    damping: float | None,
) -> Solution:
    if retract is _add:
        RAW("start", x)
    damped, damping, growth = damping is not None, damping or 0.0, 2.0
    r, J, precision = _check_residual(linearise(x))
    costs, taken, here, believed = [0.5 * float(r @ r)], 0, None, True
    while taken < steps:
        if here is None:
            size = np.abs(np.asarray(x, float)).reshape(-1) if retract is _add else np.ones(1)
            here = _make_point(size, r, J, precision, damped)
        step, last = _next_step(here, damping, tolerance)
        if here.flat or not np.isfinite(step.move @ step.move):
            break
        taken += 1
        tried = retract(x, step.move)
        tried_r, tried_J, precision = _check_residual(linearise(tried), tried=damped)
        cost = 0.5 * float(tried_r @ tried_r)
        drop, lower, seen = costs[-1] - cost, cost <= costs[-1], abs(step.promised) > here.rounding
        noise = float(np.linalg.norm(tried_r - here.r - step.change))
        level = last and abs(drop) <= here.rounding and here.length(step) <= MAX_LAST_STEP
        if lower or level or not (damped or last):
            x, r, J = tried, tried_r, tried_J
            costs.append(min(cost, costs[-1]) if level else cost)
        if last:
            moved = np.linalg.norm(tried_r - here.r) >= MIN_DROP_FRACTION * np.linalg.norm(step.change)
            return Solution(x, costs[-1], tuple(costs), taken, bool(believed and (moved or not seen)))
        if not damped:  # from a step that lowered nothing, as the last one of a search that flies away, follows nothing
            believed, here = drop >= MIN_DROP_FRACTION * step.promised or not seen, None
        elif lower:
            gain = drop / step.promised if seen else 1.0
            damping, growth, here = max(damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 1e-15), 2.0, None
        elif here.length(step) > tolerance:
            damping, growth = damping * growth, growth * 2
        else:  # no way down: all that the model promises is noise, seen where the step is too short for more, or not
            hidden = noise * (float(np.linalg.norm(r)) + noise)
            return Solution(x, costs[-1], tuple(costs), taken, bool(here.model.full().promised <= hidden < np.inf))
    return Solution(x, costs[-1], tuple(costs), taken, False)


def _next_step(here: _Point, damping: float, tolerance: float) -> tuple[Step, bool]:
    """The step to try, and whether it is the last: if one looks small, what counts is the undamped one."""

    def small(step: Step) -> bool:
        return here.length(step) <= tolerance or abs(step.promised) <= here.rounding

    step = here.model.step(damping)
    if small(step) and small(full := here.model.full()):
        return full, True
    return step, False


def _check_residual(pair: object, tried: bool = False) -> tuple[np.ndarray, Jacobian, float]:
    """Residual, Jacobian and the residual's precision; what was only `tried` may be infinite."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise RaymarchError(f"linearise gives {describe_value(pair)}, want (residual, Jacobian)")
    given = np.asarray(pair[0])
    precision = float(np.finfo(given.dtype).eps) if given.dtype.kind == "f" else EPS
    r, J = given.astype(float).reshape(-1), pair[1]
    if tried and not np.isfinite(r).all():
        return np.full_like(r, np.inf), J, precision
    if isinstance(J, Operator):
        J = sized_operator(J, r.size)
    else:
        J = np.asarray(J, float)
        if J.ndim != 2 or len(J) != r.size:
            raise RaymarchError(f"Jacobian has shape {J.shape} for {r.size} residuals, want ({r.size}, parameters)")
    if not np.isfinite(r).all() or (not isinstance(J, Operator) and not np.isfinite(J).all()):
        raise RaymarchError("residual or Jacobian is not finite; start closer, or look at the data")
    return r, J, max(precision, EPS)

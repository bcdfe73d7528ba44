"""Least squares: Gauss-Newton and Levenberg-Marquardt, dense or matrix-free, and conjugate gradients under them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raymarch.errors import RaymarchError


@dataclass(frozen=True)
class Operator:
    """A Jacobian that is never formed: `tangent(v)` is J v, `adjoint(w)` is J' w, both on flat arrays."""

    tangent: Callable[[np.ndarray], np.ndarray]
    adjoint: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Solution:
    """Where a least-squares problem ended.

    Attributes:
        x: the parameters, of whatever kind `retract` makes.
        cost: half the squared norm of the residual there.
        costs: the same at the start and after each step that was kept.
        steps: linear systems that were solved.
        converged: whether a step within the tolerance was the next one to take; if not, the steps ran out, or only
            heavily damped steps were left and none went down.
    """

    x: object
    cost: float
    costs: tuple[float, ...]
    steps: int
    converged: bool


def _add(x, move):
    return x + move


def gauss_newton(linearise, start, *, steps: int = 20, tolerance: float = 1e-10, retract=_add) -> Solution:
    """Least squares by undamped steps: x <- retract(x, -J^+ r).

    Args:
        linearise: x -> (r, J): the residual (number,) and its Jacobian, (number, parameter) or an `Operator`.
        start: the first x; an array unless `retract` is given.
        steps: how many at most.
        tolerance: a step whose norm is below this, relative to 1, ends the search; 1 is the size `x` is scaled to.
        retract: (x, move) -> x, addition if not given; for a pose the product with its exponential.

    Raises RaymarchError where residual or Jacobian are not finite.

    Example:
        >>> line = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> gauss_newton(lambda x: (line @ x - [1.0, 3.0, 5.0], line), np.zeros(2)).x.round(6)
        array([1., 2.])
    """
    return _search(linearise, start, steps, tolerance, retract, None)


def levenberg_marquardt(
    linearise, start, *, steps: int = 50, tolerance: float = 1e-10, retract=_add, damping: float = 1e-3
) -> Solution:
    """Least squares by damped steps, each kept only if it goes down: Marquardt 1963; damping as in Nielsen 1999.

    The arguments are `gauss_newton`'s, and `damping`, the first weight of the diagonal of J'J (where the Jacobian is
    an `Operator`, of its curvature along the gradient).

    Example:
        >>> def rosenbrock(x):
        ...     return np.array([1 - x[0], 10 * (x[1] - x[0] ** 2)]), np.array([[-1.0, 0.0], [-20 * x[0], 10.0]])
        >>> levenberg_marquardt(rosenbrock, np.array([-1.2, 1.0])).x.round(6)
        array([1., 1.])
    """
    return _search(linearise, start, steps, tolerance, retract, damping)


def _search(linearise, x, steps, tolerance, retract, damping) -> Solution:
    r, J = _checked(linearise(x))
    costs, growth, taken, refused = [0.5 * float(r @ r)], 2.0, 0, 0
    small = False
    while taken < steps and not small:
        move, promised = _step(r, J, damping)
        taken += 1
        small = float(np.linalg.norm(move)) <= tolerance
        tried = retract(x, move)
        pair = linearise(tried)
        if damping is not None and not np.isfinite(np.asarray(pair[0], float)).all():
            damping, growth, refused = damping * growth, growth * 2, refused + 1
            continue
        tried_r, tried_J = _checked(pair)
        cost = 0.5 * float(tried_r @ tried_r)
        if damping is None or cost <= costs[-1]:
            refused = 0
            if damping is not None:
                gain = (costs[-1] - cost) / promised if promised > 0 else 1.0
                damping = max(damping * max(1 / 3, 1 - (2 * gain - 1) ** 3), 1e-15)
                growth = 2.0
            x, r, J = tried, tried_r, tried_J
            costs.append(cost)
        else:
            damping, growth, refused = damping * growth, growth * 2, refused + 1
    return Solution(x, costs[-1], tuple(costs), taken, small and refused <= 1)


def _sized(A: Operator, rows: int) -> Operator:
    """The operator with flat results, those of its tangent held to `rows` numbers."""

    def tangent(v):
        out = np.asarray(A.tangent(v), float).reshape(-1)
        if out.size != rows:
            raise RaymarchError(f"the operator's tangent gives {out.size} numbers, want {rows}, one for each residual")
        return out

    return Operator(tangent, lambda w: np.asarray(A.adjoint(w), float).reshape(-1))


def _checked(pair):
    r, J = np.asarray(pair[0], float).reshape(-1), pair[1]
    if isinstance(J, Operator):
        J = _sized(J, r.size)
    else:
        J = np.asarray(J, float)
        if J.ndim != 2 or len(J) != r.size:
            raise RaymarchError(f"Jacobian has shape {J.shape} for {r.size} residuals, want ({r.size}, parameters)")
    if not np.isfinite(r).all() or (not isinstance(J, Operator) and not np.isfinite(J).all()):
        raise RaymarchError("residual or Jacobian is not finite; start closer, or look at the data")
    return r, J


def _step(r: np.ndarray, J, damping: float | None) -> tuple[np.ndarray, float]:
    """The move, and how much lower the linear model says the cost will be."""
    if isinstance(J, Operator):
        g = J.adjoint(r)
        weight = np.zeros_like(g)
        if damping is not None:  # the mean of diag(J'J), by its curvature along the gradient
            along = J.tangent(g)
            weight += damping * float(along @ along) / max(float(g @ g), 1e-300)
        move = -conjugate_gradients(lambda v: J.adjoint(J.tangent(v)) + weight * v, g, iterations=100, tolerance=1e-3)
        predicted = r + J.tangent(move)
        return move, 0.5 * float(r @ r - predicted @ predicted)
    if damping is None:
        move = -np.linalg.lstsq(J, r, rcond=None)[0]
    else:
        diagonal = (J * J).sum(0)
        weight = damping * np.maximum(diagonal, 1e-12 * max(float(diagonal.max()), 1e-300))
        stacked = np.vstack([J, np.diag(np.sqrt(weight))])
        move = -np.linalg.lstsq(stacked, np.concatenate([r, np.zeros(len(weight))]), rcond=None)[0]
    predicted = r + J @ move
    return move, 0.5 * float(r @ r - predicted @ predicted)


def conjugate_gradients(apply, b: np.ndarray, *, iterations: int = 100, tolerance: float = 1e-6) -> np.ndarray:
    """x with apply(x) = b for a symmetric positive operator: Hestenes and Stiefel 1952.

    Ends where the residual is `tolerance` of b, or after `iterations`.

    Example:
        >>> conjugate_gradients(lambda v: np.array([4.0, 9.0]) * v, np.array([8.0, 9.0])).round(6)
        array([2., 1.])
    """
    b = np.asarray(b, float)
    x, r = np.zeros_like(b), b.copy()
    p, square = r.copy(), float(r @ r)
    target = tolerance**2 * square
    for _ in range(iterations):
        if square <= target or square == 0:
            break
        Ap = apply(p)
        curvature = float(p @ Ap)
        if curvature <= 0:
            break
        x, r = x + (square / curvature) * p, r - (square / curvature) * Ap
        square, before = float(r @ r), square
        p = r + (square / before) * p
    return x


def cgls(A: Operator, b: np.ndarray, *, start=None, iterations: int = 50, tolerance: float = 1e-6, progress=None):
    """x that makes |A x - b| least, A never formed: Bjorck 1996, "Numerical methods for least squares", 7.4.

    Args:
        A: the linear map.
        b: what A x should be.
        start: the first x; zeros if not given.
        iterations: how many at most; fewer is smoother, as for any ill-posed problem.
        tolerance: ends where |A'(b - A x)| is this of |A'b|.
        progress: called with (iteration, |b - A x|) after each.

    Example:
        >>> A = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> cgls(Operator(lambda v: A @ v, lambda w: A.T @ w), A @ [1.0, 2.0]).round(6)
        array([1., 2.])
    """
    b = np.asarray(b, float).reshape(-1)
    A = _sized(A, b.size)
    s = A.adjoint(b)
    target = max(tolerance, 1e-14) ** 2 * float(s @ s)
    x = np.zeros_like(s) if start is None else np.array(start, float).reshape(-1)
    if x.size != s.size:
        raise RaymarchError(f"start has {x.size} numbers, want {s.size}, as many as the operator's adjoint gives")
    r = b.copy() if start is None else b - A.tangent(x)
    s = s if start is None else A.adjoint(r)
    p, square = s.copy(), float(s @ s)
    for iteration in range(1, iterations + 1):
        if square <= target or square == 0:
            break
        q = A.tangent(p)
        step = square / max(float(q @ q), 1e-300)
        x, r = x + step * p, r - step * q
        s = A.adjoint(r)
        square, before = float(s @ s), square
        p = s + (square / before) * p
        if progress is not None:
            progress(iteration, float(np.linalg.norm(r)))
    return x

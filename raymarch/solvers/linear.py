"""Krylov solvers for matrix-free linear operators: conjugate gradients and CGLS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from raymarch.arguments.arrays import Numbers, mended
from raymarch.arguments.checks import callback, instance_of, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.volumes.samples import RAW

EPS = float(np.finfo(float).eps)
STEPS, TOLERANCE = whole(0, 10**9), number(0)


@dataclass(frozen=True)
class Operator:
    """Matrix-free linear operator, a Jacobian never formed: `tangent(v)` is J v, `adjoint(w)` J' w, on flat arrays."""

    tangent: Callable[[np.ndarray], np.ndarray]
    adjoint: Callable[[np.ndarray], np.ndarray]

    def __post_init__(self) -> None:
        for name in ("tangent", "adjoint"):
            callback(name, getattr(self, name))


def sized(A: Operator, rows: int) -> Operator:
    """Operator with flat results; RaymarchError where its tangent gives other than `rows` numbers."""

    def tangent(v: np.ndarray) -> np.ndarray:
        out = np.asarray(A.tangent(v), float).reshape(-1)
        if out.size != rows:
            raise RaymarchError(f"the operator's tangent gives {out.size} numbers, want {rows}, one for each residual")
        return out

    return Operator(tangent, lambda w: np.asarray(A.adjoint(w), float).reshape(-1))


@checked(apply=callback, b=RAW, iterations=STEPS, tolerance=TOLERANCE)
def conjugate_gradients(
    apply: Callable[[np.ndarray], np.ndarray], b: np.ndarray, *, iterations: int = 100, tolerance: float = 1e-6
) -> np.ndarray:
    """Conjugate gradients: x with apply(x) = b for a symmetric positive operator (Hestenes and Stiefel 1952).

    Ends where the residual is `tolerance` of b, or after `iterations`. Arrays are flat, as `b` is taken to be.

    Example:
        >>> conjugate_gradients(lambda v: np.array([4.0, 9.0]) * v, np.array([8.0, 9.0])).round(6)
        array([2., 1.])
    """
    b = np.asarray(b, float).reshape(-1)
    x, r = np.zeros_like(b), b.copy()
    p, square = r.copy(), float(r @ r)
    target = tolerance**2 * square
    for _ in range(iterations):
        if square <= target or square == 0:
            break
        Ap = np.asarray(apply(p), float).reshape(-1)
        if not (curvature := float(p @ Ap)) > 0:  # NaN too
            break
        x, r = x + (square / curvature) * p, r - (square / curvature) * Ap
        square, before = float(r @ r), square
        p = r + (square / before) * p
    return x


@checked(
    A=mended(
        instance_of(Operator, "an Operator"),
        lambda A: "of a matrix it is rm.Operator(lambda v: A @ v, lambda w: A.T @ w)" if hasattr(A, "shape") else "",
    ),
    b=RAW,
    start=optional(RAW),
    iterations=STEPS,
    tolerance=TOLERANCE,
    progress=optional(callback),
    seen=optional(callback),
)
def cgls(
    A: Operator,
    b: np.ndarray,
    *,
    start: Numbers | None = None,
    iterations: int = 50,
    tolerance: float = 1e-6,
    progress: Callable[[int, float], None] | None = None,
    seen: Callable[[int, np.ndarray], None] | None = None,
) -> np.ndarray:
    """CGLS, matrix-free linear least squares: x that makes |A x - b| least (Bjorck 1996, "Numerical methods ...", 7.4).

    Args:
        A: the linear map.
        b: what A x should be.
        start: the first x; zeros if not given.
        iterations: how many at most; fewer is smoother, as for any ill-posed problem.
        tolerance: ends where |A'(b - A x)| is this of |A'b|, or no more than rounding makes it.
        progress: called with (iteration, |b - A x|) after each.
        seen: called with (iteration, x) after each; an x that is kept has to be copied.

    Example:
        >>> A = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> cgls(Operator(lambda v: A @ v, lambda w: A.T @ w), A @ [1.0, 2.0]).round(6)
        array([1., 2.])
    """
    return least_squares(A, b, start, iterations, tolerance, progress, seen)


def least_squares(
    A: Operator,
    b: np.ndarray,
    start: Numbers | None,
    iterations: int,
    tolerance: float,
    progress: Callable[[int, float], None] | None = None,
    seen: Callable[[int, np.ndarray], None] | None = None,
) -> np.ndarray:
    """CGLS of numbers that nobody checks: those of a search that flies away too."""
    b = np.asarray(b, float).reshape(-1)
    A = sized(A, b.size)
    s = A.adjoint(b)
    target = max(tolerance, 1e-14) ** 2 * float(s @ s)
    x = np.zeros_like(s) if start is None else np.array(start, float).reshape(-1)
    if x.size != s.size:
        raise RaymarchError(f"start has {x.size} numbers, want {s.size}, as many as the operator's adjoint gives")
    r = b.copy() if start is None else b - A.tangent(x)
    s = s if start is None else A.adjoint(r)
    p, square, left, largest = s.copy(), float(s @ s), float(r @ r), 0.0
    for iteration in range(1, iterations + 1):
        if square <= target or square == 0:
            break
        q = A.tangent(p)
        curvature = float(q @ q)
        largest = max(largest, curvature / float(p @ p))  # of |A v|^2 / |v|^2, as far as was seen
        if curvature == 0 or square <= EPS**2 * largest * left:  # A'r is no more than its own rounding
            break
        step = square / curvature
        nearer = r - step * q
        if not (now := float(nearer @ nearer)) <= (1 + EPS * np.sqrt(b.size)) * left:
            break
        x, r, left = x + step * p, nearer, now
        s = A.adjoint(r)
        square, before = float(s @ s), square
        p = s + (square / before) * p
        if progress is not None:
            progress(iteration, float(np.sqrt(left)))
        if seen is not None:
            seen(iteration, x)
    return x

"""Linear solvers: conjugate gradients and CGLS for matrix-free operators, and the linear model of a residual."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from raymarch.arguments.checks import Numbers, callback, instance_of, number, optional, whole, with_cure
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.volumes.samples import RAW

EPS = float(np.finfo(float).eps)
STEP_COUNT, TOLERANCE = whole(0, 10**9), number(0)


@dataclass(frozen=True)
class Operator:
    """Matrix-free linear operator, a Jacobian never formed: `tangent(v)` is J v, `adjoint(w)` J' w, on flat arrays."""

    tangent: Callable[[np.ndarray], np.ndarray]
    adjoint: Callable[[np.ndarray], np.ndarray]

    def __post_init__(self) -> None:
        for name in ("tangent", "adjoint"):
            callback(name, getattr(self, name))


def sized_operator(A: Operator, rows: int) -> Operator:
    """Operator with flat results; RaymarchError where its tangent gives other than `rows` numbers."""

    def tangent(v: np.ndarray) -> np.ndarray:
        out = np.asarray(A.tangent(v), float).reshape(-1)
        if out.size != rows:
            raise RaymarchError(f"the operator's tangent gives {out.size} numbers, want {rows}, one for each residual")
        return out

    return Operator(tangent, lambda w: np.asarray(A.adjoint(w), float).reshape(-1))


@checked(apply=callback, b=RAW, iterations=STEP_COUNT, tolerance=TOLERANCE)
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
    A=with_cure(
        instance_of(Operator, "an Operator"),
        lambda A: "of a matrix it is rm.Operator(lambda v: A @ v, lambda w: A.T @ w)" if hasattr(A, "shape") else "",
    ),
    b=RAW,
    start=optional(RAW),
    iterations=STEP_COUNT,
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
    """CGLS without argument checks, because a diverging search may pass any numbers."""
    b = np.asarray(b, float).reshape(-1)
    A = sized_operator(A, b.size)
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


# The linear model r + J p of a residual, with steps by singular values or matrix-free.

Jacobian: TypeAlias = "np.ndarray | Operator"  # (number, parameter)

# of conjugate gradients: tolerance and iterations, on the way and at the end
LOOSE_TOLERANCE, TIGHT_TOLERANCE = (1e-3, 100), (1e-12, 300)


@dataclass(frozen=True, eq=False)
class Step:
    """Step: a move p of the parameters, the residual's change J p, and the model's decrease of half its square."""

    move: np.ndarray
    change: np.ndarray
    promised: float


class DenseModel:
    """Dense linear model, a matrix (residual, parameter); `damped` steps have the diagonal of J'J for their measure."""

    def __init__(self, r: np.ndarray, J: np.ndarray, damped: bool):
        self.r, self.J, self.parameters = r, J, J.shape[1]
        self.scale = np.ones(J.shape[1])
        if damped:
            diagonal = (J * J).sum(0)
            self.scale = np.sqrt(np.maximum(diagonal, 1e-12 * diagonal.max(initial=0.0)))
            self.scale[self.scale == 0] = 1.0
        left, self.singular, self.right = np.linalg.svd(J / self.scale, full_matrices=False)
        self.parts = left.T @ r

    def step(self, damping: float) -> Step:
        """Damped step; without damping the shortest to the model's minimum."""
        s = self.singular
        kept = s > (EPS * max(self.J.shape) * s.max(initial=0.0) if damping == 0 else 0.0)
        factors = np.divide(s, s * s + damping, out=np.zeros_like(s), where=kept)
        return _step(self, -(self.right.T @ (factors * self.parts)) / self.scale)

    def full(self) -> Step:
        """Undamped (Gauss-Newton) step."""
        return self.step(0.0)

    def change(self, move: np.ndarray) -> np.ndarray:
        """Change of the residual, J p."""
        return self.J @ move

    def spread(self, sizes: np.ndarray) -> float:
        """Norm of the residual's changes as each parameter moves by its size, on its own."""
        return float(np.linalg.norm(self.J * sizes))


class MatrixFreeModel:
    """Matrix-free linear model by an `Operator`; damped steps are measured by its curvature along the gradient."""

    def __init__(self, r: np.ndarray, J: Operator):
        self.r, self.J = r, J
        self.slope = J.adjoint(r)
        self.parameters = len(self.slope)

    def step(self, damping: float) -> Step:
        """Damped step, solved to a relative accuracy of 1e-3."""
        along = self.J.tangent(self.slope) if damping else np.zeros(1)
        weight = np.sqrt(damping * float(along @ along) / max(float(self.slope @ self.slope), 1e-300))
        return self._solved(weight, *LOOSE_TOLERANCE)

    def full(self) -> Step:
        """Undamped step, as accurate as conjugate gradients reach."""
        return self._solved(0.0, *TIGHT_TOLERANCE)

    def _solved(self, weight: float, tolerance: float, iterations: int) -> Step:
        J, rows = self.J, len(self.r)
        below = np.zeros_like(self.slope)
        stacked = Operator(
            lambda v: np.concatenate([J.tangent(v), weight * v]),
            lambda w: J.adjoint(w[:rows]) + weight * w[rows:],
        )
        wanted = np.concatenate([-self.r, below])
        return _step(self, least_squares(stacked, wanted, None, iterations, tolerance))

    def change(self, move: np.ndarray) -> np.ndarray:
        """Change of the residual, J p."""
        return self.J.tangent(move)

    def spread(self, sizes: np.ndarray) -> float:
        """As `DenseModel`'s, estimated by one product: with random signs the columns add up by squares."""
        signs = np.random.default_rng(0).choice([-1.0, 1.0], len(self.slope))
        return float(np.linalg.norm(self.J.tangent(signs * sizes)))


def _step(model: DenseModel | MatrixFreeModel, move: np.ndarray) -> Step:
    change = model.change(move)
    return Step(move, change, -float(model.r @ change) - 0.5 * float(change @ change))


def linear_model(r: np.ndarray, J: Jacobian, damped: bool) -> DenseModel | MatrixFreeModel:
    """Linear model of a residual (number,) and its Jacobian, a matrix or an `Operator`."""
    return MatrixFreeModel(r, J) if isinstance(J, Operator) else DenseModel(r, J, damped)

"""Linear model r + J p of a residual at one place, and its steps: by singular values, or matrix-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from raymarch.solvers.linear import EPS, Operator, least_squares

Jacobian: TypeAlias = "np.ndarray | Operator"  # (number, parameter)

LOOSE, TIGHT = (1e-3, 100), (1e-12, 300)  # of conjugate gradients: tolerance and iterations, on the way and at the end


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
        """Damped step, to a thousandth."""
        along = self.J.tangent(self.slope) if damping else np.zeros(1)
        weight = np.sqrt(damping * float(along @ along) / max(float(self.slope @ self.slope), 1e-300))
        return self._solved(weight, *LOOSE)

    def full(self) -> Step:
        """Undamped step, as far as conjugate gradients come."""
        return self._solved(0.0, *TIGHT)

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

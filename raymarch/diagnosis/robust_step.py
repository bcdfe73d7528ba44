"""Robust Gauss-Newton step: of residuals in Geman and McClure's loss, by their slopes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

LONGEST = 0.2  # that each parameter moves in a step


def robust_step(
    residual: Callable[[np.ndarray], np.ndarray], here: np.ndarray, widths: np.ndarray, scale: float
) -> np.ndarray:
    """Move (parameter,) of a Gauss-Newton step from where `residual` of no move is `here` (number,).

    Slopes are differences of one-sided `widths` (parameter,). A residual of `scale` weighs a quarter: the weights are
    those of iterated least squares in the loss r^2 / (r^2 + scale^2) (Geman and McClure 1985).

    Example:
        >>> wanted = np.array([1.0, 2.0, 50.0])
        >>> robust_step(lambda m: 10 * m - wanted, -wanted, np.array([1e-6]), 5.0).round(2).tolist()
        [0.14]
    """
    weight = 1 / (1 + (here / scale) ** 2) ** 2
    slope = np.stack([(residual(move) - here) / h for move, h in zip(np.diag(widths), widths, strict=True)], axis=1)
    normal = slope.T @ (weight[:, None] * slope)
    normal += 1e-9 * np.diag(np.diag(normal)) + 1e-12 * np.eye(len(widths))
    return np.clip(-np.linalg.solve(normal, slope.T @ (weight * here)), -LONGEST, LONGEST)

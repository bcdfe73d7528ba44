"""Point nearest to several lines."""

from __future__ import annotations

import numpy as np

PARALLEL = 1e4  # condition from which lines meet in no point


def nearest_to_lines(
    places: np.ndarray, directions: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray | None:
    """Point (3,) nearest to lines through places (n, 3) along unit directions (n, 3), by weighted least squares.

    None where they are as good as parallel.

    Example:
        >>> nearest_to_lines(np.array([[4.0, 0, 1], [0, 4, 1]]), np.array([[1.0, 0, 0], [0, 1, 0]])).round(9).tolist()
        [0.0, 0.0, 1.0]
    """
    across = np.eye(3) - directions[:, :, None] * directions[:, None, :]
    if weights is not None:
        across = weights[:, None, None] * across
    normal = across.sum(0)
    if not np.linalg.cond(normal) <= PARALLEL:
        return None
    return np.linalg.solve(normal, (across @ places[:, :, None]).sum(0)[:, 0])

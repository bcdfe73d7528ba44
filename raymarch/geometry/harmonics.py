"""Real spherical harmonics up to degree 3 of many directions; `kernels/field/harmonics.py` beside."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np


def basis(degree: int, directions: np.ndarray) -> np.ndarray:
    """Spherical harmonics Y_k (n, (degree + 1)^2) of unit directions (n, 3); l = 0, 1, ... and m = -l .. l.

    Orthonormal on the sphere, with the Condon-Shortley sign; Sloan 2008, "Stupid spherical harmonics tricks".

    Example:
        >>> basis(1, np.array([[0.0, 0.0, 1.0]])).round(4).tolist()
        [[0.2821, -0.0, 0.4886, -0.0]]
    """
    x, y, z = np.asarray(directions, float).T
    xx, yy, zz = x * x, y * y, z * z
    c1, c2, c3 = sqrt(3 / pi) / 2, sqrt(15 / pi) / 2, sqrt(35 / (2 * pi)) / 4
    c31, c32 = sqrt(21 / (2 * pi)) / 4, sqrt(105 / pi) / 4
    bands = [
        [np.full_like(x, sqrt(1 / pi) / 2)],
        [-c1 * y, c1 * z, -c1 * x],
        [c2 * x * y, -c2 * y * z, sqrt(5 / pi) / 4 * (2 * zz - xx - yy), -c2 * x * z, c2 / 2 * (xx - yy)],
        [
            -c3 * y * (3 * xx - yy),
            2 * c32 * x * y * z,
            -c31 * y * (4 * zz - xx - yy),
            sqrt(7 / pi) / 4 * z * (2 * zz - 3 * xx - 3 * yy),
            -c31 * x * (4 * zz - xx - yy),
            c32 * z * (xx - yy),
            -c3 * x * (xx - 3 * yy),
        ],
    ]
    return np.stack([each for band in bands[: degree + 1] for each in band], axis=1)

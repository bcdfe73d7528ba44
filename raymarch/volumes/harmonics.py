"""Real spherical harmonics up to degree 3 of many directions, and their constants; `kernels/field/harmonics.py` beside.

Sloan 2008, "Stupid spherical harmonics tricks". Each is a constant, named after its degree and the size of its order,
times a polynomial.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

Y00 = sqrt(1 / pi) / 2  # the first harmonic, the same in all directions
C1 = sqrt(3 / pi) / 2  # orders -1, 0 and 1
C20 = sqrt(5 / pi) / 4
C21 = sqrt(15 / pi) / 2
C22 = sqrt(15 / pi) / 4  # of xx - yy; order -2, of xy, has twice that
C30 = sqrt(7 / pi) / 4
C31 = sqrt(21 / (2 * pi)) / 4
C32 = sqrt(105 / pi) / 4  # of z (xx - yy); order -2, of xyz, has twice that
C33 = sqrt(35 / (2 * pi)) / 4


def basis(degree: int, directions: np.ndarray) -> np.ndarray:
    """Spherical harmonics Y_k (n, (degree + 1)^2) of unit directions (n, 3); l = 0, 1, ... and m = -l .. l.

    Orthonormal on the sphere, with the Condon-Shortley sign.

    Example:
        >>> basis(1, np.array([[0.0, 0.0, 1.0]])).round(4).tolist()
        [[0.2821, -0.0, 0.4886, -0.0]]
    """
    x, y, z = np.asarray(directions, float).T
    xx, yy, zz = x * x, y * y, z * z
    bands = [
        [np.full_like(x, Y00)],
        [-C1 * y, C1 * z, -C1 * x],
        [C21 * x * y, -C21 * y * z, C20 * (2 * zz - xx - yy), -C21 * x * z, C22 * (xx - yy)],
        [
            -C33 * y * (3 * xx - yy),
            2 * C32 * x * y * z,
            -C31 * y * (4 * zz - xx - yy),
            C30 * z * (2 * zz - 3 * xx - 3 * yy),
            -C31 * x * (4 * zz - xx - yy),
            C32 * z * (xx - yy),
            -C33 * x * (xx - 3 * yy),
        ],
    ]
    return np.stack([each for band in bands[: degree + 1] for each in band], axis=1)

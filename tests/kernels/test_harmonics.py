"""Law: each harmonic is the one of the textbook's recurrences, value and slope, one at a time."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import single as worker

DEGREE = 3
H = 1e-30  # of a complex step, whose error is its square


def directions():
    """Unit vectors in general position and along the axes."""
    some = np.concatenate([np.random.default_rng(0).normal(size=(40, 3)), np.eye(3), -np.eye(3)])
    return some / np.linalg.norm(some, axis=1, keepdims=True)


@pytest.mark.parametrize(("l", "m"), [(l, m) for l in range(DEGREE + 1) for m in range(-l, l + 1)])
def test_each_harmonic_is_that_of_the_recurrences(l, m):
    d, k = directions(), l * l + l + m
    values, slopes = np.empty((len(d), (DEGREE + 1) ** 2)), np.empty((len(d), 3 * (DEGREE + 1) ** 2))
    worker.harmonics_of(DEGREE, d, values)
    worker.harmonic_slopes_of(DEGREE, d, slopes)
    np.testing.assert_allclose(values[:, k], reference.solid_harmonic(l, m, *d.T), rtol=0, atol=1e-14)
    for axis in range(3):
        ahead = d.astype(complex)
        ahead[:, axis] += 1j * H
        np.testing.assert_allclose(
            slopes[:, 3 * k + axis], reference.solid_harmonic(l, m, *ahead.T).imag / H, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("degree", range(DEGREE))
def test_a_lower_degree_has_the_same_harmonics(degree):
    d, n = directions(), (degree + 1) ** 2
    for kernel, width in ((worker.harmonics_of, 1), (worker.harmonic_slopes_of, 3)):
        low, high = np.empty((len(d), width * n)), np.empty((len(d), width * (DEGREE + 1) ** 2))
        kernel(degree, d, low)
        kernel(DEGREE, d, high)
        np.testing.assert_allclose(low, high[:, : width * n], rtol=0, atol=1e-14)

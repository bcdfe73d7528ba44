"""Law: the distortion loss (Barron 2022) of one ray and its gradient by optical depths, in one pass each, in NumPy.

The twin of what the march's kernels are to do: forward with three running sums, backward with what was left by it.
"""

from __future__ import annotations

import numpy as np
import pytest

RNG = np.random.default_rng(0)


def weights(tau):
    """Weights of samples by their optical depths, and the transmittance after each."""
    after = np.exp(-np.cumsum(tau))
    return np.concatenate([[1.0], after[:-1]]) - after, after


def distortion(tau, s, d):
    """(L, W, S): sum over pairs of w_i w_j |s_i - s_j| and over samples of w^2 d / 3, places s rising, widths d."""
    L = W = S = 0.0
    T = 1.0
    for tau_i, s_i, d_i in zip(tau, s, d, strict=True):
        w = T * -np.expm1(-tau_i)
        L += 2 * w * (s_i * W - S) + w * w * d_i / 3
        W, S, T = W + w, S + w * s_i, T * np.exp(-tau_i)
    return L, W, S


def distortion_adjoint(tau, s, d):
    """Gradient (sample,) by optical depths, front to back: L is of degree 2 in w, so sum w g is 2 L."""
    later, W_end, S_end = distortion(tau, s, d)
    later *= 2
    W = S = 0.0
    T, gradient = 1.0, []
    for tau_i, s_i, d_i in zip(tau, s, d, strict=True):
        after = T * np.exp(-tau_i)
        w = T - after
        W_after, S_after = W_end - W - w, S_end - S - w * s_i
        g = 2 * (s_i * (W - W_after) - (S - S_after)) + 2 * w * d_i / 3
        later -= w * g
        gradient.append(g * after - later)
        W, S, T = W + w, S + w * s_i, after
    return np.array(gradient)


@pytest.fixture(params=[1, 2, 17])
def ray(request):
    n = request.param
    edges = np.sort(RNG.uniform(0, 1, n + 1))
    return RNG.exponential(0.4, n), (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def test_one_pass_is_the_sum_over_pairs(ray):
    tau, s, d = ray
    w, after = weights(tau)
    L, W, S = distortion(tau, s, d)
    assert pytest.approx((w[:, None] * w * np.abs(s[:, None] - s)).sum() + (w**2 * d).sum() / 3) == L
    assert pytest.approx(1 - after[-1]) == W
    assert pytest.approx(w @ s) == S


def test_the_gradient_is_that_of_differences(ray):
    tau, s, d = ray
    found, h = distortion_adjoint(tau, s, d), 1e-5
    for i, unit in enumerate(np.eye(len(tau))):
        wanted = (distortion(tau + h * unit, s, d)[0] - distortion(tau - h * unit, s, d)[0]) / (2 * h)
        assert found[i] == pytest.approx(wanted, rel=1e-7, abs=1e-10)

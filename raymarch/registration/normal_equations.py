"""Normal equations of bundle adjustment before one volume: six numbers a camera and those that all share."""

from __future__ import annotations

import numpy as np

from raymarch.views.exposure import (
    MAX_UNCLIPPED,
    MIN_OPAQUE_ALPHA,
    MIN_UNCLIPPED,
    exposures_of,
    moments,
    normalise_exposures,
)

POSE_NUMBERS = 6  # numbers a camera
DAMPING = 1e-3
ROBUST_RESIDUAL = 0.1  # residual from which on a ray counts less, as in Huber's function
MIN_OPAQUE_PIXELS = 16  # opaque pixels under which a view tells no exposure
GAIN_RIDGE = 1e-3  # of the pixels, by which a gain stays as it is


def move_of(residual: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Damped Gauss-Newton step: of each camera's six numbers, view after view, and at the end of what they share.

    Cameras meet in what they share alone, so that they are solved for one by one once that is (Schur's complement).

    residual (view, ray, channel), NaN of rays that do not count, as all of a view whose mask leaves no pixel of a
    smaller image whole; slopes (view, ray, number, channel), first the camera's own six numbers.

    Example:
        >>> slopes = np.random.default_rng(0).normal(size=(2, 50, 7, 4))
        >>> move_of(np.zeros((2, 50, 4)), slopes).shape
        (13,)
    """
    counts = ~np.isnan(residual).any(-1)[..., None]
    residual, slopes = np.where(counts, residual, 0.0), np.where(counts[..., None], slopes, 0.0)
    robust = 1 / np.maximum(np.abs(residual).max(-1) / ROBUST_RESIDUAL, 1)  # Huber's weights
    H = np.einsum("vr,vrac,vrbc->vab", robust, slopes, slopes, optimize=True)
    g = np.einsum("vr,vrac,vrc->va", robust, slopes, residual, optimize=True)
    own, mixed, common = (
        H[:, :POSE_NUMBERS, :POSE_NUMBERS],
        H[:, :POSE_NUMBERS, POSE_NUMBERS:],
        H[:, POSE_NUMBERS:, POSE_NUMBERS:].sum(0),
    )
    right, right_common = -g[:, :POSE_NUMBERS], -g[:, POSE_NUMBERS:].sum(0)
    most = max(each.max(initial=0.0) for each in (own, common))  # on a diagonal, where that of such a matrix is
    if not most:  # exposures alone are sought, or nothing is in sight
        return np.zeros(right.size + right_common.size)
    own, common = _damp(own, most), _damp(common, most)
    by_own = np.linalg.solve(own, np.concatenate([mixed, right[..., None]], axis=2))
    across = np.einsum("vab,vac->bc", mixed, by_own)
    move_common = np.linalg.solve(common - across[:, :-1], right_common - across[:, -1])
    return np.concatenate([(by_own[..., -1] - by_own[..., :-1] @ move_common).ravel(), move_common])


def _damp(matrix: np.ndarray, most: float) -> np.ndarray:
    """Matrices (..., n, n) with more on their diagonals (Levenberg and Marquardt)."""
    diagonal = np.einsum("...aa->...a", matrix)
    return matrix + (DAMPING * diagonal + 1e-9 * most)[..., None] * np.eye(matrix.shape[-1])


def fit_exposures(image: np.ndarray, target: np.ndarray, exposures: np.ndarray) -> np.ndarray:
    """Exposures (view, 6) by least squares over opaque pixels that are not clipped, by the gauge of `data.exposure`.

    `image` is what the volume gives and `target` what was seen without the exposures so far, both (view, ray, 4). So
    what is found of a view is what its exposure still lacks; a view of few opaque pixels keeps its own.
    """
    exposures = exposures.copy()
    for v, (given, seen) in enumerate(zip(image, target, strict=True)):
        opaque = seen[:, 3] < 1 - MIN_OPAQUE_ALPHA
        if opaque.sum() < MIN_OPAQUE_PIXELS:
            continue
        old_gain, old_offset = np.split(exposures[v], 2)
        x, y = given[opaque, :3], seen[opaque, :3]
        taken = old_gain * y + old_offset
        sums = moments(x, y, (taken > MIN_UNCLIPPED) & (taken < MAX_UNCLIPPED))
        gain, offset = np.split(exposures_of(sums, (GAIN_RIDGE * opaque.sum(), GAIN_RIDGE)), 2)
        exposures[v] = np.concatenate([old_gain * gain, old_gain * offset + old_offset])
    return normalise_exposures(exposures)

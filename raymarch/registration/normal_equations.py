"""Normal equations of bundle adjustment before one volume: six numbers a camera and those that all share."""

from __future__ import annotations

import numpy as np

from raymarch.data.exposure import BRIGHT, DARK, OPAQUE, exposures_of, gauged, moments

POSE = 6  # numbers a camera
DAMPING = 1e-3
ROBUST = 0.1  # residual from which on a ray counts less, as in Huber's function
FEW = 16  # opaque pixels under which a view tells no exposure
STAY = 1e-3  # of the pixels, by which a gain stays as it is


def move_of(residual: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Damped Gauss-Newton step: of each camera's six numbers, view after view, and at the end of what they share.

    residual (view, ray, channel); slopes (view, ray, number, channel), first the camera's own six numbers.

    Example:
        >>> slopes = np.random.default_rng(0).normal(size=(2, 50, 7, 4))
        >>> move_of(np.zeros((2, 50, 4)), slopes).shape
        (13,)
    """
    views, shared = len(residual), slopes.shape[2] - POSE
    robust = 1 / np.maximum(np.abs(residual).max(-1) / ROBUST, 1)  # Huber's weights
    H = np.einsum("vr,vrac,vrbc->vab", robust, slopes, slopes, optimize=True)
    g = np.einsum("vr,vrac,vrc->va", robust, slopes, residual, optimize=True)
    whole, right = np.zeros((POSE * views + shared,) * 2), np.zeros(POSE * views + shared)
    for v in range(views):
        where = np.r_[POSE * v : POSE * v + POSE, POSE * views : POSE * views + shared]
        whole[np.ix_(where, where)] += H[v]
        right[where] -= g[v]
    diagonal = np.diag(whole)
    if not diagonal.any():  # exposures alone are sought, or nothing is in sight
        return np.zeros_like(right)
    whole += np.diag(DAMPING * diagonal + 1e-9 * diagonal.max())
    return np.linalg.solve(whole, right)


def exposures_beside(image: np.ndarray, target: np.ndarray, exposures: np.ndarray) -> np.ndarray:
    """Exposures (view, 6) by least squares over opaque pixels that are not clipped, by the gauge of `data.exposure`.

    `image` is what the volume gives and `target` what was seen without the exposures so far, both (view, ray, 4). So
    what is found of a view is what its exposure still lacks; a view of few opaque pixels keeps its own.
    """
    exposures = exposures.copy()
    for v, (given, seen) in enumerate(zip(image, target, strict=True)):
        opaque = seen[:, 3] < 1 - OPAQUE
        if opaque.sum() < FEW:
            continue
        old_gain, old_offset = np.split(exposures[v], 2)
        x, y = given[opaque, :3], seen[opaque, :3]
        taken = old_gain * y + old_offset
        sums = moments(x, y, (taken > DARK) & (taken < BRIGHT))
        gain, offset = np.split(exposures_of(sums, (STAY * opaque.sum(), STAY)), 2)
        exposures[v] = np.concatenate([old_gain * gain, old_gain * offset + old_offset])
    return gauged(exposures)

"""Normal equations of bundle adjustment before one volume: six numbers a camera and those that all share."""

from __future__ import annotations

import numpy as np

POSE = 6  # numbers a camera
DAMPING = 1e-3
ROBUST = 0.1  # residual from which on a ray counts less, as in Huber's function
OPAQUE = 0.01  # transmittance under which a pixel tells an exposure
FEW = 16  # opaque pixels under which a view tells none


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


def exposures_of(image: np.ndarray, target: np.ndarray, exposures: np.ndarray) -> np.ndarray:
    """Exposures (view, 6), gains and offsets by least squares over opaque pixels, their means over the views held.

    `image` is what the volume gives and `target` what was seen without the exposures so far, both (view, ray, 4).
    """
    exposures = exposures.copy()
    for v, (seen, wanted) in enumerate(zip(image, target, strict=True)):
        opaque = wanted[:, 3] < OPAQUE
        if opaque.sum() < FEW:
            continue
        seen, wanted = seen[opaque], wanted[opaque]
        for c in range(3):
            x, y = seen[:, c], wanted[:, c]
            spread = ((x - x.mean()) ** 2).mean() + 1e-3
            gain = (((x - x.mean()) * (y - y.mean())).mean() + 1e-3) / spread
            offset = y.mean() - gain * x.mean()
            old = exposures[v, [c, 3 + c]]  # the target came without the old exposure
            exposures[v, [c, 3 + c]] = old[0] * gain, old[0] * offset + old[1]
    mean = exposures.mean(0)
    exposures[:, 3:] -= mean[3:] / mean[:3] * exposures[:, :3]
    exposures[:, :3] /= mean[:3]
    return exposures

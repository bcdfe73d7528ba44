"""Up of a world, by the cameras in it."""

from __future__ import annotations

import numpy as np

LEVEL = 0.12  # mean square of the right axes along the up they agree on: photographs held level to some 20 degrees
SPREAD = 0.03  # and of their second direction: less, and all of them look one way
AGREED = 0.3  # length of the mean of the cameras' own up axes
ROUNDS = 20
GUESSED = "across the plane of the cameras"


def up_of_cameras(eyes: np.ndarray, turns: np.ndarray) -> tuple[np.ndarray, str]:
    """Up, of length 1, and how it was found.

    What the right axes of cameras held level are all across; else their mean up; else across their path.

    Args:
        eyes: positions (view, 3).
        turns: rotations (view, 3, 3) world from camera, camera axes x right, y up, looking along -z.

    Example:
        >>> up_of_cameras(np.eye(3), np.array([np.eye(3)] * 3))[0].tolist()
        [0.0, 1.0, 0.0]
    """
    rights, ups = turns[:, :, 0], turns[:, :, 1]
    mean = ups.mean(0)
    weights = np.ones(len(rights))
    for _ in range(ROUNDS):  # a camera on its side counts for little
        values, vectors = np.linalg.eigh((weights[:, None] * rights).T @ rights / weights.sum())
        weights = 1 / (0.1 + np.abs(rights @ vectors[:, 0]))
    if values[0] < LEVEL and values[1] > SPREAD and abs(mean @ vectors[:, 0]) > 0.05:
        return vectors[:, 0] * np.sign(mean @ vectors[:, 0]), "across the right axes of all cameras"
    if np.linalg.norm(mean) > AGREED:
        for _ in range(ROUNDS):
            mean = mean / np.linalg.norm(mean)
            mean = (ups / (0.1 + np.linalg.norm(ups - mean, axis=1))[:, None]).sum(0)
        return mean / np.linalg.norm(mean), "mean up of the cameras"
    normal = np.linalg.svd(eyes - eyes.mean(0))[2][2]
    return normal * (np.sign(mean @ normal) or 1.0), GUESSED

"""Conventions of poses and order of images: the reading under which a set's matches agree with its cameras."""

from __future__ import annotations

from itertools import product

import numpy as np

from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches
from raymarch.geometry.pose_readings import READINGS, SAME, read_as, reading_in_words, turns
from raymarch.matching.epipolar import Sight, agreeing

MOST = 6000  # matches that are asked
CLEARLY = 0.25  # more of the matches that have to agree with another reading than with the poses as they are


def convention(poses: np.ndarray, matches: Matches, seen: Sight, near: np.ndarray) -> tuple[Finding | None, np.ndarray]:
    """Reading of the poses with which clearly more matches agree than as they are, or None; and the poses so read."""
    some = _some(len(matches))
    asked, sight, close = matches.take(some), Sight(*(part[some] for part in seen)), near[some]
    share = {}
    for name, turn in product(READINGS, turns()):
        key = name, tuple(turn.astype(int).ravel().tolist())
        share[key] = float(agreeing(read_as(poses, name, turn), asked, sight, close).mean())
    before = share["given", SAME]
    name, axes = max(share, key=share.__getitem__)
    after, turn = share[name, axes], np.reshape(axes, (3, 3))
    if after < before + CLEARLY:
        return None, poses
    code, what, cure = reading_in_words(name, turn)
    message = f"the poses {what}: so read {after:.0%} of the matches between images agree, as given {before:.0%}"
    return Finding(code, "error", message, cure), read_as(poses, name, turn)


def _some(count: int) -> np.ndarray:
    return np.linspace(0, count - 1, min(count, MOST)).astype(int)

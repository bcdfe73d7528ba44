"""Conventions of poses and order of images: the reading under which a set's matches agree with its cameras."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import numpy as np

from raymarch.diagnosis.epipolar import Sight, agreeing
from raymarch.diagnosis.finding import Finding
from raymarch.diagnosis.matches import Matches

MOST = 6000  # matches that are asked
CLEARLY = 0.25  # more of the matches that have to agree with another reading than with the poses as they are
SAME = (1, 0, 0, 0, 1, 0, 0, 0, 1)
OPENCV = (1, 0, 0, 0, -1, 0, 0, 0, -1)

NAMED = {
    ("given", OPENCV): ("opencv-poses", "are OpenCV's (y down, z forward)", "negate columns 1 and 2 of each rotation"),
    ("transposed", ()): ("transposed-rotations", "have their rotations transposed", "transpose each rotation"),
    ("transposed", OPENCV): (
        "transposed-rotations",
        "have their rotations transposed, and are OpenCV's (y down, z forward)",
        "transpose each rotation, then negate its columns 1 and 2",
    ),
    ("inverted", ()): ("world-to-camera", "are camera_from_world (world-to-camera)", "invert each matrix"),
    ("inverted", OPENCV): (
        "world-to-camera",
        "are camera_from_world (world-to-camera) in OpenCV's axes, as COLMAP's are",
        "invert each matrix, then negate columns 1 and 2 of its rotation",
    ),
}


def transposed(poses: np.ndarray) -> np.ndarray:
    """Poses (view, 4, 4) whose rotations are transposed, where they stand."""
    out = poses.copy()
    out[:, :3, :3] = poses[:, :3, :3].transpose(0, 2, 1)
    return out


READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "given": lambda poses: poses,
    "transposed": transposed,
    "inverted": np.linalg.inv,
}


def turns() -> Iterator[np.ndarray]:
    """The 24 rotations (3, 3) that take axes to axes, that which changes nothing first."""
    for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
        turn = np.zeros((3, 3))
        turn[range(3), order] = signs
        if np.linalg.det(turn) > 0:
            yield turn


def turned(poses: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Poses (view, 4, 4) whose cameras' axes are renamed."""
    out = poses.copy()
    out[:, :3, :3] = poses[:, :3, :3] @ turn
    return out


def convention(poses: np.ndarray, matches: Matches, seen: Sight, near: np.ndarray) -> tuple[Finding | None, np.ndarray]:
    """Reading of the poses with which clearly more matches agree than as they are, or None; and the poses so read."""
    some = _some(len(matches))
    asked, sight, close = matches.take(some), Sight(*(part[some] for part in seen)), near[some]
    share = {}
    for name, read in READINGS.items():
        read_poses = read(poses)
        for turn in turns():
            key = name, tuple(turn.astype(int).ravel().tolist())
            share[key] = float(agreeing(turned(read_poses, turn), asked, sight, close).mean())
    before = share["given", SAME]
    name, axes = max(share, key=share.__getitem__)
    after, turn = share[name, axes], np.reshape(axes, (3, 3))
    if after < before + CLEARLY:
        return None, poses
    code, what, cure = reading_in_words(name, turn)
    message = f"the poses {what}: so read {after:.0%} of the matches between images agree, as given {before:.0%}"
    return Finding(code, "error", message, cure), turned(READINGS[name](poses), turn.astype(float))


def reading_in_words(name: str, turn: np.ndarray) -> tuple[str, str, str]:
    """Code, fault (after "the poses") and cure of a reading: which of `READINGS`, and a turn of the camera's axes."""
    axes = tuple(turn.astype(int).ravel().tolist())
    return NAMED.get((name, () if axes == SAME else axes)) or _other(name, turn)


def _other(name: str, turn: np.ndarray) -> tuple[str, str, str]:
    """Words for a reading that has no name."""
    axes = [f"{'-' if value.sum() < 0 else ''}{'xyz'[int(np.abs(value).argmax())]}" for value in turn.T]
    first = {"given": "", "transposed": "transpose each rotation, then ", "inverted": "invert each matrix, then "}[name]
    code = {"given": "camera-axes", "transposed": "transposed-rotations", "inverted": "world-to-camera"}[name]
    order = ", ".join(axes)
    return code, f"have other camera axes ({name}, {order})", f"{first}make the rotation's columns its {order}"


def _some(count: int) -> np.ndarray:
    return np.linspace(0, count - 1, min(count, MOST)).astype(int)

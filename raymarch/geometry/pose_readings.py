"""Readings of poses: the conventions that a set's matrices may be of, and what to do to each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import numpy as np

OPENGL_AXES = (1, 0, 0, 0, 1, 0, 0, 0, 1)
OPENCV_AXES = (1, 0, 0, 0, -1, 0, 0, 0, -1)

NAMED_READINGS = {
    ("given", OPENCV_AXES): (
        "opencv-poses",
        "are OpenCV's (y down, z forward)",
        "negate columns 1 and 2 of each rotation",
    ),
    ("transposed", OPENGL_AXES): ("transposed-rotations", "have their rotations transposed", "transpose each rotation"),
    ("transposed", OPENCV_AXES): (
        "transposed-rotations",
        "have their rotations transposed, and are OpenCV's (y down, z forward)",
        "transpose each rotation, then negate its columns 1 and 2",
    ),
    ("inverted", OPENGL_AXES): ("world-to-camera", "are camera_from_world (world-to-camera)", "invert each matrix"),
    ("inverted", OPENCV_AXES): (
        "world-to-camera",
        "are camera_from_world (world-to-camera) in OpenCV's axes, as COLMAP's are",
        "invert each matrix, then negate columns 1 and 2 of its rotation",
    ),
}
USUAL_READINGS = (("given", OPENCV_AXES), ("inverted", OPENGL_AXES), ("inverted", OPENCV_AXES))


def transpose_rotations(poses: np.ndarray) -> np.ndarray:
    """Poses (view, 4, 4) whose rotations are transposed, where they stand."""
    out = poses.copy()
    out[:, :3, :3] = poses[:, :3, :3].transpose(0, 2, 1)
    return out


READINGS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "given": lambda poses: poses,
    "transposed": transpose_rotations,
    "inverted": np.linalg.inv,
}


def axis_rotations() -> Iterator[np.ndarray]:
    """The 24 rotations (3, 3) that take axes to axes, that which changes nothing first."""
    for order, signs in product(permutations(range(3)), product((1, -1), repeat=3)):
        turn = np.zeros((3, 3))
        turn[range(3), order] = signs
        if np.linalg.det(turn) > 0:
            yield turn


def read_as(poses: np.ndarray, name: str, turn: np.ndarray) -> np.ndarray:
    """Poses (view, 4, 4) in one of `READINGS`, their cameras' axes renamed by a turn (3, 3)."""
    out = np.array(READINGS[name](poses))
    out[:, :3, :3] = out[:, :3, :3] @ turn
    return out


def reading_text(name: str, turn: np.ndarray) -> tuple[str, str, str]:
    """Code, fault (after "the poses") and cure of a reading: which of `READINGS`, and a turn of the camera's axes."""
    axes = tuple(np.rint(turn).astype(int).ravel().tolist())
    return NAMED_READINGS.get((name, axes)) or _unnamed_reading(name, turn)


def _unnamed_reading(name: str, turn: np.ndarray) -> tuple[str, str, str]:
    """Words for a reading that has no name."""
    axes = [f"{'-' if value.sum() < 0 else ''}{'xyz'[int(np.abs(value).argmax())]}" for value in turn.T]
    first = {"given": "", "transposed": "transpose each rotation, then ", "inverted": "invert each matrix, then "}[name]
    code = {"given": "camera-axes", "transposed": "transposed-rotations", "inverted": "world-to-camera"}[name]
    order = ", ".join(axes)
    return code, f"have other camera axes ({name}, {order})", f"{first}make the rotation's columns its {order}"

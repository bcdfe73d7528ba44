"""Where cameras stand and look: other conventions, slips, and numbers that no camera has."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hostile_cases.case import FIT, Area
from hostile_cases.transforms import edited

area = Area("poses")


def moved(change: Callable[[np.ndarray], object], only: int | None = None):
    """Set up: each pose (4, 4), or one, as the function returns it."""

    def on(document: dict) -> None:
        for i, frame in enumerate(document["frames"]):
            if only in (None, i):
                frame["transform_matrix"] = np.asarray(change(np.array(frame["transform_matrix"]))).tolist()

    return edited(on)


def matrix(value, only: int = 2):
    """Set up: one frame's matrix as this, whatever it is."""
    return edited(lambda d: d["frames"][only].update(transform_matrix=value))


def _scaled(pose: np.ndarray, factor: float) -> np.ndarray:
    return pose @ np.diag([factor, factor, factor, 1])


def _sheared(pose: np.ndarray) -> np.ndarray:
    shear = np.eye(4)
    shear[0, 1] = 0.1
    return pose @ shear


def _at(pose: np.ndarray, x: float) -> np.ndarray:
    return np.vstack([np.column_stack([pose[:3, :3], [x, pose[1, 3], pose[2, 3]]]), pose[3:]])


def _far(pose: np.ndarray, distance: float) -> np.ndarray:
    """The world moved along x, so that all stays alike."""
    return pose + distance * np.outer(np.eye(4)[0], np.eye(4)[3])


def _shrunk(pose: np.ndarray, factor: float) -> np.ndarray:
    """The world scaled, cameras with it."""
    return np.vstack([np.column_stack([pose[:3, :3], factor * pose[:3, 3]]), pose[3:]])


def _few(count: int):
    return edited(lambda d: d.update(frames=d["frames"][:count]))


def _all_alike(document: dict) -> None:
    for frame in document["frames"]:
        frame["transform_matrix"] = document["frames"][0]["transform_matrix"]


def _twice(document: dict) -> None:
    document["frames"] = [*document["frames"], *document["frames"]]


def _swapped(document: dict) -> None:
    frames = document["frames"]
    poses = [frame["transform_matrix"] for frame in frames]
    for frame, pose in zip(frames, [*poses[6:], *poses[:6]], strict=True):
        frame["transform_matrix"] = pose


OPENCV, AWAY = np.diag([1.0, -1, -1, 1]), np.diag([-1.0, 1, -1, 1])
MIRROR = np.diag([-1.0, 1, 1, 1])


def refused(name: str, set_up, says: str, **more):
    """A fit that must name the frame or the cause."""
    return area.refused(name, FIT, says, set_up, **more)


def either(name: str, set_up, says: str, **more):
    """A fit that must work, or name the cause."""
    return area.either(name, FIT, says, set_up, makes=("out.h5",), **more)


def _scene_of_one(folder: Path) -> None:
    path = folder / "set/transforms_train.json"
    document = json.loads(path.read_text())
    document["frames"] = document["frames"][:1]
    path.write_text(json.dumps(document))


CASES = [
    refused("a matrix is missing", edited(lambda d: d["frames"][2].pop("transform_matrix")), "frame 2.*missing"),
    area.works("matrices of 3 rows", FIT, moved(lambda p: p[:3]), makes=("out.h5",)),
    refused("a matrix of 3 columns", matrix(np.eye(4)[:, :3].tolist()), "frame 2.*(4 rows|4, 4)"),
    refused("a matrix in one list of 16", matrix(np.eye(4).ravel().tolist()), "frame 2.*4 rows"),
    refused("a matrix of texts", matrix([["1"] * 4] * 4), "frame 2.*row 0"),
    refused("a matrix with null in it", matrix([[1, 0, 0, None], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]), "frame 2"),
    refused("a matrix of zeros", matrix(np.zeros((4, 4)).tolist()), "frame 2"),
    refused("a matrix of ones", matrix(np.ones((4, 4)).tolist()), "frame 2"),
    refused("a matrix of 1e308", matrix((1e308 * np.eye(4)).tolist()), "frame 2"),
    refused("a matrix written column by column", moved(np.transpose), "frame 0.*last row"),
    refused("mirrored poses", moved(lambda p: p @ MIRROR), "frame 0.*(mirror|left|determinant|-1)"),
    refused("poses with a scale of 2", moved(lambda p: _scaled(p, 2)), "frame 0.*(rigid|scale)"),
    refused("poses with a scale of 1.01", moved(lambda p: _scaled(p, 1.01)), "frame 0.*(rigid|scale)"),
    refused("poses with a shear", moved(_sheared), "frame 0.*(rigid|shear)"),
    refused("one pose with a scale", moved(lambda p: _scaled(p, 3), 5), "frame 5.*(rigid|scale)"),
    area.works("poses rounded to 6 digits", FIT, moved(lambda p: np.round(p, 6)), makes=("out.h5",)),
    refused(
        "OpenCV's axes (y down, looking along +z)", moved(lambda p: p @ OPENCV), "OpenCV|look away|looking away|axes"
    ),
    refused("all cameras look away", moved(lambda p: p @ AWAY), "look away|looks away|looking away|OpenCV"),
    either("one of twelve looks away", moved(lambda p: p @ AWAY, 4), "frame 4|r_4"),
    refused("camera_from_world instead of world_from_camera", moved(np.linalg.inv), "invert|look|poses|camera"),
    refused("one camera 1e30 away", moved(lambda p: _at(p, 1e30), 3), "frame 3|r_3"),
    refused("one camera 1e9 away", moved(lambda p: _at(p, 1e9), 3), "frame 3|r_3"),
    either("the scene 1e6 from the origin", moved(lambda p: _far(p, 1e6)), "1e\\+?0?6|origin|far|large|precision"),
    either("the scene in units of 1e-6", moved(lambda p: _shrunk(p, 1e-6)), "scale|thin|small"),
    either("the scene in units of 1e6", moved(lambda p: _shrunk(p, 1e6)), "scale|large"),
    refused("the scene in units of 1e30", moved(lambda p: _shrunk(p, 1e30)), "scale|large"),
    refused("all cameras at the origin", moved(lambda p: _shrunk(p, 0)), "one point|one place|same"),
    either("all cameras the same", edited(_all_alike), "same|alike|meet in no point"),
    either("every frame twice", edited(_twice), "twice|same"),
    either("the poses of other frames", edited(_swapped), "poses|agree"),
    either("one view only", _scene_of_one, "one view|view"),
    either("two views", _few(2), "views"),
]

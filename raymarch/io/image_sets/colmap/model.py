"""COLMAP model: cameras, images and points of a reconstruction, and where in a folder there are some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.image_sets.camera_models import CameraModel

MODEL_FOLDERS = [  # where models lie, seen from the set; of the first place that has any
    ("",),
    ("sparse/", "sparse/*/"),
    ("colmap/", "colmap/sparse/", "colmap/sparse/*/"),
    ("dense/", "dense/sparse/", "dense/*/sparse/"),
]
FILE_KINDS = ("bin", "txt")  # the first is taken where both are there
MAX_MODELS = 100  # that are looked at
EXPORT_MODEL_CURE = "export the COLMAP model again"


class ModelCamera(NamedTuple):
    """Camera of a COLMAP model: several images may share it.

    Attributes:
        model: which parameters it has.
        width, height: of images it takes [pixel].
        parameters: focal lengths, principal point and lens, in COLMAP's order.
    """

    model: CameraModel
    width: int
    height: int
    parameters: Sequence[float]


class ModelImage(NamedTuple):
    """Registered image of a COLMAP model.

    Attributes:
        name: its path in the folder of images.
        camera: the number of its camera.
        rotation: camera from world, as a quaternion w, x, y, z; camera axes x right, y down, z forward.
        translation: camera from world.
    """

    name: str
    camera: int
    rotation: Sequence[float]
    translation: Sequence[float]


class ModelPoints(NamedTuple):
    """Points of a COLMAP model: places (point, 3), mean reprojection errors [pixel], how many images see each, and the
    numbers of those images, one point's behind another's."""

    places: np.ndarray
    errors: np.ndarray
    tracks: np.ndarray
    images: np.ndarray


class ModelFiles(NamedTuple):
    """Files of a COLMAP model: where they are and the suffix that they have."""

    folder: Path
    kind: str

    def path(self, what: str) -> Path:
        return self.folder / f"{what}.{self.kind}"


def models_in(folder: Path) -> list[ModelFiles]:
    """Models with files of cameras and of images, in the first place of a folder that has any; 100 at most."""
    if not folder.is_dir():
        return []
    found = ([files for where in place for files in _models_at(folder, where)] for place in MODEL_FOLDERS)
    return next(filter(None, found), [])[:MAX_MODELS]


def _models_at(folder: Path, where: str) -> Iterator[ModelFiles]:
    seen = set()
    for kind in FILE_KINDS:
        for cameras in sorted(folder.glob(f"{where}cameras.{kind}")):
            files = ModelFiles(cameras.parent, kind)
            if files.folder not in seen and files.path("images").is_file() and cameras.is_file():
                seen.add(files.folder)
                yield files


def require_new(key: object, known: Mapping | set, what: str, where: str) -> None:
    """Uniqueness check of a number or name in a model: RaymarchError, opened by `where`, if it is known."""
    if key in known:
        raise RaymarchError(f"{where}: {what} {key} comes twice, want each once; {EXPORT_MODEL_CURE}")


def require_finite(values: Sequence[float], what: str, where: str) -> None:
    """Number check: RaymarchError, opened by `where`, for one that is not finite."""
    if not all(map(math.isfinite, values)):
        raise RaymarchError(f"{where}: {what} has a number that is not finite, want finite ones; {EXPORT_MODEL_CURE}")


def check_points(path: Path, numbers: np.ndarray, places: np.ndarray, *rest: np.ndarray) -> ModelPoints:
    """Points of a model; RaymarchError for numbers that are not finite, or one that stands for two points."""
    ordered = np.sort(numbers)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        require_new(int(twice[0]), {int(twice[0])}, "point", str(path))
    errors, tracks, images = rest
    bad = np.flatnonzero(~(np.isfinite(places).all(1) & np.isfinite(errors)))
    if len(bad):
        require_finite([np.nan], f"point {int(numbers[bad[0]])}", str(path))
    return ModelPoints(places, errors, tracks, images)


def world_from_camera(image: ModelImage, where: str) -> np.ndarray:
    """Pose (4, 4) of an image, with camera axes x right, y up, looking along -z; RaymarchError for no rotation.

    Example:
        >>> world_from_camera(ModelImage("a.png", 1, (1, 0, 0, 0), (0, 0, 2)), "image 1")[:3].tolist()
        [[1.0, 0.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [0.0, 0.0, -1.0, -2.0]]
    """
    quaternion = np.array(image.rotation, float)
    with np.errstate(over="ignore", under="ignore"):
        length = float(np.linalg.norm(quaternion))
    if not 1e-6 < length < 1e6:
        raise RaymarchError(f"{where}: quaternion has length {length:g}, want 1; {EXPORT_MODEL_CURE}")
    w, x, y, z = quaternion / length
    world_from_opencv = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
            [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
            [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    out = np.eye(4)
    out[:3, :3] = world_from_opencv * (1, -1, -1)
    out[:3, 3] = world_from_opencv @ -np.array(image.translation, float)
    return out + 0.0  # no -0

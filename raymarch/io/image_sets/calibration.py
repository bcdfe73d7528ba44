"""Calibrations as photogrammetry has them (OpenCV axes, matrices K and P), made cameras for images of any size."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.io.image_sets.intrinsics import sized

OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])  # camera axes of OpenCV: x right, y down, looking along z
SKEW = 0.01  # pixels that it moves the image's edge by, too few to say
MOST_SKEW = 0.5


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Context whose RaymarchErrors open with `where`.

    Example:
        >>> with naming("cameras.csv, line 3"):
        ...     Lens("thin")
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: cameras.csv, line 3: lens: model is 'thin', want ...
    """
    try:
        yield
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


@dataclass(frozen=True)
class Calibration:
    """Calibration of a camera: focal and principal point [pixel] of images of a size, and the lens.

    Attributes:
        focal, principal: the image's corner being (0, 0).
        size: (width, height) of the images that they are of; None: of those that are there.
        lens: a `Lens`, whose numbers know no pixels.

    Example:
        >>> half = Calibration((100, 100), (32, 24), (64, 48)).camera(np.eye(4), 32, 24, where="a.txt")
        >>> half.focal, half.principal
        ((50.0, 50.0), (16.0, 12.0))
    """

    focal: tuple[float, float]
    principal: tuple[float, float]
    size: tuple[float, float] | None = None
    lens: Lens = Lens()

    def camera(
        self, world_from_camera: np.ndarray, width: int, height: int, orientation: int = 1, *, where: str
    ) -> Camera:
        """Camera of an image of `width` x `height` pixels, once EXIF's orientation turned it; the numbers are scaled by
        what size it really has.

        Raises RaymarchError, opened by `where`, for another aspect, and for what no camera has.
        """
        full = self.size or (width, height)
        with naming(where):
            size = (width, height)
            return sized(world_from_camera, self.focal, self.principal, full, self.lens, size, where, orientation)


def of_matrix(matrix: np.ndarray, where: str, shift: float = 0.0) -> tuple[tuple[float, float], tuple[float, float]]:
    """Focal and principal point [pixel] of a calibration matrix K (3, 3), the latter moved by `shift`.

    `shift` is 0.5 where pixel centres lie at whole numbers. A camera of ours has no skew: what moves the image's edge
    by under half a pixel is left out, and said if it is a hundredth or more.

    Raises RaymarchError, opened by `where`, for more skew, and for a matrix that is none.

    Example:
        >>> of_matrix(np.array([[9, 0, 4], [0, 8, 3], [0, 0, 1]]), "a.txt", 0.5)
        ((9.0, 8.0), (4.5, 3.5))
    """
    if not (matrix[2, 2] > 0 and matrix[0, 0] > 0 and matrix[1, 1] > 0) or np.abs(matrix[[1, 2, 2], [0, 0, 1]]).any():
        raise RaymarchError(
            f"{where}: the calibration matrix is {np.round(matrix, 6).tolist()}, want [[fx, 0, cx], [0, fy, cy],"
            " [0, 0, 1]]; export it again"
        )
    matrix = matrix / matrix[2, 2]
    (fx, skew, cx), (_, fy, cy) = matrix[:2].tolist()
    moved = abs(skew / fy * cy)
    if moved > MOST_SKEW:
        raise RaymarchError(f"{where}: skew is {skew:.4g} pixels, want none; resample the images to square axes")
    if moved > SKEW:
        logging.getLogger("raymarch").warning("%s: skew of %.4g pixels is left out", where, skew)
    return (fx, fy), (cx + shift, cy + shift)


def of_projection(projection: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Calibration matrix K (3, 3) and `world_from_camera` (4, 4), axes of ours, of a projection P = K [R | t] (3, 4).

    Raises RaymarchError, opened by `where`, for a matrix that is no projection.

    Example:
        >>> matrix, pose = of_projection(np.array([[9, 0, 4, 0], [0, 8, 3, 0], [0, 0, 1, 5]]), "a.npz")
        >>> matrix.round(9).tolist(), pose[:3, 3].round(9).tolist()
        ([[9.0, 0.0, 4.0], [0.0, 8.0, 3.0], [0.0, 0.0, 1.0]], [2.222222222, 1.875, -5.0])
    """
    left = projection[:, :3]
    try:
        turned, upper = np.linalg.qr(left[::-1].T)  # the RQ of M is the QR of its transpose, upside down
        centre = -np.linalg.solve(left, projection[:, 3])
    except np.linalg.LinAlgError:
        raise RaymarchError(f"{where}: its first three columns have no inverse, want K R; export it again") from None
    matrix, rotation = upper.T[::-1, ::-1], turned.T[::-1]
    signs = np.sign(np.diag(matrix))
    matrix, rotation = matrix * signs, signs[:, None] * rotation
    if np.linalg.det(rotation) < 0:  # P is known but for its sign
        rotation = -rotation
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation.T, centre
    return np.triu(matrix / matrix[2, 2]), pose @ OPENCV

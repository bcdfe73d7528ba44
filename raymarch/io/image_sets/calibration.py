"""Calibrations: the intrinsics that a set has, made cameras for images of any size and of EXIF's orientation."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.io.image_sets.plausible_intrinsics import require_plausible
from raymarch.io.images.header import SIDEWAYS_ORIENTATIONS

CAMERA_FROM_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])  # camera axes of OpenCV: x right, y down, looking along z
MIN_SKEW, MAX_SKEW = 0.01, 0.5  # pixels that it moves the image's edge by: fewer are not said, more are refused
QUARTERS = {3: 2, 6: 1, 8: -1}  # EXIF's orientation: quarters of a turn to the right that make the image upright
MIRRORED = (2, 4, 5, 7)  # orientations whose upright image no camera of the one before shows


@contextmanager
def name_errors(where: str) -> Iterator[None]:
    """Context whose RaymarchErrors open with `where`.

    Example:
        >>> with name_errors("cameras.csv, line 3"):
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
        with name_errors(where):
            size = (width, height)
            return sized(world_from_camera, self.focal, self.principal, full, self.lens, size, where, orientation)


def sized(
    world_from_camera: np.ndarray,
    focal: Sequence[float],
    principal: Sequence[float],
    full: Sequence[float],
    lens: Lens,
    size: tuple[int, int],
    where: str,
    orientation: int = 1,
    sensor: bool = False,
) -> Camera:
    """Camera of an image, from intrinsics of the same image at another size.

    Args:
        world_from_camera: (4, 4) pose.
        focal, principal: [pixel] at the size that is `full`, (width, height).
        lens: of it, the same at any size.
        size: (width, height) of the image, smaller or larger than `full` by any factor, sides rounded as they may be.
        where: opens the messages.
        orientation: by which EXIF turned the image. Where `full` is its size before, as of programs that do not look at
            EXIF, the camera is turned with it.
        sensor: whether intrinsics are of the image before EXIF turned it where the sizes do not tell.

    Raises RaymarchError for intrinsics that no lens has, and an image of another shape.
    """
    wide, high = full
    before = stored_size(size, orientation)
    is_upright = tuple(full) == size != before
    if orientation != 1 and (sensor or not _alike(full, size)) and _alike(full, before) and not is_upright:
        if orientation in MIRRORED:
            raise RaymarchError(
                f"{where}: EXIF says that the image is mirrored ({orientation}), and its camera is of the one before;"
                " write the image without that tag"
            )
        if lens.spherical:
            raise RaymarchError(f"{where}: EXIF turns a panorama ({orientation}); write it upright without that tag")
        stored = sized(world_from_camera, focal, principal, full, lens, before, where)
        return turned_upright(stored, QUARTERS[orientation])
    if not _alike(full, size):
        lies = _alike(full, size[::-1])
        cure = "turn the image by a quarter or correct w, h" if lies else "resize the image or correct the numbers"
        raise RaymarchError(
            f"{where}: w x h is {wide:g} x {high:g} but the image has {size[0]} x {size[1]} pixels, another shape;"
            f" {cure}"
        )
    require_plausible(focal, principal, round(wide), round(high), where)
    x, y = size[0] / wide, size[1] / high  # 1 and 1 change no bit
    focal, principal = (focal[0] * x, focal[1] * y), (principal[0] * x, principal[1] * y)
    return Camera(world_from_camera, focal, principal, *size, lens)


def stored_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Size of an image before EXIF turned it to one of a size."""
    return size[::-1] if orientation in SIDEWAYS_ORIENTATIONS else size


def _alike(full: Sequence[float], size: Sequence[int]) -> bool:
    """Whether an image of one size may be one of the other made smaller or larger, its sides rounded."""
    wide, high = full
    return min(full) > 0 and abs(size[0] * high - size[1] * wide) <= wide + high


def turned_upright(camera: Camera, quarters: int) -> Camera:
    """Camera of an image that is turned to the right by a quarter or two, or by -1 to the left: the same rays.

    Example:
        >>> camera = turned_upright(Camera(np.eye(4), (9, 8), (3, 2), 8, 6), 1)
        >>> camera.focal, camera.principal, (camera.width, camera.height)
        ((8.0, 9.0), (4.0, 3.0), (6, 8))
    """
    if quarters == 2:
        return turned_upright(turned_upright(camera, 1), 1)
    right, up, back = camera.world_from_camera[:3, :3].T
    pose = camera.world_from_camera.copy()
    pose[:3, :3] = np.stack([quarters * up, -quarters * right, back], axis=1)
    (fx, fy), (cx, cy) = camera.focal, camera.principal
    principal = (camera.height - cy, cx) if quarters == 1 else (cy, camera.width - cx)
    return Camera(pose, (fy, fx), principal, camera.height, camera.width, _turned_lens(camera.lens, quarters))


def _turned_lens(lens: Lens, quarters: int) -> Lens:
    """Lens whose tangential part, which is along the vector (p2, p1), is turned; all else is round."""
    numbers = dict(zip(lens.names, lens.coefficients, strict=True))
    if "p1" in numbers:
        numbers["p1"], numbers["p2"] = quarters * numbers["p2"], -quarters * numbers["p1"]
    return replace(lens, coefficients=tuple(numbers.values()))


def calibration_of_matrix(
    matrix: np.ndarray, where: str, shift: float = 0.0
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Focal and principal point [pixel] of a calibration matrix K (3, 3), the latter moved by `shift`.

    `shift` is 0.5 where pixel centres lie at whole numbers. A camera of ours has no skew: what moves the image's edge
    by under half a pixel is left out, and said if it is a hundredth or more.

    Raises RaymarchError, opened by `where`, for more skew, and for a matrix that is none.

    Example:
        >>> calibration_of_matrix(np.array([[9, 0, 4], [0, 8, 3], [0, 0, 1]]), "a.txt", 0.5)
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
    if moved > MAX_SKEW:
        raise RaymarchError(f"{where}: skew is {skew:.4g} pixels, want none; resample the images to square axes")
    if moved > MIN_SKEW:
        logging.getLogger("raymarch").warning("%s: skew of %.4g pixels is left out", where, skew)
    return (fx, fy), (cx + shift, cy + shift)


def calibration_of_projection(projection: np.ndarray, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Calibration matrix K (3, 3) and `world_from_camera` (4, 4), axes of ours, of a projection P = K [R | t] (3, 4).

    Raises RaymarchError, opened by `where`, for a matrix that is no projection.

    Example:
        >>> matrix, pose = calibration_of_projection(np.array([[9, 0, 4, 0], [0, 8, 3, 0], [0, 0, 1, 5]]), "a.npz")
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
    return np.triu(matrix / matrix[2, 2]), pose @ CAMERA_FROM_OPENCV

"""Lenses as programs name them: COLMAP's camera models, and Brown's lens of photogrammetry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from raymarch.errors import RaymarchError, short_value
from raymarch.geometry.lens import Lens


class CameraModel(NamedTuple):
    """COLMAP camera model.

    Attributes:
        name: COLMAP's own.
        focals: how many focal lengths its parameters begin with, 1 or 2; cx and cy come next.
        lens: name of our lens.
        coefficients: for each of the lens's, its place behind cx and cy; None is 0.
        parameters: how many in all.
    """

    name: str
    focals: int
    lens: str
    coefficients: tuple[int | None, ...] = ()

    @property
    def parameters(self) -> int:
        return self.focals + 2 + sum(place is not None for place in self.coefficients)


COLMAP_MODELS = {  # by the number that stands for it in binary files
    0: CameraModel("SIMPLE_PINHOLE", 1, "pinhole"),
    1: CameraModel("PINHOLE", 2, "pinhole"),
    2: CameraModel("SIMPLE_RADIAL", 1, "simple_radial", (0,)),
    3: CameraModel("RADIAL", 1, "radial", (0, 1)),
    4: CameraModel("OPENCV", 2, "opencv", (0, 1, None, 2, 3)),
    5: CameraModel("OPENCV_FISHEYE", 2, "fisheye", (0, 1, 2, 3)),
    6: CameraModel("FULL_OPENCV", 2, "full_opencv", (0, 1, 4, 2, 3, 5, 6, 7)),
    7: CameraModel("FOV", 2, "fov", (0,)),
    8: CameraModel("SIMPLE_RADIAL_FISHEYE", 1, "fisheye", (0, None, None, None)),
    9: CameraModel("RADIAL_FISHEYE", 1, "fisheye", (0, 1, None, None)),
    17: CameraModel("EQUIRECTANGULAR", 0, "equirectangular"),  # whose two numbers are its width and height
}
UNREAD_COLMAP_MODELS = {  # what else COLMAP has, for messages
    10: "THIN_PRISM_FISHEYE",
    11: "RAD_TAN_THIN_PRISM_FISHEYE",
    12: "SIMPLE_DIVISION",
    13: "DIVISION",
    14: "SIMPLE_FISHEYE",
    15: "FISHEYE",
    16: "EUCM",
}
COLMAP_MODELS_BY_NAME = {model.name: model for model in COLMAP_MODELS.values()}
SPHERE_MODEL = COLMAP_MODELS[17].name
UNDISTORT_CURE = "undistort the images, as colmap image_undistorter does"
FLAT_MODELS = (
    "simple_radial",
    "radial",
    "opencv",
    "full_opencv",
    "radial8",
    "fov",
)  # without distortion where all numbers are 0


def camera_model(called: object, where: str) -> CameraModel:
    """COLMAP camera model of a number or a name; else RaymarchError, opened by `where`, that names it.

    Example:
        >>> camera_model(4, "camera 1").name
        'OPENCV'
    """
    found = COLMAP_MODELS.get(called) if isinstance(called, int) else COLMAP_MODELS_BY_NAME.get(str(called))
    if found is None:
        name = UNREAD_COLMAP_MODELS.get(called, f"number {called}") if isinstance(called, int) else short_value(called)
        raise RaymarchError(
            f"{where}: camera model {name} is not read, want one of {', '.join(COLMAP_MODELS_BY_NAME)}; "
            f"{UNDISTORT_CURE}"
        )
    return found


def focal_of_sphere(full: Sequence[float]) -> tuple[float, float]:
    """Focal lengths [pixel per radian] of an equirectangular image of all around, by its width and height [pixel].

    Example:
        >>> [round(focal, 3) for focal in focal_of_sphere((628, 314))]
        [99.949, 99.949]
    """
    return full[0] / (2 * math.pi), full[1] / math.pi


def lens_of(model: CameraModel, parameters: Sequence[float]) -> Lens:
    """Lens of a model's parameters, in COLMAP's order; a pinhole where nothing is distorted.

    Example:
        >>> lens_of(COLMAP_MODELS_BY_NAME["OPENCV"], (9, 9, 4, 3, 0.1, 0.2, 0.3, 0.4)).coefficients
        (0.1, 0.2, 0.0, 0.3, 0.4)
    """
    rest = parameters[model.focals + 2 :]
    return simplest_lens(model.lens, [0.0 if place is None else rest[place] for place in model.coefficients])


def brown_lens(radial: Sequence[float], tangential: Sequence[float]) -> Lens:
    """Brown's lens by k1, k2, k3, k4, of which the fourth is of r^8, and OpenCV's p1, p2.

    Example:
        >>> brown_lens((0.1, 0, 0, 0), (0, 0.2)).coefficients
        (0.1, 0.0, 0.0, 0.0, 0.2)
    """
    *three, k4 = radial
    return simplest_lens("radial8", (*radial, *tangential)) if k4 else simplest_lens("opencv", (*three, *tangential))


def simplest_lens(name: str, coefficients: Sequence[float]) -> Lens:
    """Lens of a name, or the pinhole that it is where nothing is distorted, which is marched faster.

    Example:
        >>> simplest_lens("radial", (0.0, 0.0)).model
        'pinhole'
    """
    if name in FLAT_MODELS and not any(coefficients):
        return Lens()
    if name == "fov":
        coefficients = [abs(one) for one in coefficients]  # of which the lens is an even function
    return Lens(name, tuple(coefficients))

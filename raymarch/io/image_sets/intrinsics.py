"""Cameras by the keys of `transforms*.json`, as Blender's exporters, instant-ngp and nerfstudio write them."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from raymarch.errors import RaymarchError, short
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.io.image_sets.frames import flag, matrix, number, require_plausible
from raymarch.io.images.header import MOST_PIXELS, SIDEWAYS
from raymarch.views.world_origin import moved_pose

# Camera models of COLMAP: which of their parameters are focal lengths, the principal point, the lens's numbers.


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


COLMAP = {  # by the number that stands for it in binary files
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
}
UNREAD_COLMAP_MODELS = {  # what else COLMAP has, for messages
    10: "THIN_PRISM_FISHEYE",
    11: "RAD_TAN_THIN_PRISM_FISHEYE",
    12: "SIMPLE_DIVISION",
    13: "DIVISION",
    14: "SIMPLE_FISHEYE",
    15: "FISHEYE",
    16: "EUCM",
    17: "EQUIRECTANGULAR",
}
BY_NAME = {model.name: model for model in COLMAP.values()}
UNDISTORT = "undistort the images, as colmap image_undistorter does"
FLAT = (
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
    found = COLMAP.get(called) if isinstance(called, int) else BY_NAME.get(str(called))
    if found is None:
        name = UNREAD_COLMAP_MODELS.get(called, f"number {called}") if isinstance(called, int) else short(called)
        raise RaymarchError(f"{where}: camera model {name} is not read, want one of {', '.join(BY_NAME)}; {UNDISTORT}")
    return found


def lens_of(model: CameraModel, parameters: Sequence[float]) -> Lens:
    """Lens of a model's parameters, in COLMAP's order; a pinhole where nothing is distorted.

    Example:
        >>> lens_of(BY_NAME["OPENCV"], (9, 9, 4, 3, 0.1, 0.2, 0.3, 0.4)).coefficients
        (0.1, 0.2, 0.0, 0.3, 0.4)
    """
    rest = parameters[model.focals + 2 :]
    return simplest(model.lens, [0.0 if place is None else rest[place] for place in model.coefficients])


def brown(radial: Sequence[float], tangential: Sequence[float]) -> Lens:
    """Brown's lens by k1, k2, k3, k4, of which the fourth is of r^8, and OpenCV's p1, p2.

    Example:
        >>> brown((0.1, 0, 0, 0), (0, 0.2)).coefficients
        (0.1, 0.0, 0.0, 0.0, 0.2)
    """
    *three, k4 = radial
    return simplest("radial8", (*radial, *tangential)) if k4 else simplest("opencv", (*three, *tangential))


def simplest(name: str, coefficients: Sequence[float]) -> Lens:
    """Lens of a name, or the pinhole that it is where nothing is distorted, which is marched faster.

    Example:
        >>> simplest("radial", (0.0, 0.0)).model
        'pinhole'
    """
    if name in FLAT and not any(coefficients):
        return Lens()
    if name == "fov":
        coefficients = [abs(one) for one in coefficients]  # of which the lens is an even function
    return Lens(name, tuple(coefficients))


# Cameras of images as a sensor took them, turned to the images as EXIF says that they are upright.

QUARTERS = {3: 2, 6: 1, 8: -1}  # EXIF's orientation: quarters of a turn to the right that make the image upright
MIRRORED = (2, 4, 5, 7)  # orientations whose upright image no camera of the one before shows


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


DISTORTION = ("k1", "k2", "k3", "k4", "p1", "p2")
PERSPECTIVE = ("PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV")
FISHEYE = "OPENCV_FISHEYE"
FEWER = {"SIMPLE_RADIAL": ("simple_radial", 1), "RADIAL": ("radial", 2)}  # lenses that have the first k alone
FOCALS = ("{}_fov", "fl_{}", "camera_angle_{}")  # the first that is there counts
UNREAD_LENSES = ("ftheta_p0", "latlong", "equirectangular", "orthographic")  # lenses of instant-ngp's
OTHER_TERMS = ("k5", "k6", "p3", "p4", "s1", "s2", "s3", "s4", "b1", "b2", "skew")  # of lenses elsewhere
CROP = "fisheye_crop_radius"  # of nerfstudio's
AXES = {"from_na": (1, -1, -1), "from_mitsuba": (-1, 1, -1)}  # what camera axes are times ours, other than OpenGL's


def camera_by_keys(
    settings: ChainMap[str, Any], width: int, height: int, orientation: int = 1, *, where: str,
    origin: np.ndarray | None = None,
) -> Camera:  # fmt: skip
    """Camera of a frame by the keys of its file.

    Args:
        settings: the frame's keys over the file's: `transform_matrix`, which is `world_from_camera` with camera axes
            x right, y up, looking along -z; `x_fov` [degree] or `fl_x` [pixel] or `camera_angle_x` [radian], the first
            of them in the frame, else in the file, the same with y, and one for both if the other is missing; `cx`,
            `cy` [pixel], the middle if missing; `k1` to `k4`, `p1`, `p2` or `distortion_params` in this order;
            `camera_model` or `is_fisheye`; `w`, `h` [pixel] of the image that these are of, if not of this one as its
            file stores it.
        width, height: of its image [pixel], once upright.
        orientation: by which EXIF turned that, as of `sized`, with `sensor`: instant-ngp and nerfstudio do not look at
            EXIF.
        where: opens every message.
        origin: as of `new_origin`.

    Raises RaymarchError for a number that is missing, none, or that no lens has, and a lens that is not read.

    Example:
        >>> settings = ChainMap({"transform_matrix": np.eye(4).tolist()}, {"fl_x": 18, "w": 16, "h": 12})
        >>> camera_by_keys(settings, 8, 6, where="frame 0").focal
        (9.0, 9.0)
    """
    lens = _lens(settings, where)
    stored = _stored((width, height), orientation)
    full = [number(settings.get(name, size), f"{where}: {name}") for name, size in zip("wh", stored, strict=True)]
    pose = moved_pose(pose_by_keys(settings, where), origin)
    try:
        focal = _focal(settings, full, where)
        principal = [
            number(settings.get(f"c{a}", size / 2), f"{where}: c{a}") for a, size in zip("xy", full, strict=True)
        ]
        return sized(pose, focal, principal, full, lens, (width, height), where, orientation, sensor=True)
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(where) else f"{where}: {text}") from None


def size_by_keys(settings: Mapping[str, Any], where: str) -> tuple[float, float] | None:
    """Size (width, height) [pixel] of a frame's image by the keys of its file, None where they do not say it.

    Raises RaymarchError for sizes that no image has.

    Example:
        >>> size_by_keys({"w": 64, "h": 48}, "frame 0")
        (64.0, 48.0)
    """
    if settings.get("w") is None or settings.get("h") is None:
        return None
    width, height = (number(settings[name], f"{where}: {name}") for name in "wh")
    if not (1 <= width <= MOST_PIXELS and 1 <= height <= MOST_PIXELS and width * height <= MOST_PIXELS):
        raise RaymarchError(f"{where}: w x h is {width:g} x {height:g}, want the size of an image; correct them")
    return width, height


def crop_radius(settings: Mapping[str, Any], width: int, height: int, where: str) -> float:
    """Radius [pixel] within which the pixels of an image `width` x `height` count, by the key `fisheye_crop_radius`.

    It is of the image that `w`, `h` are of, as of `camera_by_keys`. Raises RaymarchError where it is not positive.

    Example:
        >>> crop_radius({"fisheye_crop_radius": 6, "w": 16, "h": 12}, 8, 6, "frame 0")
        3.0
    """
    radius = number(settings.get(CROP), f"{where}: {CROP}")
    if not radius > 0:
        raise RaymarchError(f"{where}: {CROP} is {radius:g} pixels, want a positive number; correct it or take it out")
    full = [number(settings.get(name, size), f"{where}: {name}") for name, size in (("w", width), ("h", height))]
    return radius * math.hypot(width, height) / math.hypot(*full)


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
    before = _stored(size, orientation)
    is_upright = tuple(full) == size != before
    if orientation != 1 and (sensor or not _alike(full, size)) and _alike(full, before) and not is_upright:
        if orientation in MIRRORED:
            raise RaymarchError(
                f"{where}: EXIF says that the image is mirrored ({orientation}), and its camera is of the one before;"
                " write the image without that tag"
            )
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


def _stored(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Size of an image before EXIF turned it to one of a size."""
    return size[::-1] if orientation in SIDEWAYS else size


def _alike(full: Sequence[float], size: Sequence[int]) -> bool:
    """Whether an image of one size may be one of the other made smaller or larger, its sides rounded."""
    wide, high = full
    return min(full) > 0 and abs(size[0] * high - size[1] * wide) <= wide + high


def _focal(settings: ChainMap[str, Any], full: Sequence[float], where: str) -> tuple[float, float]:
    """Focal lengths [pixel], one for both where only one is told."""
    keys = [kind.format(axis) for axis in "xy" for kind in FOCALS]
    level = next((level for level in settings.maps if any(key in level for key in keys)), settings.maps[-1])
    found = [_focal_along(axis, level, size, where) for axis, size in zip("xy", full, strict=True)]
    if found == [None, None]:
        raise RaymarchError(f"{where}: camera_angle_x is missing, want it, fl_x or x_fov; export it again")
    across, down = found
    return (across if across is not None else down), (down if down is not None else across)  # type: ignore[return-value]


def _focal_along(axis: str, level: Mapping[str, Any], size: float, where: str) -> float | None:
    degrees, pixels, radians = (kind.format(axis) for kind in FOCALS)
    if degrees in level:
        angle = np.deg2rad(number(level[degrees], f"{where}: {degrees}"))
    elif pixels in level:
        return number(level[pixels], f"{where}: {pixels}")
    elif radians in level:
        angle = number(level[radians], f"{where}: {radians}")
        if np.pi < angle < 180:
            raise RaymarchError(
                f"{where}: {radians} is {angle:g} rad, want less than pi; if it is in degrees, {np.deg2rad(angle):.4g}"
            )
    else:
        return None
    if not 0 < angle < np.pi:
        key = degrees if degrees in level else radians
        raise RaymarchError(
            f"{where}: {key} is {level[key]:g}, want a field of view between 0 and 180 degrees; correct it"
        )
    return float(0.5 * size / np.tan(0.5 * angle))


def pose_by_keys(settings: Mapping[str, Any], where: str) -> np.ndarray:
    """Pose (4, 4) with our camera axes; amid the two of a rolling shutter, which is not modelled."""
    both = [f"transform_matrix_{end}" for end in ("start", "end")]
    if "transform_matrix" in settings or not all(name in settings for name in both):
        pose = matrix(settings.get("transform_matrix"), f"{where}: transform_matrix")
    else:
        pose = np.mean([matrix(settings[name], f"{where}: {name}") for name in both], axis=0)
        left, _, right = np.linalg.svd(pose[:3, :3])
        pose[:3, :3] = left @ right
    for key, axes in AXES.items():
        if flag(settings.get(key), f"{where}: {key}"):
            pose[:3, :3] *= axes
    return pose


def is_fisheye(settings: Mapping[str, Any], where: str) -> bool:
    """Test of a frame's lens by the keys of its file: whether it is a fisheye; RaymarchError for a flag that is none.

    Example:
        >>> is_fisheye({"camera_model": "OPENCV_FISHEYE"}, "frame 0")
        True
    """
    return flag(settings.get("is_fisheye"), f"{where}: is_fisheye") or settings.get("camera_model") == FISHEYE


def _lens(settings: ChainMap[str, Any], where: str) -> Lens:
    for name in UNREAD_LENSES:
        if settings.get(name):
            raise RaymarchError(f"{where}: the lens {name.removesuffix('_p0')} is not read; {UNDISTORT}")
    for name in OTHER_TERMS:
        if settings.get(name) and number(settings[name], f"{where}: {name}"):
            term = f"{name} is {short(settings[name])}, a term of a lens that is not read"
            raise RaymarchError(f"{where}: {term}; {UNDISTORT}")
    fisheye = is_fisheye(settings, where)
    model = settings.get("camera_model", PERSPECTIVE[-1])
    if model not in (*PERSPECTIVE, FISHEYE):
        wanted = ", ".join([*PERSPECTIVE, FISHEYE])
        raise RaymarchError(f"{where}: camera_model is {short(model)}, want {wanted}; {UNDISTORT}")
    values = _distortion(settings, where)
    k, p = values[:4], values[4:]
    if fisheye:
        if any(p):
            raise RaymarchError(f"{where}: a fisheye lens with p1, p2 of {p[0]:g}, {p[1]:g} is not read; {UNDISTORT}")
        return Lens("fisheye", tuple(k))
    name, count = FEWER.get(model, ("", 0))
    if count and not any(values[count:]):
        return simplest(name, values[:count])
    return brown(k, p)


def _distortion(settings: ChainMap[str, Any], where: str) -> list[float]:
    """k1, k2, k3, k4, p1, p2, 0 where missing; the fourth is of r^8 unless the lens is a fisheye."""
    listed = settings.get("distortion_params")
    if listed is None:
        return [number(settings.get(name, 0.0), f"{where}: {name}") for name in DISTORTION]
    if not isinstance(listed, list) or len(listed) != len(DISTORTION):
        wanted = f"the {len(DISTORTION)} numbers {', '.join(DISTORTION)}"
        raise RaymarchError(f"{where}: distortion_params is {short(listed)}, want {wanted}; export it again")
    return [number(value, f"{where}: distortion_params") for value in listed]

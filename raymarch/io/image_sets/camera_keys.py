"""Cameras by the keys of `transforms*.json`, as Blender's exporters, instant-ngp and nerfstudio write them."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, short_value
from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens
from raymarch.io.image_sets.calibration import name_errors, sized, stored_size
from raymarch.io.image_sets.camera_models import (
    SPHERE_MODEL,
    UNDISTORT_CURE,
    brown_lens,
    focal_of_sphere,
    simplest_lens,
)
from raymarch.io.image_sets.json_values import read_flag, read_matrix, read_number
from raymarch.io.images.header import MAX_PIXELS
from raymarch.views.world_origin import moved_pose

DISTORTION_KEYS = ("k1", "k2", "k3", "k4", "p1", "p2")
PERSPECTIVE_MODELS = ("PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV")
FISHEYE_MODEL = "OPENCV_FISHEYE"
RADIAL_TERMS = {"SIMPLE_RADIAL": ("simple_radial", 1), "RADIAL": ("radial", 2)}  # lenses that have the first k alone
FOCAL_KEYS = ("{}_fov", "fl_{}", "camera_angle_{}")  # the first that is there counts
UNREAD_LENSES = ("ftheta_p0", "latlong", "equirectangular", "orthographic")  # lenses of instant-ngp's
UNREAD_TERMS = ("k5", "k6", "p3", "p4", "s1", "s2", "s3", "s4", "b1", "b2", "skew")  # of lenses elsewhere
CROP_KEY = "fisheye_crop_radius"  # of nerfstudio's
# what camera axes are times ours, other than OpenGL's
AXIS_SIGNS = {"from_na": (1, -1, -1), "from_mitsuba": (-1, 1, -1)}


def camera_by_keys(
    settings: ChainMap[str, Any],
    width: int,
    height: int,
    orientation: int = 1,
    *,
    where: str,
    origin: np.ndarray | None = None,
) -> Camera:
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
    stored = stored_size((width, height), orientation)
    full = [read_number(settings.get(name, size), f"{where}: {name}") for name, size in zip("wh", stored, strict=True)]
    pose = moved_pose(pose_by_keys(settings, where), origin)
    with name_errors(where):
        if lens.spherical:  # of all around, whatever focal length is there
            middle = [size / 2 for size in full]
            return sized(pose, focal_of_sphere(full), middle, full, lens, (width, height), where, orientation)
        focal = _focal(settings, full, where)
        centre = [
            read_number(settings.get(f"c{a}", size / 2), f"{where}: c{a}") for a, size in zip("xy", full, strict=True)
        ]
        return sized(pose, focal, centre, full, lens, (width, height), where, orientation, sensor=True)


def pose_by_keys(settings: Mapping[str, Any], where: str) -> np.ndarray:
    """Pose (4, 4) with our camera axes; amid the two of a rolling shutter, which is not modelled."""
    both = [f"transform_matrix_{end}" for end in ("start", "end")]
    if "transform_matrix" in settings or not all(name in settings for name in both):
        pose = read_matrix(settings.get("transform_matrix"), f"{where}: transform_matrix")
    else:
        pose = np.mean([read_matrix(settings[name], f"{where}: {name}") for name in both], axis=0)
        left, _, right = np.linalg.svd(pose[:3, :3])
        pose[:3, :3] = left @ right
    for key, axes in AXIS_SIGNS.items():
        if read_flag(settings.get(key), f"{where}: {key}"):
            pose[:3, :3] *= axes
    return pose


def _focal(settings: ChainMap[str, Any], full: Sequence[float], where: str) -> tuple[float, float]:
    """Focal lengths [pixel], one for both where only one is told."""
    keys = [kind.format(axis) for axis in "xy" for kind in FOCAL_KEYS]
    level = next((level for level in settings.maps if any(key in level for key in keys)), settings.maps[-1])
    found = [_focal_along(axis, level, size, where) for axis, size in zip("xy", full, strict=True)]
    if found == [None, None]:
        raise RaymarchError(f"{where}: camera_angle_x is missing, want it, fl_x or x_fov; export it again")
    across, down = found
    return (across if across is not None else down), (down if down is not None else across)  # type: ignore[return-value]


def _focal_along(axis: str, level: Mapping[str, Any], size: float, where: str) -> float | None:
    degrees, pixels, radians = (kind.format(axis) for kind in FOCAL_KEYS)
    if degrees in level:
        angle = np.deg2rad(read_number(level[degrees], f"{where}: {degrees}"))
    elif pixels in level:
        return read_number(level[pixels], f"{where}: {pixels}")
    elif radians in level:
        angle = read_number(level[radians], f"{where}: {radians}")
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


def is_fisheye(settings: Mapping[str, Any], where: str) -> bool:
    """Test of a frame's lens by the keys of its file: whether it is a fisheye; RaymarchError for a flag that is none.

    Example:
        >>> is_fisheye({"camera_model": "OPENCV_FISHEYE"}, "frame 0")
        True
    """
    return (
        read_flag(settings.get("is_fisheye"), f"{where}: is_fisheye") or settings.get("camera_model") == FISHEYE_MODEL
    )


def _lens(settings: ChainMap[str, Any], where: str) -> Lens:
    for name in UNREAD_LENSES:
        if settings.get(name):
            raise RaymarchError(f"{where}: the lens {name.removesuffix('_p0')} is not read; {UNDISTORT_CURE}")
    for name in UNREAD_TERMS:
        if settings.get(name) and read_number(settings[name], f"{where}: {name}"):
            term = f"{name} is {short_value(settings[name])}, a term of a lens that is not read"
            raise RaymarchError(f"{where}: {term}; {UNDISTORT_CURE}")
    fisheye = is_fisheye(settings, where)
    model = settings.get("camera_model", PERSPECTIVE_MODELS[-1])
    if model == SPHERE_MODEL:
        return Lens("equirectangular")
    if model not in (*PERSPECTIVE_MODELS, FISHEYE_MODEL):
        wanted = ", ".join([*PERSPECTIVE_MODELS, FISHEYE_MODEL, SPHERE_MODEL])
        raise RaymarchError(f"{where}: camera_model is {short_value(model)}, want {wanted}; {UNDISTORT_CURE}")
    values = _distortion(settings, where)
    k, p = values[:4], values[4:]
    if fisheye:
        if any(p):
            raise RaymarchError(
                f"{where}: a fisheye lens with p1, p2 of {p[0]:g}, {p[1]:g} is not read; {UNDISTORT_CURE}"
            )
        return Lens("fisheye", tuple(k))
    name, count = RADIAL_TERMS.get(model, ("", 0))
    if count and not any(values[count:]):
        return simplest_lens(name, values[:count])
    return brown_lens(k, p)


def _distortion(settings: ChainMap[str, Any], where: str) -> list[float]:
    """k1, k2, k3, k4, p1, p2, 0 where missing; the fourth is of r^8 unless the lens is a fisheye."""
    listed = settings.get("distortion_params")
    if listed is None:
        return [read_number(settings.get(name, 0.0), f"{where}: {name}") for name in DISTORTION_KEYS]
    if not isinstance(listed, list) or len(listed) != len(DISTORTION_KEYS):
        wanted = f"the {len(DISTORTION_KEYS)} numbers {', '.join(DISTORTION_KEYS)}"
        raise RaymarchError(f"{where}: distortion_params is {short_value(listed)}, want {wanted}; export it again")
    return [read_number(value, f"{where}: distortion_params") for value in listed]


def size_by_keys(settings: Mapping[str, Any], where: str) -> tuple[float, float] | None:
    """Size (width, height) [pixel] of a frame's image by the keys of its file, None where they do not say it.

    Raises RaymarchError for sizes that no image has.

    Example:
        >>> size_by_keys({"w": 64, "h": 48}, "frame 0")
        (64.0, 48.0)
    """
    if settings.get("w") is None or settings.get("h") is None:
        return None
    width, height = (read_number(settings[name], f"{where}: {name}") for name in "wh")
    if not (1 <= width <= MAX_PIXELS and 1 <= height <= MAX_PIXELS and width * height <= MAX_PIXELS):
        raise RaymarchError(f"{where}: w x h is {width:g} x {height:g}, want the size of an image; correct them")
    return width, height


def crop_radius(settings: Mapping[str, Any], width: int, height: int, where: str) -> float:
    """Radius [pixel] within which the pixels of an image `width` x `height` count, by the key `fisheye_crop_radius`.

    It is of the image that `w`, `h` are of, as of `camera_by_keys`. Raises RaymarchError where it is not positive.

    Example:
        >>> crop_radius({"fisheye_crop_radius": 6, "w": 16, "h": 12}, 8, 6, "frame 0")
        3.0
    """
    radius = read_number(settings.get(CROP_KEY), f"{where}: {CROP_KEY}")
    if not radius > 0:
        raise RaymarchError(
            f"{where}: {CROP_KEY} is {radius:g} pixels, want a positive number; correct it or take it out"
        )
    full = [read_number(settings.get(name, size), f"{where}: {name}") for name, size in (("w", width), ("h", height))]
    return radius * math.hypot(width, height) / math.hypot(*full)

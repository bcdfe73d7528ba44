"""Camera paths as JSON files: keys, as the viewer saves them, or the frames of nerfstudio's camera_path.json."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from raymarch.arguments.checks import flag, number, optional, path
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, short_value
from raymarch.geometry.camera import PIXELS_A_SIDE, Camera
from raymarch.geometry.camera_path import COUNT, path_through
from raymarch.geometry.pose import POSITION
from raymarch.io.files.strict import parse_json, read_json

ANGLE = number(0, 180, above=True, below=True, unit="degree")
DEFAULT_SIDE = 512  # pixels a side, where a key does not say
DEFAULT_FRAMES = 120  # through keys, where no count is given
FOREIGN_KEYS = {  # keys of paths that other programs save, and what to do
    "path": ("instant-ngp's path, in its unit cube, and is not read", "turn about and save one in raymarch view"),
    "trajectory": ("Open3D's trajectory, and is not read", "write its cameras as transforms.json, for --views"),
    "frames": ("a transforms.json of cameras and no path", "give its folder to --views, with --path cameras"),
}
UNREAD_KEYS = ("crop", "render_time", "time")  # keys of nerfstudio's that bear on its pictures alone


@checked(path=path, count=optional(COUNT), closed=flag)
def load_camera_path(path: str | os.PathLike[str], count: int | None = None, *, closed: bool = False) -> list[Camera]:
    """Camera path of `count` frames through the keys of a JSON file, smooth and at constant speed, as `path_through`.

    If not given, `count` is 120 through keys, and of nerfstudio's path as many as it has.

    The file is a list, or has one as "cameras", of two or more keys {"position": [x, y, z], "target": [x, y, z], "up":
    [x, y, z], "fov": degree}, in world units and the horizontal field of view; "orthographic": true for parallel rays,
    of an image as wide as the pinhole's at the target; "width" and "height" [pixel], else 512. What else a key has is
    passed over. Between keys the path turns about the targets; `closed`, it leads back to the first key.

    Of nerfstudio's `camera_path.json` the frames of "camera_path" are the path: "camera_to_world" (16 numbers) and the
    vertical "fov" [degree] of each, "render_width" and "render_height"; of another count than they are the nearest is
    taken. Its world is that of the training, which the log says.

    Raises RaymarchError that names the file and the key for what cannot be read, and as `path_through` does.

    Example:
        >>> keys = [{"position": [4, y, 1], "target": [0, y, 0], "up": [0, 0, 1], "fov": 40} for y in (0, 1, 3)]
        >>> import json
        >>> _ = Path("flight.json").write_text(json.dumps(keys))
        >>> load_camera_path("flight.json", 60)[-1].position.round(6).tolist()
        [4.0, 3.0, 1.0]
    """
    keys = read_json(path)
    if isinstance(keys, dict) and ("camera_path" in keys or "keyframes" in keys):
        try:
            return _nerfstudio_cameras(keys, path, count, closed)
        except RaymarchError as error:
            raise RaymarchError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from None
    if isinstance(keys, dict) and "cameras" in keys:
        size = {name: keys[name] for name in ("width", "height") if name in keys}
        several = keys["cameras"] if isinstance(keys["cameras"], list) else []
        keys = [{**size, **key} if isinstance(key, dict) else key for key in several]
    if not isinstance(keys, list) or len(keys) < 2:
        for key, (what, cure) in FOREIGN_KEYS.items() if isinstance(keys, dict) else ():
            if key in keys:
                raise RaymarchError(f"{path}: is {what}; {cure}")
        came = f"a list of {len(keys)}" if isinstance(keys, list) else f"a {type(keys).__name__}"
        cure = "keep two or more under Path in raymarch view and save them there"
        raise RaymarchError(f"{path}: is {came}, want a list of two or more keys, or nerfstudio's path; {cure}")
    try:
        cameras = [_camera(i, key) for i, key in enumerate(keys)]
        targets = np.array([key["target"] for key in keys], float)
        return path_through(cameras, count or DEFAULT_FRAMES, closed=closed, about=targets)
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None


def _camera(i: int, key: Any) -> Camera:
    """Camera of the i-th key; else RaymarchError."""
    if not isinstance(key, dict):
        raise RaymarchError(f"key {i} is a {type(key).__name__}, want a mapping with position, target, up and fov")
    if "target" not in key and ("rotation" in key or "wxyz" in key):
        name = "rotation" if "rotation" in key else "wxyz"
        others = " as in the cameras.json of Gaussian splatting" if name == "rotation" else " as in viser"
        raise RaymarchError(
            f"key {i} has a {name} in place of a target,{others}, which is not read; of its rotation matrix R, whose"
            " columns are right, down and ahead, write target = position + R[:, 2], up = -R[:, 1] and fov [degree]"
        )
    for name in ("position", "target", "up", "fov"):
        if name not in key:
            raise RaymarchError(f"key {i} has no {name}, want position, target, up and fov; add it")
    of = f"key {i}:"
    eye, target, up = (POSITION(f"{of} {name}", key[name]) for name in ("position", "target", "up"))
    fov = np.deg2rad(ANGLE(f"{of} fov", key["fov"]))
    width, height = (PIXELS_A_SIDE(f"{of} {name}", key.get(name, DEFAULT_SIDE)) for name in ("width", "height"))
    if flag(f"{of} orthographic", key.get("orthographic", False)):
        across = 2 * float(np.linalg.norm(np.subtract(eye, target)) * np.tan(fov / 2))
        return Camera.orthographic(eye, target, up, size=across, width=width, height=height)
    return Camera.look_at(eye, target, up, fov=fov, width=width, height=height)


def _nerfstudio_cameras(document: dict[str, Any], path: object, count: int | None, closed: bool) -> list[Camera]:
    """Frames of nerfstudio's path; of its keyframes alone, a path through them."""
    _require_perspective(document, "")
    width, height = (
        PIXELS_A_SIDE(f"render_{name}", document.get(f"render_{name}", DEFAULT_SIDE)) for name in ("width", "height")
    )
    listed = document.get("camera_path") or document.get("keyframes")
    if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
        raise RaymarchError(
            f"camera_path is {short_value(listed)}, want a list of frames; save it in nerfstudio's viewer again"
        )
    usual = document.get("default_fov", 50.0)
    cameras = [_camera_of_frame(i, frame, usual, width, height) for i, frame in enumerate(listed)]
    log = logging.getLogger("raymarch")
    rate = document.get("fps")
    pace = f"; it runs at {rate:g} frames a second, --fps {rate:g}" if isinstance(rate, (int, float)) else ""
    log.warning(
        "%s: nerfstudio's paths are in the world of its training, which it turns, centres and scales unless trained"
        " with --orientation-method none --center-method none --auto-scale-poses False%s",
        path,
        pace,
    )
    if some := [key for key in UNREAD_KEYS if document.get(key)]:
        log.warning("%s: %s of the path is not read; --clip-box cuts a volume", path, ", ".join(some))
    if not document.get("camera_path"):
        return path_through(cameras, count or DEFAULT_FRAMES, closed=closed)
    if count is None or count == len(cameras):
        return cameras
    return [cameras[round(i)] for i in np.linspace(0, len(cameras) - 1, count)]


def _require_perspective(of: dict[str, Any], where: str) -> None:
    """RaymarchError for a camera of nerfstudio's that is no pinhole."""
    kind = of.get("camera_type", "perspective")
    if kind != "perspective":
        raise RaymarchError(
            f"{where}camera_type {short_value(kind)} is not rendered, want perspective; save the path as that"
        )


def _camera_of_frame(i: int, frame: dict[str, Any], usual: object, width: int, height: int) -> Camera:
    """Camera of a frame, whose matrix is row by row, or column by column as three.js has it."""
    _require_perspective(frame, f"frame {i}: ")
    key = "camera_to_world" if "camera_to_world" in frame else "matrix"
    numbers = frame.get(key)
    if isinstance(numbers, str):  # as older versions have it
        numbers = parse_json(numbers, f"frame {i}: {key}")
    if isinstance(numbers, list) and len(numbers) in (3, 4) and all(isinstance(row, list) for row in numbers):
        numbers = [number for row in numbers for number in row]
    if isinstance(numbers, list) and len(numbers) == 12:
        numbers = [*numbers, 0, 0, 0, 1]
    if not isinstance(numbers, list) or len(numbers) != 16:
        raise RaymarchError(f"frame {i}: {key} is {short_value(numbers)}, want 16 numbers; save the path again")
    matrix = np.reshape(_numbers(numbers, f"frame {i}: {key}"), (4, 4))
    by_columns = matrix[3, :3].any() and not matrix[:3, 3].any()
    pose = matrix.T if by_columns else matrix
    fov = np.deg2rad(ANGLE(f"frame {i}: fov", frame.get("fov", usual)))
    focal = 0.5 * height / np.tan(0.5 * fov)
    try:
        return Camera(pose, (focal, focal), (width / 2, height / 2), width, height)
    except RaymarchError as error:
        raise RaymarchError(f"frame {i}: {error}") from None


def _numbers(values: Sequence[Any], where: str) -> list[float]:
    wrong = [value for value in values if isinstance(value, bool) or not isinstance(value, (int, float))]
    if wrong:
        raise RaymarchError(f"{where} has {short_value(wrong[0])}, want numbers; save the path again")
    return [float(value) for value in values]

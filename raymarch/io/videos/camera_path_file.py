"""Camera paths as JSON files of keys, as the viewer saves them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from raymarch.arguments.checks import flag, number, path
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import SIDE, Camera
from raymarch.geometry.camera_path import COUNT, path_through
from raymarch.geometry.pose import PLACE
from raymarch.io.files.strict_json import read_json

ANGLE = number(0, 180, above=True, below=True, unit="degree")
SIZE = 512  # pixels a side, where a key does not say


@checked(path=path, count=COUNT, closed=flag)
def load_camera_path(path: str | os.PathLike[str], count: int, *, closed: bool = False) -> list[Camera]:
    """Camera path of `count` frames through the keys of a JSON file, smooth and at constant speed, as `path_through`.

    The file is a list, or has one as "cameras", of two or more keys {"position": [x, y, z], "target": [x, y, z], "up":
    [x, y, z], "fov": degree}, in world units and the horizontal field of view; "orthographic": true for parallel rays,
    of an image as wide as the pinhole's at the target; "width" and "height" [pixel], else 512. What else a key has is
    passed over. Between keys the path turns about the targets; `closed`, it leads back to the first key.

    Raises RaymarchError that names the file and the key for what cannot be read, and as `path_through` does.

    Example:
        >>> keys = [{"position": [4, y, 1], "target": [0, y, 0], "up": [0, 0, 1], "fov": 40} for y in (0, 1, 3)]
        >>> import json
        >>> _ = Path("flight.json").write_text(json.dumps(keys))
        >>> load_camera_path("flight.json", 60)[-1].position.round(6).tolist()
        [4.0, 3.0, 1.0]
    """
    keys = read_json(path)
    if isinstance(keys, dict) and "cameras" in keys:
        size = {name: keys[name] for name in ("width", "height") if name in keys}
        several = keys["cameras"] if isinstance(keys["cameras"], list) else []
        keys = [{**size, **key} if isinstance(key, dict) else key for key in several]
    if not isinstance(keys, list) or len(keys) < 2:
        came = f"a list of {len(keys)}" if isinstance(keys, list) else f"a {type(keys).__name__}"
        raise RaymarchError(f"{path}: is {came}, want a list of two or more keys; save them in the viewer")
    try:
        cameras = [_camera(i, key) for i, key in enumerate(keys)]
        targets = np.array([key["target"] for key in keys], float)
        return path_through(cameras, count, closed=closed, about=targets)
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None


def _camera(i: int, key: Any) -> Camera:
    """Camera of the i-th key; else RaymarchError."""
    if not isinstance(key, dict):
        raise RaymarchError(f"key {i} is a {type(key).__name__}, want a mapping with position, target, up and fov")
    for name in ("position", "target", "up", "fov"):
        if name not in key:
            raise RaymarchError(f"key {i} has no {name}, want position, target, up and fov; add it")
    of = f"key {i}:"
    eye, target, up = (PLACE(f"{of} {name}", key[name]) for name in ("position", "target", "up"))
    fov = np.deg2rad(ANGLE(f"{of} fov", key["fov"]))
    width, height = (SIDE(f"{of} {name}", key.get(name, SIZE)) for name in ("width", "height"))
    if flag(f"{of} orthographic", key.get("orthographic", False)):
        across = 2 * float(np.linalg.norm(np.subtract(eye, target)) * np.tan(fov / 2))
        return Camera.orthographic(eye, target, up, size=across, width=width, height=height)
    return Camera.look_at(eye, target, up, fov=fov, width=width, height=height)

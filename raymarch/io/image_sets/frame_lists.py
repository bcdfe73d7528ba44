"""Lists of frames in `transforms*.json`: the checks of the file that hold for every layout that has one."""

from __future__ import annotations

import logging
from collections import ChainMap
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, short
from raymarch.io.files.strict import read_json
from raymarch.io.image_sets.frame_file import CAMERAS_ALONE, frame_file
from raymarch.io.image_sets.frames import Frame, require_few
from raymarch.io.image_sets.intrinsics import CROP, camera_by_keys, crop_radius, is_fisheye, pose_by_keys, size_by_keys
from raymarch.views.world_origin import places_of

POSES = ("transform_matrix", "transform_matrix_start")
NOT_READ = {  # keys of other programs that bear on values or places, and what is so
    "time": "all images are taken as of one moment",
    "rolling_shutter": "a camera stands in the middle of its way",
    "applied_transform": "poses are taken as they are written",
    "applied_scale": "poses are taken as they are written",
    "orientation_override": "poses are taken as they are written",
    "depth_file_path": "",
    "depth_path": "",
    "normal_file_path": "",
    "integer_depth_scale": "",
    "render_aabb": "",
    "up": "",
    "near": "",
    "far": "",
    "exposure": "",
    "iso": "",
    "shutter": "",
    "n_extra_learnable_dims": "",
}
log = logging.getLogger("raymarch")


def lists_frames(path: Path, *, comments: bool = False) -> bool:
    """Detection: whether a file is JSON whose first frame has an image and a pose."""
    try:
        first = read_json(path, comments=comments)["frames"][0]
        return isinstance(first, dict) and "file_path" in first and any(key in first for key in POSES)
    except (RaymarchError, LookupError, TypeError):
        return False


def read_frames(path: Path, *, comments: bool = False) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Keys of a file, and those of each of its frames.

    Raises RaymarchError for what is no such file, and for no or more than 20,000 frames.
    """
    document = read_json(path, comments=comments)
    if not isinstance(document, dict):
        raise RaymarchError(f"{path}: is a {type(document).__name__}, want a mapping with frames; export it again")
    listed = document.get("frames")
    if not isinstance(listed, list) or not listed:
        named = isinstance(listed, dict) and listed
        cure = "write its mappings as a list, [{..}, {..}]" if named else "export it again"
        raise RaymarchError(f"{path}: frames is {short(listed)}, want a list of at least one; {cure}")
    require_few(len(listed), path)
    for i, frame in enumerate(listed):
        if not isinstance(frame, dict):
            raise RaymarchError(f"{path}, frame {i}: is {short(frame)}, want a mapping; export it again")
    return document, listed


def say_what_is_not_read(document: dict[str, Any], listed: list[dict[str, Any]], path: Path) -> None:
    """Note of the keys that bear on values or places and are not read: those of `NOT_READ` that say something."""

    def says(value: object) -> bool:
        return value not in (None, "", 0, False, []) and not (isinstance(value, list) and not any(value))

    found = list[str]()
    for key, what in NOT_READ.items():
        count = sum(says(keys.get(key)) for keys in listed)
        if not (count or says(document.get(key))):
            continue
        if key == "time" and len({repr(keys.get(key)) for keys in listed}) == 1:
            continue  # a scene that stands still
        told = ", ".join(filter(None, (f"of {count} frames" if count else "", what)))
        found.append(f"{key} ({told})" if told else key)
    if found:
        log.warning("%s: not read: %s", path, ", ".join(found))


def frame_of_keys(
    keys: dict[str, Any],
    document: dict[str, Any],
    path: Path,
    i: int,
    follow_links: bool,
    origin: np.ndarray | None = None,
) -> Frame:
    """Frame of its own keys, which go before those of the file: `file_path`, `mask_path`, `camera_by_keys`,
    `crop_radius` if its lens is a fisheye, as in nerfstudio.

    `origin` as of `new_origin`. Raises RaymarchError, opened by the file and the frame's place in it, for a path as of
    `frame_file`.
    """
    folder, where = path.parent, f"{path}, frame {i}"
    root = folder.resolve()
    text = keys.get("file_path")
    if text is None and CAMERAS_ALONE.get():
        text = f"{i:05d}"
    file = frame_file(folder, root, text, where, follow_links)
    settings, of = ChainMap(keys, document), f"{where} ({file.stem})"
    crops = settings.get(CROP) is not None and is_fisheye(settings, of)
    radius = partial(crop_radius, settings, where=of) if crops else None
    frame = Frame(file, partial(camera_by_keys, settings, where=of, origin=origin), sensor=True, radius=radius)
    if CAMERAS_ALONE.get():
        return frame._replace(size=size_by_keys(settings, of))
    if (mask := settings.get("mask_path")) is not None:
        return frame._replace(mask=frame_file(folder, root, mask, where, follow_links, key="mask_path"))
    moving = file.with_name(f"dynamic_mask_{file.stem}.png")  # as instant-ngp has them, white where something moves
    if moving.is_file() and (follow_links or moving.resolve().is_relative_to(root)):
        return frame._replace(mask=moving, inverted=True)
    return frame


def places_of_frames(document: dict[str, Any], listed: list[dict[str, Any]]) -> list[np.ndarray]:
    """Places (3,) of the cameras of all frames of a file, but of those that have no pose."""
    return places_of(listed, lambda keys: pose_by_keys(ChainMap(keys, document), "")[:3, 3])

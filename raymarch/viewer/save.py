"""What a page saves: a picture, a camera path, a clip; each made in slices of time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.viewer.eye import Eye, eye_of
from raymarch.viewer.frame_maker import FrameMaker
from raymarch.viewer.look import Look

Made = Iterator["tuple[dict[str, Any], bytes | None] | None"]
MOST_CAMERAS = 1000


def saved(maker: FrameMaker, eye: Eye | None, look: Look, message: Mapping[str, Any]) -> Made:
    """What a page's message asks to have as a file; RaymarchError for what cannot be."""
    if eye is None:
        raise RaymarchError("save: no camera was said yet; look at something first")
    match message.get("what"):
        case "picture":
            size = {name: message.get(name, getattr(eye, name)) for name in ("width", "height")}
            return _picture(maker, eye_of({**vars(eye), **size, "moving": False}), look)
        case "path":
            return _path(message)
        case other:
            raise RaymarchError(f"save: what is {str(other)[:40]!r}, want picture, path or video; choose one")


def _picture(maker: FrameMaker, eye: Eye, look: Look) -> Made:
    for frame in maker.frames(eye, look):
        if frame is not None and frame.final:
            yield {"type": "file", "name": "raymarch.png"}, frame.data
        else:
            yield None


def _path(message: Mapping[str, Any]) -> Made:
    cameras = message.get("cameras")
    if not isinstance(cameras, list) or not 1 <= len(cameras) <= MOST_CAMERAS:
        raise RaymarchError(f"save: cameras are not a list of 1 to {MOST_CAMERAS}; record some first")
    size = {name: message.get(name, 512) for name in ("width", "height")}
    eyes = [eye_of({**each, **size}) for each in cameras]
    names = ("position", "target", "up", "fov", "orthographic")
    plain = [{name: _plain(getattr(eye, name)) for name in names} for eye in eyes]
    record = {"cameras": plain, "width": eyes[0].width, "height": eyes[0].height, "seconds": message.get("seconds")}
    return iter([({"type": "file", "name": "path.json"}, json.dumps(record, indent=1).encode())])


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value

"""What a page saves: a picture, a camera path, a clip; each made in slices of time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.viewer.clip_task import clip
from raymarch.viewer.look import Look
from raymarch.viewer.pictures.eye import Eye, eye_of, eyes_of
from raymarch.viewer.pictures.frame_maker import FrameMaker

Made = Iterator["tuple[dict[str, Any], bytes | None] | None"]


def saved(maker: FrameMaker, eye: Eye | None, look: Look, message: Mapping[str, Any]) -> Made:
    """What a page's message asks to have as a file; RaymarchError for what cannot be."""
    if eye is None:
        raise RaymarchError("save: no camera was said yet; look at something first")
    match message.get("what"):
        case "picture":
            size = {name: message.get(name, getattr(eye, name)) for name in ("width", "height", "fov")}
            return _picture(maker, eye_of({**vars(eye), **size, "moving": False}), look)
        case "path":
            return _path(message)
        case "video":
            return clip(maker, look, message)
        case other:
            raise RaymarchError(f"save: what is {str(other)[:40]!r}, want picture, path or video; choose one")


def _picture(maker: FrameMaker, eye: Eye, look: Look) -> Made:
    for frame in maker.whole(eye, look):
        yield None if frame is None else ({"type": "file", "name": "raymarch.png"}, frame.data)


def _path(message: Mapping[str, Any]) -> Made:
    """Keys as `rm.load_camera_path` reads them."""
    names = ("position", "target", "up", "fov", "orthographic", "width", "height")
    plain = [{name: _plain(getattr(eye, name)) for name in names} for eye in eyes_of(message, 1)]
    return iter([({"type": "file", "name": "path.json"}, json.dumps(plain, indent=1).encode())])


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value

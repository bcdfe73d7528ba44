"""Files that a page saves: a picture, a camera path or a clip. Each is made in slices of time."""

from __future__ import annotations

import json
import queue
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import number
from raymarch.errors import RaymarchError
from raymarch.geometry.camera_path import path_through
from raymarch.io.videos.write_video import import_av, write_video
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.pictures.viewer_camera import Look, ViewerCamera, camera_of_message, cameras_of_path
from raymarch.views.display_values import eight_bit

# A clip follows a path through a page's cameras. It is drawn in slices of time and encoded in a thread.

FPS, SECONDS = number(1, 60, unit="frame/s"), number(0.1, 600, unit="s")
MAX_WAITING_FRAMES = 8  # frames that are drawn and not yet encoded
DEFAULT_NAME = "clip.mp4"


def make_clip(
    maker: FrameMaker, look: Look, message: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], bytes | None] | None]:
    """Clip that a page asks for: what it is told on the way, None between, at last the file.

    Raises RaymarchError for cameras that make no path, numbers out of range, and where PyAV is missing.
    """
    import_av("videos")
    eyes = cameras_of_path(message, 2)
    fps = FPS("save: fps", message.get("fps", 24))
    count = max(round(fps * SECONDS("save: seconds", message.get("seconds", 6))), 2)
    cameras = path_through([eye.camera() for eye in eyes], count, about=np.stack([eye.target for eye in eyes]))
    return _draw_frames(maker, look, cameras, fps)


def _draw_frames(
    maker: FrameMaker, look: Look, cameras: list, fps: float
) -> Iterator[tuple[dict[str, Any], bytes | None] | None]:
    with tempfile.TemporaryDirectory(prefix="raymarch-", ignore_cleanup_errors=True) as folder:
        encoder = _Encoder(Path(folder) / DEFAULT_NAME, fps)
        try:
            for i, camera in enumerate(cameras):
                yield {"type": "progress", "done": i, "of": len(cameras)}, None
                for picture in maker.still(camera, look):
                    if picture is not None:
                        pixels = eight_bit(np.broadcast_to(picture, (*picture.shape[:2], 3)))
                        while not encoder.put(pixels):
                            yield None
                    else:
                        yield None
            while not encoder.put(None):
                yield None
            while encoder.running:
                yield None
        finally:
            encoder.end()
        encoder.check()
        yield {"type": "progress", "done": len(cameras), "of": len(cameras)}, None
        yield {"type": "file", "name": DEFAULT_NAME}, (Path(folder) / DEFAULT_NAME).read_bytes()


class _Encoder:
    """Encoder in a thread, which holds Python's lock only briefly."""

    def __init__(self, path: Path, fps: float) -> None:
        self._frames: queue.Queue[np.ndarray | None] = queue.Queue(MAX_WAITING_FRAMES)
        self._error: Exception | None = None
        self._cut = False
        self._thread = threading.Thread(target=self._write, args=(path, fps), daemon=True)
        self._thread.start()

    def _write(self, path: Path, fps: float) -> None:
        try:
            write_video(path, self._taken(), fps)
        except Exception as error:  # told to the page by the owner's thread
            self._error = error

    def _taken(self) -> Iterator[np.ndarray]:
        while not self._cut:
            try:
                frame = self._frames.get(timeout=0.2)
            except queue.Empty:
                continue
            if frame is None:
                return
            yield frame

    @property
    def running(self) -> bool:
        """Whether frames wait to be encoded."""
        self._thread.join(0.01)
        return self._thread.is_alive()

    def put(self, frame: np.ndarray | None) -> bool:
        """Take a frame, or None for the end; False where too many wait."""
        self.check()
        try:
            self._frames.put(frame, timeout=0.01)
        except queue.Full:
            return False
        return True

    def check(self) -> None:
        """Raise RaymarchError if encoding has failed."""
        if self._error is not None:
            raise RaymarchError(f"save: the clip could not be written: {self._error}")

    def end(self) -> None:
        """End the thread, whether it is done or not."""
        self._cut = True
        self._thread.join(5)


Made = Iterator["tuple[dict[str, Any], bytes | None] | None"]


def make_file(maker: FrameMaker, eye: ViewerCamera | None, look: Look, message: Mapping[str, Any]) -> Made:
    """File that a page's message asks for; RaymarchError if it cannot be made."""
    if eye is None:
        raise RaymarchError("save: no camera was said yet; look at something first")
    match message.get("what"):
        case "picture":
            size = {name: message.get(name, getattr(eye, name)) for name in ("width", "height", "fov")}
            return _picture(maker, camera_of_message({**vars(eye), **size, "moving": False}), look)
        case "path":
            return _path(message)
        case "video":
            return make_clip(maker, look, message)
        case other:
            raise RaymarchError(f"save: what is {str(other)[:40]!r}, want picture, path or video; choose one")


def _picture(maker: FrameMaker, eye: ViewerCamera, look: Look) -> Made:
    for frame in maker.whole(eye, look):
        yield None if frame is None else ({"type": "file", "name": "raymarch.png"}, frame.data)


def _path(message: Mapping[str, Any]) -> Made:
    """Keys as `rm.load_camera_path` reads them."""
    names = ("position", "target", "up", "fov", "orthographic", "width", "height")
    plain = [{name: _plain_name(getattr(eye, name)) for name in names} for eye in cameras_of_path(message, 1)]
    return iter([({"type": "file", "name": "path.json"}, json.dumps(plain, indent=1).encode())])


def _plain_name(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value

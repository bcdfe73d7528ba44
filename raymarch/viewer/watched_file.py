"""Volume file that is looked at: shown anew when it is replaced on disk."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from raymarch.errors import one_line
from raymarch.io.volumes.volume_file import load
from raymarch.rendering.default_look import DefaultLook
from raymarch.viewer.pictures.frame_maker import FrameMaker
from raymarch.viewer.server.server_process import ServerProcess
from raymarch.viewer.viewer import Viewer
from raymarch.views.views import Views
from raymarch.volumes.volume import AnyVolume

EVERY = 1.0  # seconds between looks at the disk; what has not changed between two of them is written to its end
Mark = tuple[int, ...]
log = logging.getLogger("raymarch")


class WatchedFile:
    """Volume file, read, and watched for another in its place.

    Raises RaymarchError where it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self._read = self._before = self._mark()
        self.volume: AnyVolume = load(path)
        self._looked = time.monotonic()

    def _mark(self) -> Mark:
        try:
            found = Path(self.path).stat()
        except OSError:  # between the old one and the new
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def replaced(self) -> bool:
        """Whether another file is there since it was read, and is written to its end."""
        if time.monotonic() - self._looked < EVERY:
            return False
        self._looked, now = time.monotonic(), self._mark()
        settled, self._before = now == self._before, now
        return bool(now) and settled and now != self._read

    def again(self) -> AnyVolume:
        """Volume of the file that is there now; RaymarchError where it cannot be read."""
        self._read = self._mark()
        self.volume = load(self.path)
        return self.volume


def view_file(
    server: ServerProcess,
    watched: WatchedFile,
    views: Views | None,
    stop: Callable[[], bool] = lambda: False,
    begin: Callable[[AnyVolume], DefaultLook] | None = None,
    window: tuple[float, float] | None = None,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve a volume file until `stop()` says so, and what takes its place on disk, each as `begin` says at first.

    `ready` is called once it is known that the volume can be shown.
    """
    name = Path(watched.path).name

    def made(volume: AnyVolume) -> FrameMaker:
        maker = FrameMaker(volume, views, name, None if begin is None else begin(volume), window)
        maker.file = os.fspath(watched.path)
        return maker

    def look() -> None:
        if not watched.replaced():
            return
        try:
            viewer.show(made(watched.again()))
            text = f"{name} was replaced on disk; this is the new one"
        except Exception as error:  # memory, or whatever a file that changes meanwhile does to its reader
            text = f"{name} was replaced on disk, and the new one is not shown: {one_line(error)}"
        viewer.say({"type": "note", "text": text})
        log.warning("viewer: %s", text)

    with Viewer(server, made(watched.volume)) as viewer:
        ready()
        viewer.often = look
        viewer.run(stop)

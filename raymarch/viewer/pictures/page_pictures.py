"""Page of the viewer: its camera, its look, and the pictures that it waits for."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

from raymarch.errors import RaymarchError, one_line
from raymarch.viewer.pictures.frame_maker import Frame, FrameMaker
from raymarch.viewer.pictures.saved_files import make_file
from raymarch.viewer.pictures.viewer_camera import NUMBER, ViewerCamera, camera_of_message

Task = Iterator["tuple[dict[str, Any], bytes | None] | None"]
Send = Callable[[dict[str, Any], "bytes | None"], None]
MAX_MOTION_AGE = 0.5  # seconds after its last message for which an eye that says that it moves is believed
MAX_TASKS = 256
log = logging.getLogger("raymarch")


class Page:
    """Page of the viewer, in the owner's thread: it takes messages, and makes pictures in slices of time.

    `send` is called with what the page is told. Nothing that a page says raises; what is refused is said to it, in one
    line, and `complain` is called with that line.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(8, 8, 8))
        >>> with FrameMaker(ball) as maker:
        ...     page = Page(maker, lambda header, data: print(header["type"]))
        ...     page.take({"type": "look", "step": "long"})
        error
    """

    def __init__(self, maker: FrameMaker, send: Send, complain: Callable[[str], None] = lambda text: None) -> None:
        self.maker, self.send, self.complain = maker, send, complain
        self.look, self.eye = maker.look(), None
        self._frames: Iterator[Frame | None] | None = None
        self._rushed = self._again = False
        self._tasks: deque[Task] = deque()
        self._saving: Task | None = None  # the last file that was asked for, done or not
        self.said = self.turned = -MAX_MOTION_AGE
        self.wants_atlas = False

    eye: ViewerCamera | None

    @property
    def busy(self) -> bool:
        """Whether there is work to do."""
        return self._frames is not None or bool(self._tasks)

    @property
    def moving(self) -> bool:
        """Whether somebody moves."""
        return self.eye is not None and self.eye.moving and time.monotonic() - self.said < MAX_MOTION_AGE

    @property
    def turning(self) -> bool:
        """Whether the page draws itself, as something moves there: no picture of here is shown."""
        return time.monotonic() - self.turned < MAX_MOTION_AGE

    def take(self, message: Mapping[str, Any]) -> None:
        """Process a message of the page."""
        try:
            self._take(message)
        except RaymarchError as error:
            self.refuse(error)
        except Exception as error:  # a fault of ours, or memory: no fit shall end by what a page says
            self.refuse(_fault_message(error))

    def _take(self, message: Mapping[str, Any]) -> None:
        match message.get("type"):
            case "camera":
                self.eye, self.said, self.turned = camera_of_message(message), time.monotonic(), -MAX_MOTION_AGE
                self.maker.camera(self.eye)
                self.draw()
            case "look":
                self.look = self.maker.changed(self.look, message)
                self.draw()
            case "photo":
                self._add(self._photo(message))
            case "save" if message.get("what") == "cancel":
                self._cancel()
            case "save":
                self._saving = make_file(self.maker, self.eye, self.look, message)
                self._add(self._saving)
            case "turning":
                self.turned, self._frames, self._again = time.monotonic(), None, False
            case "atlas":
                self._atlas(message)
            case "probe":
                self.send(self.maker.probe(self.eye, self.look, message), None)
            case "command":
                self._command(message)
            case other:
                wanted = "want camera, look, photo, save, probe, command, turning or atlas"
                raise RaymarchError(f"type is {str(other)[:40]!r}, {wanted}; leave it out")

    def _add(self, task: Task) -> None:
        if len(self._tasks) >= MAX_TASKS:
            raise RaymarchError("too much is asked for at once; wait for what comes")
        self._tasks.append(task)

    def draw(self) -> None:
        """Begin anew, but let a picture in motion be finished: else a fast hand would never see one."""
        if self.eye is None or self.turning:
            return
        if self._frames is not None and self._rushed and self.eye.moving:
            self._again = True
            return
        self._frames, self._rushed, self._again = self.maker.frames(self.eye, self.look), self.eye.moving, False

    def _command(self, message: Mapping[str, Any]) -> None:
        if self.eye is None:
            raise RaymarchError("command: no camera was said yet; look at something first")
        size = {name: message.get(name, getattr(self.eye, name)) for name in ("width", "height", "fov")}
        text, notes = self.maker.command(camera_of_message({**vars(self.eye), **size, "moving": False}), self.look)
        self.send({"type": "command", "text": text, "notes": notes}, None)

    def _atlas(self, message: Mapping[str, Any]) -> None:
        """What the page draws itself: said that it is wanted, or a part of a version."""
        atlas = self.maker.atlas
        if "part" in message:
            part, version = (NUMBER(f"atlas: {name}", message.get(name)) for name in ("part", "version"))
            self.send(*atlas.part(version, part))
            return
        self.wants_atlas = atlas.wanted = True
        if atlas.why:
            self.send({"type": "atlas", "why": atlas.why}, None)
        elif atlas.packed is not None:
            self.send(atlas.packed.header, None)

    def _photo(self, message: Mapping[str, Any]) -> Task:
        yield self.maker.photo(message)

    def _cancel(self) -> None:
        """Cancel the files that are not finished."""
        self._end_tasks()
        self.send({"type": "progress", "done": 1, "of": 1}, None)

    def _end_tasks(self) -> None:
        for task in self._tasks:
            if isinstance(task, Generator):
                task.close()
        self._tasks.clear()

    def drop(self) -> None:
        """Cancel all unfinished work."""
        self._frames = None
        self._end_tasks()

    def show(self, maker: FrameMaker, keep: bool = True) -> None:
        """Show another volume; where its mode cannot be kept the look is the new one's own, as table and iso are that
        nobody changed. A slice is not kept where the new one has none."""
        if self._saving in self._tasks:
            text = "another volume came; what was to be saved of the old one is given up"
            self.send({"type": "note", "text": text}, None)
        self._cancel()
        own, new, self.maker, self._frames = self.maker.look(), maker.look(), maker, None
        self.wants_atlas, self.turned = False, -MAX_MOTION_AGE
        for name in ("table", "iso"):
            if getattr(self.look, name) == getattr(own, name):
                self.look = replace(self.look, **{name: getattr(new, name)})
        if not _shown_pixels(maker, {"slice": self.look.slice}):
            self.look = replace(self.look, slice=None)
        if not (keep and _shown_pixels(maker, {"mode": self.look.mode})):
            self.look = maker.look()
        self.draw()

    def work(self) -> bool:
        """Do a slice of work, a few dozen milliseconds. Returns whether there is more to do."""
        try:
            if self._frames is not None:
                self._draw_on(self._frames)
            elif self._tasks:
                made = next(self._tasks[0], ())
                if made == ():
                    self._tasks.popleft()
                elif made is not None:
                    self.send(*made)
        except Exception as error:  # as in `take`
            if self._frames is not None:
                self._frames = None
            elif self._tasks:
                self._tasks.popleft()
            self.refuse(error if isinstance(error, RaymarchError) else _fault_message(error))
        return self.busy

    def _draw_on(self, frames: Iterator[Frame | None]) -> None:
        try:
            frame = next(frames)
        except StopIteration:
            self._frames = None
            if self._again:
                self.draw()
            return
        if frame is not None:
            self.send(frame.header, frame.data)

    def refuse(self, error: RaymarchError) -> None:
        """Report a refusal to the page and to `complain`."""
        self.send({"type": "error", "text": str(error)}, None)
        self.complain(str(error))


def _shown_pixels(maker: FrameMaker, said: Mapping[str, Any]) -> bool:
    """Whether a volume can be shown with a look."""
    try:
        maker.changed(maker.look(), said)
    except RaymarchError:
        return False
    return True


def _fault_message(error: Exception) -> RaymarchError:
    """Message for a page about a program error or lack of memory. The log gets the traceback."""
    log.debug("viewer", exc_info=error)
    return RaymarchError(f"the picture could not be made: {one_line(error)}")

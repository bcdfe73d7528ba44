"""Frame maker of the viewer: a page's eye and look to pictures, in slices of time that a move can cut short."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raymarch.device.owner import Closing
from raymarch.geometry.camera import Camera
from raymarch.rendering.default_look import DefaultLook
from raymarch.rendering.march_settings import March
from raymarch.rendering.progressive import ProgressiveRendering, tiles_for
from raymarch.viewer.command import command_of
from raymarch.viewer.display import Range, colours, cover, jpeg, png, window_of
from raymarch.viewer.frame import Frame
from raymarch.viewer.ladder import RaySpeed, moving_scale, resting_levels
from raymarch.viewer.look import Look
from raymarch.viewer.photo import photo
from raymarch.viewer.pictures.eye import Eye
from raymarch.viewer.pictures.source import FitSource, Source, VolumeSource
from raymarch.viewer.probe import probe
from raymarch.viewer.scene import scene_of
from raymarch.viewer.slice_picture import slice_picture
from raymarch.views.views import Views
from raymarch.volumes.volume import AnyVolume

if TYPE_CHECKING:
    from raymarch.fitting.fitter import Fitter

SLICE = 0.03  # seconds of work between two looks at what pages say
MOVING = 0.07  # seconds of a picture in motion, encoding aside: more than ten a second
HURRIED = 0.1  # seconds of a picture of a fit that goes on, of which there is one a second
TILES_EVERY = 0.3  # seconds between pictures of what is done of a fine one


class FrameMaker(Closing):
    """Frame maker of one volume, or of a fit, for any number of pages; `close` it, or use it in a `with`.

    Attributes:
        share: of the time that pictures may have; a fit leaves them less.
        hurried: whether at rest too a picture soon is better than a fine one, as of a fit that goes on.
        file: that the volume was read from, as the user named it; "" of none.
    """

    def __init__(
        self,
        volume: AnyVolume,
        views: Views | None = None,
        name: str = "",
        begin: DefaultLook | None = None,
        window: tuple[float, float] | None = None,
    ) -> None:
        self._begin(VolumeSource(volume, views, begin, window), name)

    @classmethod
    def of_fitter(cls, fitter: Fitter) -> FrameMaker:
        """Frame maker of a running fit."""
        made = object.__new__(cls)
        made._begin(FitSource(fitter), set_name(fitter.views.source))
        return made

    def _begin(self, source: Source, name: str) -> None:
        self.source, self.name, self.share, self.hurried = source, name, 1.0, False
        self.file = ""
        self.speed = RaySpeed()
        self._windows: dict[tuple, Range | None] = {}

    def close(self) -> None:
        """Free the device memory."""
        self.source.close()

    def scene(self) -> dict[str, Any]:
        """Scene as pages are told of it."""
        return scene_of(self.source, self.name)

    def look(self) -> Look:
        """Look to begin with, which is that of `rm.render`."""
        return self.source.look

    def changed(self, look: Look, message: Mapping[str, Any]) -> Look:
        """Look with what a page's message says; RaymarchError, and nothing is changed, where it cannot be shown."""
        new = look.changed(message)
        if (new.mode, new.table, new.iso) != (look.mode, look.table, look.iso):
            new.march(self.source.table, self.source.iso)
            self.source.require(new)
        self.source.require_slice(new.slice)
        if "window" in message and new.window is None:
            self._windows.clear()
        return new

    def photo(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Photograph of the image set as a message and a JPEG."""
        return photo(self.source.views, message)

    def probe(self, eye: Eye | None, look: Look, message: Mapping[str, Any]) -> dict[str, Any]:
        """What lies at a pixel, as `probe` says it."""
        return probe(self.source, eye, None if eye is None else self.camera(eye), look, message)

    def command(self, eye: Eye, look: Look) -> tuple[str, list[str]]:
        """Command line that makes what a page shows, and what it leaves out."""
        return command_of(self.source, self.file, eye, look, self._windows.get((look.mode, look.extras)))

    def camera(self, eye: Eye) -> Camera:
        """Camera of an eye."""
        return eye.camera(() if self.source.views is None else self.source.views.cameras)

    def frames(self, eye: Eye, look: Look) -> Iterator[Frame | None]:
        """Pictures of what an eye sees, one in motion, at rest ever finer ones; None where time for other work is."""
        if look.slice is not None:
            yield from self._slices(eye, look)
            return
        march = replace(self.source.prepare(look), supersample=1)
        rate, camera = self.speed.of(self._kind(march, look)), self.camera(eye)
        if eye.moving or self.hurried:
            seconds = MOVING * self.share if eye.moving else HURRIED
            scales: tuple[float, ...] = (moving_scale(camera.width, camera.height, rate, seconds),)
        else:
            scales = resting_levels(camera.width, camera.height, rate)
        for scale in scales:
            final = scale == 1.0 and not (eye.moving or self.hurried)
            yield from self._level(eye, look, _scaled(camera, scale), final)

    def whole(self, eye: Eye, look: Look) -> Iterator[Frame | None]:
        """The final picture alone of what an eye at rest sees, also while a fit goes on; None as in `frames`."""
        camera = self.camera(eye)
        made = self._level(eye, look, camera, True) if look.slice is None else self._slices(eye, look)
        for frame in made:
            yield frame if frame is not None and frame.final else None

    def picture(self, eye: Eye, look: Look) -> bytes:
        """PNG of what an eye sees, in the size that it asks for, all at once."""
        made = [frame for frame in self.frames(eye.sized(eye.width, eye.height), look) if frame is not None]
        return made[-1].data

    def _kind(self, march: March, look: Look) -> tuple:
        return march.rule, march.clipped, look.extras, march.shading is not None, march.supersample

    def still(self, camera: Camera, look: Look) -> Iterator[np.ndarray | None]:
        """Display values (height, width, 3 or 1) by a camera, at last; None where time for other work is."""
        work = self._begun(camera, look, True)
        while work.done < work.total:
            self._slice(work, look)
            yield None
        values = not work.settings.rule.background
        seen = work.rendering()
        yield colours(seen, look, values, self._window(look, values, seen, whole=True))

    def _begun(self, camera: Camera, look: Look, final: bool) -> ProgressiveRendering:
        source, march = self.source, self.source.prepare(look)
        march = replace(march, supersample=source.side if final else 1)
        behind = source.background if look.background is None else look.background
        wants = look.extras == "depth", look.extras == "normals"
        return ProgressiveRendering(source.grid, source.buffer, camera, behind, march, *wants)

    def _slice(self, work: ProgressiveRendering, look: Look) -> None:
        """March as many rays as a slice of time has."""
        self.source.prepare(look)  # another page may have had another look since
        kind, begun = self._kind(work.settings, look), time.perf_counter()
        rays = work.advance(tiles_for(self.speed.of(kind) * SLICE))
        self.speed.measured(kind, rays, time.perf_counter() - begun)

    def _level(self, eye: Eye, look: Look, camera: Camera, final: bool) -> Iterator[Frame | None]:
        """One picture; on the way to the final one its bands, where it takes long."""
        work, sent, since = self._begun(camera, look, final), 0, time.perf_counter()
        while work.done < work.total:
            self._slice(work, look)
            if final and sent < work.rows < camera.height and time.perf_counter() - since > TILES_EVERY:
                yield self._frame(eye, look, work, (sent, work.rows), False)
                sent, since = work.rows, time.perf_counter()
            elif work.done < work.total:
                yield None
        yield self._frame(eye, look, work, (0, camera.height), final)

    def _frame(self, eye: Eye, look: Look, work: ProgressiveRendering, rows: tuple[int, int], final: bool) -> Frame:
        values, of = not work.settings.rule.background, (work.camera.width, work.camera.height)
        seen = work.band(*rows)
        window = self._window(look, values, seen, whole=rows == (0, work.camera.height))
        picture = colours(seen, look, values, window)
        about: dict[str, Any] = {"depth" if look.extras == "depth" else "window": window}
        if rows == (0, work.camera.height):
            about["cover"] = cover(picture if values and look.extras == "image" else seen.opacity)
        place = (0, rows[0], work.camera.width, rows[1] - rows[0])
        kind, encode = ("png", png) if final else ("jpeg", jpeg)
        return Frame(eye.id, kind, place, of, final, eye.moving, about, encode(picture))

    def _window(self, look: Look, values: bool, seen: Any, whole: bool) -> Range | None:
        """Window of a picture: the look's, else that of the first whole picture of its kind, so that none flickers."""
        if look.extras == "image" and values and look.window is not None:
            return look.window
        key = look.mode, look.extras
        anew = whole and (look.extras == "depth" or self.source.grows)  # each its own, as `rm` writes depths
        window = window_of(seen, look, values) if anew or key not in self._windows else self._windows[key]
        if (seen.opacity != 0).any():  # else it tells nothing
            self._windows[key] = window
        return window

    def _slices(self, eye: Eye, look: Look) -> Iterator[Frame | None]:
        scale = 0.5 if eye.moving and eye.width * eye.height > 1 << 18 else 1.0
        width, height = max(round(eye.width * scale), 1), max(round(eye.height * scale), 1)
        picture, about = slice_picture(self.source, look, width, height)
        of, final = (picture.shape[1], picture.shape[0]), not eye.moving
        kind, encode = ("png", png) if final else ("jpeg", jpeg)
        yield Frame(eye.id, kind, (0, 0, *of), of, final, eye.moving, about, encode(picture))


def set_name(source: str) -> str:
    """Name of an image set by where it was read from: of the folder, or of its own file.

    Example:
        >>> set_name("scenes/tower/transforms_train.json"), set_name("data/fern/sparse/0"), set_name("ball.h5")
        ('tower', 'fern', 'ball')
    """
    place = Path(source)
    if not source or len(source) > 1000:
        return source[:100]
    if place.suffix.lower() in (".json", ".xml", ".bin", ".txt", ".npy"):
        place = place.absolute().parent
    elif place.suffix:
        return place.stem
    while place.name.isdecimal() or place.name in ("sparse", "colmap", "images", "cameras", "text"):
        if place.absolute().parent == place.absolute():
            break
        place = place.absolute().parent
    return place.name or place.absolute().name or source


def _scaled(camera: Camera, scale: float) -> Camera:
    """Camera of a smaller picture, of a pixel a side at least."""
    least = 1 / min(camera.width, camera.height)
    return camera if scale == 1.0 else camera.scaled(max(scale, least))

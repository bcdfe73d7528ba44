"""Frame maker of the viewer: draws the pictures of a page's camera and look, in short slices of time."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from raymarch.arguments.checks import whole
from raymarch.device.pool import Closing
from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.io.images.write import save_png
from raymarch.rendering.default_look import DefaultLook
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import OneVolume
from raymarch.rendering.progressive import ProgressiveRendering, tiles_for
from raymarch.rendering.renderer import Rendering
from raymarch.viewer.pictures.atlas_packer import AtlasPacker
from raymarch.viewer.pictures.picture_source import FitSource, Source, VolumeSource, scene_of
from raymarch.viewer.pictures.point_probe import probe
from raymarch.viewer.pictures.shell_command import command_of
from raymarch.viewer.pictures.slice_picture import slice_picture
from raymarch.viewer.pictures.viewer_camera import MAX_SIDE, Look, ViewerCamera
from raymarch.views.display_values import eight_bit
from raymarch.views.views import Views
from raymarch.volumes.value_kind import distinct_range
from raymarch.volumes.volume import AnyVolume

if TYPE_CHECKING:
    from raymarch.fitting.fitter import Fitter


@dataclass(frozen=True)
class Frame:
    """Frame of a page.

    Attributes:
        id: of the camera it was seen by.
        format: "jpeg" or "png".
        place: x, y, width and height of the rectangle [pixel].
        of: width and height of the whole picture [pixel].
        final: whether it is the whole picture in full size, as `rm.write_png` writes it.
        moving: whether it was made for an eye in motion.
        about: the window of values, the range of depth, or the slice that is shown; and how much of what lies behind
            is covered.
        data: bytes of the JPEG or PNG.
    """

    id: int
    format: str
    place: tuple[int, int, int, int]
    of: tuple[int, int]
    final: bool
    moving: bool
    about: dict[str, Any]
    data: bytes

    @property
    def header(self) -> dict[str, Any]:
        """Message header of the bytes."""
        x, y, width, height = self.place
        head = {"type": "frame", "id": self.id, "format": self.format, "x": x, "y": y, "width": width}
        head |= {"height": height, "of": list(self.of), "final": self.final, "moving": self.moving}
        return head | {"window": None, "depth": None, "slice": None, "cover": None} | self.about


# The measured speed decides the resolution: one of many levels while the camera moves, up to three at rest.

LEVEL_SCALE = 2**-0.5  # from one resolution to the next, a side
MAX_LEVELS = 12  # rungs down
RESTING_SCALES = (0.25, 0.5, 1.0)  # a side, of a picture at rest
MIN_PREVIEW_TIME = 0.12  # seconds of a picture from which a smaller one before it is worth its time
FIRST_RAYS_A_SECOND = 3e5  # rays a second
SPEED_MEMORY = 0.5  # seconds of marching after which a measurement has faded to a third


class RaySpeed:
    """Rays a second of each kind of march, over the last second or so; the first batch of a kind compiles, and does not
    count. Batches weigh as long as they took, for those that miss the volume take no time.

    Example:
        >>> speed = RaySpeed()
        >>> for seconds in (5.0, 0.1):
        ...     speed.measured("x-ray", 100_000, seconds)
        >>> round(speed.of("x-ray"))
        1000000
    """

    def __init__(self) -> None:
        self._of: dict[Hashable, tuple[float, float]] = {}

    @property
    def known(self) -> bool:
        """Whether a speed was measured."""
        return any(rays > 0 for rays, _ in self._of.values())

    def measured(self, kind: Hashable, rays: int, seconds: float) -> None:
        """Record the time of a batch."""
        if kind not in self._of:
            self._of[kind] = 0.0, 0.0
            return
        known_rays, known_seconds = self._of[kind]
        kept = exp(-seconds / SPEED_MEMORY)
        self._of[kind] = kept * known_rays + rays, kept * known_seconds + max(seconds, 1e-6)

    def of(self, kind: Hashable) -> float:
        """Rays per second, for planning."""
        rays, seconds = self._of.get(kind, (0.0, 0.0))
        return rays / seconds if rays > 0 else FIRST_RAYS_A_SECOND


def moving_scale(width: int, height: int, rays_a_second: float, seconds: float) -> float:
    """Largest scale of the levels (per side, up to 1) at which a picture takes at most `seconds`.

    Example:
        >>> round(moving_scale(800, 800, 4e5, 0.08), 3)
        0.177
    """
    scale, rung = 1.0, 0
    while rung < MAX_LEVELS and scale * scale * width * height > rays_a_second * seconds:
        scale, rung = scale * LEVEL_SCALE, rung + 1
    return scale


def resting_levels(width: int, height: int, rays_a_second: float) -> tuple[float, ...]:
    """Scales of the pictures at rest. The last is 1; smaller ones come first only if the next picture takes long.

    Example:
        >>> resting_levels(100, 100, 1e6), resting_levels(800, 800, 1e6)
        ((1.0,), (0.25, 0.5, 1.0))
    """
    seconds = width * height / rays_a_second
    return tuple(scale for scale in RESTING_SCALES if scale == 1.0 or seconds * (2 * scale) ** 2 > MIN_PREVIEW_TIME)


# A rendering becomes an 8-bit picture: its colours, values, depth, opacity or normals, as JPEG or PNG.

JPEG_QUALITY = 80  # of JPEG
COVER_SIDE = 96  # pixels of the longer side of what a picture covers
Range = tuple[float, float]


def colours(seen: Rendering, look: Look, values: bool, window: Range | None) -> np.ndarray:
    """Display values (height, width, channel) of a rendering under a look.

    Args:
        values: whether the image has values, not colours: black where nothing is met, `window` from black to white.
        window: of values or of depth.
    """
    if look.extras == "depth":
        return _grey(seen.depth, window)
    if look.extras == "opacity":
        return seen.opacity[..., None]
    if look.extras == "normals" and seen.normals is not None:
        return np.where(seen.normals.any(-1, keepdims=True), 0.5 * seen.normals + 0.5, 0)
    image = seen.image
    if values:
        low, high = window or (0.0, 1.0)
        image = (image - low) / (high - low) * (seen.opacity != 0)[..., None]
    return image if look.exposure == 0 else image * 2.0**look.exposure


def _grey(depth: np.ndarray, window: Range | None) -> np.ndarray:
    """Depth as grey: near is white, far is dark, and black where a ray meets nothing."""
    near, far = window or (0.0, 1.0)
    grey = 1 - 0.8 * np.clip((depth - near) / max(far - near, 1e-12), 0, 1)
    return np.where(np.isfinite(depth), grey, 0)[..., None]


def window_of(seen: Rendering, look: Look, values: bool) -> Range | None:
    """Window of a rendering's values, if its picture needs one."""
    if look.extras == "depth":
        met = seen.depth[np.isfinite(seen.depth)]
    elif values and look.extras == "image":
        met = seen.image[seen.opacity != 0]
    else:
        return None
    low, high = (float(met.min()), float(met.max())) if met.size else (0.0, 1.0)
    return distinct_range(low, high)


def cover_mask(shown: np.ndarray) -> dict[str, Any]:
    """Opacity of a picture in few pixels: width, height and bytes 0..255 in base64.

    Args:
        shown: opacity (height, width), or display values (height, width, channel) of what has none.
    """
    flat = shown if shown.ndim == 2 else shown.max(-1)
    flat = np.nan_to_num(np.clip(flat, 0, 1))
    scale = min(1.0, COVER_SIDE / max(flat.shape))
    size = max(round(flat.shape[1] * scale), 1), max(round(flat.shape[0] * scale), 1)
    small = Image.fromarray(np.rint(255 * flat).astype(np.uint8)).resize(size, Image.Resampling.BOX)
    return {"width": size[0], "height": size[1], "data": base64.b64encode(small.tobytes()).decode()}


def png(picture: np.ndarray) -> bytes:
    """PNG of display values, to the bytes that `rm.write_png` writes."""
    out = io.BytesIO()
    save_png(out, eight_bit(picture))
    return out.getvalue()


def jpeg(picture: np.ndarray, quality: int = JPEG_QUALITY) -> bytes:
    """JPEG of display values or of uint8."""
    pixels = picture if picture.dtype == np.uint8 else eight_bit(picture)
    out = io.BytesIO()
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels[..., :3])
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()


# Photographs of the image set are sent as JPEG, no wider than the page asks.

WIDTH = whole(1, MAX_SIDE)


def photograph(views: Views | None, message: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Photograph that a page asks for, as a message and a JPEG; RaymarchError if the set has no such photograph."""
    if views is None:
        raise RaymarchError("photo: no image set is shown; give one by --views, or rm.view(volume, views)")
    index = whole(0, len(views) - 1)("photo: index", message.get("index"))
    width = min(WIDTH("photo: width", message.get("width", 256)), views.cameras[index].width)
    pixels = np.rint(255 * views.rgb(index)).astype(np.uint8)
    height = max(round(width * pixels.shape[0] / pixels.shape[1]), 1)
    small = np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))
    return {"type": "photo", "index": index, "width": width, "height": height}, jpeg(small, 85)


SLICE_TIME = 0.03  # seconds of work between two looks at what pages say
MOVING_TIME = 0.07  # seconds of a picture in motion, encoding aside: more than ten a second
FIT_PICTURE_TIME = 0.1  # seconds of a picture of a fit that goes on, of which there is one a second
TILE_INTERVAL = 0.3  # seconds between pictures of what is done of a fine one


class FrameMaker(Closing):
    """Frame maker of one volume, or of a fit, for any number of pages; `close` it, or use it in a `with`.

    Attributes:
        share: of the time that pictures may have; a fit leaves them less.
        hurried: whether at rest too a picture soon is better than a fine one, as of a fit that goes on.
        file: that the volume was read from, as the user named it; "" of none.
        atlas: packer of what pages draw themselves.
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
        """Frame maker of a running fit; RaymarchError for one of channels, whose pictures are no colours."""
        if fitter.views.channels:
            raise RaymarchError(
                f"the fit is of the channels {', '.join(fitter.views.channels)}, which are not shown as it runs; look"
                " at its volume when it is done"
            )
        made = object.__new__(cls)
        made._begin(FitSource(fitter), set_name(fitter.views.source))
        return made

    def _begin(self, source: Source, name: str) -> None:
        self.source, self.name, self.share, self.hurried = source, name, 1.0, False
        self.file, self.atlas = "", AtlasPacker(source)
        self.speed = RaySpeed()
        self._windows: dict[tuple, Range | None] = {}

    def close(self) -> None:
        """Free the device memory."""
        self.atlas.close()
        self.source.close()

    def scene(self) -> dict[str, Any]:
        """Description of the scene for the pages."""
        return scene_of(self.source, self.name) | {"atlas": {"key": self.atlas.key, "why": self.atlas.why}}

    def look(self) -> Look:
        """First look, the same as that of `rm.render`."""
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
        return photograph(self.source.views, message)

    def probe(self, eye: ViewerCamera | None, look: Look, message: Mapping[str, Any]) -> dict[str, Any]:
        """Answer of `probe` for a pixel."""
        return probe(self.source, eye, None if eye is None else self.camera(eye), look, message)

    def command(self, eye: ViewerCamera, look: Look) -> tuple[str, list[str]]:
        """Command line that makes a page's picture, and the settings that it leaves out."""
        return command_of(self.source, self.file, eye, look, self._windows.get((look.mode, look.extras)))

    def camera(self, eye: ViewerCamera) -> Camera:
        """Camera of a page."""
        return eye.camera(() if self.source.views is None else self.source.views.cameras)

    def frames(self, eye: ViewerCamera, look: Look) -> Iterator[Frame | None]:
        """Pictures of a page's camera: one in motion, ever finer ones at rest; None between slices of time."""
        if look.slice is not None:
            yield from self._slices(eye, look)
            return
        march = replace(self.source.prepare(look), supersample=1)
        rate, camera = self.speed.of(self._kind(march, look)), self.camera(eye)
        if eye.moving or self.hurried:
            seconds = MOVING_TIME * self.share if eye.moving else FIT_PICTURE_TIME
            scales: tuple[float, ...] = (moving_scale(camera.width, camera.height, rate, seconds),)
        else:
            scales = resting_levels(camera.width, camera.height, rate)
        for scale in scales:
            final = scale == 1.0 and not (eye.moving or self.hurried)
            yield from self._level(eye, look, _scale_camera(camera, scale), final)

    def whole(self, eye: ViewerCamera, look: Look) -> Iterator[Frame | None]:
        """Only the final picture of a camera at rest, also during a fit. Yields None as `frames` does."""
        camera = self.camera(eye)
        made = self._level(eye, look, camera, True) if look.slice is None else self._slices(eye, look)
        for frame in made:
            yield frame if frame is not None and frame.final else None

    def picture(self, eye: ViewerCamera, look: Look) -> bytes:
        """PNG of a page's camera in its full size, drawn in one call."""
        made = [frame for frame in self.frames(eye.sized(eye.width, eye.height), look) if frame is not None]
        return made[-1].data

    def _kind(self, march: March, look: Look) -> tuple:
        return march.rule, march.clipped, look.extras, march.shading is not None, march.supersample

    def still(self, camera: Camera, look: Look) -> Iterator[np.ndarray | None]:
        """Yields None between slices of time, and last the display values (height, width, 3 or 1) of a camera."""
        work = self._begun(camera, look, True)
        while work.done < work.total:
            self._slice(work, look)
            yield None
        values = not work.medium.march.rule.background
        seen = work.rendering()
        yield colours(seen, look, values, self._window(look, values, seen, whole=True))

    def _begun(self, camera: Camera, look: Look, final: bool) -> ProgressiveRendering:
        source, march = self.source, self.source.prepare(look)
        march = replace(march, supersample=source.side if final else 1)
        behind = source.background if look.background is None else look.background
        wants = look.extras == "depth", look.extras == "normals"
        return ProgressiveRendering(OneVolume(source.grid, march), source.buffer, camera, behind, *wants)

    def _slice(self, work: ProgressiveRendering, look: Look) -> None:
        """March the rays of one slice of time."""
        self.source.prepare(look)  # another page may have had another look since
        kind, begun = self._kind(work.medium.march, look), time.perf_counter()
        rays = work.advance(tiles_for(self.speed.of(kind) * SLICE_TIME))
        self.speed.measured(kind, rays, time.perf_counter() - begun)

    def _level(self, eye: ViewerCamera, look: Look, camera: Camera, final: bool) -> Iterator[Frame | None]:
        """One picture. A long final one is also shown in parts as they are finished."""
        work, sent, since = self._begun(camera, look, final), 0, time.perf_counter()
        while work.done < work.total:
            self._slice(work, look)
            if final and sent < work.rows < camera.height and time.perf_counter() - since > TILE_INTERVAL:
                yield self._frame(eye, look, work, (sent, work.rows), False)
                sent, since = work.rows, time.perf_counter()
            elif work.done < work.total:
                yield None
        yield self._frame(eye, look, work, (0, camera.height), final)

    def _frame(
        self, eye: ViewerCamera, look: Look, work: ProgressiveRendering, rows: tuple[int, int], final: bool
    ) -> Frame:
        values, of = not work.medium.march.rule.background, (work.camera.width, work.camera.height)
        seen = work.band(*rows)
        window = self._window(look, values, seen, whole=rows == (0, work.camera.height))
        picture = colours(seen, look, values, window)
        about: dict[str, Any] = {"depth" if look.extras == "depth" else "window": window}
        if rows == (0, work.camera.height):
            about["cover"] = cover_mask(picture if values and look.extras == "image" else seen.opacity)
        place = (0, rows[0], work.camera.width, rows[1] - rows[0])
        kind, encode = ("png", png) if final else ("jpeg", jpeg)
        return Frame(eye.id, kind, place, of, final, eye.moving, about, encode(picture))

    def _window(self, look: Look, values: bool, seen: Any, whole: bool) -> Range | None:
        """Window of a picture: the look's, else that of the first whole picture of its kind, against flicker."""
        if look.extras == "image" and values and look.window is not None:
            return look.window
        key = look.mode, look.extras
        anew = whole and (look.extras == "depth" or self.source.grows)  # each its own, as `rm` writes depths
        window = window_of(seen, look, values) if anew or key not in self._windows else self._windows[key]
        if (seen.opacity != 0).any():  # else it tells nothing
            self._windows[key] = window
        return window

    def _slices(self, eye: ViewerCamera, look: Look) -> Iterator[Frame | None]:
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


def _scale_camera(camera: Camera, scale: float) -> Camera:
    """Camera of a smaller picture, at least one pixel per side."""
    least = 1 / min(camera.width, camera.height)
    return camera if scale == 1.0 else camera.scaled(max(scale, least))

"""Frames of an image set: image files with their cameras made into views, for readers of any layout."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.data.cores import workers
from raymarch.errors import RaymarchError, named, short
from raymarch.geometry.camera import Camera
from raymarch.io.image_sets.bad_frames import left_out
from raymarch.io.image_sets.frame_file import CAMERAS_ALONE, present, say_doubled, unique_names
from raymarch.io.image_sets.given_alpha import with_given_alpha
from raymarch.io.image_sets.plausible import doubts_of
from raymarch.io.images.decode import decode, decode_mask, headers, require_room
from raymarch.io.images.header import Header, header
from raymarch.views.image_arrays import Masks
from raymarch.views.resize import shrink_mask
from raymarch.views.views import Views

log = logging.getLogger("raymarch")

MOST_FRAMES = 20_000


class Frame(NamedTuple):
    """Frame: an image file of a set and its camera.

    Attributes:
        file: the image; `frame_file` finds it by what the set calls it.
        camera: makes the camera for its full width and height [pixel], those of the upright image, and the orientation
            by which EXIF turned it, 1 where it did not.
        mask: an 8-bit image of the same size, black where the image's pixels do not count; or None.
        alpha: an image of the same size whose red is the image's alpha; or None.
        inverted: whether pixels do not count where the mask is not black.
        sensor: whether masks are of the image as it was before EXIF turned it, where their sides do not tell.
        radius: makes the distance [pixel] from the image's middle within which pixels count, for its full width and
            height; or None, where they count wherever they are.
        size: (width, height) [pixel] of the image as the set has it, which its camera takes where no image is there; or
            None where the set does not say.
    """

    file: Path
    camera: Callable[[int, int, int], Camera]
    mask: Path | None = None
    alpha: Path | None = None
    sensor: bool = False
    inverted: bool = False
    radius: Callable[[int, int], float] | None = None
    size: tuple[float, float] | None = None


def require_few(count: int, source: Path) -> None:
    """Limit check: RaymarchError for more frames than any set has."""
    if count > MOST_FRAMES:
        raise RaymarchError(f"{source}: has {count:,} frames, want at most {MOST_FRAMES:,}; split it")


def views_of_frames(
    frames: Sequence[Frame],
    folder: Path,
    source: Path,
    *,
    for_fit: bool = True,
    downscale: float = 1.0,
    transparent: Sequence[int] = (),
    points: np.ndarray | None = None,
    box: np.ndarray | None = None,
    origin: np.ndarray | None = None,
) -> Views:
    """Views of frames whose images exist; the log says which do not, and what is doubtful about the cameras.

    Sizes of the images may differ.

    Args:
        frames: in their order.
        folder: of the set; images have their names within it.
        source: the file that lists them, which opens every message and is kept as where they came from.
        for_fit: refuse, before anything is decoded, more images than a fit has memory for.
        downscale: how many times smaller, 1 or more, images are made as they are read; cameras are scaled with them.
        transparent: 0 or 255, where pixels that have one in all colours are transparent.
        points, box: sparse points of the scene (point, 3) and the set's own box (2, 3), in the world, where it has any.
        origin: of that world in the coordinates of the set, as of `new_origin`.

    Raises RaymarchError for more than 20,000 frames, where all images are missing, and what `decode`, `decode_mask` and
    cameras raise.
    """
    require_few(len(frames), source)
    there = [frames[i] for i in present([frame.file for frame in frames], source)]
    files = [frame.file for frame in there]
    if CAMERAS_ALONE.get():
        return _cameras_alone(there, folder, source, downscale, origin)
    say_doubled(files, source)
    found = headers(files)
    kept = [not left_out(*of) for of in zip(files, map(_camera_of, there, found), strict=True)]
    there, files, found = list(compress(there, kept)), list(compress(files, kept)), list(compress(found, kept))
    if not there:
        raise RaymarchError(f"{source}: no image is that of its camera; correct the numbers")
    cameras = [_camera_of(*of)() for of in zip(there, found, strict=True)]  # before what takes its time
    for said in doubts_of(cameras, [file.name for file in files]):
        log.warning("%s: %s", source, said)
    cameras = [_smaller(camera, downscale, file) for camera, file in zip(cameras, files, strict=True)]
    sizes = [(camera.width, camera.height) for camera in cameras]
    require_room(found, sizes, files[0].parent, for_fit)  # before masks are decoded
    masks = _masks(there, found, sizes, source)
    images = decode(files, sizes, found, for_fit=for_fit)
    images = with_given_alpha(images, files, found, [frame.alpha for frame in there], transparent)
    names = unique_names(files, folder)
    return Views(
        cameras, images, names, source=str(source), masks=masks, points=points, box=box, downscale=downscale,
        origin=None if origin is None else tuple(origin.tolist()),
    )  # fmt: skip


def _cameras_alone(
    frames: Sequence[Frame], folder: Path, source: Path, downscale: float, origin: np.ndarray | None
) -> Views:
    """Views without pictures, black ones that take no memory: cameras of the images that are there, else of the sizes
    that the set says."""
    cameras = []
    for frame in frames:
        if frame.file.is_file():
            found = header(frame.file)
            camera = frame.camera(found.width, found.height, found.orientation)
        elif frame.size is not None:
            camera = frame.camera(round(frame.size[0]), round(frame.size[1]), 1)
        else:
            raise RaymarchError(
                f"{source}: {frame.file.name} is missing, and the set does not say its size, w and h; put it there, or"
                " add them"
            )
        cameras.append(_smaller(camera, downscale, frame.file))
    black = np.zeros((1, 1, 1, 3), np.uint8)
    images = [np.broadcast_to(black[0], (camera.height, camera.width, 3)) for camera in cameras]
    alike = len({image.shape for image in images}) == 1
    names = unique_names([frame.file for frame in frames], folder)
    return Views(
        cameras,
        np.broadcast_to(black, (len(images), *images[0].shape)) if alike else images,
        names,
        source=str(source),
        downscale=downscale,
        origin=None if origin is None else tuple(origin.tolist()),
    )


def _camera_of(frame: Frame, found: Header) -> Callable[[], Camera]:
    """Making of a frame's camera, which raises RaymarchError where the image's shape is none of the camera's."""
    return partial(frame.camera, found.width, found.height, found.orientation)


def _smaller(camera: Camera, downscale: float, file: Path) -> Camera:
    """Camera of an image as much smaller: its size is rounded, and all else scaled by what came of that."""
    if downscale == 1:
        return camera
    if round(min(camera.width, camera.height) / downscale) < 1:
        raise RaymarchError(
            f"{file}: image of {camera.width} x {camera.height} cannot be {downscale:g} times smaller; choose a smaller"
            " downscale"
        )
    return camera.scaled(1 / downscale)


def _masks(frames: Sequence[Frame], found: Sequence[Header], sizes: Sequence[tuple[int, int]], source: Path) -> Masks:
    """The masks of frames, as far as they exist; the log says how many do not."""
    missing = [frame.mask.name for frame in frames if frame.mask is not None and not frame.mask.is_file()]
    if missing:
        message = "%s: %d masks are missing, all pixels of their images count (%s); put them there, or take them out"
        log.warning(message, source, len(missing), named(missing))

    def mask(frame: Frame, of: Header, size: tuple[int, int], around: np.ndarray | None) -> np.ndarray | None:
        if frame.mask is None or not frame.mask.is_file():
            return around
        given = decode_mask(frame.mask, of, size, frame.sensor, frame.inverted)
        return given if around is None else given & around

    around = _circles(frames, found, sizes)
    if all(frame.mask is None for frame in frames) and not any(one is not None for one in around):
        return None
    with ThreadPoolExecutor(workers()) as pool:
        masks = tuple(pool.map(mask, frames, found, sizes, around))
    pairs = zip(frames, masks, strict=True)
    white = [f.mask.name for f, one in pairs if f.mask is not None and one is not None and one.all() and not f.inverted]
    if white:
        message = "%s: %d of %d masks are white all over and take nothing out (%s); black is for what does not count"
        log.warning(message, source, len(white), len(frames), named(white))
    return masks


def _circles(
    frames: Sequence[Frame], found: Sequence[Header], sizes: Sequence[tuple[int, int]]
) -> list[np.ndarray | None]:
    """Masks of the pixels that are near enough to their images' middle, one array for all images that are alike."""
    made = dict[tuple[float, ...], np.ndarray]()
    circles = list[np.ndarray | None]()
    for frame, of, size in zip(frames, found, sizes, strict=True):
        if frame.radius is None:
            circles.append(None)
            continue
        radius = frame.radius(of.width, of.height)
        alike = (radius, of.width, of.height, *size)
        if alike not in made:
            made[alike] = shrink_mask(_circle(of, radius), *size)
        circles.append(made[alike])
    return circles


def _circle(of: Header, radius: float) -> np.ndarray:
    """Mask (height, width) of an image, true where pixels are nearer to its middle than a radius [pixel]."""
    x, y = (np.arange(side, dtype=np.float32) + 0.5 - side / 2 for side in (of.width, of.height))
    return x**2 + y[:, None] ** 2 < radius**2


def matrix(value: object, where: str) -> np.ndarray:
    """Matrix (4, 4) f64 of four lists of four numbers, as a file has them, or of the first three; else RaymarchError.

    Example:
        >>> matrix([[1, 0, 0, 0]] * 4, "frame 0: pose").shape
        (4, 4)
        >>> matrix([[1, 0, 0, 5], [0, 1, 0, 6], [0, 0, 1, 7]], "frame 0: pose")[:, 3].tolist()
        [5.0, 6.0, 7.0, 1.0]
    """
    rows = isinstance(value, list) and len(value) in (3, 4) and all(isinstance(r, list) and len(r) == 4 for r in value)
    if not isinstance(value, list) or not rows:
        flat = isinstance(value, list) and len(value) == 16 and not any(isinstance(one, list) for one in value)
        cure = "write it in rows, as [[..], [..], [..], [0, 0, 0, 1]]" if flat else "export it again"
        raise RaymarchError(f"{where} is {short(value)}, want 4 rows of 4 numbers; {cure}")
    if len(value) == 3:  # as instant-ngp and nerfstudio take it too
        value = [*value, [0, 0, 0, 1]]
    return np.array([[number(x, f"{where}, row {i}") for x in row] for i, row in enumerate(value)])


def flag(value: object, where: str) -> bool:
    """Boolean of a file, or 0, 1 or null; a text is none, though Python takes "false" for true; else RaymarchError.

    Example:
        >>> flag(1, "frame 0: is_fisheye")
        True
    """
    if value is not None and (not isinstance(value, (bool, int, float)) or value not in (0, 1)):
        raise RaymarchError(f"{where} is {short(value)}, want true or false; export it again")
    return bool(value)


def number(value: object, where: str) -> float:
    """Number of a file as a float; booleans are none, though Python says so; else RaymarchError.

    Example:
        >>> number(3, "frame 0: fl_x")
        3.0
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        cure = "export it again"
        if isinstance(value, str):
            with suppress(ValueError):
                cure = f"write {float(value):.10g} without quotation marks"
        raise RaymarchError(f"{where} is {short(value)}, want a number; {cure}")
    try:
        return float(value)
    except OverflowError:
        raise RaymarchError(f"{where} is over 1e308, want a number that a double holds; export it again") from None

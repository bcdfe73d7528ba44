"""Frames of an image set: image files with their cameras made into views, for readers of any layout."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.geometry.camera import Camera
from raymarch.io.image_sets.frame_file import IS_THERE_HINT, RENAME_CURE, missing_hint, unique_names
from raymarch.io.image_sets.plausible_intrinsics import doubts_of, few_odd
from raymarch.io.image_sets.read_options import ReadOptions
from raymarch.io.images.decode import (
    decode,
    decode_alpha,
    decode_mask,
    read_headers,
    require_room,
    turn_upright,
    turn_with,
)
from raymarch.io.images.depth_file import read_depth
from raymarch.io.images.header import Header, read_header
from raymarch.system.resources import workers
from raymarch.views.depth_images import Depths, distances_of_z, require_aspect
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.views.image_arrays import Images, Masks
from raymarch.views.resize import shrink, shrink_mask
from raymarch.views.views import Views

log = logging.getLogger("raymarch")
MAX_FRAMES = 20_000
BAD_FRAMES: ContextVar[dict[Path, str] | None] = ContextVar("bad frames", default=None)


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
        bounds: depths of the near and the far plane between which it shows the scene [world unit]; or None.
        depth: a file of depths along the camera's axis, of the image as masks are; or None.
        depth_unit: world units of one step of its values.
        confidence: a file of its size, 0 where the depth is not to be trusted; or None.
        header: tells the image's size where cameras are read for themselves.
    """

    file: Path
    camera: Callable[[int, int, int], Camera]
    mask: Path | None = None
    alpha: Path | None = None
    sensor: bool = False
    inverted: bool = False
    radius: Callable[[int, int], float] | None = None
    size: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    depth: Path | None = None
    depth_unit: float = 1.0
    confidence: Path | None = None
    header: Callable[[Path], Header] = read_header


def require_few(count: int, source: Path) -> None:
    """Limit check: RaymarchError for more frames than any set has."""
    if count > MAX_FRAMES:
        raise RaymarchError(f"{source}: has {count:,} frames, want at most {MAX_FRAMES:,}; split it")


def views_of_frames(
    frames: Sequence[Frame],
    folder: Path,
    source: Path,
    options: ReadOptions = ReadOptions(),
    *,
    transparent: Sequence[int] = (),
    points: np.ndarray | None = None,
    box: np.ndarray | None = None,
    origin: np.ndarray | None = None,
    sightings: Sequence[np.ndarray] | None = None,
) -> Views:
    """Views of frames whose images exist; the log says which do not, and what is doubtful about the cameras.

    Sizes of the images may differ.

    Args:
        frames: in their order.
        folder: of the set; images have their names within it.
        source: the file that lists them, which opens every message and is kept as where they came from.
        options: `for_fit`, `downscale` and `cameras_alone` of what is asked for.
        transparent: 0 or 255, where pixels that have one in all colours are transparent.
        points, box: sparse points of the scene (point, 3) and the set's own box (2, 3), in the world, where it has any.
        origin: of that world in the coordinates of the set, as of `new_origin`.
        sightings: of each frame the numbers of the points that it sees; or None.

    Raises RaymarchError for more than 20,000 frames, where all images are missing, and what `decode`, `decode_mask` and
    cameras raise.
    """
    require_few(len(frames), source)
    if options.cameras_alone:
        return _cameras_alone(frames, folder, source, options.downscale, origin)
    numbers = existing_images([frame.file for frame in frames], source)
    there = [frames[i] for i in numbers]
    files = [frame.file for frame in there]
    say_doubled(files, source)
    found = read_headers(files)
    kept = [not is_left_out(*of) for of in zip(files, map(_camera_of, there, found), strict=True)]
    there, files, found = list(compress(there, kept)), list(compress(files, kept)), list(compress(found, kept))
    numbers = list(compress(numbers, kept))
    if not there:
        raise RaymarchError(f"{source}: no image is that of its camera; correct the numbers")
    cameras = [_camera_of(*of)() for of in zip(there, found, strict=True)]  # before what takes its time
    for said in doubts_of(cameras, [file.name for file in files]):
        log.warning("%s: %s", source, said)
    cameras = [shrink_camera(camera, options.downscale, file) for camera, file in zip(cameras, files, strict=True)]
    sizes = [(camera.width, camera.height) for camera in cameras]
    require_room(found, sizes, files[0].parent, options.for_fit)  # before masks are decoded
    masks = read_masks(there, found, sizes, source)
    images = decode(files, sizes, found, for_fit=options.for_fit)
    images = add_alpha(images, files, found, [frame.alpha for frame in there], transparent)
    names = unique_names(files, folder)
    return Views(
        cameras,
        images,
        names,
        source=str(source),
        masks=masks,
        points=points,
        box=box,
        downscale=options.downscale,
        origin=None if origin is None else tuple(origin.tolist()),
        bounds=_bounds_of(there),
        depths=read_depths(there, cameras, found, options, source),
        sightings=None if sightings is None or points is None else _sightings([sightings[i] for i in numbers]),
    )


def _sightings(seen: Sequence[np.ndarray]) -> np.ndarray:
    """Sightings (sighting, 2) of views that see these points."""
    views = np.repeat(np.arange(len(seen)), [len(points) for points in seen])
    return np.stack([views, np.concatenate(seen)], axis=1)


def read_depths(
    frames: Sequence[Frame], cameras: Sequence[Camera], found: Sequence[Header], options: ReadOptions, source: Path
) -> Depths:
    """Depth images of frames [world unit], distances along rays, as far as they exist; the log says which do not."""
    given = [frame.depth for frame in frames]
    if not options.depths or all(file is None for file in given):
        return None
    missing = [file.name for file in given if file is not None and not file.is_file()]
    if missing:
        message = "%s: %d of %d depth images are missing, going on without them (%s); put them there, or take them out"
        log.warning(message, source, len(missing), len(given) - given.count(None), first_names(missing))

    def depth(frame: Frame, camera: Camera, of: Header) -> np.ndarray | None:
        if frame.depth is None or not frame.depth.is_file():
            return None
        unit = frame.depth_unit if options.depth_unit is None else options.depth_unit
        confidence = frame.confidence if frame.confidence is not None and frame.confidence.is_file() else None
        z = read_depth(frame.depth, unit, of, confidence)
        require_aspect(camera, frame.depth.name, z)
        return distances_of_z(camera, z)

    with ThreadPoolExecutor(workers()) as pool:
        return list(pool.map(depth, frames, cameras, found))


def _bounds_of(frames: Sequence[Frame]) -> np.ndarray | None:
    """Near and far planes (frame, 2) of frames; None where any has none."""
    bounds = [frame.bounds for frame in frames if frame.bounds is not None]
    return np.array(bounds) if len(bounds) == len(frames) else None


def _cameras_alone(
    frames: Sequence[Frame], folder: Path, source: Path, downscale: float, origin: np.ndarray | None
) -> Views:
    """Views without pictures, black ones that take no memory: cameras of the images that are there, else of the sizes
    that the set says."""
    cameras = []
    for frame in frames:
        if frame.file.is_file():
            found = frame.header(frame.file)
            camera = frame.camera(found.width, found.height, found.orientation)
        elif frame.size is not None:
            camera = frame.camera(round(frame.size[0]), round(frame.size[1]), 1)
        else:
            raise RaymarchError(
                f"{source}: {frame.file.name} is missing, and the set does not say its size, w and h; put it there, or"
                " add them"
            )
        cameras.append(shrink_camera(camera, downscale, frame.file))
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


def shrink_camera(camera: Camera, downscale: float, file: Path) -> Camera:
    """Camera of an image as much smaller: its size is rounded, and all else scaled by what came of that."""
    if downscale == 1:
        return camera
    if round(min(camera.width, camera.height) / downscale) < 1:
        raise RaymarchError(
            f"{file}: image of {camera.width} x {camera.height} cannot be {downscale:g} times smaller; choose a smaller"
            " downscale"
        )
    return camera.scaled(1 / downscale)


@contextmanager
def bad_frames() -> Iterator[dict[Path, str]]:
    """Bad files and why, as sets are read that go on without them; elsewhere the first one ends the reading.

    Example:
        >>> with bad_frames() as bad:
        ...     bad
        {}
    """
    bad: dict[Path, str] = {}
    token = BAD_FRAMES.set(bad)
    try:
        yield bad
    finally:
        BAD_FRAMES.reset(token)


def is_left_out(file: Path, wanted: Callable[[], object]) -> bool:
    """Whether a file is bad, by the error of what is wanted of it, and bad ones are left out; else nothing is tried."""
    bad = BAD_FRAMES.get()
    if bad is None or file in bad:
        return bad is not None
    try:
        wanted()
    except RaymarchError as error:
        bad[file] = str(error)
    return file in bad


def is_damaged(file: Path) -> bool:
    """Whether an image cannot be decoded, where such ones are left out."""
    return is_left_out(file, lambda: decode([file], for_fit=False))


def existing_images(files: Sequence[Path], source: Path, options: ReadOptions = ReadOptions()) -> list[int]:
    """Indices of the images that exist; the log says which do not.

    All are taken for `options.cameras_alone`.

    Raises RaymarchError where none exists or one cannot be looked at.
    """
    if options.cameras_alone:
        return list(range(len(files)))
    there: list[int] = []
    missing: list[Path] = []
    for i, file in enumerate(files):
        try:
            is_file = file.is_file()
        except OSError as error:
            raise RaymarchError(
                f"{source}: {file.name} cannot be looked at ({one_line(error)}); check the path and its permissions"
            ) from error
        if is_file and is_damaged(file):
            continue
        if is_file:
            there.append(i)
        else:
            missing.append(file)
    if files and not (there or missing):
        raise RaymarchError(f"{source}: none of its images can be read; export them again")
    if missing:
        hint = missing_hint(missing[0])
        some = first_names([_relative_path(source.parent, file) for file in missing]) + hint
        if not there:
            cure = RENAME_CURE if hint.endswith(IS_THERE_HINT) else "put them there"
            raise RaymarchError(f"{source}: all {len(missing)} images are missing ({some}); {cure}")
        message = "%s: %d of %d images are missing, going on without them (%s)"
        log.warning(message, source, len(missing), len(files), some)
    return there


def _relative_path(folder: Path, file: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name


def say_doubled(files: Sequence[Path], source: Path) -> None:
    """Warning about images that are listed more than once."""
    again = [f"{file.name} {count} times" for file, count in Counter(files).items() if count > 1]
    if again:
        log.warning("%s: some frames list the same image (%s)", source, first_names(again))


def read_masks(
    frames: Sequence[Frame], found: Sequence[Header], sizes: Sequence[tuple[int, int]], source: Path
) -> Masks:
    """The masks of frames, as far as they exist; the log says how many do not."""
    missing = [frame.mask.name for frame in frames if frame.mask is not None and not frame.mask.is_file()]
    if missing:
        message = "%s: %d masks are missing, all pixels of their images count (%s); put them there, or take them out"
        log.warning(message, source, len(missing), first_names(missing))

    def mask(frame: Frame, of: Header, size: tuple[int, int], around: np.ndarray | None) -> np.ndarray | None:
        if frame.mask is None or not frame.mask.is_file():
            return around
        given = decode_mask(frame.mask, of, size, frame.sensor, frame.inverted)
        return given if around is None else given & around

    around = _circle_masks(frames, found, sizes)
    if all(frame.mask is None for frame in frames) and not any(one is not None for one in around):
        return None
    with ThreadPoolExecutor(workers()) as pool:
        masks = tuple(pool.map(mask, frames, found, sizes, around))
    pairs = zip(frames, masks, strict=True)
    white = [f.mask.name for f, one in pairs if f.mask is not None and one is not None and one.all() and not f.inverted]
    if white:
        message = "%s: %d of %d masks are black nowhere and take nothing out (%s); 0, black, is for what does not count"
        log.warning(message, source, len(white), len(frames), first_names(white))
    if bare := few_odd([frame.mask is None for frame in frames]):
        message = "%s: %d of %d images have no mask, as the others do, so that all their pixels count (%s)"
        log.warning(message, source, len(bare), len(frames), first_names([frames[i].file.name for i in bare]))
    return masks


def _circle_masks(
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
            made[alike] = shrink_mask(_circle_mask(of, radius), *size)
        circles.append(made[alike])
    return circles


def _circle_mask(of: Header, radius: float) -> np.ndarray:
    """Mask (height, width) of an image, true where pixels are nearer to its middle than a radius [pixel]."""
    x, y = (np.arange(side, dtype=np.float32) + 0.5 - side / 2 for side in (of.width, of.height))
    return x**2 + y[:, None] ** 2 < radius**2


def alpha_file(file: Path, root: Path, follow_links: bool) -> Path | None:
    """File with the alpha of an image beside it, if there is one and no link leads out.

    instant-ngp looks for `<path as the set writes it>.alpha.<suffix>`, be that with the image's suffix or without.
    """
    for name in (file.stem, file.name):
        beside = file.with_name(f"{name}.alpha{file.suffix}")
        if beside.is_file() and (follow_links or beside.resolve().is_relative_to(root)):
            return beside
    return None


def add_alpha(
    images: Images,
    files: Sequence[Path],
    found: Sequence[Header],
    alphas: Sequence[Path | None],
    colours: Sequence[int],
) -> Images:
    """Images with the alpha that a set gives: in files, and as colours that are transparent; others keep their own.

    It is put on the images as their files have them, so that those that were made smaller are so by what counts alone.

    Args:
        images: uint8, as they were decoded, made smaller or not.
        files, found: the file of each, and its header.
        alphas: the file with its alpha, of the same size: its red, which sRGB encodes, as instant-ngp has it; or None.
            Where EXIF turned the image and not that, it is turned likewise.
        colours: 0 or 255; pixels that have one in all colours are transparent.

    Raises RaymarchError as `decode` does, for a file of another size than its image too.
    """
    given = [alpha for alpha in alphas if alpha is not None]
    if not colours and not given:
        return images
    of_alpha = dict(zip(given, read_headers(given), strict=True)) if given else {}
    for file, own, alpha in zip(files, found, alphas, strict=True):
        if alpha is not None and of_alpha[alpha][:2] != own[:2] and turn_with(own, of_alpha[alpha], True) == 1:
            raise RaymarchError(f"{alpha}: is not of the size of {file.name}, want the same; resize it")

    def made(image: np.ndarray, file: Path, header: Header, alpha: Path | None) -> np.ndarray:
        height, width = image.shape[:2]
        whole = image if header[:2] == (width, height) else decode([file], found=[header], for_fit=False)[0]
        cover = whole[..., 3].copy() if whole.shape[2] == 4 else np.full(whole.shape[:2], 255, np.uint8)
        if alpha is not None:
            red = decode_alpha(alpha, of_alpha[alpha])
            cover = _linear(turn_upright(red, turn_with(header, of_alpha[alpha], True)))
        for colour in colours:
            cover[(whole[..., :3] == colour).all(-1)] = 0
        return shrink(np.dstack([whole[..., :3], cover]), width, height)

    with ThreadPoolExecutor(workers()) as pool:
        put_on = list(pool.map(made, images, files, found, alphas))
    return np.stack(put_on) if isinstance(images, np.ndarray) else tuple(put_on)


def _linear(display: np.ndarray) -> np.ndarray:
    """Linear light of display values, both uint8."""
    return eight_bit(linear_of_srgb(np.arange(256) / 255))[display]

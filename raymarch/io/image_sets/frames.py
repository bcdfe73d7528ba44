"""Frames of an image set: image files with their cameras made into views, for readers of any layout."""

from __future__ import annotations

import logging
import math
import os
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache, partial
from itertools import compress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from raymarch.errors import RaymarchError, named, one_line, short
from raymarch.geometry.camera import Camera
from raymarch.io.images.decode import decode, decode_alpha, decode_mask, headers, require_room, turn_with, turned
from raymarch.io.images.header import OTHER_SUFFIXES, SUFFIXES, Header, header
from raymarch.system.resources import workers
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.views.image_arrays import Images, Masks
from raymarch.views.resize import shrink, shrink_mask
from raymarch.views.views import Views

# Bad frames of an image set, damaged or of no camera: left out, and told together, where that is asked for.

BAD: ContextVar[dict[Path, str] | None] = ContextVar("bad frames", default=None)


@contextmanager
def bad_frames() -> Iterator[dict[Path, str]]:
    """Bad files and why, as sets are read that go on without them; elsewhere the first one ends the reading.

    Example:
        >>> with bad_frames() as bad:
        ...     bad
        {}
    """
    bad: dict[Path, str] = {}
    token = BAD.set(bad)
    try:
        yield bad
    finally:
        BAD.reset(token)


def left_out(file: Path, wanted: Callable[[], object]) -> bool:
    """Whether a file is bad, by the error of what is wanted of it, and bad ones are left out; else nothing is tried."""
    bad = BAD.get()
    if bad is None or file in bad:
        return bad is not None
    try:
        wanted()
    except RaymarchError as error:
        bad[file] = str(error)
    return file in bad


def damaged(file: Path) -> bool:
    """Whether an image cannot be decoded, where such ones are left out."""
    return left_out(file, lambda: decode([file], for_fit=False))


# Image file of a frame: found in the set's own folder, and named as no other.

ARRAYS = (".npy", ".npz", ".h5")  # as masks are written elsewhere
CAMERAS_ALONE: ContextVar[bool] = ContextVar("cameras alone", default=False)

IS_THERE = " is there"
AS_LISTED = "rename the files to the names that are listed, whatever their format, or correct the list"
UNENCODABLE = (
    f"cannot be a file's name where the system's encoding is {sys.getfilesystemencoding()}; set the environment"
    " variable PYTHONUTF8=1 or LC_ALL=C.UTF-8"
)


@contextmanager
def without_images() -> Iterator[None]:
    """Context in which sets are read for their cameras alone: images may be missing, and none is decoded.

    Example:
        >>> with without_images():
        ...     present([Path("missing.png")], Path("transforms.json"))
        [0]
    """
    token = CAMERAS_ALONE.set(True)
    try:
        yield
    finally:
        CAMERAS_ALONE.reset(token)


def frame_file(
    folder: Path,
    root: Path,
    text: object,
    where: str,
    follow_links: bool = False,
    *,
    key: str = "file_path",
    image: bool = True,
) -> Path:
    """File that a path in a set leads to; of an image without suffix .png, or what is there of other formats.

    A name that differs in capitals, in Unicode's spelling, by %20 for a space or by slashes alone is found; of an
    absolute path of another machine the end that is in the folder.

    It must lie in the folder, which is `root` once links are followed: a data set of strangers shall not read other
    files. With `follow_links` a link in it may lead out; a path with `..` may not even then.

    Raises RaymarchError, opened by `where` and what the set calls the path, for one that leads elsewhere or is none.
    """
    if not isinstance(text, str) or not text or "\0" in text:
        raise RaymarchError(f"{where}: {key} is {short(text)}, want the path of a file; export it again")
    if "://" in text:
        raise RaymarchError(f"{where}: {key} {short(text)} is a URL, want a file in {folder}; download it there")
    absolute = PurePosixPath(text).is_absolute() or bool(PureWindowsPath(text).anchor)
    try:
        path = _inner(folder, text, image) if absolute else _found(folder, text, image)
        if path is None:
            raise RaymarchError(
                f"{where}: {key} {short(text)} is absolute, want one relative to {folder}, nor is its end a file there;"
                " copy the file into it, and shorten the path"
            )
        inside = path.resolve().is_relative_to(root)
    except RaymarchError:
        raise
    except UnicodeEncodeError as error:
        raise RaymarchError(f"{where}: {key} {short(text)} {UNENCODABLE}") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise RaymarchError(f"{where}: {key} {short(text)} is no path ({one_line(error)}); correct it") from error
    upwards = ".." in PureWindowsPath(text).parts  # which takes both kinds of slash
    if not inside and upwards:
        raise RaymarchError(f"{where}: {key} {short(text)} leads out of {folder}; copy the file into it")
    if not inside and not follow_links:
        raise RaymarchError(
            f"{where}: {key} {short(text)} leads out of {folder} by a link; copy the file into it,"
            " or follow_links=True, --follow-links if you trust the set"
        )
    return path


def _found(folder: Path, text: str, image: bool) -> Path:
    """File of a path in a folder, however it is spelt: see `with_suffix` and `spelt_alike`."""
    path = folder / text
    if path.is_file() and not image:
        return path
    ways = [text, text.replace("\\", "/")] if "\\" in text else [text]  # the latter written on Windows
    ways += [way.strip() for way in ways if way != way.strip()]
    ways += [unquote(way) for way in ways if "%" in way]
    first = None
    for way in ways:
        path = folder / way
        if image and path.name not in ("", "..") and not (path.suffix.lower() in SUFFIXES and path.exists()):
            path = with_suffix(path)
        if path.exists() or path.is_symlink():
            return path
        first = path if first is None or way == text.replace("\\", "/") else first
    assert first is not None
    alike = (spelt_alike(folder, folder / way) for way in ways if ".." not in PureWindowsPath(way).parts)
    return next((path for path in alike if path is not None), first)


def tail(folder: Path, text: str) -> Path | None:
    """Image in a folder by the longest end of a path of another machine that is there; None where no end is, or where
    the path is not absolute.

    Example:
        >>> Path("IMG_1.JPG").touch()
        >>> tail(Path("."), "C:\\\\photos\\\\IMG_1.JPG").name
        'IMG_1.JPG'
    """
    absolute = PurePosixPath(text).is_absolute() or bool(PureWindowsPath(text).anchor)
    return _inner(folder, text, True) if absolute else None


def _inner(folder: Path, text: str, image: bool) -> Path | None:
    """File in a folder by the longest end of a path of another machine that is there; None where no end is."""
    parts = PureWindowsPath(text).parts[1:]  # which takes both kinds of slash
    for i in range(len(parts)):
        if ".." not in parts[i:] and (path := _found(folder, "/".join(parts[i:]), image)).is_file():
            return path
    return None


def spelt_alike(folder: Path, path: Path) -> Path | None:
    """The one file in a folder whose path differs in capitals or in Unicode's spelling alone, as disks of other systems
    take it for the same; None where there is none, or more than one.

    Example:
        >>> Path("IMG_1.JPG").touch()
        >>> spelt_alike(Path("."), Path("img_1.jpg")).name
        'IMG_1.JPG'
    """
    found = folder
    for part in path.relative_to(folder).parts:
        if not (found / part).exists():
            some = [name for name in _entries(str(found), found.stat().st_mtime_ns) if _alike(name) == _alike(part)]
            if len(some) != 1:
                return None
            part = some[0]
        found = found / part
    return found if found.is_file() else None


@lru_cache(64)
def _entries(folder: str, _: int) -> tuple[str, ...]:
    """Names in a folder, which stay while it does not change."""
    try:
        return tuple(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return ()


def with_suffix(path: Path) -> Path:
    """The path with the suffix, or with the letters of the suffix, of the image that is there; .png where none is.

    A picture of a format that is not read stands back for one of its name that is: that is how it is converted.
    """
    known, other = path.suffix.lower() in SUFFIXES, path.suffix.lower() in (*OTHER_SUFFIXES, *ARRAYS)
    stem, suffixes = (path.stem, [path.suffix.lower()]) if known else (path.name, list(SUFFIXES))
    stems = [stem, path.stem] if other else [stem]
    some = (path.with_name(s + spelt) for s in stems for suffix in suffixes for spelt in (suffix, suffix.upper()))
    found = next((file for file in some if file.exists()), None)
    if found is not None:
        return found
    return path if known or path.is_file() or other else path.with_name(stem + SUFFIXES[0])


def present(files: Sequence[Path], source: Path) -> list[int]:
    """Indices of the images that exist; the log says which do not.

    Raises RaymarchError where none exists or one cannot be looked at.
    """
    if CAMERAS_ALONE.get():
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
        if is_file and damaged(file):
            continue
        if is_file:
            there.append(i)
        else:
            missing.append(file)
    if files and not (there or missing):
        raise RaymarchError(f"{source}: none of its images can be read; export them again")
    if missing:
        hint = instead(missing[0])
        some = named([_seen_from(source.parent, file) for file in missing]) + hint
        if not there:
            cure = AS_LISTED if hint.endswith(IS_THERE) else "put them there"
            raise RaymarchError(f"{source}: all {len(missing)} images are missing ({some}); {cure}")
        message = "%s: %d of %d images are missing, going on without them (%s)"
        log.warning(message, source, len(missing), len(files), some)
    return there


def _seen_from(folder: Path, file: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name


def say_doubled(files: Sequence[Path], source: Path) -> None:
    """Warning about images that are listed more than once."""
    again = [f"{file.name} {count} times" for file, count in Counter(files).items() if count > 1]
    if again:
        log.warning("%s: some frames list the same image (%s)", source, named(again))


def instead(file: Path) -> str:
    """What is there in place of a missing image, as far as it may be a reason."""
    if file.is_dir():
        return f"; {file.name} is a folder"
    if file.is_symlink():
        return f"; {file.name} is a link to a file that is not there"
    if file.exists():
        return f"; {file.name} is no file"
    if not file.parent.is_dir():
        return f"; there is no folder {file.parent}"
    wanted = {_alike(file.stem), _alike(file.name), _alike(Path(file.stem).stem)}
    try:
        others = sorted(other.name for other in file.parent.iterdir() if _alike(other.stem) in wanted)
    except OSError:
        return ""
    other = [name for name in others if Path(name).suffix.lower() in OTHER_SUFFIXES]
    if other:
        return f"; {named(other, 3)} is there, of a format that is not read: convert it to PNG beside it"
    return f"; {named(others, 3)}{IS_THERE}" if others else ""


def unique_names(files: Sequence[Path], folder: Path) -> list[str]:
    """Unique file names, no two the same on any disk: where letter case or Unicode's spellings are one.

    The files' stems, or their paths within the folder where that tells more of them apart; a number where nothing does.

    Example:
        >>> unique_names([Path("set/train/r_0.png"), Path("set/train/r_0.webp")], Path("set"))
        ['r_0', 'r_0_2']
    """
    inner = [path.relative_to(folder).with_suffix("") for path in files]
    ways = [[path.name for path in inner], ["_".join(path.parts) for path in inner]]
    ways = [["".join(c if c.isprintable() else "_" for c in name) for name in names] for names in ways]
    names = max(ways, key=lambda names: len({_alike(name) for name in names}))  # the first of equals
    taken, given = {_alike(name) for name in names}, set[str]()
    out = []
    for name in names:
        unique, count = name, 1
        while _alike(unique) in (given if count == 1 else taken | given):
            count += 1
            unique = f"{name}_{count}"
        given.add(_alike(unique))
        out.append(unique)
    return out


def _alike(name: str) -> str:
    """One text for all that a disk may take for the same name."""
    return unicodedata.normalize("NFC", name).casefold()


# Alpha that an image set gives beside its images: in files of its own, or as a colour that means transparent.


def alpha_file(file: Path, root: Path, follow_links: bool) -> Path | None:
    """File with the alpha of an image beside it, if there is one and no link leads out.

    instant-ngp looks for `<path as the set writes it>.alpha.<suffix>`, be that with the image's suffix or without.
    """
    for name in (file.stem, file.name):
        beside = file.with_name(f"{name}.alpha{file.suffix}")
        if beside.is_file() and (follow_links or beside.resolve().is_relative_to(root)):
            return beside
    return None


def with_given_alpha(
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
    of_alpha = dict(zip(given, headers(given), strict=True)) if given else {}
    for file, own, alpha in zip(files, found, alphas, strict=True):
        if alpha is not None and of_alpha[alpha][:2] != own[:2] and turn_with(own, of_alpha[alpha], True) == 1:
            raise RaymarchError(f"{alpha}: is not of the size of {file.name}, want the same; resize it")

    def made(image: np.ndarray, file: Path, header: Header, alpha: Path | None) -> np.ndarray:
        height, width = image.shape[:2]
        whole = image if header[:2] == (width, height) else decode([file], found=[header], for_fit=False)[0]
        cover = whole[..., 3].copy() if whole.shape[2] == 4 else np.full(whole.shape[:2], 255, np.uint8)
        if alpha is not None:
            red = decode_alpha(alpha, of_alpha[alpha])
            cover = _linear(turned(red, turn_with(header, of_alpha[alpha], True)))
        for colour in colours:
            cover[(whole[..., :3] == colour).all(-1)] = 0
        return shrink(np.dstack([whole[..., :3], cover]), width, height)

    with ThreadPoolExecutor(workers()) as pool:
        put_on = list(pool.map(made, images, files, found, alphas))
    return np.stack(put_on) if isinstance(images, np.ndarray) else tuple(put_on)


def _linear(display: np.ndarray) -> np.ndarray:
    """Linear light of display values, both uint8."""
    return eight_bit(linear_of_srgb(np.arange(256) / 255))[display]


# Plausibility of intrinsics: numbers that no lens has, said with their frame, before anything is made of them.

OBLIQUE = 10.0  # tan of the angle between the optical axis and the image's middle; 84 degrees
SHORTEST, LONGEST = 1 / 200, 1e6  # focal in widths of the image; fields of view of 179.4 degrees and 0.2 seconds of arc
FEW, ZOOM = 0.15, 2.0  # of the views, that are named as unlike the others; times another focal length
SHORT = 1 / 12  # of the width, a field of view of 161 degrees


def require_plausible(focal: Sequence[float], principal: Sequence[float], width: int, height: int, where: str) -> None:
    """Intrinsics check: RaymarchError, opened by `where`, for a focal or principal point off by orders of magnitude.

    Example:
        >>> require_plausible((500, 500), (200, 150), 400, 300, "frame 0")
    """
    for name, f, c, size, side in [
        ("x", focal[0], principal[0], width, "wide"),
        ("y", focal[1], principal[1], height, "high"),
    ]:
        if not (math.isfinite(f) and f > 0):
            continue  # which `Camera` refuses
        if f < SHORTEST * size:
            shares = " (is it a share of the width?)" if f < 10 else ""
            raise RaymarchError(
                f"{where}: focal fl_{name} is {f:.3g} pixels in an image {size} pixels {side},"
                f" a field of view of {math.degrees(2 * math.atan(size / 2 / f)):.1f} degrees{shares}; want pixels"
            )
        if f > LONGEST * size:
            raise RaymarchError(
                f"{where}: focal fl_{name} is {f:.3g} pixels in an image {size} pixels {side}, want at most"
                f" {LONGEST * size:.3g}; correct it"
            )
        if abs(c - size / 2) > OBLIQUE * f and abs(c - size / 2) > size:
            raise RaymarchError(
                f"{where}: c{name} is {c:.3g} in an image {size} pixels {side}, far out of it;"
                " want the principal point in pixels from the corner"
            )


def doubts_of(cameras: Sequence[Camera], names: Sequence[str]) -> list[str]:
    """Warnings about focals and principal points that may be meant otherwise, and about images of another size or
    focal than nearly all others: each with the views that it is about, where it is not about most.

    Example:
        >>> usual, odd = (Camera(np.eye(4), (f, f), (200, 150), 400, 300) for f in (500, 1500))
        >>> doubts_of([odd] + 19 * [usual], [f"{i}.png" for i in range(20)])
        ['1 of 20 cameras have another focal length than the others (0.png): 3.75 widths of the image, not 1.25']
    """
    said = dict[str, list[int]]()
    for i, camera in enumerate(cameras):
        if text := doubt(camera):
            said.setdefault(text, []).append(i)
    out = list[str]()
    for text, which in said.items():
        count, some = f"{len(which)} of {len(cameras)}", named([names[i] for i in which])
        out.append(text if 2 * len(which) > len(cameras) else f"{text} ({count}: {some})")
    sizes = [(camera.width, camera.height) for camera in cameras]
    usual, _ = Counter(sizes).most_common(1)[0]
    if odd := _few([size != usual for size in sizes]):
        wide, high = sizes[odd[0]]
        some = named([names[i] for i in odd])
        out.append(
            f"{len(odd)} of {len(cameras)} images have another size than the others ({some}): {wide} x {high} pixels,"
            f" not {usual[0]} x {usual[1]}"
        )
    shares = [camera.focal[0] / max(camera.width, camera.height) for camera in cameras]
    middle = sorted(shares)[len(shares) // 2]
    if odd := _few([not middle / ZOOM < share < middle * ZOOM for share in shares]):
        some = named([names[i] for i in odd])
        out.append(
            f"{len(odd)} of {len(cameras)} cameras have another focal length than the others ({some}):"
            f" {shares[odd[0]]:.3g} widths of the image, not {middle:.3g}"
        )
    return out


def _few(odd: Sequence[bool]) -> list[int]:
    """Indices of the odd ones, where they are few enough to be told from the rest."""
    which = [i for i, is_odd in enumerate(odd) if is_odd]
    return which if 0 < len(which) <= FEW * len(odd) else []


def doubt(camera: Camera) -> str:
    """Warning about a focal or principal point that may be meant otherwise; or "".

    Example:
        >>> doubt(Camera(np.eye(4), (500, 500), (0.5, 0.5), 400, 300))
        'cx, cy are 0.5, 0.5: pixels are wanted, not shares of the image'
    """
    if min(camera.width, camera.height) > 16 and all(0 < c <= 1 for c in camera.principal):
        u, v = camera.principal
        return f"cx, cy are {u:g}, {v:g}: pixels are wanted, not shares of the image"
    if camera.focal[0] < SHORT * camera.width:
        angle = math.degrees(2 * math.atan(camera.width / 2 / camera.focal[0]))
        return f"the focal of {camera.focal[0]:.3g} pixels is a field of view of {angle:.0f} degrees; is it in pixels?"
    return ""


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
        bounds: depths of the near and the far plane between which it shows the scene [world unit]; or None.
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
        origin=None if origin is None else tuple(origin.tolist()), bounds=_bounds_of(there),
    )  # fmt: skip


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
        message = "%s: %d of %d masks are black nowhere and take nothing out (%s); 0, black, is for what does not count"
        log.warning(message, source, len(white), len(frames), named(white))
    if bare := _few([frame.mask is None for frame in frames]):
        message = "%s: %d of %d images have no mask, as the others do, so that all their pixels count (%s)"
        log.warning(message, source, len(bare), len(frames), named([frames[i].file.name for i in bare]))
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

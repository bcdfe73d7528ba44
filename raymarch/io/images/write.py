"""PNG writer of images, depths and comparisons."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from raymarch.arguments import checks
from raymarch.arguments.checks import Numbers
from raymarch.arguments.declared import checked
from raymarch.errors import RaymarchError, one_line, short_value
from raymarch.io.files.atomic import replace_file, require_writable, target_of
from raymarch.io.files.authorship import require_ours
from raymarch.io.images.header import SUFFIXES
from raymarch.views.display_values import eight_bit, mask_out

MADE_BY = "Software", "raymarch"
# "Source" of pictures of a folder that belong together; then what tells a name
SERIES_PREFIX = "raymarch, one of several: "
MAX_NAME_BYTES = 200  # bytes of a picture's name without its endings
MIN_VISIBLE_CLIPPING = 1 + 0.5 / 255  # display values from which clipping shows

PICTURE = checks.Check("numbers (height, width, 1, 3 or 4), floats in 0..1 or uint8", checks.numeric)


@checked(path=checks.path, overwrite=checks.flag, limit=checks.number(0, above=True))
def write_png(path: str | os.PathLike[str], image: Numbers, overwrite: bool = False, *, limit: float = 1.0) -> None:
    """PNG writer of an image (height, width) or (height, width, channel), 8 bit; the file is replaced in one step.

    Args:
        path: ends in .png.
        image: floats are display values in 0..1, clipped and rounded to 8 bit, and the log says how many were over 1;
            uint8 is written as it is. One channel is grey, three are red, green, blue, a fourth is straight alpha.
        overwrite: whether a file may be replaced that raymarch did not write, or that is an image of an image set.
        limit: the value of floats that becomes 1, for those that are no display values, such as an X-ray's; alpha
            stays as it is.

    Raises RaymarchError for other shapes or types, NaN, another suffix than .png, a path that cannot be written, or an
    existing file that may not be replaced.

    Example:
        >>> write_png("grey.png", np.full((4, 4, 3), 0.5))
        >>> write_png("xray.png", np.linspace(0, 10.6, 16).reshape(4, 4), limit=10.6)
    """
    _write(path, image, overwrite, limit)


def write_one_of_several(path: str | os.PathLike[str], image: Numbers, overwrite: bool = False) -> None:
    """PNG writer as `write_png`, of a picture that belongs to others of its folder (`images.picture_folder`)."""
    _write(path, image, overwrite, several=True)


def _write(
    path: str | os.PathLike[str], image: Numbers, overwrite: bool, limit: float = 1.0, several: bool = False
) -> None:
    require_pictures([path], overwrite)
    image = PICTURE(f"{path}: image", image)
    colour = image[..., None] if image.ndim == 2 else image
    if colour.ndim != 3 or colour.shape[2] not in (1, 3, 4) or image.size == 0:
        first = colour.ndim == 3 and colour.shape[0] in (1, 3, 4)
        several = colour.ndim == 4 and colour.shape[3] in (1, 3, 4)
        cure = "its channels come first: pass np.moveaxis(it, 0, -1)" if first else "pass one image"
        cure = "these are several: pass it[0], it[1], .. one by one" if several else cure
        raise RaymarchError(
            f"{path}: image has shape {image.shape}, want (height, width), or (height, width, channel) with 1, 3 or 4"
            f" channels; {cure}"
        )
    if np.issubdtype(colour.dtype, np.floating):
        colour = _bytes(path, colour, limit)
    if colour.dtype != np.uint8:
        raise RaymarchError(f"{path}: image is {image.dtype}, want floats in 0..1 or uint8; convert it first")
    with replace_file(path) as temporary:
        save_png(temporary, colour, _one_of_several(path) if several else None)


def save_png(
    to: str | os.PathLike[str] | IO[bytes], picture: np.ndarray, source: tuple[str, str] | None = None
) -> None:
    """PNG of a picture (height, width, channel) uint8, put into a file or a stream, to the same bytes."""
    mark = PngInfo()
    mark.add_text(*MADE_BY)
    if source is not None:
        mark.add_text(*source)
    Image.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture).save(to, format="PNG", pnginfo=mark)


def _bytes(path: str | os.PathLike[str], image: np.ndarray, limit: float) -> np.ndarray:
    """Floats (height, width, channel) as 8 bit, `limit` being white; what is over it is told in the log."""
    if np.isnan(image).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(image))[0])
        raise RaymarchError(f"{path}: image is nan at {where}, want numbers; look for a division by 0")
    if limit != 1:
        image = np.concatenate([image[..., :3] / limit, image[..., 3:]], axis=-1)
    if count := int((image > MIN_VISIBLE_CLIPPING).sum()):
        most = float(image[np.isfinite(image)].max(initial=1.0)) * limit
        logging.getLogger(__name__).warning(
            "%s: %d of %d numbers are over %g (up to %.3g) and written as %g; limit=%.3g would show them all",
            *(path, count, image.size, limit, most, limit, most),
        )
    return eight_bit(image)


def require_pictures(paths: Iterable, overwrite: bool = False) -> None:
    """Write check: RaymarchError where pictures cannot be written to `paths`, or would replace what must stay."""
    paths = list(paths)
    for path in paths:
        require_png(path)
        target_of(path)
    require_ours(paths, "picture", is_picture, overwrite)


def require_png(path: str | os.PathLike[str]) -> None:
    """Suffix check: RaymarchError for a name that is not a PNG's."""
    if Path(path).suffix.lower() != ".png":
        raise RaymarchError(f"{path}: pictures are written as PNG; end the name in .png")


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Authorship of a PNG: whether it says before its pixels begin that raymarch wrote it."""
    return _says(path, MADE_BY)


def is_one_of_several(path: str | os.PathLike[str]) -> bool:
    """Authorship of a PNG: whether raymarch wrote it as one of the pictures of a folder, under the name that it has.

    A copy by another name is the user's.
    """
    return _says(path, _one_of_several(path))


def _one_of_several(path: str | os.PathLike[str]) -> tuple[str, str]:
    """Mark of one of several pictures, which tells its name."""
    return "Source", SERIES_PREFIX + hashlib.sha256(os.fsencode(Path(path).name)).hexdigest()[:16]


def _says(path: str | os.PathLike[str], mark: tuple[str, str]) -> bool:
    with Path(path).open("rb") as file:
        head = file.read(512)
    said = b"tEXt" + "\0".join(mark).encode()
    return head.startswith(b"\x89PNG\r\n\x1a\n") and said in head.partition(b"IDAT")[0]


def write_depth(
    path: str | os.PathLike[str],
    depth: Numbers,
    near: float | None = None,
    far: float | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Depth map (height, width) written as a grey picture: `near` white, `far` dark, nothing met black.

    Near and far are the picture's own where they are not given; give them for pictures that belong together.
    """
    depth = np.asarray(depth, float)
    met = np.isfinite(depth)
    grey = np.zeros(depth.shape)
    if met.any():
        near = depth[met].min() if near is None else near
        far = depth[met].max() if far is None else far
        grey[met] = 1 - 0.8 * np.clip((depth[met] - near) / max(far - near, 1e-12), 0, 1)
    write_one_of_several(path, grey, overwrite)


def write_comparison(
    path: str | os.PathLike[str],
    image: Numbers,
    truth: Numbers,
    *,
    mask: np.ndarray | None = None,
    overwrite: bool = False,
) -> None:
    """Comparison picture: rendered, true and 4 x their difference side by side, each (height, width, 3) in 0..1.

    What a `mask` (height, width) takes out, where it is False, is grey in the last two.
    """
    error = np.clip(4 * np.abs(np.clip(image, 0, 1) - truth), 0, 1)
    pictures = [np.clip(image, 0, 1), mask_out(truth, mask), mask_out(error, mask)]
    write_one_of_several(path, np.concatenate(pictures, axis=1), overwrite)


def _require_name(name: str) -> str:
    """Name of a picture in a folder; RaymarchError for one that leads elsewhere, as names come from files of others."""
    if name in ("", "..") or "\0" in name or name != PurePosixPath(name).name or name != PureWindowsPath(name).name:
        raise RaymarchError(
            f"view {short_value(name)}: is no name of a picture, want one without a folder; rename the view"
        )
    if len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise RaymarchError(
            f"view {short_value(name)}: is too long for a picture's name, want {MAX_NAME_BYTES} bytes; rename it"
        )
    return name


@contextmanager
def _making_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context in which the system's refusals are those of a folder that is made."""
    try:
        yield
    except OSError as error:
        reason = one_line(error)
        raise RaymarchError(f"{path}: folder cannot be made ({reason}); create its parent or choose another") from error


def folder_named(
    path: str | os.PathLike[str], outside: str | os.PathLike[str] | None = None, made: Collection[Path] = ()
) -> Path:
    """Output folder by its name alone, before it is known what goes there; nothing is made.

    Raises RaymarchError for no name or that of a picture, where it cannot be made once the folders `made`, as they
    resolve, are there, or where it lies in the image set `outside`.
    """
    if not str(path):
        raise RaymarchError("'': is no folder, want a name; take . for the one you are in")
    folder = Path(path)
    if folder.suffix.lower() in SUFFIXES and not folder.is_dir():
        raise RaymarchError(f"{path}: is the name of a picture, want that of a folder; leave the suffix out")
    with _making_folder(path):
        if folder.exists() and not folder.is_dir():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        if not ((parent := folder.resolve().parent) in made or parent.is_dir()):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    if outside is not None and folder.resolve().is_relative_to(Path(outside).resolve()):
        raise RaymarchError(f"{path}: lies in the image set {outside}, whose images it could replace; choose another")
    return folder


def folder_for(
    path: str | os.PathLike[str],
    names: Iterable[str],
    *,
    outside: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Output folder `path`, made if its parent exists, once pictures of these names (without .png) can go there.

    Raises RaymarchError where they cannot, where one would replace what may not be replaced, or where the folder lies
    in the image set `outside`.
    """
    folder = folder_named(path, outside)
    files = [folder / f"{_require_name(name)}.png" for name in names]
    for file, count in Counter(files).items():
        if count > 1:
            raise RaymarchError(f"{file}: {count} pictures would have this name; rename all views but one")
    if folder.is_dir():
        require_pictures(files, overwrite)
    with _making_folder(path):
        folder.mkdir(exist_ok=True)
    for file in files[:1]:
        require_writable(file)
    return folder

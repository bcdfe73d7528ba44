"""Image decoder: files as uint8 arrays of one size, decoded in parallel."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, UnidentifiedImageError

from raymarch.device.memory import require_images
from raymarch.errors import RaymarchError, named, one_line
from raymarch.io.files.limits import require_file_budget

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
MOST_PIXELS = 1 << 26
WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
WITHOUT_ALPHA = ("RGB", "L", "P", "1", "CMYK", "YCbCr")
DEEP = ("I", "I;16", "I;16B", "I;16L")
ORIENTATION = 0x0112  # tag of EXIF; 1 is upright
WORKERS = min(8, os.cpu_count() or 1)
ON_THE_WAY = 8  # bytes a pixel of an image that is being decoded, beside its place in the array
WRITE = "export it as PNG"
FOREIGN = [  # what files that are no image of ours begin with, from which byte on, what they are and what to do
    (0, b"version https://git-lfs", "a pointer of Git LFS", "fetch the image with git lfs pull"),
    (0, b"<!doctype html", "a web page", "download the image again"),
    (0, b"<html", "a web page", "download the image again"),
    (4, b"ftyphei", "a HEIC image", WRITE),
    (4, b"ftypmif1", "a HEIC image", WRITE),
    (4, b"ftypavif", "an AVIF image", WRITE),
    (0, b"\x76\x2f\x31\x01", "an OpenEXR image", WRITE),
    (0, b"#?radiance", "a Radiance image", WRITE),
    (0, b"gif8", "a GIF image", WRITE),
    (0, b"\x00\x00\x00\x0cjp  ", "a JPEG 2000 image", WRITE),
    (0, b"%pdf", "a PDF", WRITE),
    (0, b"<svg", "an SVG drawing", WRITE),
]


class Header(NamedTuple):
    """Image header: size, channels once decoded, and what a person should know of the rest."""

    width: int
    height: int
    channels: int
    traits: tuple[str, ...]


DEPTH = "have 16 bit, reduced to 8"
TURNED = "are turned by EXIF, which is not applied: if their cameras are of the upright images, turn the files"
INKS = "are CMYK, whose colours are approximate"
MOVING = "have several frames, of which the first is taken"


def decode(paths: Sequence[Path], *, for_fit: bool = True) -> np.ndarray:
    """Images (image, height, width, 3 or 4) uint8, the fourth channel straight alpha; grey and palettes become RGB.

    Images of 16 bit are reduced to 8, which is said in the log, as is an orientation by EXIF, which is not applied.

    Raises RaymarchError that names the file: not an image, truncated, over 64 megapixels, or of another size or channel
    count than the first; and where all together take more memory than is free, or with `for_fit` more than a fit can
    take. All but damage is said before anything is decoded.

    Example:
        >>> decode([Path("train/r_0.png")]).shape  # doctest: +SKIP
        (1, 400, 400, 4)
    """
    width, height, channels, _ = first = require_room(paths, for_fit)
    found: dict[str, list[Path]] = {trait: [] for trait in (DEPTH, TURNED, INKS, MOVING)}
    for path in paths:
        header = _header(path)
        for trait in header.traits:
            found[trait].append(path)
        if header[:2] != first[:2]:
            raise RaymarchError(
                f"{path}: image is {header.width} x {header.height} pixels but {paths[0].name} {width} x {height};"
                " resize it or take it out"
            )
        if header.channels != channels:
            kinds = {3: "no alpha", 4: "alpha"}
            raise RaymarchError(
                f"{path}: image has {kinds[header.channels]} but {paths[0].name} has {kinds[channels]};"
                " convert one of them"
            )
    for trait, some in found.items():
        if some:
            message, names = "%s: %d of %d images %s (%s)", named([path.name for path in some])
            logging.getLogger("raymarch").warning(message, paths[0].parent, len(some), len(paths), trait, names)
    images = np.empty((len(paths), height, width, channels), np.uint8)
    with ThreadPoolExecutor(WORKERS) as pool:
        # list() so that an exception of any worker is raised here
        list(pool.map(_fill, images, paths))
    return images


def require_room(paths: Sequence[Path], for_fit: bool) -> Header:
    """Header of the first image, which stands for all; RaymarchError where so many of its size do not fit."""
    first, count = _header(paths[0]), len(paths)
    one = first.width * first.height
    held = count * one * first.channels
    require_file_budget(held, f"{paths[0].parent}: its {count} images")
    needed = held + min(WORKERS, count) * one * ON_THE_WAY
    cure = "take fewer or smaller ones"
    if for_fit:
        needed += count * one * (4 if first.channels == 4 else 8)  # on the device, and on the way there to get alpha
        cure += ", or for_fit=False where they are not to be fitted"
    size = f"{paths[0].parent}: its {count} images of {first.width} x {first.height}"
    require_images(size, count * one, needed, cure, on_device=for_fit)
    return first


def _open(path: Path) -> Image.Image:
    try:
        return Image.open(path, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RaymarchError(
            f"{path}: image is too large ({one_line(error)}), want at most {MOST_PIXELS}; shrink it"
        ) from error
    except PermissionError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    # Pillow's readers raise anything from struct.error to AttributeError for damaged files
    except Exception as error:
        why = "" if isinstance(error, UnidentifiedImageError) else f" ({one_line(error)})"  # which repeats the path
        reason = _foreign(path) or f"is no readable image{why}; want {', '.join(FORMATS)}"
        raise RaymarchError(f"{path}: {reason}") from error


def _foreign(path: Path) -> str:
    """What a file is that is no image of ours, and what to do, if its first bytes tell."""
    try:
        with path.open("rb") as file:
            start = file.read(64).lower()
    except OSError:
        return ""
    if not start:
        return "is no readable image: it is empty (0 bytes); export it again or take its frame out"
    for at, magic, what, cure in FOREIGN:
        if start[at:].startswith(magic):
            return f"is no readable image but {what}; {cure}"
    return ""


def _header(path: Path) -> Header:
    """What a file's header says, without decoding."""
    with _open(path) as image:
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise RaymarchError(
                f"{path}: image is too large ({width} x {height} pixels), want at most {MOST_PIXELS}; shrink it"
            )
        if image.mode not in (*WITH_ALPHA, *WITHOUT_ALPHA, *DEEP):
            raise RaymarchError(f"{path}: image has mode {image.mode}, want 8 bit RGB or RGBA; convert it")
        deep = image.mode in DEEP or any(";16" in str(tile[3]) for tile in image.tile)  # type: ignore[attr-defined]
        moving = getattr(image, "is_animated", False) and image.format != "MPO"  # a photo with its preview is still
        has = {DEPTH: deep, TURNED: _is_turned(image), INKS: image.mode == "CMYK", MOVING: moving}
        traits = tuple(trait for trait, there in has.items() if there)
        return Header(width, height, 4 if _has_alpha(image) else 3, traits)


def _is_turned(image: Image.Image) -> bool:
    """Whether EXIF says to turn the image; Pillow itself turns TIFF."""
    if image.format == "TIFF" or "exif" not in image.info:  # else Pillow decodes the image to look for it
        return False
    try:
        return image.getexif().get(ORIENTATION, 1) in range(2, 9)
    except Exception:  # as in _open; what cannot be read says nothing
        return False


def _has_alpha(image: Image.Image) -> bool:
    return image.mode in WITH_ALPHA or ("transparency" in image.info and image.mode not in DEEP)


def _fill(out: np.ndarray, path: Path) -> None:
    with _open(path) as image:
        try:
            if image.mode in DEEP:
                values = np.asarray(image)
                if values.min() < 0 or values.max() > 65535:
                    raise ValueError("it has values beyond 16 bit")
                out[:] = (values >> 8).astype(np.uint8)[..., None]
            else:
                out[:] = np.asarray(image.convert("RGBA" if _has_alpha(image) else "RGB"))
        except Exception as error:  # as in _open
            raise RaymarchError(f"{path}: image is damaged ({one_line(error)}); export it again") from error

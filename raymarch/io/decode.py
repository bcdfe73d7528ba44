"""Image files as uint8 arrays of one size, decoded side by side."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from raymarch.errors import RaymarchError
from raymarch.io.guard import one_line, require_memory

FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
MOST_PIXELS = 1 << 26
WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")
WITHOUT_ALPHA = ("RGB", "L", "P", "1", "CMYK", "YCbCr")
DEEP = ("I", "I;16", "I;16B", "I;16L")


def decode(paths: Sequence[Path]) -> np.ndarray:
    """Images (image, height, width, 3 or 4) uint8, the fourth channel straight alpha; grey and palettes become RGB.

    Images of 16 bit are reduced to 8, which is said in the log.

    Raises RaymarchError that names the file: not an image, truncated, over 64 megapixels (said before decoding), or
    of another size or channel count than the first.

    Example:
        >>> decode([Path("train/r_0.png")]).shape  # doctest: +SKIP
        (1, 400, 400, 4)
    """
    width, height, channels, _ = first = _header(paths[0])
    deep = 0
    for path in paths:
        found = _header(path)
        deep += found[3]
        if found[:2] != first[:2]:
            raise RaymarchError(
                f"{path}: image is {found[0]} x {found[1]} pixels but {paths[0].name} {width} x {height};"
                " resize it or take it out"
            )
        if found[2] != channels:
            kinds = {3: "no alpha", 4: "alpha"}
            raise RaymarchError(
                f"{path}: image has {kinds[found[2]]} but {paths[0].name} has {kinds[channels]}; convert one of them"
            )
    require_memory(len(paths) * width * height * channels, f"{paths[0].parent}: its {len(paths)} images")
    if deep:
        logging.getLogger("raymarch").warning(
            "%s: %d of %d images have 16 bit, reduced to 8", paths[0].parent, deep, len(paths)
        )
    images = np.empty((len(paths), height, width, channels), np.uint8)
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        # list() so that an exception of any worker is raised here
        list(pool.map(_fill, images, paths))
    return images


def _open(path: Path) -> Image.Image:
    try:
        return Image.open(path, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise RaymarchError(
            f"{path}: image is too large ({one_line(error)}), want at most {MOST_PIXELS}; shrink it"
        ) from error
    # Pillow's readers raise anything from struct.error to AttributeError for damaged files
    except Exception as error:
        raise RaymarchError(f"{path}: is no readable image ({one_line(error)}); want {', '.join(FORMATS)}") from error


def _header(path: Path) -> tuple[int, int, int, bool]:
    """Width, height, channels once decoded, and whether it is deeper than 8 bit, without decoding."""
    with _open(path) as image:
        width, height = image.size
        if width * height > MOST_PIXELS:
            raise RaymarchError(
                f"{path}: image is too large ({width} x {height} pixels), want at most {MOST_PIXELS}; shrink it"
            )
        if image.mode not in (*WITH_ALPHA, *WITHOUT_ALPHA, *DEEP):
            raise RaymarchError(f"{path}: image has mode {image.mode}, want 8 bit RGB or RGBA; convert it")
        deep = image.mode in DEEP or any(";16" in str(tile[3]) for tile in image.tile)  # type: ignore[attr-defined]
        return width, height, 4 if _has_alpha(image) else 3, deep


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

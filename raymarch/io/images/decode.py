"""Image decoder: files as uint8 arrays, upright and made smaller one by one, decoded in parallel."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from raymarch.device.memory import require_images
from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.io.files.strict import require_file_budget
from raymarch.io.images.header import (
    DEEP_MODES,
    GREY_TRAIT,
    SIDEWAYS_ORIENTATIONS,
    TRAITS,
    Header,
    has_alpha,
    is_turned_by_pillow,
    open_image,
    open_unmapped,
    read_header,
)
from raymarch.io.images.profile import to_srgb
from raymarch.system.resources import workers
from raymarch.views.image_arrays import Images
from raymarch.views.resize import SHRINKING_BYTES_A_PIXEL, shrink, shrink_mask

MAX_LABELS = 32  # the highest number of an object in a mask that has 255 too
MIN_LABELLED_FRACTION = 0.005  # of a mask's pixels that such numbers have
VIDEO_BLACK, VIDEO_WHITE = 16, 235  # of a mask that went through a video: its black and white, or nearer to them
DECODING_BYTES_A_PIXEL = 8  # bytes a pixel of an image that is being decoded, beside its place in the array
TURN_UPRIGHT: dict[int, Callable[[np.ndarray], np.ndarray]] = {  # by EXIF's orientation
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: image[::-1].swapaxes(0, 1),
    7: lambda image: image[::-1, ::-1].swapaxes(0, 1),
    8: lambda image: image[:, ::-1].swapaxes(0, 1),
}


def read_headers(paths: Sequence[Path]) -> list[Header]:
    """Headers of the files of a set, without decoding; what is to be known of them is said in the log.

    Raises RaymarchError that names the file: not an image, over 64 megapixels, with alpha where the first has none or
    the other way round.
    """
    found = _read_all_headers(paths)
    _require_alpha_of_all(paths, found)
    for trait in TRAITS:
        some = [path.name for path, one in zip(paths, found, strict=True) if trait in one.traits]
        if trait == GREY_TRAIT and 2 * len(some) >= len(paths):  # then grey is what the set is
            continue
        if some:
            message = "%s: %d of %d images %s (%s)"
            logging.getLogger("raymarch").warning(
                message, paths[0].parent, len(some), len(paths), trait, first_names(some)
            )
    return found


def _read_all_headers(paths: Sequence[Path]) -> list[Header]:
    """Headers of all files; RaymarchError for the first that has none, with how many others have none either."""
    found, failed = list[Header](), list[RaymarchError]()
    for path in paths:
        try:
            found.append(read_header(path))
        except RaymarchError as error:
            failed.append(error)
    if failed:
        fault, _, cure = str(failed[0]).rpartition("; ")
        others = f", as are {len(failed) - 1} others of {len(paths)} images" if len(failed) > 1 else ""
        raise RaymarchError(f"{fault}{others}; {cure}") from failed[0]
    return found


def _require_alpha_of_all(paths: Sequence[Path], found: Sequence[Header]) -> None:
    """Alpha check: RaymarchError that names those images which have alpha where most have none, or the other way."""
    of_alpha = [one.channels == 4 for one in found]
    if all(of_alpha) or not any(of_alpha):
        return
    usual = 2 * sum(of_alpha) >= len(found)
    odd = [path for path, has in zip(paths, of_alpha, strict=True) if has != usual]
    other = next(path for path, has in zip(paths, of_alpha, strict=True) if has == usual)
    kinds = {False: "no alpha", True: "alpha"}
    count = f" ({len(odd)} of {len(found)} have {kinds[not usual]}: {first_names([path.name for path in odd])})"
    cure = (
        "give it the alpha of what it shows, or save all without" if usual else "save it without alpha, as the others"
    )
    raise RaymarchError(f"{odd[0]}: image has {kinds[not usual]} but {other.name} has {kinds[usual]}{count}; {cure}")


def decode(
    paths: Sequence[Path],
    sizes: Sequence[tuple[int, int]] | None = None,
    found: Sequence[Header] | None = None,
    *,
    for_fit: bool = True,
) -> Images:
    """Images uint8 of 3 or 4 channels, the fourth straight alpha; grey and palettes become RGB.

    They are turned upright as their EXIF says and brought to sRGB where their colour profile is another, and those of
    16 bit are reduced to 8, which is said in the log.

    Args:
        paths: of files, all with alpha or all without.
        sizes: (width, height) of each that it is made smaller to, by their area; as large as they are if not given.
        found: their `read_headers`, where these are known.
        for_fit: refuse more than a fit has memory for.

    Returns one array (image, height, width, channel) where all have one size, else one for each.

    Raises RaymarchError as `read_headers` does, where all together take more memory than is free, or for a damaged
    file. All but damage is said before anything is decoded; no more than a few images are there in their full size at
    once.

    Example:
        >>> decode([Path("train/r_0.png")]).shape  # doctest: +SKIP
        (1, 400, 400, 4)
    """
    found = read_headers(paths) if found is None else found
    sizes = [one[:2] for one in found] if sizes is None else sizes
    require_room(found, sizes, paths[0].parent, for_fit)
    shapes = [(height, width, one.channels) for (width, height), one in zip(sizes, found, strict=True)]
    images: Images
    if len(set(shapes)) == 1:
        images = np.empty((len(paths), *shapes[0]), np.uint8)
    else:
        images = tuple(np.empty(shape, np.uint8) for shape in shapes)
    with ThreadPoolExecutor(workers()) as pool:
        # list() so that an exception of any worker is raised here
        list(pool.map(_fill, images, paths, found))
    return images


def decode_mask(
    path: Path, of: Header, size: tuple[int, int], sensor: bool = False, inverted: bool = False
) -> np.ndarray:
    """Mask (height, width) bool of an 8-bit image: False where it is black, made smaller to `size` (width, height).

    What is darker than half counts as black; in a mask of nothing but 0 and 1, in one of labels, and in an inverted
    one, only 0 does. Of a file with transparent parts the alpha is the mask.

    Args:
        of: header of its image. Where EXIF turned that and not the mask, whose sides say so, it is turned likewise.
        sensor: whether masks are of the images before that, where their sides do not tell.
        inverted: whether black is what counts.

    Raises RaymarchError for a file that is none, or not of its image's size, and for labels beside 255 and a few greys
    on both sides of half without it, of which nobody can tell which count.
    """
    one = read_header(path)
    turn = turn_with(of, one, sensor)
    if one[:2] != of[:2] and turn == 1:
        raise RaymarchError(
            f"{path}: mask is {one.width} x {one.height} but its image {of.width} x {of.height} pixels; resize it"
        )
    values = turn_upright(_decode_file(path, one, shown=False), turn)
    cut = values.shape[2] == 4 and values[..., 3].min() < 128 <= values[..., 3].max()  # a cut-out of the object
    grey = values[..., 3] if cut else values[..., :3].max(-1)
    white = grey > (0 if inverted or grey.max() <= 1 or (not cut and _labels(path, values)) else 127)
    return shrink_mask(white != inverted, *size)


def _labels(path: Path, values: np.ndarray) -> bool:
    """Whether a mask (height, width, channel) has labels, numbers or colours of objects, in place of black and white.

    They are stored without loss; a JPEG has other dark values, which are noise about black.
    """
    with open_image(path) as image:
        if image.format == "JPEG":
            return False
    grey = values[..., :3].max(-1)
    if (values[..., :3].min(-1) != grey).any():
        return True
    few, many = (grey > 0) & (grey <= MAX_LABELS), grey > MAX_LABELS
    if few.mean() >= MIN_LABELLED_FRACTION and many.any() and (grey[many] == 255).all():
        found = ", ".join(map(str, [0, *np.unique(grey[few])[:4], 255]))
        raise RaymarchError(
            f"{path}: mask has the values {found}: labels, of which nobody can tell whether 255 is one of what counts;"
            " write 0 where pixels do not count and 255 where they do"
        )
    numbers = np.unique(grey)
    dark = (grey > 0) & (grey <= 127)
    is_two_tone = len(numbers) == 2 and numbers[0] <= VIDEO_BLACK and numbers[1] >= VIDEO_WHITE
    few_values = 127 < grey.max() < 255 and len(numbers) <= MAX_LABELS and not is_two_tone
    if few_values and dark.mean() >= MIN_LABELLED_FRACTION:
        found = ", ".join(map(str, numbers[:6])) + ", .." * (len(numbers) > 6)
        raise RaymarchError(
            f"{path}: mask has the values {found}: labels or greys, of which nobody can tell which count; write 0 where"
            " pixels do not count and 255 where they do"
        )
    return bool(grey.max() <= 127)


def turn_with(of: Header, one: Header, sensor: bool) -> int:
    """Orientation by which the mask or alpha of an image is to be turned as EXIF turned that: 1 where it is so already.

    Args:
        of, one: headers of the image and of what goes with it.
        sensor: as of `decode_mask`.
    """
    before = of[1::-1] if of.orientation in SIDEWAYS_ORIENTATIONS else of[:2]
    flat = one.orientation == 1 and one[:2] == before
    return of.orientation if flat and (sensor or one[:2] != of[:2]) else 1


def turn_upright(image: np.ndarray, orientation: int) -> np.ndarray:
    """Image made upright by EXIF's orientation of it."""
    return TURN_UPRIGHT.get(orientation, lambda image: image)(image)


def decode_alpha(path: Path, header: Header) -> np.ndarray:
    """Red (height, width) uint8 of a file that holds the alpha of an image, as it is stored, upright."""
    return _decode_file(path, header, shown=False)[..., 0]


def require_room(found: Sequence[Header], sizes: Sequence[tuple[int, int]], folder: Path, for_fit: bool) -> None:
    """Memory check before anything is decoded: RaymarchError where images made smaller to these sizes do not fit."""
    count, pixels = len(found), sum(width * height for width, height in sizes)
    held = pixels * found[0].channels
    require_file_budget(held, f"{folder}: its {count} images")
    each = [
        one.width * one.height * (DECODING_BYTES_A_PIXEL + SHRINKING_BYTES_A_PIXEL * (one[:2] != tuple(size)))
        for one, size in zip(found, sizes, strict=True)
    ]
    needed = held + min(workers(), count) * max(each)
    cure = "take fewer or smaller ones"
    if for_fit:
        cure += ", or for_fit=False where they are not to be fitted"
    size = " to ".join(dict.fromkeys(f"{w} x {h}" for w, h in (min(sizes), max(sizes))))
    require_images(f"{folder}: its {count} images of {size}", pixels, cure, held=needed, stored=4 * pixels * for_fit)


def _fill(out: np.ndarray, path: Path, header: Header) -> None:
    out[:] = shrink(_decode_file(path, header), out.shape[1], out.shape[0])


def _decode_file(path: Path, header: Header, shown: bool = True) -> np.ndarray:
    """An image file as it is, but upright; what is to be `shown` in sRGB, else the numbers that are stored."""
    with open_unmapped(open_image(path)) as image:
        try:
            if image.mode in DEEP_MODES:
                values = np.asarray(image)
                if values.min() < 0 or values.max() > 65535:
                    raise ValueError("it has values beyond 16 bit")
                # the upper half, as Pillow does for colour; within a level of the display value
                small = not shown and values.max() <= 255  # 8 bits, or two values, in 16 bits: a mask
                full = (values if small else values >> 8).astype(np.uint8)[..., None].repeat(3, 2)
            else:
                whole = image.convert("RGBA" if has_alpha(image) else "RGB")
                full = np.asarray(to_srgb(whole) if shown else whole)
        except MemoryError:
            raise RaymarchError(
                f"{path}: memory ran out as it was decoded; free some, or make the image smaller"
            ) from None
        except Exception as error:  # as in open_image
            raise RaymarchError(f"{path}: image is damaged ({one_line(error)}); export it again") from error
        turn = 1 if is_turned_by_pillow(image) else header.orientation
    full = turn_upright(full, turn)
    # which the file's own header belies
    if full.shape != (header.height, header.width, header.channels):
        raise RaymarchError(f"{path}: image is damaged (decoded to {full.shape}); export it again")
    return full

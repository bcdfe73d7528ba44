"""Alpha that an image set gives beside its images: in files of its own, or as a colour that means transparent."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from raymarch.data.cores import workers
from raymarch.errors import RaymarchError
from raymarch.io.images.decode import decode, decode_alpha, headers, turn_with, turned
from raymarch.io.images.header import Header
from raymarch.views.display_values import eight_bit, linear_of_srgb
from raymarch.views.image_arrays import Images
from raymarch.views.resize import shrink


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
    for file, header, alpha in zip(files, found, alphas, strict=True):
        if alpha is not None and of_alpha[alpha][:2] != header[:2] and turn_with(header, of_alpha[alpha], True) == 1:
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

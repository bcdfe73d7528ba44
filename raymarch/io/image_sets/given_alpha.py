"""Alpha that an image set gives beside its images: in files of its own, or as a colour that means transparent."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from raymarch.data.cores import workers
from raymarch.data.display_values import eight_bit, linear_of_srgb
from raymarch.data.shrink import shrink
from raymarch.data.views import Views
from raymarch.errors import RaymarchError
from raymarch.io.images.decode import decode
from raymarch.io.images.header import header


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
    views: Views, files: Sequence[Path], alphas: Sequence[Path | None], colours: Sequence[int]
) -> Views:
    """Views with the alpha that a set gives: in files, and as colours that are transparent; others keep their own.

    It is put on the images as their files have them, so that views that were made smaller are so by what counts alone.

    Args:
        views: as they were read, made smaller or not.
        files: the image of each view.
        alphas: the file with its alpha, of the same size: its red, which sRGB encodes, as instant-ngp has it; or None.
        colours: 0 or 255; pixels that have one in all colours are transparent.

    Raises RaymarchError as `decode` does, for a file of another size than its image too.
    """
    if not colours and not any(alphas):
        return views
    for file, alpha in zip(files, alphas, strict=True):
        if alpha is not None and header(alpha)[:2] != header(file)[:2]:
            raise RaymarchError(f"{alpha}: is not of the size of {file.name}, want the same; resize it")

    def made(i: int) -> np.ndarray:
        width, height = views.sizes[i]
        whole = views.image(i) if header(files[i])[:2] == (width, height) else decode([files[i]], for_fit=False)[0]
        alpha = whole[..., 3].copy() if whole.shape[2] == 4 else np.full(whole.shape[:2], 255, np.uint8)
        if (file := alphas[i]) is not None:
            alpha = _linear(decode([file], for_fit=False)[0][..., 0])
        for colour in colours:
            alpha[(whole[..., :3] == colour).all(-1)] = 0
        return shrink(np.dstack([whole[..., :3], alpha]), width, height)

    with ThreadPoolExecutor(workers()) as pool:
        images = list(pool.map(made, range(len(views))))
    return replace(views, images=np.stack(images) if views.one_size else tuple(images))


def _linear(display: np.ndarray) -> np.ndarray:
    """Linear light of display values, both uint8."""
    return eight_bit(linear_of_srgb(np.arange(256) / 255))[display]

"""Alpha that an image set gives beside its images: in files of its own, or as a colour that means transparent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from raymarch.data.display_values import eight_bit, linear_of_srgb
from raymarch.data.views import Views
from raymarch.errors import RaymarchError
from raymarch.io.images.decode import decode
from raymarch.io.images.header import header


def alpha_file(file: Path, root: Path, follow_links: bool) -> Path | None:
    """File with the alpha of an image, `<name>.alpha.<suffix>` beside it, if there is one and no link leads out."""
    beside = file.with_name(f"{file.stem}.alpha{file.suffix}")
    there = beside.is_file() and (follow_links or beside.resolve().is_relative_to(root))
    return beside if there else None


def with_alpha_files(views: Views, files: Sequence[Path], alphas: Sequence[Path | None]) -> Views:
    """Views whose alpha comes from images of the same size: their red, which sRGB encodes, as instant-ngp takes it.

    Args:
        views: as they were read, made smaller or not.
        files: the image of each view.
        alphas: the file with its alpha; None leaves it opaque.

    Raises RaymarchError as `decode` does, for a file of another size than its image too.
    """
    given = [(i, file, alpha) for i, (file, alpha) in enumerate(zip(files, alphas, strict=True)) if alpha is not None]
    if not given:
        return views
    for _, file, alpha in given:
        if header(alpha)[:2] != header(file)[:2]:
            raise RaymarchError(f"{alpha}: is not of the size of {file.name}, want the same; resize it")
    read = decode([alpha for _, _, alpha in given], [views.sizes[i] for i, _, _ in given])
    coverage = [np.full(views.image(i).shape[:2], 255, np.uint8) for i in range(len(views))]
    for (i, _, _), image in zip(given, read, strict=True):
        coverage[i] = _linear(image[..., 0])
    return _with(views, coverage)


def transparent_where(views: Views, colours: Sequence[int]) -> Views:
    """Views in which pixels are transparent that have one of these values, 0 or 255, in all colours."""
    if not colours:
        return views
    alphas = []
    for i in range(len(views)):
        image = views.image(i)
        alpha = image[..., 3].copy() if image.shape[2] == 4 else np.full(image.shape[:2], 255, np.uint8)
        for colour in colours:
            alpha[(image[..., :3] == colour).all(-1)] = 0
        alphas.append(alpha)
    return _with(views, alphas)


def _linear(display: np.ndarray) -> np.ndarray:
    """Linear light of display values, both uint8."""
    return eight_bit(linear_of_srgb(np.arange(256) / 255))[display]


def _with(views: Views, alphas: Sequence[np.ndarray]) -> Views:
    images = [np.dstack([views.image(i)[..., :3], alpha]) for i, alpha in enumerate(alphas)]
    return replace(views, images=np.stack(images) if views.one_size else tuple(images))

"""Image arrays of a set of views: 8-bit images of one size or of several, and masks; the rules for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments.checks import Check, Wrong, describe_value, numeric

# One array (view, height, width, 3 or 4) where all images have one size, else a tuple of an array (height, width, 3 or
# 4) for each. A union with Any, for who knows which of the two it is.
Images: TypeAlias = "np.ndarray | Any"
Masks: TypeAlias = "Sequence[np.ndarray | None] | None"


def gather_images(images: Sequence[np.ndarray]) -> Images:
    """Images in one array where they have one size, else one by one as they are.

    Example:
        >>> gather_images([np.zeros((4, 6, 3), np.uint8)] * 2).shape
        (2, 4, 6, 3)
    """
    if len({image.shape for image in images}) == 1:
        return np.stack(images)
    return tuple(images)


def is_opaque(image: np.ndarray) -> bool:
    """Whether no pixel of an image with alpha lets anything through.

    Example:
        >>> is_opaque(np.full((4, 6, 4), 255, np.uint8))
        True
    """
    return bool((image[..., 3] == 255).all())


def _one(value: object) -> np.ndarray:
    image = numeric(value)
    if image.ndim != 3 or image.shape[2] not in (3, 4) or image.dtype != np.uint8:
        raise Wrong(f"has {image.dtype} {image.shape}")
    return image


def _images_cure(images: np.ndarray) -> str:
    """What to do with images of another shape or type of number; "" for the usual."""
    if images.ndim == 4 and images.shape[1] in (3, 4) and images.shape[3] not in (3, 4):
        return "their channels come first: pass np.moveaxis(images, 1, -1)"
    if images.ndim == 3 and images.shape[2] in (3, 4) and images.dtype == np.uint8:
        return "one image is images[None]"
    if images.ndim == 4 and images.dtype == np.uint8 and images.shape[3] > 4:
        return "pass images[..., :3], or its first 4 where the fourth is alpha"
    if images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 1):
        return GREY_CURE
    if images.ndim != 4 or images.size == 0:
        return ""
    if images.dtype == np.uint16:
        return "pass (images // 257).astype(np.uint8)"
    if images.min() < 0 or images.max() > 255 or not np.isfinite([images.min(), images.max()]).all():
        return ""
    if images.max() <= 1 and images.dtype.kind == "f":
        return "of 0..1 pass np.rint(255 * images).astype(np.uint8)"
    return "of 0..255 pass images.astype(np.uint8)"


def _images(value: object) -> Images:
    if isinstance(value, (list, tuple)) and any(isinstance(image, np.ndarray) and image.ndim == 3 for image in value):
        several = [_one(image) for image in value]
        if len({image.shape[2] for image in several}) > 1:
            raise Wrong("has both 3 and 4 channels", "give all an alpha, or none")
        return gather_images(several)
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (str, PathLike)) for one in value):
        raise Wrong(
            f"is {describe_value(value)}", "read them: [np.asarray(PIL.Image.open(path).convert('RGB')) for path in it]"
        )
    images = numeric(value)
    if images.ndim != 4 or images.shape[3] not in (3, 4) or images.dtype != np.uint8:
        raise Wrong(f"is {images.dtype} {images.shape}", _images_cure(images))
    return images


def _masks(value: Iterable[object] | None) -> Masks:
    if value is None:
        return None
    masks: list[np.ndarray | None] = []
    for one in value:
        if one is None:
            masks.append(None)
            continue
        masks.append(_mask(one, "has"))
    return tuple(masks)


def _mask(value: object, verb: str = "is") -> np.ndarray:
    if not isinstance(value, np.ndarray) or value.ndim != 2 or value.dtype != np.bool_:
        plain = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "iuf"
        cure = f"pass mask > 0; {MASK_CURE}" if plain else ""
        if isinstance(value, np.ndarray) and value.ndim == 3 and value.dtype.kind in "biuf":
            cure = f"pass mask[..., 0] > 0; {MASK_CURE}"
        if isinstance(value, np.ndarray) and value.ndim == 1:
            cure = f"one mask for all is [mask] * len(cameras); {MASK_CURE}"
        raise Wrong(f"{verb} {describe_value(value)}", cure)
    return value


def effective_masks(masks: Masks) -> Masks:
    """Masks as they are, None for one that takes nothing out, and for all where none does."""
    several = tuple(None if mask is None or mask.all() else mask for mask in masks or ())
    return several if any(mask is not None for mask in several) else None


GREY_CURE = "repeat greys in three channels, of 0..255; projections, line integrals of density, are for rm.Projector"
IMAGES = Check("uint8 (view, height, width, 3 or 4)", _images, "scale 0..1 to 0..255 first")
MASK_CURE = "False is for pixels that do not count"
MASK = Check("a boolean array (height, width)", _mask, MASK_CURE)
MASKS = Check("a boolean array (height, width) or None for each view, or None", _masks, MASK_CURE)

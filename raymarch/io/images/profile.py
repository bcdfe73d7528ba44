"""Colour profile (ICC) of an image file: whether it differs from sRGB, and colours brought to sRGB."""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from itertools import product
from typing import Any

from PIL import Image

TEST_COLOURS = list(product((32, 128, 224), repeat=3))  # colours by which profiles are told apart
MIN_LEVEL_CHANGE = 3  # levels of 255 that one of them is off by; what rounding leaves is less


def is_foreign(image: Image.Image) -> bool:
    """Whether an image has a profile of RGB that is read and whose colours are not those of sRGB.

    What cannot be read says nothing, nor does a profile of grey or of ink.
    """
    return _differs(image.info.get("icc_profile") or b"")


def to_srgb(image: Image.Image) -> Image.Image:
    """Image of mode RGB or RGBA as it is by its profile in sRGB, where the two differ; alpha stays.

    Colours beyond sRGB become its nearest, channel by channel: relative colorimetric, black as black.
    """
    if not is_foreign(image):
        return image
    seen = _transform(image.info["icc_profile"], image.mode).apply(image)
    seen.info.pop("icc_profile", None)
    return seen


def _transform(profile: bytes, mode: str) -> Any:
    """Transform from a profile to sRGB, for each image anew: nobody promises that threads may share one."""
    from PIL import ImageCms

    given, srgb = ImageCms.ImageCmsProfile(BytesIO(profile)), ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    intent, black = ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.BLACKPOINTCOMPENSATION
    return ImageCms.buildTransform(given, srgb, mode, mode, intent, black)


@lru_cache(16)
def _differs(profile: bytes) -> bool:
    if not profile:
        return False
    from PIL import ImageCms

    patches = Image.new("RGB", (len(TEST_COLOURS), 1))
    patches.putdata(TEST_COLOURS)
    try:
        seen = _transform(profile, "RGB").apply(patches)
    # a Pillow without littlecms, or a profile that it refuses
    except (ImportError, OSError, ValueError, ImageCms.PyCMSError):
        return False
    return max(abs(a - b) for a, b in zip(patches.tobytes(), seen.tobytes(), strict=True)) > MIN_LEVEL_CHANGE

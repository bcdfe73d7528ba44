"""Images of channels: any count of named numbers a pixel, of any unit, in place of red, green and blue.

A number that is not there is NaN: of a pixel, or of a view that does not have the channel at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.arguments.checks import Wrong, numeric
from raymarch.errors import RaymarchError
from raymarch.views.image_arrays import Images
from raymarch.volumes.samples import ALPHA

RANGE_BETWEEN = (0.5, 99.5)  # percentiles of a channel's numbers that its range goes to
MAX_RANGE_SAMPLES = 1 << 18  # numbers of a channel that are looked at
MAX_VALUE = 1e25  # whose raw numbers, also those of what a fit puts beyond them, a volume holds
UNKNOWN_CURE = "put NaN where a view does not have one"


def channel_images(images: object, channels: Sequence[str], names: Sequence[str]) -> Images:
    """Images (view, height, width, channel) float32, or a tuple of (height, width, channel) where sizes differ.

    One channel may be without its axis. Raises RaymarchError for another count of channels, which the view's name and
    the cure go with, for numbers that are not finite but NaN, and alpha out of 0..1 or unknown.

    Example:
        >>> channel_images(np.zeros((1, 4, 6)), ("thermal",), ("first",)).shape
        (1, 4, 6, 1)
    """
    try:
        several = [_one(image) for image in images]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise RaymarchError("images are no arrays; want (height, width, channel) for each view") from None
    except Wrong as error:
        raise RaymarchError(f"images {error}; want numbers (height, width, channel) for each view") from None
    found = []
    for i, image in enumerate(several):
        name = names[i] if i < len(names) else f"{i:03d}"
        image = image[..., None] if image.ndim == 2 and len(channels) == 1 else image
        if image.ndim != 3 or image.shape[2] != len(channels):
            shape: tuple[int, ...] = getattr(images, "shape", ())
            if len(shape) == 3 and image.ndim == 2 and shape[2] == len(channels):
                raise RaymarchError(
                    f"images have shape {shape}, want (view, height, width, channel); of one image pass images[None]"
                )
            count = image.shape[2] if image.ndim == 3 else 1
            raise RaymarchError(
                f"view {name} has {count} channel{'s' if count != 1 else ''}, the set {len(channels)}:"
                f" {', '.join(channels)}; give each view all of them, in this order, and {UNKNOWN_CURE}"
            )
        if np.isinf(image).any() or (np.abs(image) > MAX_VALUE).any():
            raise RaymarchError(f"view {name} has numbers that are not finite or beyond {MAX_VALUE:g}; {UNKNOWN_CURE}")
        if channels[-1] == ALPHA and not ((image[..., -1] >= 0) & (image[..., -1] <= 1)).all():
            unknown = np.isnan(image[..., -1]).any()
            cure = (
                "put 0 or 1 where it is NaN, and take the pixel out by a mask" if unknown else "scale it, 1 is opaque"
            )
            raise RaymarchError(f"view {name}: alpha is not within 0..1 everywhere; {cure}")
        found.append(image.astype(np.float32, copy=False))
    if len({image.shape for image in found}) == 1:
        whole = images if isinstance(images, np.ndarray) and images.dtype == np.float32 and images.ndim == 4 else None
        return np.stack(found) if whole is None else whole
    return tuple(found)


def _one(value: object) -> np.ndarray:
    image = numeric(value)
    return image.astype(np.float32) if image.dtype.kind in "biu" else image


def ranges_of_images(images: Images, count: int) -> np.ndarray:
    """Range (channel, 2) of each channel: where all but the last hundredth of its numbers lie; 0 and 1 of none.

    Example:
        >>> ranges_of_images(np.linspace(0, 1, 1001).reshape(1, 7, 143, 1), 1).round(3).tolist()
        [[0.005, 0.995]]
    """
    pixels = sum(image.shape[0] * image.shape[1] for image in images)
    stride, ranges = max(int(np.sqrt(pixels / MAX_RANGE_SAMPLES)), 1), np.tile([0.0, 1.0], (count, 1))
    for c in range(count):
        values = np.concatenate([image[::stride, ::stride, c].ravel() for image in images]).astype(float)
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        low, high = np.percentile(values, RANGE_BETWEEN)
        if low == high:
            low, high = float(values.min()), float(values.max())
        ranges[c] = (low, high) if high > low else (low - 0.5, low + 0.5)
    return ranges


def channels_there(images: Images, count: int) -> np.ndarray:
    """Which channels (view, channel) each view has: those with any number.

    Example:
        >>> channels_there(np.array([[[[1.0, np.nan]]]]), 2).tolist()
        [[True, False]]
    """
    return np.array([[bool(np.isfinite(image[..., c]).any()) for c in range(count)] for image in images])


def border_medians(images: Images, count: int) -> np.ndarray:
    """Median (channel,) of each channel's numbers along the borders of all images; 0 of none.

    Example:
        >>> border_medians(np.full((1, 4, 4, 1), 20.0), 1).tolist()
        [20.0]
    """
    rims = [np.concatenate([one[0], one[-1], one[:, 0], one[:, -1]]) for one in images]
    found = np.zeros(count)
    for c in range(count):
        values = np.concatenate([rim[:, c] for rim in rims])
        values = values[np.isfinite(values)]
        found[c] = float(np.median(values)) if len(values) else 0.0
    return found


def eight_bit_of(image: np.ndarray, which: Sequence[int], ranges: np.ndarray) -> np.ndarray:
    """Picture (height, width, 3) uint8 of three channels, or of one in grey, over their ranges; black where unknown.

    Example:
        >>> eight_bit_of(np.array([[[5.0]]]), [0], np.array([[0.0, 10.0]])).tolist()
        [[[128, 128, 128]]]
    """
    low, high = ranges.T
    scaled = (image[..., list(which)] - low) / (high - low)
    grey = np.rint(np.clip(np.nan_to_num(scaled, nan=0.0), 0, 1) * 255).astype(np.uint8)
    return np.repeat(grey, 3, axis=-1) if len(which) == 1 else grey

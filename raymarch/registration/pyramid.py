"""Image pyramid of a set of views: images as much smaller as a coarse volume can show, their cameras, random pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.gradients.parameters import NEUTRAL_EXPOSURE
from raymarch.views.image_arrays import Images, gather_images
from raymarch.views.views import Views

# pixels along an image's shorter side, in samples of the volume's longer one, that a halved image keeps
MIN_PIXELS_A_SAMPLE = 1.3


class Pyramid:
    """Image pyramid: views at a whole fraction of their size. The last level is cached."""

    def __init__(self, views: Views):
        self._views = views
        self._factor = 0
        self._images: list[np.ndarray] = []

    def factor_for(self, samples: int) -> int:
        """Downsampling factor at which images show no less than a volume of so many samples a side."""
        smallest = min(map(min, self._views.sizes))
        factor = 1
        while smallest // (2 * factor) >= MIN_PIXELS_A_SAMPLE * samples:
            factor *= 2
        return factor

    def images(self, factor: int) -> list[np.ndarray]:
        """Downsampled images (pixel, 4) of each view: colour over the background, 0..1, and transmittance.

        A pixel that a mask takes out, if only in part, is NaN.
        """
        if factor != self._factor:
            self._factor, self._images = factor, []  # the last ones are not kept beside these
            self._images = [_reduce_view(self._views, i, factor) for i in range(len(self._views))]
        return self._images


def _reduce_view(views: Views, view: int, factor: int) -> np.ndarray:
    image, mask = views.image(view), views.mask(view)
    height, width, channels = image.shape
    h, w = height // factor, width // factor
    cut = image[: h * factor, : w * factor] / np.float32(255)
    alpha = cut[..., 3:] if channels == 4 else np.ones_like(cut[..., :1])
    colour = cut[..., :3] * alpha + (1 - alpha) * np.array(views.background, np.float32)
    seen = np.concatenate([colour, 1 - alpha], axis=-1)
    if mask is not None:
        seen[~mask[: h * factor, : w * factor]] = np.nan
    return seen.reshape(h, factor, w, factor, 4).mean((1, 3)).reshape(h * w, 4)


def shrink_camera(camera: Camera, factor: int) -> Camera:
    """Camera of an image that is a whole number of times smaller. A remainder of its last pixels is cut off."""
    width, height = (n // factor * factor for n in (camera.width, camera.height))
    return replace(camera, width=width, height=height).scaled(1 / factor)


def random_pixels(image: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random pixels of an image (pixel, 4). Three of four show something, unless all of them do.

    Some are drawn twice where fewer count than are wanted; none that is NaN.
    """
    counting = np.flatnonzero(~np.isnan(image[:, 3]))
    pixels = rng.permutation(counting)[:count] if len(counting) else np.zeros(0, int)
    pixels = np.resize(pixels, count)
    there = np.flatnonzero(image[:, 3] < 0.99)
    some = rng.permutation(there)[: 3 * count // 4]
    pixels[: len(some)] = some
    return pixels


def remove_exposure(target: np.ndarray, exposures: np.ndarray, background: Sequence[float]) -> np.ndarray:
    """Colours and transmittance (view, ray, 4) as they would be without their views' exposures (view, 6)."""
    target = target.copy()
    alpha, gain, offset = 1 - target[..., 3:], exposures[:, None, :3], exposures[:, None, 3:]
    behind = (1 - alpha) * np.array(background)  # which no exposure touched
    target[..., :3] = (target[..., :3] - behind - alpha * offset) / gain + behind
    return target


def remove_exposures(images: Images, exposures: np.ndarray) -> Images:
    """8-bit images with their exposures (view, 6) taken out."""
    if (exposures == NEUTRAL_EXPOSURE).all():
        return images
    out = [image.copy() for image in images]
    for image, exposure in zip(out, exposures, strict=True):
        colour = (image[..., :3] / 255 - exposure[3:]) / exposure[:3]
        image[..., :3] = np.round(255 * np.clip(colour, 0, 1)).astype(np.uint8)
    return gather_images(out)

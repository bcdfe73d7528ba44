"""Images and views made smaller, by an area filter: each new pixel is the mean of what lies under it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from raymarch.system.resources import workers
from raymarch.views.views import Views

MIN_PIXEL_FRACTION = 1e-6  # share of a pixel that is none, but rounding
SHRINKING_BYTES_A_PIXEL = 24  # bytes a pixel of an image that is being made smaller, beside the image itself
# the same by channels, of one whose sides become half as long or less
HALVING_BYTES_A_PIXEL = {3: 12, 4: SHRINKING_BYTES_A_PIXEL}
MIN_IMAGE_SIDE = 16  # pixels along an image's shorter side below which it is not made smaller


def downscale_views(views: Views, factor: int) -> Views:
    """Views with `factor` times fewer pixels a side, all else of the set kept.

    Sides that are no multiple are rounded, and the camera's pixels are then as much wider.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=64, height=33)], np.zeros((1, 33, 64, 3), np.uint8))
        >>> downscale_views(views, 2).size_in_words()
        '32 x 16'
    """
    cameras = [camera.scaled(1 / factor) for camera in views.cameras]
    sizes = [(camera.width, camera.height) for camera in cameras]
    with ThreadPoolExecutor(workers()) as pool:  # NumPy lets go of Python's lock
        images = list(pool.map(lambda i: _shrunk(views, i, *sizes[i]), range(len(sizes))))
    masks = None
    if views.masks is not None:
        masks = [None if (mask := views.mask(i)) is None else shrink_mask(mask, *size) for i, size in enumerate(sizes)]
    whole = np.stack(images) if len(set(sizes)) == 1 else tuple(images)
    return replace(views, cameras=cameras, images=whole, masks=masks)


def _shrunk(views: Views, i: int, width: int, height: int) -> np.ndarray:
    if views.channels:
        return shrink_channels(views.image(i), width, height, views.has_alpha)
    return shrink(views.image(i), width, height)


def max_halvings(views: Views) -> int:
    """Count of times that all sides can be halved before one has too few pixels; 0 of views with masks, which may leave
    no pixel of a smaller image whole.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> max_halvings(Views([Camera.look_at((0, -4, 0), width=64, height=33)], np.zeros((1, 33, 64, 3), np.uint8)))
        1
    """
    return 0 if views.masks is not None else max(int(np.log2(min(map(min, views.sizes)) / MIN_IMAGE_SIDE)), 0)


def shrink(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """Image (height, width, channel) uint8 of an area filter, from one as large or larger; a fourth channel is alpha.

    Pixels that the new ones cut through count by the share that lies within. Colours are weighted by alpha, so that
    what nobody sees does not bleed into the object's edge. Display values are averaged as they are, not linear light:
    a volume is fitted and rendered in display values, and one that shows a large image right then shows the small one
    right too, as its own pixels are averaged the same way.

    Example:
        >>> shrink(np.array([[[0], [100], [200]]], np.uint8), 2, 1)[..., 0].tolist()
        [[33, 167]]
    """
    rows, columns = image.shape[:2]
    if (rows, columns) == (height, width):
        return image
    planes = np.moveaxis(image, 2, 0)
    smaller = np.empty((height, width, len(planes)), np.float32)
    if alpha := [plane.astype(np.float32) for plane in planes[3:]]:
        smaller[..., 3] = _area(alpha[0], width, height)
        seen, back = alpha[0] / 255, 255 / np.maximum(smaller[..., 3], 1e-6)
    for k, values in enumerate(planes[:3]):  # one by one: all of them as floats are several times the image
        plane = values.astype(np.float32)  # a row of one channel is read fastest
        smaller[..., k] = _area(plane * seen, width, height) * back if alpha else _area(plane, width, height)
    return np.rint(np.minimum(smaller, 255)).astype(np.uint8)


def shrink_channels(image: np.ndarray, width: int, height: int, has_alpha: bool) -> np.ndarray:
    """As `shrink`, of channels (height, width, channel) float32: the mean of what is known, NaN where nothing is.

    Example:
        >>> shrink_channels(np.array([[[0.0], [np.nan], [3.0]]], np.float32), 1, 1, False).tolist()
        [[[1.5]]]
    """
    if image.shape[:2] == (height, width):
        return image
    smaller = np.empty((height, width, image.shape[2]), np.float32)
    weight = np.ascontiguousarray(image[..., -1]) if has_alpha else np.ones(image.shape[:2], np.float32)
    for c in range(image.shape[2]):
        if has_alpha and c == image.shape[2] - 1:
            smaller[..., c] = _area(weight, width, height)
            continue
        plane = np.ascontiguousarray(image[..., c])
        known = np.isfinite(plane)
        share = _area(known.astype(np.float32), width, height)
        by_alpha = _area(np.where(known, weight, 0), width, height)
        total, plain = (_area(np.where(known, plane * w, 0), width, height) for w in (weight, np.float32(1)))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(by_alpha > MIN_PIXEL_FRACTION, total / by_alpha, plain / share)
        smaller[..., c] = np.where(share > MIN_PIXEL_FRACTION, mean, np.nan)
    return smaller


def shrink_mask(mask: np.ndarray, width: int, height: int) -> np.ndarray:
    """Mask (height, width) of a smaller image: a pixel counts if all that it is made of does."""
    return _area(np.where(mask, np.float32(0), np.float32(1)), width, height) < MIN_PIXEL_FRACTION


def _area(plane: np.ndarray, width: int, height: int) -> np.ndarray:
    """Mean of the pixels (row, column) of one channel under each new one."""
    rows, columns = plane.shape
    small = np.zeros((height, columns), np.float32)
    for index, weight in _taps(rows, height):
        small += weight[:, None] * plane[index]
    smaller = np.zeros((height, width), np.float32)
    for index, weight in _taps(columns, width):
        smaller += weight * small[:, index]
    return smaller


def _taps(count: int, wanted: int) -> Iterator[tuple[slice | np.ndarray, np.ndarray]]:
    """The pixels under each new pixel of a row, one a time, with the share of it that they cover."""
    size = count / wanted
    if count % wanted == 0:  # a slice is read several times as fast as the same numbers by index
        step = count // wanted
        yield from ((slice(k, None, step), np.full(wanted, 1 / step, np.float32)) for k in range(step))
        return
    begin, end = np.arange(wanted) * size, (np.arange(wanted) + 1) * size
    first = np.floor(begin).astype(int)
    for k in range(int(np.ceil(size)) + 1):
        index = first + k
        share = np.minimum(index + 1, end) - np.maximum(index, begin)
        yield np.minimum(index, count - 1), (np.maximum(share, 0) / size).astype(np.float32)

"""Area filter: images made smaller by any factor, each new pixel the mean of what lies under it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


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
    small = np.zeros((height, columns, image.shape[2]), np.float32)
    for index, weight in _taps(rows, height):
        some = image[index].astype(np.float32)
        if image.shape[2] == 4:
            some[..., :3] *= some[..., 3:] / 255
        small += weight[:, None, None] * some
    smaller = np.zeros((height, width, image.shape[2]), np.float32)
    for index, weight in _taps(columns, width):
        smaller += weight[:, None] * small[:, index]
    if image.shape[2] == 4:
        smaller[..., :3] *= 255 / np.maximum(smaller[..., 3:], 1e-6)
    return np.rint(np.minimum(smaller, 255)).astype(np.uint8)


def shrink_mask(mask: np.ndarray, width: int, height: int) -> np.ndarray:
    """Mask (height, width) of a smaller image: a pixel counts if all that it is made of does."""
    area = shrink(np.where(mask, np.uint8(0), np.uint8(255))[..., None], width, height)[..., 0]
    return area == 0


def _taps(count: int, wanted: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pixels under each new pixel of a row, one a time, with the share of it that they cover."""
    size = count / wanted
    begin, end = np.arange(wanted) * size, (np.arange(wanted) + 1) * size
    first = np.floor(begin).astype(int)
    for k in range(int(np.ceil(size)) + 1):
        index = first + k
        share = np.minimum(index + 1, end) - np.maximum(index, begin)
        yield np.minimum(index, count - 1), (np.maximum(share, 0) / size).astype(np.float32)

"""Views made smaller: images by their area, masks and cameras along with them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from raymarch.data.cores import workers
from raymarch.views.resize import shrink, shrink_mask
from raymarch.views.views import Views

FEWEST = 16  # pixels along an image's shorter side below which it is not made smaller


def smaller(views: Views, factor: int) -> Views:
    """Views with `factor` times fewer pixels a side, all else of the set kept.

    Sides that are no multiple are rounded, and the camera's pixels are then as much wider.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> views = Views([Camera.look_at((0, -4, 0), width=64, height=33)], np.zeros((1, 33, 64, 3), np.uint8))
        >>> smaller(views, 2).size_in_words()
        '32 x 16'
    """
    cameras = [camera.scaled(1 / factor) for camera in views.cameras]
    sizes = [(camera.width, camera.height) for camera in cameras]
    with ThreadPoolExecutor(workers()) as pool:  # NumPy lets go of Python's lock
        images = list(pool.map(lambda i: shrink(views.image(i), *sizes[i]), range(len(sizes))))
    masks = None
    if views.masks is not None:
        masks = [None if (mask := views.mask(i)) is None else shrink_mask(mask, *size) for i, size in enumerate(sizes)]
    whole = np.stack(images) if len(set(sizes)) == 1 else tuple(images)
    return replace(views, cameras=cameras, images=whole, masks=masks)


def most_halvings(views: Views) -> int:
    """Count of times that all sides can be halved before one has too few pixels; 0 of views with masks, which may leave
    no pixel of a smaller image whole.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> most_halvings(Views([Camera.look_at((0, -4, 0), width=64, height=33)], np.zeros((1, 33, 64, 3), np.uint8)))
        1
    """
    return 0 if views.masks is not None else max(int(np.log2(min(map(min, views.sizes)) / FEWEST)), 0)

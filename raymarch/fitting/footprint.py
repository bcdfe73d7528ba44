"""Footprint of a pixel: how wide what one pixel sees is at the object, against which voxels are coarse or fine.

And the silhouette, how much of it all the pixels of a view see.
"""

from __future__ import annotations

import math

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.views.views import Views

TINY = 1e-30  # of a voxel: what is under it, a product at last 0, is no width to divide by


def footprint_of(views: Views, box: np.ndarray) -> float:
    """Median over the views of a pixel's width at the distance of a box's (2, 3) middle [world unit].

    Cameras in the box, which see its walls, count as half its longest side away.

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=64)
        >>> views = Views([camera], np.zeros((1, 64, 64, 3), np.uint8))
        >>> footprint_of(views, np.array([(-1, -1, -1), (1, 1, 1)])) == 4 / camera.focal[0]
        True
    """
    return float(np.median(_pixels(views, box)))


def silhouette_of(views: Views, box: np.ndarray) -> float:
    """Mean over the views of the area that is not empty by their alpha, at a box's (2, 3) middle [world unit^2].

    Infinite of images without alpha, or with one that masks nothing: they do not tell. A convex body's surface is four
    times the mean over all directions (Cauchy 1841).

    Example:
        >>> from raymarch.geometry.camera import Camera
        >>> camera = Camera.look_at((0, -4, 0), width=64, height=64)
        >>> half = np.full((1, 64, 64, 4), 255, np.uint8)
        >>> half[:, :32] = 0
        >>> area = silhouette_of(Views([camera], half), np.array([(-1, -1, -1), (1, 1, 1)]))
        >>> round(area * (camera.focal[0] / 4) ** 2)
        2048
    """
    if not views.shows_silhouettes:
        return math.inf
    shown = [np.count_nonzero(views.image(i)[..., 3]) for i in range(len(views))]
    return float(np.mean(np.array(shown) * np.square(_pixels(views, box))))


def _pixels(views: Views, box: np.ndarray) -> list[float]:
    """Size of a pixel of each view at a box's middle [world unit]."""
    eyes = np.array([camera.position for camera in views.cameras])
    away = np.maximum(np.linalg.norm(eyes - box.mean(0), axis=1), (box[1] - box[0]).max() / 2)
    return [_pixel_at(camera, each) for camera, each in zip(views.cameras, away, strict=True)]


def _pixel_at(camera: Camera, distance: float) -> float:
    """Size of a pixel [world unit] on the axis at a distance from the camera: the same at all of parallel rays."""
    focal = math.sqrt(camera.focal[0] * camera.focal[1])
    return 1 / focal if camera.lens.parallel else distance / focal


def halvings(voxel: float, footprint: float, pixels: float) -> int:
    """Count of times that images can be halved with a voxel still `pixels` of their pixels wide, 0 at least.

    Example:
        >>> [halvings(voxel, 1.0, 1.25) for voxel in (1.0, 2.0, 2.5, 5.0)]
        [0, 0, 1, 2]
    """
    wide = max(footprint * pixels, TINY * voxel)
    return max(math.floor(math.log2(voxel / wide)), 0) if pixels > 0 else 0

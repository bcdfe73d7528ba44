"""Matcap shading: a surface's colour read off a picture of a lit ball, by the normal as the camera sees it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.kernels.march.isosurface_geometry import ISOSURFACE
from raymarch.kernels.march.passes import Passes
from raymarch.kernels.march.plain_transfer import refusing

WHY = "shading has a matcap, which is of a camera's picture alone and has no gradient; leave matcap out"
_none = refusing(WHY)

# What stands for the mode wherever a matcap cannot be seen.
UNSEEN = replace(ISOSURFACE, passes=Passes(_none, _none, _none, _none, _none, _none), no_gradient=WHY)


def matcap_colours(normals: np.ndarray, camera: Camera, matcap: np.ndarray) -> np.ndarray:
    """Colours (..., 3) of unit normals (..., 3) in the world by a matcap (row, column, 3), bilinear between pixels.

    Its ball fills it from edge to edge: the normal (x, y) in camera axes, x to the right and y up, is read at column
    (x + 1) / 2 and row (1 - y) / 2 of it. Sloan et al. 2001, "The lit sphere: a model for capturing NPR shading from
    art".

    Example:
        >>> ball = np.linspace(0, 1, 3)[:, None, None] * np.ones((3, 3, 3))
        >>> matcap_colours(np.array([0.0, 0, 1]), Camera.look_at((0, 0, 4), up=(0, 1, 0)), ball).round(3).tolist()
        [0.5, 0.5, 0.5]
    """
    seen = normals @ camera.world_from_camera[:3, :2]
    size = np.array(matcap.shape[1::-1])
    place = (np.array([1, -1]) * seen + 1) / 2 * size - 0.5
    place = np.clip(place, 0, size - 1)
    low = np.minimum(place.astype(int), np.maximum(size - 2, 0))
    (x, y), (u, v) = np.moveaxis(low, -1, 0), np.moveaxis((place - low)[..., None, :], -1, 0)
    x2, y2 = np.minimum(x + 1, size[0] - 1), np.minimum(y + 1, size[1] - 1)
    above, below = matcap[y, x] * (1 - u) + matcap[y, x2] * u, matcap[y2, x] * (1 - u) + matcap[y2, x2] * u
    return above * (1 - v) + below * v

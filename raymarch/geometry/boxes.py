"""Boxes with sides along the axes: whether a camera stands in one, and where rays meet one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.geometry.camera import Camera


def camera_in_box(cameras: Sequence[Camera], box: np.ndarray) -> bool:
    """Whether any camera stands in a box (2, 3), or on a face of it.

    Example:
        >>> camera_in_box([Camera.look_at((4, 0, 0)), Camera.look_at((1, 0, 0))], np.array([(-1, -1, -1), (1, 1, 1)]))
        True
    """
    lower, upper = box
    return any(bool(((lower <= camera.position) & (camera.position <= upper)).all()) for camera in cameras)


def meet_box(origin: np.ndarray, direction: np.ndarray, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances (ray,) [length of the direction] at which rays (ray, 3) enter a box (2, 3) and leave it; they miss it
    where they would leave before they enter (slabs: Kay and Kajiya 1986).

    Example:
        >>> meet_box(np.array([[-3.0, 0, 0]]), np.array([[1.0, 0, 0]]), np.array([(-1, -1, -1), (1, 1, 1)]))
        (array([2.]), array([4.]))
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        faces = (box[:, None] - origin) / direction
    return np.nanmax(faces.min(0), axis=-1), np.nanmin(faces.max(0), axis=-1)


def meets_box(origin: np.ndarray, direction: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Whether rays (ray, 3) meet a box (2, 3) from where they begin on: (ray,) bool.

    Example:
        >>> ahead, behind = np.array([[-3.0, 0, 0], [3.0, 0, 0]])
        >>> meets_box(np.stack([ahead, behind]), np.array([[1.0, 0, 0]]), np.array([(-1, -1, -1), (1, 1, 1)]))
        array([ True, False])
    """
    near, far = meet_box(origin, direction, box)
    return (far >= near) & (far > 0)

"""Cameras in a box, from which what is behind them may be seen too."""

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

"""Optical axes of several cameras: the point that they come nearest to together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.nearest_point import nearest_to_lines


def meeting_of_axes(cameras: Sequence[Camera]) -> np.ndarray | None:
    """Point (3,) nearest to all optical axes, by least squares; None where they are as good as parallel.

    Example:
        >>> two = [Camera.look_at((4, 0, 1), (0, 0, 1)), Camera.look_at((0, 4, 1), (0, 0, 1))]
        >>> meeting_of_axes(two).round(9).tolist()
        [0.0, 0.0, 1.0]
    """
    poses = np.array([camera.world_from_camera for camera in cameras])
    return nearest_to_lines(poses[:, :3, 3], -poses[:, :3, 2])

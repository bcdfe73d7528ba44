"""Cameras of images as a sensor took them, turned to the images as EXIF says that they are upright."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.geometry.camera import Camera
from raymarch.geometry.lens import Lens

QUARTERS = {3: 2, 6: 1, 8: -1}  # EXIF's orientation: quarters of a turn to the right that make the image upright
MIRRORED = (2, 4, 5, 7)  # orientations whose upright image no camera of the one before shows


def turned_upright(camera: Camera, quarters: int) -> Camera:
    """Camera of an image that is turned to the right by a quarter or two, or by -1 to the left: the same rays.

    Example:
        >>> camera = turned_upright(Camera(np.eye(4), (9, 8), (3, 2), 8, 6), 1)
        >>> camera.focal, camera.principal, (camera.width, camera.height)
        ((8.0, 9.0), (4.0, 3.0), (6, 8))
    """
    if quarters == 2:
        return turned_upright(turned_upright(camera, 1), 1)
    right, up, back = camera.world_from_camera[:3, :3].T
    pose = camera.world_from_camera.copy()
    pose[:3, :3] = np.stack([quarters * up, -quarters * right, back], axis=1)
    (fx, fy), (cx, cy) = camera.focal, camera.principal
    principal = (camera.height - cy, cx) if quarters == 1 else (cy, camera.width - cx)
    return Camera(pose, (fy, fx), principal, camera.height, camera.width, _turned_lens(camera.lens, quarters))


def _turned_lens(lens: Lens, quarters: int) -> Lens:
    """Lens whose tangential part, which is along the vector (p2, p1), is turned; all else is round."""
    numbers = dict(zip(lens.names, lens.coefficients, strict=True))
    if "p1" in numbers:
        numbers["p1"], numbers["p2"] = quarters * numbers["p2"], -quarters * numbers["p1"]
    return replace(lens, coefficients=tuple(numbers.values()))

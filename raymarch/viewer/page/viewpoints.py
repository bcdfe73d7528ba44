"""Where a page looks from: its first camera, and a path through the cameras of a set."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.geometry.camera import Camera
from raymarch.geometry.camera_path import path_through, reframe, tour_order
from raymarch.geometry.orbit import orbit_of_points
from raymarch.rendering.default_look import DefaultLook, farthest_seen_points
from raymarch.viewer.page.photographs import straight
from raymarch.volumes.volume import Volume

STILL_SIZE = 960, 720  # pixels of the still picture, and of the first camera where there is no set
ORBIT_CAMERAS = 8
ELEVATION, ELEVATION_OF_VALUES = 25.0, 10.0  # degrees, as `raymarch render` has it
PATH_KEYS, PATH_FRAMES = 16, 180
MAX_CAMERAS = 512  # that a page offers, evenly taken of more


def first_camera(volume: Volume, look: DefaultLook, up: Sequence[float] | None = None) -> Camera:
    """First camera of an orbit about what is seen; of a volume in NDC the one whose frustum it is."""
    if volume.ndc_from_world is not None:
        return _camera_of_ndc(volume.ndc_from_world)
    points = farthest_seen_points(volume, look.march)
    elevation = ELEVATION if look.front is None else ELEVATION_OF_VALUES
    how = {"size": min(STILL_SIZE), "up": look.up if up is None else up, "front": look.front}
    return reframe(orbit_of_points(points, ORBIT_CAMERAS, elevation, **how)[0], *STILL_SIZE)  # type: ignore[arg-type]


def _camera_of_ndc(ndc_from_world: np.ndarray) -> Camera:
    """Camera that sees x from -1 to 1 in NDC."""
    right, up, depth = ndc_from_world[0], ndc_from_world[1], ndc_from_world[3]
    focal = float(np.linalg.norm(right[:3]) / np.linalg.norm(depth[:3]))
    pose = np.eye(4)
    pose[:3, :3] = np.stack([row[:3] / np.linalg.norm(row[:3]) for row in (right, up, -depth)], axis=1)
    rows = np.stack([right, up, depth])
    pose[:3, 3] = np.linalg.solve(rows[:, :3], -rows[:, 3])
    return Camera.from_fov(pose, 2 * np.arctan(1 / focal), *STILL_SIZE)


def path_of(cameras: Sequence[Camera]) -> list[Camera]:
    """Smooth path through cameras of a set; [] where they make none."""
    plain = [straight(camera) for camera in cameras]
    with suppress(RaymarchError):
        order = tour_order(plain, PATH_KEYS)
        return path_through([plain[i] for i in order], PATH_FRAMES)
    return []


def some_of(count: int, most: int) -> list[int]:
    """Up to `most` of so many indices, evenly taken.

    Example:
        >>> some_of(9, 3)
        [0, 4, 8]
    """
    return sorted({round(i) for i in np.linspace(0, count - 1, min(count, most))})

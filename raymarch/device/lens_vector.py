"""Lens vector of a camera: what `kernels/rays/lens` takes for every model."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from raymarch.geometry.camera import Camera, border
from raymarch.geometry.distortion import ANGLES, slopes
from raymarch.geometry.lens import Lens

BEYOND = 1.25  # of the image's corners: from there on it does not matter where points go


def lens_vector(camera: Camera) -> np.ndarray:
    """Lens vector (16,) of a camera.

    Example:
        >>> lens_vector(Camera.look_at((0, -4, 0), width=8, height=6))[2:5].tolist()
        [4.0, 3.0, 0.0]
    """
    return np.array(_numbers(camera.lens, camera.focal, camera.principal, camera.width, camera.height))


@lru_cache(4096)
def _numbers(
    lens: Lens, focal: tuple[float, float], principal: tuple[float, float], width: int, height: int
) -> tuple[float, ...]:
    if lens.plain:
        return (*focal, *principal, float(lens.kind), 1e30, max(focal), *lens.numbers)
    a, _ = lens.flattened((border(width, height) - principal) / np.array(focal))
    reach = min(lens.reach, BEYOND * float(np.linalg.norm(a, axis=1).max()))
    angle, radii = np.linspace(0, 2 * np.pi, 16, endpoint=False), np.linspace(0, reach, 17)
    some = radii[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    by_point, _ = slopes(lens.kind, lens.numbers, lens.reach, some.reshape(-1, 2))
    stretch = 1.1 * float(np.linalg.norm(by_point, 2, axis=(1, 2)).max())
    if lens.kind == ANGLES:  # the plane of angles is itself wider than the sphere
        stretch *= reach / max(float(np.sin(reach)), 0.3) if reach < np.pi / 2 else reach / 0.3
    return (*focal, *principal, float(lens.kind), reach, stretch * max(focal), *lens.numbers)

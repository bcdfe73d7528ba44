"""Rays that a gradient check looks along: random pixels of those that see the volumes, and the background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.data.default_table import has_values_alone
from raymarch.geometry.camera import Camera
from raymarch.gradients.linearised import EXACT, Linearised
from raymarch.gradients.linearised_together import LinearisedTogether
from raymarch.rendering.march_settings import March
from raymarch.views.views import require_colour
from raymarch.volumes.volume import Volume

CANDIDATES = 16  # rays that are looked at for each that is taken
MET = 0.01  # opacity from which a ray counts as having met something


def background_to_check(volume: Volume) -> tuple[float, ...]:
    """A background that no channel is lost on: the volume's own, unless it is black somewhere."""
    return tuple(c if c > 0 else 0.25 for c in require_colour(volume.background))


def pixels_to_check(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], rays: int, seed: int
) -> np.ndarray:
    """Random pixels that the volumes' boxes cover, those that meet something first."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(_covered(volumes, camera))[: CANDIDATES * rays]
    met = _transmittance(volumes, camera, marches, some) < 1 - MET
    return np.concatenate([some[met], some[~met]])[:rays]


def _transmittance(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], pixels: np.ndarray
) -> np.ndarray:
    if len(volumes) > 1:
        with LinearisedTogether(volumes, camera, marches=list(marches), pixels=pixels) as together:
            return together.image()[:, 3]
    volume, march = volumes[0], marches[0]
    as_it_is = march.rule.classifies or has_values_alone(volume)
    looking = march if as_it_is else replace(march, mode=EXACT.mode, iso=None, shading=None)
    with Linearised(volume, camera, march=looking, pixels=pixels) as seen:
        return seen.image()[:, 3]


def _covered(volumes: Sequence[Volume], camera: Camera) -> np.ndarray:
    """Pixels of the rectangles that hold the boxes' corners; all where some lie behind, or none of it is seen."""
    pixels = np.arange(camera.width * camera.height).reshape(camera.height, camera.width)
    covered = np.zeros(pixels.shape, bool)
    for volume in volumes:
        seen, depth = camera.project(volume.corners)
        if (depth <= 0).any():
            return pixels.ravel()
        columns, rows = (slice(max(int(a.min()), 0), max(int(np.ceil(a.max())), 0)) for a in seen.T)
        covered[rows, columns] = True
    return pixels[covered] if covered.any() else pixels.ravel()

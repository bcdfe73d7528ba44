"""A toy lighthouse of solids met in closed form: what the notebooks look at, as a volume or ray traced.

`density` and `colour` give it at any points of the world, for a volume; `parts` are the solids, for a ray tracer
(`make_garden.py`). It stands on a rock, with a hut on one side of it, so that no two sides look alike. Nothing here
imports the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import materials
import numpy as np
from primitives import Box, Frustum, Material, Primitive, Sphere, Surface

SIGMA = 120.0  # extinction within [1 / world unit]
EDGE = 0.008  # of the fall of extinction at a surface [world unit]
BOX = np.array([[-0.84, -0.84, -0.92], [0.84, 0.84, 0.84]])  # holds all of it
HUT = np.array([0.42, -0.16, -0.36])


def bands(points: np.ndarray) -> Surface:
    """Red and white bands of the tower, by local z."""
    red = np.mod(np.floor(points[:, 2] / 0.17 + 0.5), 2) == 1
    return Surface(np.where(red[:, None], [0.58, 0.05, 0.04], [0.80, 0.78, 0.72]))


def rock(points: np.ndarray) -> Surface:
    """Stone with moss on top."""
    grain = materials.noise(points, 9.0, 3)
    stone = materials.mix(np.array([0.16, 0.14, 0.12]), np.array([0.42, 0.38, 0.33]), grain)
    return Surface(np.where((points[:, 2] + 0.1 * grain > 0.17)[:, None], [0.16, 0.27, 0.09], stone))


@cache
def parts() -> tuple[Primitive, ...]:
    """Solids of the lighthouse, those that cover others last."""
    lamp, roof = materials.plain((0.95, 0.72, 0.18)), materials.plain((0.30, 0.05, 0.04))
    wall, slate, door = (materials.plain(c) for c in ((0.20, 0.38, 0.62), (0.10, 0.10, 0.13), (0.12, 0.06, 0.03)))

    def upright(made_of: Material, low: float, high: float, bottom: float, top: float) -> Frustum:
        return Frustum(made_of, np.array([0, 0, (low + high) / 2]), bottom=bottom, top=top, half=(high - low) / 2)

    quarter = np.array([[1, 1, 0], [-1, 1, 0], [0, 0, np.sqrt(2)]]) / np.sqrt(2)
    return (
        Frustum(rock, np.array([0, 0, -0.66]), bottom=0.74, top=0.60, half=0.16),
        upright(bands, -0.50, 0.38, 0.23, 0.15),
        upright(slate, 0.34, 0.38, 0.23, 0.23),
        upright(lamp, 0.38, 0.56, 0.11, 0.11),
        upright(roof, 0.55, 0.76, 0.17, 0.02),
        Box(wall, HUT, half=np.array([0.15, 0.19, 0.14])),
        Frustum(roof, HUT + np.array([0, 0, 0.21]), quarter, bottom=0.24, top=0.04, half=0.07),
        Box(door, HUT + np.array([0.14, 0.04, -0.04]), half=np.array([0.02, 0.05, 0.09])),
        Sphere(materials.plain((0.12, 0.30, 0.12)), np.array([-0.36, 0.30, -0.42]), radius=0.13),
        Sphere(materials.plain((0.16, 0.36, 0.10)), np.array([-0.44, 0.14, -0.45]), radius=0.09),
    )


def _nearest(points: np.ndarray, solids: Sequence[Primitive]) -> tuple[np.ndarray, np.ndarray]:
    """Signed distance (n,) to the nearest surface, and which solid it is of."""
    distances = np.stack([solid.distance(solid.local(points)) for solid in solids])
    which = distances.argmin(0)
    return distances[which, np.arange(len(points))], which


def density(points: np.ndarray, solids: Sequence[Primitive] | None = None, edge: float = EDGE) -> np.ndarray:
    """Extinction (...) [1 / world unit] at points (..., 3), of all parts or of some solids."""
    distance, _ = _nearest(np.reshape(points, (-1, 3)), solids or parts())
    return (SIGMA / (1 + np.exp(np.clip(distance / edge, -50, 50)))).reshape(np.shape(points)[:-1])


def colour(points: np.ndarray, solids: Sequence[Primitive] | None = None) -> np.ndarray:
    """Display colour (..., 3) in 0..1 of the nearest solid, at points (..., 3); the same from every side."""
    flat, solids = np.reshape(points, (-1, 3)), solids or parts()
    _, which = _nearest(flat, solids)
    out = np.zeros((len(flat), 3))
    for k, solid in enumerate(solids):
        mine = which == k
        if mine.any():
            out[mine] = solid.material(solid.local(flat[mine])).albedo
    return (out ** (1 / 2.2)).clip(0.02, 0.98).reshape(np.shape(points))

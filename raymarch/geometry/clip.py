"""Clipping: a box and half-spaces of the world, beyond which a march sees nothing; `kernels/rays/segment_ends.py`
beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raymarch.arguments.checks import MAX_COORDINATE, Check, Numbers, Wrong, instance_of, number, optional
from raymarch.arguments.declared import checked, checked_field, suggest_names, validate_fields
from raymarch.geometry.boxes import BOX
from raymarch.geometry.camera import POINTS
from raymarch.geometry.pose import POSITION
from raymarch.geometry.rays import RAYS, Rays

MAX_PLANES = 6
PARALLEL_TOLERANCE = 1e-12  # of a unit vector along a plane's normal, as in kernels
Corners = tuple[tuple[float, float, float], tuple[float, float, float]]
Plane = tuple[tuple[float, float, float], float]


def _corners(value: Any) -> Corners:
    lower, upper = BOX.read(value).tolist()
    return tuple(lower), tuple(upper)


def _plane(value: Any) -> Plane:
    """Unit normal and offset of one plane, as they are given or as the four numbers of one."""
    given = list(value)
    if len(given) == 4:
        given = [given[:3], given[3]]
    normal = np.array(POSITION.read(given[0]))
    length, offset = float(np.linalg.norm(normal)), number(-MAX_COORDINATE, MAX_COORDINATE).read(given[1])
    if len(given) != 2 or not length > 0:
        raise ValueError
    return tuple((normal / length).tolist()), offset / length


def _planes(value: Any) -> tuple[Plane, ...]:
    if isinstance(value, (str, dict)):
        raise ValueError
    given = list(value)
    if len(given) > MAX_PLANES:
        raise Wrong(f"is {len(given)} planes")
    try:
        return tuple(_plane(one) for one in given)
    except IndexError:
        raise ValueError from None


PLANES = Check(
    f"up to {MAX_PLANES} planes (normal, offset): three numbers, not all 0, and one",
    _planes,
    "of each the side is kept where normal . point >= offset",
)
BOX_CORNERS = Check(BOX.wanted, _corners)


@suggest_names
@dataclass(frozen=True)
class Clip:
    """Clipping of what a march sees: the part of a volume within a box and on one side of each plane.

    Rays are cut where they cross, not at the nearest sample, so that a cut through a cell is seen where it is, and
    gradients by pose and box go through the cuts. All that is kept is convex, so a ray has one stretch in it.

    Attributes:
        box: lower and upper corner (2, 3) [world unit], faces along the world's axes; None for none.
        planes: up to 6 of (normal, offset), each the half-space of points with `normal . point >= offset`, which is
            in world units times the length of the normal. Normals are made unit vectors.

    Raises RaymarchError for more planes, a normal of length 0, a box whose corners are not in order.

    Example:
        >>> half = Clip(planes=[((0, 0, 2), 1.0)])
        >>> half.planes, half.keeps([(0, 0, 0.4), (0, 0, 0.6)]).tolist()
        ((((0.0, 0.0, 1.0), 0.5),), [False, True])
    """

    box: Corners | None = checked_field(optional(BOX_CORNERS), None)
    planes: tuple[Plane, ...] = checked_field(PLANES, ())

    def __post_init__(self) -> None:
        validate_fields(self, "clip")

    @property
    def half_spaces(self) -> np.ndarray:
        """(plane, 4) unit normal and offset of all planes, those of the box first."""
        rows = []
        if self.box is not None:
            for corner, sign in zip(self.box, (1.0, -1.0), strict=True):
                rows += [[*(sign * np.eye(3)[a]), sign * corner[a]] for a in range(3)]
        rows += [[*normal, offset] for normal, offset in self.planes]
        return np.array(rows).reshape(-1, 4)

    @checked(points=POINTS)
    def keeps(self, points: Numbers) -> np.ndarray:
        """Whether (...) points (..., 3) of the world are kept."""
        kept = np.ones(points.shape[:-1], bool)
        for row in self.half_spaces:
            kept &= points @ row[:3] >= row[3]
        return kept

    @checked(rays=RAYS)
    def cut(self, rays: Rays) -> tuple[np.ndarray, np.ndarray]:
        """Near and far end (ray,) [world unit] of what is kept of each ray; far under near where nothing is."""
        near, far = np.zeros(len(rays)), np.full(len(rays), np.inf)
        for *normal, offset in self.half_spaces:
            ahead, toward = rays.origin @ normal - offset, rays.direction @ normal
            across = np.abs(toward) > PARALLEL_TOLERANCE
            t = -ahead / np.where(across, toward, 1.0)
            near = np.where(across & (toward > 0), np.maximum(near, t), near)
            far = np.where(across & (toward < 0), np.minimum(far, t), far)
            far = np.where(~across & (ahead < 0), -1.0, far)
        return near, far

    def planes_in(self, ndc_from_world: np.ndarray | None) -> np.ndarray:
        """(plane, 4) normal and offset of all planes in NDC, or in the world: planes go to planes there."""
        rows = self.half_spaces
        if ndc_from_world is None:
            return rows
        rows = rows * (1, 1, 1, -1) @ np.linalg.inv(ndc_from_world)
        return rows / np.linalg.norm(rows[:, :3], axis=1, keepdims=True) * (1, 1, 1, -1)


CLIP = instance_of(Clip, "an rm.Clip(...)", "give rm.Clip(box=((x0, y0, z0), (x1, y1, z1))) or rm.Clip(planes=...)")

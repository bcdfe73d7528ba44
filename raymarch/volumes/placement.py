"""Values placed in the world by an affine: spacing, origin, directions, corners."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from raymarch.arguments.checks import Check
from raymarch.geometry.boxes import corners_of, voxel_of

if TYPE_CHECKING:
    from raymarch.volumes.selection import Selection

# World axes of a body: the sides that x, y and z point to, in the letters of medical images.
#
# Letters: right or left, anterior or posterior, superior or inferior, each the side that an axis points to.

WORLDS = ("RAS", "LPS", "LAS")
DOWN, LEFTWARDS = "PI", "RA"  # sides that are shown below and on the left, as radiologists look at a body
OPPOSITE = dict(zip("RLAPSI", "LRPAIS", strict=True))


def shown_right(side: str) -> tuple[bool, str, str]:
    """Whether a picture's axis to a side is turned around to lie as radiologists look at it, and the sides at its left
    and right end.

    Example:
        >>> shown_right("R"), shown_right("L")
        ((True, 'R', 'L'), (False, 'R', 'L'))
    """
    return _turned(side, LEFTWARDS)


def shown_up(side: str) -> tuple[bool, str, str]:
    """As `shown_right`, of the axis that goes up: whether it is turned, and the sides below and above."""
    return _turned(side, DOWN)


def right_and_up(across: int, sides: str) -> tuple[int, int]:
    """Axes that go to the right and upwards in a picture across one of three: where `sides` tells the body's, right or
    left goes across before anterior or posterior, and that before superior or inferior, which goes up.

    Example:
        >>> right_and_up(0, "PIL"), right_and_up(0, "")
        ((2, 1), (1, 2))
    """
    first, second = (axis for axis in range(3) if axis != across)
    turned = bool(sides) and "RLAPSI".index(sides[first]) > "RLAPSI".index(sides[second])
    return (second, first) if turned else (first, second)


def _turned(side: str, backwards: str) -> tuple[bool, str, str]:
    far = OPPOSITE[side] if side in backwards else side
    return side in backwards, OPPOSITE[far], far


def _world(value: object) -> str:
    if not isinstance(value, str) or value.upper() not in (*WORLDS, ""):
        raise ValueError
    return value.upper()


WORLD_AXES = Check(f"one of {', '.join(WORLDS)}, or an empty text", _world)


def world_from_world(source: str, target: str) -> np.ndarray:
    """Affine (4, 4) that takes points of one world to another: x and y change sign between RAS and LPS.

    Where either is unknown, the numbers stay as they are.

    Example:
        >>> world_from_world("RAS", "LPS").diagonal().tolist()
        [-1.0, -1.0, 1.0, 1.0]
    """
    if not (source and target):
        return np.eye(4)
    return np.diag([1.0 if a == b else -1.0 for a, b in zip(source, target, strict=True)] + [1.0])


def sides_of(world_from_index: np.ndarray, world: str) -> str:
    """Sides that the array's axes point to, one letter each, by the world axis nearest to it; "" where it is unknown.

    Example:
        >>> sides_of(np.diag([-1.0, 1, 2, 1]), "RAS")
        'LAS'
    """
    if not world:
        return ""
    edges = world_from_index[:3, :3] / np.linalg.norm(world_from_index[:3, :3], axis=0)
    best = max(permutations(range(3)), key=lambda order: sum(abs(edges[order[j], j]) for j in range(3)))
    return "".join(world[row] if edges[row, j] > 0 else OPPOSITE[world[row]] for j, row in enumerate(best))


Own = TypeVar("Own", bound="PlacedValues")


class PlacedValues:
    """Values placed in the world; `ScalarVolume` has the fields."""

    values: np.ndarray
    world_from_index: np.ndarray
    world: str
    # What a `Volume` may have besides and this has not.
    boxes = 1
    degree = 0
    bricks = None
    ndc_from_world = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z)."""
        return self.values.shape  # type: ignore[return-value]

    @property
    def nbytes(self) -> int:
        """Size of the values in memory [byte]."""
        return self.values.nbytes

    @property
    def spacing(self) -> np.ndarray:
        """Distance from sample to sample along each axis of the array (3,) [world unit]."""
        return np.linalg.norm(self.world_from_index[:3, :3], axis=0)

    @property
    def origin(self) -> np.ndarray:
        """Place of the sample (0, 0, 0) in the world (3,)."""
        return self.world_from_index[:3, 3].copy()

    @property
    def directions(self) -> np.ndarray:
        """Unit vectors of the array's axes in the world (3, 3), one a column."""
        return self.world_from_index[:3, :3] / self.spacing

    @property
    def corners(self) -> np.ndarray:
        """Corners (8, 3) in the world, at the outermost samples."""
        return corners_of(self.world_from_index, self.shape)

    @property
    def box(self) -> np.ndarray:
        """Axis-aligned bounding box in the world: lower and upper corner (2, 3)."""
        return np.stack([self.corners.min(0), self.corners.max(0)])

    @property
    def voxel(self) -> float:
        """Voxel size: the shortest edge [world unit]."""
        return voxel_of(self.world_from_index)

    @property
    def sides(self) -> str:
        """Sides of the body that the array's axes point to, such as "LPS"; "" where the world is unknown."""
        return sides_of(self.world_from_index, self.world)

    def in_world(self: Own, world: str) -> Own:
        """The same in another world, "RAS" or "LPS": each sample stays at its place in the body."""
        world = WORLD_AXES("world", world)
        moved: dict[str, Any] = {"world_from_index": world_from_world(self.world, world) @ self.world_from_index}
        return replace(self, **moved, world=world)  # type: ignore[type-var]

    def part(self: Own, selection: Selection) -> Own:
        """Crop and stride of it; the samples that are kept stay where they are in the world."""
        chosen = self.values[selection.slices(self.shape)]
        affine = self.world_from_index @ selection.index_from_part(self.shape)
        return replace(self, values=chosen, world_from_index=affine)  # type: ignore[type-var]

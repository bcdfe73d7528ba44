"""Values placed in the world by an affine: spacing, origin, directions, corners."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from raymarch.data.world_axes import WORLD_AXES, sides_of, world_from_world
from raymarch.geometry.pose import corners_of, voxel_of

if TYPE_CHECKING:
    from raymarch.volumes.selection import Selection

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

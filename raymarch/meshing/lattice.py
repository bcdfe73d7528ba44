"""Lattice of a volume's raw densities within a box, whose outermost planes lie where the box ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.volumes.bricks import BRICK, spread
from raymarch.volumes.volume import Volume

ALIGNED = 1e-9  # of the affine's largest number: what is less counts as 0


@dataclass(frozen=True, eq=False)
class Lattice:
    """Raw densities (x, y, z), and the place of each plane in index space, an array an axis."""

    raw: np.ndarray
    places: tuple[np.ndarray, ...]


def is_aligned(volume: Volume) -> bool:
    """Whether the volume's axes run along the world's, in any order and sense."""
    linear = np.abs(volume.world_from_index[:3, :3])
    there = linear > ALIGNED * linear.max()
    return bool((there.sum(0) == 1).all() and (there.sum(1) == 1).all())


def lattice_of(volume: Volume, box: np.ndarray | None) -> Lattice:
    """Lattice of one box's samples within a box (2, 3) of the world; all of it if None.

    Where the volume's axes run along the world's the lattice ends with the box, between samples, by interpolation; else
    it is the smallest that has all of the box.

    Raises RaymarchError for a box beside the volume.
    """
    top = np.array(volume.box_shape) - 1.0
    ends = np.stack([np.zeros(3), top])
    if box is not None:
        corners = np.stack(np.meshgrid(*box.T, indexing="ij"), -1).reshape(-1, 3)
        index_from_world = np.linalg.inv(volume.world_from_index)
        index = corners @ index_from_world[:3, :3].T + index_from_world[:3, 3]
        ends = np.stack([np.maximum(index.min(0), 0), np.minimum(index.max(0), top)])
        if not is_aligned(volume):
            ends = np.stack([np.floor(ends[0]), np.ceil(ends[1])])
        if not (ends[1] > ends[0]).all():
            lower, upper = (" ".join(f"{x:.4g}" for x in corner) for corner in volume.box)
            raise RaymarchError(f"box {box.tolist()} is beside the volume, whose box is {lower} to {upper}")
    if volume.bricks is not None:
        ends = _of_bricks(volume, ends)
    first, last = np.floor(ends[0]).astype(int), np.ceil(ends[1]).astype(int)
    raw = _raw(volume, first, last)
    places = []
    for axis in range(3):
        place = np.arange(first[axis], last[axis] + 1, dtype=float)
        raw, place = _ended(raw, place, axis, ends[0, axis], ends[1, axis])
        places.append(place)
    return Lattice(raw, tuple(places))


def _of_bricks(volume: Volume, ends: np.ndarray) -> np.ndarray:
    """Ends (2, 3) in index space, no farther out than where there are bricks, and an empty sample."""
    there = np.argwhere(volume.bricks.table[: -(-volume.box_shape[0] // BRICK)] >= 0)  # type: ignore[union-attr]
    if not len(there):
        return ends
    low, high = BRICK * there.min(0) - 1.0, BRICK * (there.max(0) + 1.0)
    cut = np.stack([np.maximum(ends[0], low), np.minimum(ends[1], high)])
    return cut if (cut[1] > cut[0]).all() else ends


def _raw(volume: Volume, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Raw densities of samples from `first` to `last`, both included."""
    i, j, k = (slice(a, b + 1) for a, b in zip(first, last, strict=True))
    if volume.bricks is None:
        return volume.density[i, j, k]
    bricks, low = volume.bricks, first // BRICK
    table = bricks.table[tuple(slice(a, b // BRICK + 1) for a, b in zip(low, last, strict=True))]
    some = last + 1 - BRICK * low
    whole = spread(table, bricks.density, some, volume.activation.empty)
    return whole[tuple(slice(a, None) for a in first - BRICK * low)]


def _ended(raw: np.ndarray, place: np.ndarray, axis: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples whose first and last plane along an axis are moved to `low` and `high`, by interpolation."""
    if low == place[0] and high == place[-1]:
        return raw, place
    moved = np.moveaxis(raw.astype(float), axis, 0)
    f, g = low - place[0], place[-1] - high
    first, last = moved[0] + f * (moved[1] - moved[0]), moved[-1] + g * (moved[-2] - moved[-1])
    moved = moved.copy()
    moved[0], moved[-1], place = first, last, place.copy()
    place[0], place[-1] = low, high
    return np.moveaxis(moved, 0, axis), place

"""Part of a volume that is in memory, where its format reads files as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection
from raymarch.volumes.volume import AnyVolume


def part_of(volume: AnyVolume, selection: Selection, path: Path) -> AnyVolume:
    """Crop and stride of a volume, of bricks in dense arrays.

    RaymarchError for a channel, time or level, for nested boxes and NDC, and where there is no memory for the arrays.
    """
    require_one_place(selection, path)
    if selection.is_all:
        return volume
    if isinstance(volume, ScalarVolume):
        return volume.part(selection)
    require_one_grid(volume, path)
    index = [np.arange(n)[one] for n, one in zip(volume.shape, selection.slices(volume.shape), strict=True)]
    place = volume.world_from_index @ selection.index_from_part(volume.shape)
    return replace(volume, samples=volume.samples.part(index, volume.activation.empty), world_from_index=place)


def require_one_place(selection: Selection, path: Path) -> None:
    """RaymarchError where a selection chooses another channel, time or level than the first, of which there is one."""
    for name in ("channel", "time", "level"):
        if getattr(selection, name):
            raise RaymarchError(f"{path}: {name} is {getattr(selection, name)}, but there is only one; leave it out")


def require_one_grid(volume: AnyVolume, path: Path) -> None:
    """RaymarchError for a volume of nested boxes or in NDC, which are no grid of one spacing in the world."""
    if volume.boxes > 1 or volume.ndc_from_world is not None:
        kind, more = f"of {volume.boxes} nested boxes", ", or take the innermost, volume.nested(0)"
        if volume.ndc_from_world is not None:
            kind, more = "in NDC", ""
        raise RaymarchError(f"{path}: the volume is {kind}, want one grid in the world; leave it whole, as .h5{more}")


def spaced(
    volume: AnyVolume, spacing: float | Sequence[float] | None, selection: Selection, path: Path
) -> AnyVolume:  # fmt: skip
    """Volume with another spacing of its file's samples, of which a stride leaves out some; its origin stays."""
    if spacing is None:
        return volume
    require_one_grid(volume, path)
    steps = np.broadcast_to(np.asarray(spacing, float), 3) * np.asarray(selection.stride)
    affine = volume.world_from_index.copy()
    edges = np.linalg.norm(affine[:3, :3], axis=0)
    if selection.crop is not None:
        first = [start for start, _ in selection.crop] / np.asarray(selection.stride)
        affine[:3, 3] += affine[:3, :3] @ (first * (steps / edges - 1))
    affine[:3, :3] *= steps / edges
    return replace(volume, world_from_index=affine)

"""What shapes an image, number by number: a record for directions and for gradients."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from raymarch.errors import RaymarchError

SHAPES = {
    "background": (3,),
    "pose": (6,),
    "focal": (2,),
    "principal_point": (2,),
    "exposure": (6,),
    "step": (),
    "box": (3, 4),
}
FEW = tuple(SHAPES)
GROUPS = ("density", "colour", *FEW)


@dataclass(frozen=True, eq=False)
class Parameters:
    """One number for each thing that shapes an image, as a direction (a tangent) or as a gradient; None is zero.

    Attributes:
        density: (x, y, z) raw. colour: (x, y, z, channel) raw features.
        background: (3,).
        pose: (6,) translation [world unit] and rotation [radian] in camera axes: world_from_camera times exp of it.
        focal, principal_point: (2,) [pixel].
        exposure: (6,) three gains, then three offsets: the image is gain * colour + offset.
        step: () length of a step [voxel].
        box: (3, 4) upper rows of world_from_index; a step keeps its length in the world.
    """

    density: np.ndarray | None = None
    colour: np.ndarray | None = None
    background: np.ndarray | None = None
    pose: np.ndarray | None = None
    focal: np.ndarray | None = None
    principal_point: np.ndarray | None = None
    exposure: np.ndarray | None = None
    step: np.ndarray | None = None
    box: np.ndarray | None = None

    def dot(self, other: Parameters) -> float:
        """Sum of products over all that both have."""
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return float(sum(np.vdot(a, b) for a, b in pairs if a is not None and b is not None))


def units(group: str) -> list[Parameters]:
    """A direction for each number of a group; RaymarchError for what is none."""
    if group not in SHAPES:
        raise RaymarchError(f"parameter {group!r}: want some of {', '.join(FEW)}")
    size = int(np.prod(SHAPES[group]))
    return [Parameters(**{group: unit.reshape(SHAPES[group])}) for unit in np.eye(size)]

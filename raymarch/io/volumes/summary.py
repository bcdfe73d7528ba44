"""Summary of a volume file: what it holds, without its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from raymarch.arguments.arrays import array
from raymarch.arguments.checks import Check, flag, optional, whole
from raymarch.arguments.declared import checked, held, hold
from raymarch.html.card import ShownRecord
from raymarch.volumes.activation import ACTIVATION, Activation
from raymarch.volumes.samples import BOXES, MAPPING, MAX_DEGREE
from raymarch.volumes.volume import VOLUME, Volume


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(whole(2, 1 << 40).read(n) for n in value)
    if len(shape) != 3:
        raise ValueError
    return shape


SHAPE = Check("three whole numbers of 2 or more", _shape)
BYTES = whole(0, 1 << 62)


@dataclass(frozen=True, eq=False)
class VolumeSummary(ShownRecord):
    """Summary of a volume file, without its arrays; `describe` of a volume format returns it.

    Attributes:
        shape: count of samples (x, y, z), those of all nested boxes along x.
        degree: degree of the spherical harmonics.
        box: lower and upper corner (2, 3) of the smallest upright box that holds the volume [world unit], or the
            innermost of its nested boxes, or what of NDC is within four times the near plane.
        activation: how raw numbers become sigma and colour.
        bytes_on_disk, bytes_in_memory: size of the file and of its arrays once loaded.
        provenance: what is known of its making.
        boxes: nested boxes, 1 for most volumes.
        ndc: whether the volume lies in normalised device coordinates.
        bricks: bricks of a sparse volume, None of a dense one.

    Raises RaymarchError for what is of another type or out of range.

    Example:
        >>> ramp = Volume.from_function(lambda p: p[..., 0], shape=(4, 5, 6))
        >>> VolumeSummary.of(ramp, bytes_on_disk=2048).shape
        (4, 5, 6)
    """

    shape: tuple[int, int, int] = held(SHAPE, None)
    degree: int = held(whole(0, MAX_DEGREE), 0)
    box: np.ndarray = held(array(2, 3), None)
    activation: Activation = held(ACTIVATION, Activation())
    bytes_on_disk: int = held(BYTES, 0)
    bytes_in_memory: int = held(BYTES, 0)
    provenance: Mapping = field(default_factory=dict, metadata={"check": MAPPING})
    boxes: int = held(BOXES, 1)
    ndc: bool = held(flag, False)
    bricks: int | None = held(optional(BYTES), None)

    def __post_init__(self) -> None:
        hold(self)

    @classmethod
    @checked(volume=VOLUME, bytes_on_disk=BYTES)
    def of(cls, volume: Volume, bytes_on_disk: int) -> VolumeSummary:
        """Summary of a volume that is loaded, from a file of so many bytes."""
        bricks = None if volume.bricks is None else volume.bricks.count
        return cls(
            volume.shape, volume.degree, volume.box, volume.activation, bytes_on_disk, volume.nbytes,
            dict(volume.provenance), volume.boxes, volume.ndc_from_world is not None, bricks,
        )  # fmt: skip

    def record(self) -> dict:
        """Summary as plain numbers, texts and lists, for printing."""
        plain = {**asdict(self), "box": self.box.tolist(), "provenance": dict(self.provenance)}
        return {**plain, "shape": list(self.shape)}

"""Summary of a volume file: what it holds, without its arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, array, flag, number, optional, whole
from raymarch.arguments.declared import checked, checked_field, validate_fields
from raymarch.geometry.boxes import corners_of
from raymarch.html.card import html_of, record_card
from raymarch.io.volumes.source import Source, text_of
from raymarch.volumes.activation import ACTIVATION, Activation
from raymarch.volumes.samples import BOXES, CHANNEL_NAMES, COLOUR_CHANNELS, MAPPING, MAX_DEGREE
from raymarch.volumes.scalar_volume import AFFINE, SCALAR_VOLUME, WORD, ScalarVolume
from raymarch.volumes.volume import VOLUME, Volume
from raymarch.volumes.world_axes import WORLD_AXES, sides_of


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(whole(2, 1 << 40).read(n) for n in value)
    if len(shape) != 3:
        raise ValueError
    return shape


SHAPE = Check("three whole numbers of 2 or more", _shape)
BYTES = whole(0, 1 << 62)


@dataclass(frozen=True, eq=False)
class VolumeSummary:
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
        channels: names of what its samples show, red, green and blue of colours.

    Raises RaymarchError for what is of another type or out of range.

    Example:
        >>> ramp = Volume.from_function(lambda p: p[..., 0], shape=(4, 5, 6))
        >>> VolumeSummary.of(ramp, bytes_on_disk=2048).shape
        (4, 5, 6)
    """

    shape: tuple[int, int, int] = checked_field(SHAPE, None)
    degree: int = checked_field(whole(0, MAX_DEGREE), 0)
    box: np.ndarray = checked_field(array(2, 3), None)
    activation: Activation = checked_field(ACTIVATION, Activation())
    bytes_on_disk: int = checked_field(BYTES, 0)
    bytes_in_memory: int = checked_field(BYTES, 0)
    provenance: Mapping = field(default_factory=dict, metadata={"check": MAPPING})
    boxes: int = checked_field(BOXES, 1)
    ndc: bool = checked_field(flag, False)
    bricks: int | None = checked_field(optional(BYTES), None)
    channels: tuple[str, ...] = checked_field(CHANNEL_NAMES, COLOUR_CHANNELS)

    def __post_init__(self) -> None:
        validate_fields(self)

    @classmethod
    @checked(volume=VOLUME, bytes_on_disk=BYTES)
    def of(cls, volume: Volume, bytes_on_disk: int) -> VolumeSummary:
        """Summary of a volume that is loaded, from a file of so many bytes."""
        bricks = None if volume.bricks is None else volume.bricks.count
        return cls(
            volume.shape,
            volume.degree,
            volume.box,
            volume.activation,
            bytes_on_disk,
            volume.nbytes,
            dict(volume.provenance),
            volume.boxes,
            volume.ndc_from_world is not None,
            bricks,
            volume.channels,
        )

    def _repr_html_(self) -> str | None:
        return html_of(record_card, self)

    def record(self) -> dict:
        """Summary as plain numbers, texts and lists, for printing."""
        plain = {**asdict(self), "box": self.box.tolist(), "provenance": dict(self.provenance)}
        del plain["channels"]
        named = {} if self.channels == COLOUR_CHANNELS else {"channels": list(self.channels)}
        return {**plain, "shape": list(self.shape), **named}


@dataclass(frozen=True, eq=False)
class ScalarSummary:
    """Summary of a scalar volume's file, without its values; `describe` gives it in place of a `VolumeSummary`.

    Attributes:
        shape: count of samples (x, y, z).
        dtype: of the values as stored, such as "int16".
        world_from_index: (4, 4) affine.
        slope, intercept, unit, length_unit, world, name, provenance: as of `ScalarVolume`.
        bytes_on_disk, bytes_in_memory: size of the file and of its values once loaded.

    Raises RaymarchError for what is of another type or out of range.

    Example:
        >>> ScalarSummary.of(ScalarVolume(np.ones((2, 3, 4), np.int16), world="LPS"), 1024).sides
        'LPS'
    """

    shape: tuple[int, int, int] = checked_field(SHAPE, None)
    dtype: str = checked_field(WORD, "float32")
    world_from_index: np.ndarray = checked_field(AFFINE, None)
    slope: float = checked_field(number(), 1.0)
    intercept: float = checked_field(number(), 0.0)
    unit: str = checked_field(WORD, "")
    length_unit: str = checked_field(WORD, "")
    world: str = checked_field(WORLD_AXES, "")
    name: str = checked_field(WORD, "")
    bytes_on_disk: int = checked_field(BYTES, 0)
    bytes_in_memory: int = checked_field(BYTES, 0)
    provenance: Mapping = field(default_factory=dict, metadata={"check": MAPPING})

    def __post_init__(self) -> None:
        validate_fields(self)

    @classmethod
    @checked(volume=SCALAR_VOLUME, bytes_on_disk=BYTES)
    def of(cls, volume: ScalarVolume, bytes_on_disk: int) -> ScalarSummary:
        """Summary of a volume that is loaded, from a file of so many bytes."""
        return cls(
            volume.shape,
            str(volume.values.dtype),
            volume.world_from_index,
            volume.slope,
            volume.intercept,
            volume.unit,
            volume.length_unit,
            volume.world,
            volume.name,
            bytes_on_disk,
            volume.nbytes,
            dict(volume.provenance),
        )

    @classmethod
    def of_source(cls, source: Source, path: Path) -> ScalarSummary:
        """Summary of a file whose values are not read."""
        size = math.prod(source.shape) * source.dtype.itemsize
        return cls(
            source.shape,
            str(source.dtype.newbyteorder("=")),
            source.world_from_index,
            source.slope,
            source.intercept,
            text_of(source.unit),
            text_of(source.length_unit),
            source.world,
            text_of(source.name),
            bytes_of(path),
            size,
            dict(source.provenance),
        )

    @property
    def spacing(self) -> list[float]:
        """Distance from sample to sample along each axis of the array [world unit]."""
        return np.linalg.norm(self.world_from_index[:3, :3], axis=0).tolist()

    @property
    def box(self) -> np.ndarray:
        """Lower and upper corner (2, 3) of the smallest upright box that holds the volume [world unit]."""
        corners = corners_of(self.world_from_index, self.shape)
        return np.stack([corners.min(0), corners.max(0)])

    @property
    def sides(self) -> str:
        """Sides of the body that the array's axes point to; "" where the world is unknown."""
        return sides_of(self.world_from_index, self.world)

    def _repr_html_(self) -> str | None:
        return html_of(record_card, self)

    def record(self) -> dict:
        """Summary as plain numbers, texts and lists, for printing."""
        affine = self.world_from_index
        return {
            "kind": "scalar volume", "name": self.name, "shape": list(self.shape), "dtype": self.dtype,
            "slope": self.slope, "intercept": self.intercept, "unit": self.unit, "spacing": self.spacing,
            "origin": affine[:3, 3].tolist(), "directions": (affine[:3, :3] / self.spacing).T.tolist(),
            "length_unit": self.length_unit, "box": self.box.tolist(), "world": self.world, "sides": self.sides,
            "bytes_on_disk": self.bytes_on_disk, "bytes_in_memory": self.bytes_in_memory,
            "provenance": dict(self.provenance),
        }  # fmt: skip


def bytes_of(path: Path) -> int:
    """Size of a file, or of all files in a folder [byte]."""
    if not path.is_dir():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

"""Scalar volumes: a value a voxel, as a scan or a simulation has it on disk, placed in the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import LARGEST, Check, ReadOnly, Wrong, instance_of, number
from raymarch.arguments.declared import held, hold, named
from raymarch.errors import RaymarchError, figures
from raymarch.geometry.boxes import require_affine
from raymarch.volumes.activation import Activation
from raymarch.volumes.cards import ScalarCard
from raymarch.volumes.placement import WORLD_AXES
from raymarch.volumes.samples import MAPPING, one_channel_cure
from raymarch.volumes.volume import VOLUME, Volume

LONGEST_TEXT = 200  # characters of a name or a unit
SIZES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}  # bytes of a type of number, by its kind


def _values(value: object) -> np.ndarray:
    values = checks.numeric(value, masks=True)
    if values.dtype.itemsize not in SIZES[values.dtype.kind]:
        raise Wrong(f"is {values.dtype}", "convert it with astype")
    if values.ndim != 3 or min(values.shape) < 2:
        raise Wrong(f"has shape {values.shape}", one_channel_cure(values.shape))
    if not np.isfinite([ends := (float(values.min()), float(values.max()))]).all():  # as NaN passes through both
        bad = values.size - int(np.isfinite(values).sum())
        raise Wrong(f"has {bad:,} of {values.size:,} that are NaN or infinite", "put a number in their place")
    if max(-ends[0], ends[1]) > LARGEST:
        farthest = values.argmin() if -ends[0] > ends[1] else values.argmax()
        where = tuple(map(int, np.unravel_index(farthest, values.shape)))
        cure = f"put numbers within {LARGEST:g} in the place of those that stand for nothing"
        raise Wrong(f"is {values[where]:.4g} at {where}", cure)
    view = values.view()
    view.setflags(write=False)
    return view


def _short(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > LONGEST_TEXT:
        raise TypeError
    return value


def _affine(value: Any) -> np.ndarray:
    return require_affine(np.eye(4) if value is None else value)


VALUES = Check("whole numbers or floats (x, y, z), 2 or more an axis", _values)
AFFINE = Check("a 4 x 4 affine", _affine)
WORD = Check(f"a text of one line, up to {LONGEST_TEXT} characters", _short)


@named
@dataclass(frozen=True, eq=False)
class ScalarVolume(ScalarCard, ReadOnly):
    """Scalar volume: one value a voxel, of the type it has on disk; what scanners, microscopes and simulations give.

    The value of a sample is `slope * stored + intercept`, trilinear between samples. A sibling of `Volume`: whatever
    renders, checks gradients, saves or describes takes either, this one as extinction equal to its value.

    Attributes:
        values: (x, y, z) as stored, of any type of whole number or float, or booleans, which become uint8 0 and 1; at
            least 2 samples an axis.
        world_from_index: (4, 4) affine that takes an index (i, j, k, 1) to the world; the index itself if not given.
        slope, intercept: from what is stored to the value.
        unit: of the values, such as "HU"; "" where nobody says.
        length_unit: of the world, such as "mm"; "" where nobody says.
        world: "RAS", "LPS" or "LAS", which sides of a body the world's x, y and z point to (right or left, anterior or
            posterior, superior); "" where the world is nobody's body.
        name: what it is called.
        background: colour (3,) in 0..1 behind it unless a renderer is told otherwise.
        provenance: what is known of its making; plain numbers, texts, lists and mappings.

    Raises RaymarchError for another number of axes, an affine that has no inverse, and values that are not finite or
    beyond 1e30.

    Example:
        >>> head = ScalarVolume(np.arange(24, dtype=np.int16).reshape(2, 3, 4), np.diag([1, 1, 3, 1]), intercept=-1024)
        >>> head.shape, head.spacing.tolist(), float(head.numbers().max())
        ((2, 3, 4), [1.0, 1.0, 3.0], -1001.0)
    """

    values: np.ndarray = held(VALUES, None)
    world_from_index: np.ndarray = held(AFFINE, None)
    slope: float = held(number(), 1.0)
    intercept: float = held(number(), 0.0)
    unit: str = held(WORD, "")
    length_unit: str = held(WORD, "")
    world: str = held(WORLD_AXES, "")
    name: str = held(WORD, "")
    background: tuple[float, float, float] = held(checks.colour, (1.0, 1.0, 1.0))
    provenance: Mapping = field(default_factory=dict, metadata={"check": MAPPING})

    def __post_init__(self) -> None:
        hold(self)
        if self.slope == 0:
            raise RaymarchError("slope is 0, want another number; all values would be the intercept")
        low, high = self.range
        if max(abs(low), abs(high)) > LARGEST:
            raise RaymarchError(f"values are from {low:g} to {high:g}, want up to {LARGEST:g}; give another slope")

    def __repr__(self) -> str:
        size, steps = " x ".join(map(str, self.shape)), " x ".join(f"{x:.4g}" for x in self.spacing)
        low, high = figures(*self.range, least=4)
        unit = f" {self.unit}" if self.unit else ""
        sides = f", sides {self.sides} in {self.world}" if self.world else ""
        length = f" {self.length_unit}" if self.length_unit else ""
        name = f"{self.name!r}, " if self.name else ""
        return f"ScalarVolume({name}{size} {self.values.dtype}, {low} to {high}{unit}, spacing {steps}{length}{sides})"

    @cached_property
    def range(self) -> tuple[float, float]:
        """Least and greatest value, as `slope` and `intercept` say."""
        ends = [self.slope * float(end) + self.intercept for end in (self.values.min(), self.values.max())]
        return min(ends), max(ends)

    def numbers(self) -> np.ndarray:
        """Values (x, y, z) as `slope` and `intercept` say: float32, or float64 where what is stored needs that."""
        stored = self.values
        wide = stored.dtype == np.float64
        largest = max(map(abs, self.range))
        if stored.dtype.kind in "iu":  # whole numbers stay apart: a step of theirs is several of float32's
            wide = stored.dtype.itemsize > 2 or largest * 2**-24 > abs(self.slope) / 4
        elif not wide and (self.slope, self.intercept) != (1.0, 0.0):  # as floats do, but for 3 bits
            finest = float(np.finfo(stored.dtype).eps) * max(-float(stored.min()), float(stored.max()))
            wide = largest * 2**-23 > 8 * abs(self.slope) * finest
        kind = np.float64 if wide else np.float32
        if (self.slope, self.intercept) == (1.0, 0.0):
            return stored.astype(kind)
        out = np.empty(stored.shape, kind)
        for made, plane in zip(out, stored, strict=True):  # in doubles: in the stored type numbers overflow and round
            made[...] = plane.astype(np.float64) * self.slope + self.intercept
        return out

    def as_volume(self) -> Volume:
        """The `Volume` that renders it: extinction equal to the value, of degree 0, grey; its colours take no memory.

        Example:
            >>> float(ScalarVolume(np.ones((2, 3, 4), np.uint8)).as_volume().sigma().max())
            1.0
        """
        across = float(np.linalg.norm(np.abs(self.world_from_index[:3, :3]) @ (np.array(self.shape) - 1)))
        if (most := max(map(abs, self.range))) * across > LARGEST:
            raise RaymarchError(
                f"values are up to {most:.4g}, over {across:.4g} of length more than {LARGEST:g}, the end of single"
                f" precision; put numbers within {LARGEST / across:.1g} in the place of those that stand for nothing"
            )
        density = self.numbers()
        colours = np.broadcast_to(density.dtype.type(0), (*density.shape, 3))
        about = (Activation("identity"), self.background, self.provenance)
        return Volume(density, colours, self.world_from_index, *about)


SCALAR_VOLUME = instance_of(ScalarVolume, "an rm.ScalarVolume")


def _either(value: object) -> Any:
    if isinstance(value, (Volume, ScalarVolume)):
        return value
    return VOLUME.read(value)  # as which a sibling says how it is one, such as a TorchVolume


ANY_VOLUME = Check(VOLUME.wanted, _either, VOLUME.cure, Volume)

"""Scalar volumes: a value a voxel, as a scan or a simulation has it on disk, placed in the world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import MAX_NUMBER, Check, ReadOnly, Wrong, instance_of, number
from raymarch.arguments.declared import checked_field, suggest_names, validate_fields
from raymarch.errors import RaymarchError, distinct_figures
from raymarch.geometry.boxes import corners_of, require_affine, voxel_of
from raymarch.html.card import card_html, count_of_bytes, html_of, numbers_text
from raymarch.html.picture import figure, thumbnail
from raymarch.volumes.activation import Activation
from raymarch.volumes.samples import MAPPING, one_channel_cure
from raymarch.volumes.selection import Selection
from raymarch.volumes.thumbnails import GREY_PERCENTILES, THUMBNAIL_SIDE, apply_window, projection_thumbnail
from raymarch.volumes.volume import VOLUME, Volume
from raymarch.volumes.world_axes import WORLD_AXES, right_and_up, shown_right, shown_up, sides_of, world_from_world

MAX_TEXT_LENGTH = 200  # characters of a name or a unit
TYPE_SIZES = {"i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8)}  # bytes of a type of number, by its kind


def _values(value: object) -> np.ndarray:
    values = checks.numeric(value, masks=True)
    if values.dtype.itemsize not in TYPE_SIZES[values.dtype.kind]:
        raise Wrong(f"is {values.dtype}", "convert it with astype")
    if values.ndim != 3 or min(values.shape) < 2:
        raise Wrong(f"has shape {values.shape}", one_channel_cure(values.shape))
    if not np.isfinite([ends := (float(values.min()), float(values.max()))]).all():  # as NaN passes through both
        bad = values.size - int(np.isfinite(values).sum())
        raise Wrong(f"has {bad:,} of {values.size:,} that are NaN or infinite", "put a number in their place")
    if max(-ends[0], ends[1]) > MAX_NUMBER:
        farthest = values.argmin() if -ends[0] > ends[1] else values.argmax()
        where = tuple(map(int, np.unravel_index(farthest, values.shape)))
        cure = f"put numbers within {MAX_NUMBER:g} in the place of those that stand for nothing"
        raise Wrong(f"is {values[where]:.4g} at {where}", cure)
    view = values.view()
    view.setflags(write=False)
    return view


def _short(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_TEXT_LENGTH:
        raise TypeError
    return value


def _affine(value: Any) -> np.ndarray:
    return require_affine(np.eye(4) if value is None else value)


VALUES = Check("whole numbers or floats (x, y, z), 2 or more an axis", _values)
AFFINE = Check("a 4 x 4 affine", _affine)
WORD = Check(f"a text of one line, up to {MAX_TEXT_LENGTH} characters", _short)


@suggest_names
@dataclass(frozen=True, eq=False)
class ScalarVolume(ReadOnly):
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

    values: np.ndarray = checked_field(VALUES, None)
    world_from_index: np.ndarray = checked_field(AFFINE, None)
    slope: float = checked_field(number(), 1.0)
    intercept: float = checked_field(number(), 0.0)
    unit: str = checked_field(WORD, "")
    length_unit: str = checked_field(WORD, "")
    world: str = checked_field(WORLD_AXES, "")
    name: str = checked_field(WORD, "")
    background: tuple[float, float, float] = checked_field(checks.colour, (1.0, 1.0, 1.0))
    provenance: Mapping = field(default_factory=dict, metadata={"check": MAPPING})

    # What a `Volume` may have besides and this has not.
    boxes: ClassVar[int] = 1
    degree: ClassVar[int] = 0
    bricks: ClassVar[None] = None
    ndc_from_world: ClassVar[None] = None

    def __post_init__(self) -> None:
        validate_fields(self)
        if self.slope == 0:
            raise RaymarchError("slope is 0, want another number; all values would be the intercept")
        low, high = self.range
        if max(abs(low), abs(high)) > MAX_NUMBER:
            raise RaymarchError(f"values are from {low:g} to {high:g}, want up to {MAX_NUMBER:g}; give another slope")

    def __repr__(self) -> str:
        size, steps = " x ".join(map(str, self.shape)), " x ".join(f"{x:.4g}" for x in self.spacing)
        low, high = distinct_figures(*self.range, least=4)
        unit = f" {self.unit}" if self.unit else ""
        sides = f", sides {self.sides} in {self.world}" if self.world else ""
        length = f" {self.length_unit}" if self.length_unit else ""
        name = f"{self.name!r}, " if self.name else ""
        return f"ScalarVolume({name}{size} {self.values.dtype}, {low} to {high}{unit}, spacing {steps}{length}{sides})"

    def _repr_html_(self) -> str | None:
        return html_of(scalar_card, self)

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

    def in_world(self, world: str) -> ScalarVolume:
        """The same in another world, "RAS" or "LPS": each sample stays at its place in the body."""
        world = WORLD_AXES("world", world)
        moved: dict[str, Any] = {"world_from_index": world_from_world(self.world, world) @ self.world_from_index}
        return replace(self, **moved, world=world)

    def part(self, selection: Selection) -> ScalarVolume:
        """Crop and stride of it; the samples that are kept stay where they are in the world."""
        chosen = self.values[selection.slices(self.shape)]
        affine = self.world_from_index @ selection.index_from_part(self.shape)
        return replace(self, values=chosen, world_from_index=affine)

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
        if (most := max(map(abs, self.range))) * across > MAX_NUMBER:
            raise RaymarchError(
                f"values are up to {most:.4g}, over {across:.4g} of length more than {MAX_NUMBER:g}, the end of single"
                f" precision; put numbers within {MAX_NUMBER / across:.1g} in the place of those that stand for nothing"
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


SLICED_AXES = (2, 1, 0)  # the axis across each slice of a card


def scalar_card(volume: ScalarVolume) -> str:
    """HTML of a scalar volume for a notebook: its middle slices, its maxima, where it lies and its units."""
    low, high = volume.range
    length = volume.length_unit or "world unit"
    lower, upper = volume.box
    scaled = (volume.slope, volume.intercept) != (1.0, 0.0)
    rows = [
        ("name", volume.name),
        ("samples (x, y, z)", " x ".join(map(str, volume.shape))),
        ("stored as", f"{volume.values.dtype}, value = {volume.slope:g} * stored + {volume.intercept:g}" * scaled),
        ("stored as", f"{volume.values.dtype}" * (not scaled)),
        ("values", f"{' to '.join(distinct_figures(low, high, least=5))} {volume.unit}".strip()),
        ("spacing", f"{numbers_text(volume.spacing)} {length}"),
        ("box", f"{numbers_text(lower, step=volume.voxel)} to {numbers_text(upper, step=volume.voxel)} {length}"),
        ("sides", f"{volume.sides} in {volume.world}" if volume.world else ""),
        ("memory", count_of_bytes(volume.nbytes)),
    ]
    sign = -1.0 if volume.slope < 0 else 1.0
    most = figure(projection_thumbnail(volume.values, volume.world_from_index, sign), "maxima along rays")
    return card_html("ScalarVolume", rows, [*middle_slices(volume), most])


def middle_slices(volume: ScalarVolume) -> Iterator[str]:
    """Pictures of the three slices through the middle, with their sides where the world is a body's."""
    middle = [n // 2 for n in volume.shape]
    cuts = [thumbnail(np.take(volume.values, middle[axis], axis), THUMBNAIL_SIDE) for axis in SLICED_AXES]
    shown = volume.slope * np.concatenate([cut.ravel() for cut in cuts]).astype(float)
    window = tuple(np.percentile(shown, GREY_PERCENTILES))
    for cut, axis in zip(cuts, SLICED_AXES, strict=True):
        right, up = right_and_up(axis, volume.sides)
        upright = cut.T if right < up else cut
        picture = apply_window(volume.slope * upright.astype(float), window)  # type: ignore[arg-type]
        sides, caption = volume.sides, f"{'ijk'[axis]} = {middle[axis]}: {'ijk'[right]} right, {'ijk'[up]} up"
        across = upside = False
        if sides:
            (across, _, at_right), (upside, _, above) = shown_right(sides[right]), shown_up(sides[up])
            caption = f"{'ijk'[axis]} = {middle[axis]}: {at_right} right, {above} up"
        picture = picture if upside else picture[::-1]
        picture = picture[:, ::-1] if across else picture
        wide, tall = volume.spacing[right] * volume.shape[right], volume.spacing[up] * volume.shape[up]
        height = round(THUMBNAIL_SIDE * min(tall / wide, 1.0))
        yield figure(picture, caption, max(height, 8), max(round(height * wide / tall), 8))

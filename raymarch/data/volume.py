"""Volumes: voxel grids of density and colour (spherical harmonics), with their activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raymarch.arguments import arrays, checks
from raymarch.arguments.arrays import Colour, Numbers
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.data import plain
from raymarch.data.activation import ACTIVATION, Activation
from raymarch.data.plain import Field
from raymarch.data.samples import (
    MAPPING,
    SAMPLES,
    SHAPE,
    SPACING,
    require_boxes,
    require_channels,
    require_thin,
    require_three_axes,
)
from raymarch.errors import RaymarchError
from raymarch.geometry.ndc import corners_in_world, require_ndc
from raymarch.geometry.pose import BOX, corners_of, larger_box, require_nested, voxel_of

MISSING = "features and world_from_index are missing; of plain densities rm.Volume.from_array(density) makes one"


@dataclass(frozen=True, eq=False)
class Volume:
    """Voxel grid of raw density and colour features at integer indices; its box spans the first to the last sample.

    Attributes:
        density: (x, y, z) raw density, float; at least 2 samples an axis.
        features: (x, y, z, channel) raw colour; channel `3 k + c` holds spherical harmonic k of colour c (r, g, b), so
            there are 3 (degree + 1)^2 channels, degree 0 to 3.
        world_from_index: (4, 4) affine that takes an index (i, j, k, 1) to the world.
        activation: how the raw numbers become sigma [1/world unit] and colour.
        background: colour (3,) in 0..1 behind the volume unless a renderer is told otherwise.
        provenance: what is known of its making; plain numbers, texts, lists and mappings.
        ndc_from_world: projective (4, 4) by `ndc_of_frustum`, or None; with it `world_from_index` leads to normalised
            device coordinates (NDC), z from -1 (near plane) to 1 (infinity), and sigma counts per unit of length there.
        boxes: nested boxes of an unbounded scene, each twice as large as the last about one centre: their samples lie
            one behind the other along x, the innermost first, which `world_from_index` and `box` are of. A raw density
            means as much opacity over a voxel in each, so sigma counts per 2^n world units in the n-th shell.

    `Volume.from_array` makes one of plain densities and colours, `Volume.from_function` of functions of the place.

    Raises RaymarchError for shapes that disagree, an affine that has no inverse, numbers that are not finite or beyond
    1e30, and a sigma by which the optical depth across the box would be: in single precision an image stays finite.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> ball.shape, ball.degree
        ((32, 32, 32), 0)
    """

    density: np.ndarray
    features: np.ndarray = None  # type: ignore[assignment]  # what is missing is said in words
    world_from_index: np.ndarray = None  # type: ignore[assignment]
    activation: Activation = Activation()
    background: tuple[float, float, float] = (1.0, 1.0, 1.0)
    provenance: Mapping = field(default_factory=dict)
    boxes: int = 1
    ndc_from_world: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.features is None or self.world_from_index is None:
            raise RaymarchError(MISSING)
        density, features = SAMPLES("density", self.density), SAMPLES("features", self.features)
        require_three_axes(density)
        boxes = require_boxes(density, self.boxes)
        require_channels(density, features)
        affine, ndc = _placed(self, density.shape, boxes)
        activation, provenance = ACTIVATION("activation", self.activation), MAPPING("provenance", self.provenance)
        require_thin(density, affine, activation.sigma)
        background = arrays.colour("background", self.background)
        for array in (density := density.view(), features := features.view()):
            array.setflags(write=False)
        kept = {"density": density, "features": features, "world_from_index": affine, "background": background}
        for name, value in (kept | {"provenance": provenance, "boxes": boxes, "ndc_from_world": ndc}).items():
            object.__setattr__(self, name, value)

    @classmethod
    @checked(sigma=checks.callback, colour=optional(checks.callback), shape=SHAPE, box=BOX, background=arrays.colour)
    def from_function(
        cls, sigma: Field, colour: Field | None = None, *, shape: Sequence[int] = (64, 64, 64),
        box: Numbers = ((-1, -1, -1), (1, 1, 1)), background: Colour = (1, 1, 1),
    ) -> Volume:  # fmt: skip
        """Volume of `sigma(points)` [1/world unit] and `colour(points)` in 0..1, points being (..., 3) in the world.

        Negative densities are taken as 0; without `colour` it is 0.7 grey. The activations are relu and clamped.
        """
        return cls(*plain.of_function(sigma, colour, shape, box), background)  # type: ignore[arg-type]  # it reads it

    @classmethod
    @checked(box=optional(BOX), spacing=optional(SPACING), background=arrays.colour)
    def from_array(
        cls, density: Numbers, colour: Numbers | None = None, *, box: Numbers | None = None,
        spacing: Numbers | None = None, background: Colour = (1, 1, 1),
    ) -> Volume:  # fmt: skip
        """Volume of plain samples, whose numbers are what they say: no activation to think of.

        Args:
            density: (x, y, z) sigma [1/world unit], of any type of number; negative ones are taken as 0.
            colour: (x, y, z, 3), or (3,) for all, in 0..1 or uint8; 0.7 grey if not given.
            box: lower and upper corner (2, 3) in the world, where the first and the last samples lie.
            spacing: from sample to sample [world unit], one number or (3,), about the world's origin; instead of `box`.
                If neither is given, samples are as far apart on every axis and the longest side is from -1 to 1.
            background: behind the volume.

        Example:
            >>> x, y, z = np.ogrid[-1:1:32j, -1:1:32j, -1:1:32j]
            >>> ball = Volume.from_array(9.0 * (x**2 + y**2 + z**2 < 0.5), colour=(1, 0.5, 0))
            >>> ball.shape, ball.box.tolist(), float(ball.sigma().max())
            ((32, 32, 32), [[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]], 9.0)
        """
        return cls(*plain.of_array(density, colour, box, spacing), background)  # type: ignore[arg-type]  # it reads it

    def __repr__(self) -> str:
        return f"Volume({_in_words(self)})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z), those of all nested boxes along x."""
        return self.density.shape  # type: ignore[return-value]

    @property
    def box_shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z) of one box."""
        x, y, z = self.shape
        return x // self.boxes, y, z

    def nested(self, n: int) -> Volume:
        """Volume of the n-th of the nested boxes alone, 0 the innermost, its sigma counted per world unit.

        Example:
            >>> fog = Volume(np.zeros((8, 4, 4)), np.zeros((8, 4, 4, 3)), np.eye(4), boxes=2)
            >>> fog.nested(1).shape, fog.nested(1).box.tolist()
            ((4, 4, 4), [[-1.5, -1.5, -1.5], [4.5, 4.5, 4.5]])
        """
        n = checks.whole(0, self.boxes - 1)("n", n)
        if self.boxes == 1:
            return self
        samples, activation = self.box_shape[0], replace(self.activation, scale=self.activation.scale * 2**n)
        part, affine = slice(n * samples, (n + 1) * samples), larger_box(self.world_from_index, self.box_shape, 2**n)
        return Volume(self.density[part], self.features[part], affine, activation, self.background, self.provenance)

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return round((self.features.shape[3] / 3) ** 0.5) - 1

    @property
    def corners(self) -> np.ndarray:
        """Corners (8, 3) of the box in the world; of NDC, which end at infinity, up to four times the near plane."""
        return corners_in_world(self.world_from_index, self.box_shape, self.ndc_from_world)

    @property
    def box(self) -> np.ndarray:
        """Axis-aligned bounding box in the world: lower and upper corner (2, 3)."""
        return np.stack([self.corners.min(0), self.corners.max(0)])

    @property
    def voxel(self) -> float:
        """Voxel size: the shortest edge [world unit, or unit of NDC]."""
        return voxel_of(self.world_from_index)

    def sigma(self) -> np.ndarray:
        """Extinction (x, y, z) [1/world unit] at the samples."""
        return self.activation.sigma(self.density)

    @checked(world_from_world=arrays.array(4, 4))
    def moved(self, world_from_world: Numbers) -> Volume:
        """Volume carried along by an affine motion (4, 4) of the world; its sigma per world unit stays.

        Harmonics are not rotated: at degree 1 and more only a translation leaves what is seen unchanged.
        """
        return replace(self, **_moved(self, world_from_world))


def _placed(volume: Volume, shape: tuple[int, ...], boxes: int) -> tuple[np.ndarray, np.ndarray | None]:
    """`world_from_index` and `ndc_from_world`, read and not to be written; RaymarchError for what places no samples."""
    affine, ndc = require_nested(volume.world_from_index, (shape[0] // boxes, *shape[1:]), boxes), None
    if volume.ndc_from_world is not None:
        if boxes > 1:
            raise RaymarchError(f"boxes are {boxes} beside ndc_from_world, which has no end by itself; leave one out")
        ndc = require_ndc(volume.ndc_from_world, corners_of(affine, shape))
        ndc.setflags(write=False)
    affine.setflags(write=False)
    return affine, ndc


def _moved(volume: Volume, world_from_world: Numbers) -> dict[str, Any]:
    """Where a volume lies after an affine motion (4, 4) of the world."""
    if volume.ndc_from_world is None:
        return {"world_from_index": world_from_world @ volume.world_from_index}
    return {"ndc_from_world": volume.ndc_from_world @ np.linalg.inv(world_from_world)}


def _in_words(volume: Volume) -> str:
    """Size, degree and place of a volume."""
    lower, upper = (" ".join(f"{x:.3g}" for x in corner) for corner in volume.box)
    size = " x ".join(map(str, volume.box_shape)) + " samples"
    size += f" in each of {volume.boxes} nested boxes" if volume.boxes > 1 else ""
    size += " in NDC" if volume.ndc_from_world is not None else ""
    return f"{size}, SH degree {volume.degree}, box {lower} to {upper}"


VOLUME = checks.instance_of(Volume, "a Volume")

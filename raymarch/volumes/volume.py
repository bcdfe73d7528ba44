"""Volumes: voxel grids of density and colour (spherical harmonics), with their activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments import arrays, checks
from raymarch.arguments.arrays import Colour, Numbers
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked, named
from raymarch.arguments.read_only import ReadOnly
from raymarch.data import plain
from raymarch.data.plain import Field
from raymarch.data.sampled import Sampled
from raymarch.errors import RaymarchError
from raymarch.geometry.ndc import require_placement
from raymarch.geometry.pose import BOX, larger_box
from raymarch.volumes.activation import ACTIVATION, Activation
from raymarch.volumes.bricks import BRICKS, Bricks, bricks_in_words
from raymarch.volumes.samples import MAPPING, SHAPE, SPACING, require_boxes, require_thin
from raymarch.volumes.storage import LATER, MISSING, Dense, Sparse, sparse_of, stored

EMPTY: Mapping = MappingProxyType({})
# A Volume or a ScalarVolume. A union with Any, not of both, as the body of a checked function sees a Volume.
AnyVolume: TypeAlias = "Volume | Any"


@named
@dataclass(frozen=True, eq=False, init=False)
class Volume(Sampled, ReadOnly):
    """Voxel grid of raw density and colour features at integer indices; its box spans the first to the last sample.

    Attributes:
        samples: where they are kept: dense arrays, or bricks of a sparse volume.
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

    samples: Dense | Sparse
    world_from_index: np.ndarray
    activation: Activation
    background: tuple[float, float, float]
    provenance: Mapping
    boxes: int
    ndc_from_world: np.ndarray | None

    def __init__(
        self, density: np.ndarray = LATER, features: np.ndarray = LATER, world_from_index: np.ndarray = LATER,
        activation: Activation = Activation(), background: Colour = (1.0, 1.0, 1.0), provenance: Mapping = EMPTY,
        boxes: int = 1, ndc_from_world: np.ndarray | None = None, *, samples: Dense | Sparse | None = None,
    ) -> None:  # fmt: skip
        if world_from_index is LATER:
            raise RaymarchError(MISSING)
        activation = ACTIVATION("activation", activation)
        samples = stored(density, features, samples, activation.empty)
        boxes = require_boxes(samples.shape, boxes)
        affine, ndc = require_placement(world_from_index, ndc_from_world, samples.shape, boxes)
        require_thin(samples.ends(activation.empty), samples.shape, affine, activation.sigma)
        kept: dict[str, Any] = {
            "samples": samples,
            "world_from_index": affine,
            "activation": activation,
            "boxes": boxes,
        }
        kept |= {"background": arrays.colour("background", background), "ndc_from_world": ndc}
        for name, value in (kept | {"provenance": MAPPING("provenance", provenance)}).items():
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

    @classmethod
    @checked(bricks=BRICKS, shape=SHAPE)
    def of_bricks(
        cls, bricks: Bricks, shape: Sequence[int], world_from_index: np.ndarray, activation: Activation = Activation(),
        background: Colour = (1.0, 1.0, 1.0), provenance: Mapping = EMPTY, boxes: int = 1,
        ndc_from_world: np.ndarray | None = None,
    ) -> Volume:  # fmt: skip
        """Sparse volume of `shape` samples (x, y, z), of which bricks hold those where something is.

        The other arguments are those of a `Volume`, from `world_from_index` on.

        Example:
            >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.4), shape=(32, 32, 32))
            >>> bricks = ball.sparse().bricks
            >>> Volume.of_bricks(bricks, (32, 32, 32), ball.world_from_index, ball.activation)
            Volume(32 x 32 x 32 samples in 8 of 64 bricks, SH degree 0, box -1 -1 -1 to 1 1 1)
        """
        where = (world_from_index, activation, background, provenance, boxes, ndc_from_world)
        return cls(LATER, LATER, *where, samples=Sparse(bricks, shape))  # type: ignore[arg-type]  # three, by the rule

    def __repr__(self) -> str:
        return f"Volume({_in_words(self)})"

    def sparse(self) -> Volume:
        """The volume with its samples in bricks, without those that show nothing; itself if it is sparse."""
        return replace(self, samples=sparse_of(self.samples, self.activation.empty))

    def dense(self) -> Volume:
        """The volume with its samples in dense arrays; RaymarchError, with the bytes, where memory does not suffice."""
        return self if self.bricks is None else replace(self, samples=Dense(self.density, self.features))

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
        count, activation = self.box_shape[0], replace(self.activation, scale=self.activation.scale * 2**n)
        part = self.samples.along_x(n * count, (n + 1) * count, self.activation.empty)
        affine = larger_box(self.world_from_index, self.box_shape, 2**n)
        return replace(self, samples=part, world_from_index=affine, activation=activation, boxes=1)

    @checked(world_from_world=arrays.array(4, 4))
    def moved(self, world_from_world: Numbers) -> Volume:
        """Volume carried along by an affine motion (4, 4) of the world; its sigma per world unit stays.

        Harmonics are not rotated: at degree 1 and more only a translation leaves what is seen unchanged.
        """
        return replace(self, **_moved(self, world_from_world))


def _moved(volume: Volume, world_from_world: Numbers) -> dict[str, Any]:
    """Where a volume lies after an affine motion (4, 4) of the world."""
    if volume.ndc_from_world is None:
        return {"world_from_index": world_from_world @ volume.world_from_index}
    return {"ndc_from_world": volume.ndc_from_world @ np.linalg.inv(world_from_world)}


def _in_words(volume: Volume) -> str:
    """Size, degree and place of a volume."""
    lower, upper = (" ".join(f"{x:.3g}" for x in corner) for corner in volume.box)
    size = " x ".join(map(str, volume.box_shape)) + " samples"
    if volume.bricks is not None:
        size += f" in {bricks_in_words(volume.shape, volume.bricks.count)} bricks"
    size += f" in each of {volume.boxes} nested boxes" if volume.boxes > 1 else ""
    size += " in NDC" if volume.ndc_from_world is not None else ""
    return f"{size}, SH degree {volume.degree}, box {lower} to {upper}"


def _as_volume(value: Any) -> Volume:
    """A Volume; of a sibling that says how it is one, such as a ScalarVolume, that."""
    made = value.as_volume() if hasattr(type(value), "as_volume") else value
    if not isinstance(made, Volume):
        raise TypeError
    return made


def _volume_cure(value: object) -> str:
    if isinstance(value, (str, PathLike)):
        return f"rm.load({str(value)!r}) reads one" if len(str(value)) < 100 else "rm.load(path) reads one"
    if isinstance(value, np.ndarray) and value.ndim == 3 and min(value.shape) > 1:
        return "rm.ScalarVolume(it) makes one of a scan's values, rm.Volume.from_array(it) of extinction"
    return "pass its .volume" if isinstance(getattr(value, "volume", None), Volume) else ""


VOLUME = arrays.mended(checks.Check("a Volume", _as_volume, kind=Volume), _volume_cure)

"""Volumes: voxel grids of density and colour (spherical harmonics), with their activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from raymarch.arguments import arrays, checks
from raymarch.arguments.arrays import Colour, Numbers
from raymarch.arguments.checks import optional
from raymarch.arguments.declared import checked
from raymarch.data.activation import ACTIVATION, Activation
from raymarch.data.samples import MAPPING, RAW, SAMPLES, SHAPE, SPACING, require_thin, require_three_axes, spread_to
from raymarch.errors import RaymarchError
from raymarch.geometry.pose import BOX, affine_of_box, require_affine

Field = Callable[[np.ndarray], Numbers]  # of points (..., 3) in the world
MAX_DEGREE = 3
BOXES = checks.whole(1, 16)
GREY = 0.7  # of volumes that are told no colour
Y00 = 0.28209479177387814


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

    def __post_init__(self) -> None:
        if self.features is None or self.world_from_index is None:
            raise RaymarchError(
                "features and world_from_index are missing; of plain densities rm.Volume.from_array(density) makes one"
            )
        density, features = SAMPLES("density", self.density), SAMPLES("features", self.features)
        require_three_axes(density)
        boxes = BOXES("boxes", self.boxes)
        if density.shape[0] % boxes or density.shape[0] < 2 * boxes:
            raise RaymarchError(
                f"density has {density.shape[0]} samples along x, want as many in each of {boxes} boxes"
            )
        channels = [3 * (d + 1) ** 2 for d in range(MAX_DEGREE + 1)]
        if features.shape[:3] != density.shape or features.ndim != 4 or features.shape[3] not in channels:
            raise RaymarchError(
                f"features have shape {features.shape}, want {density.shape} and one of {channels} channels"
            )
        affine = require_affine(self.world_from_index)
        activation, provenance = ACTIVATION("activation", self.activation), MAPPING("provenance", self.provenance)
        require_thin(density, affine, activation.sigma)
        density, features = density.view(), features.view()
        for array in (density, features):
            array.setflags(write=False)
        affine.setflags(write=False)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "world_from_index", affine)
        object.__setattr__(self, "background", arrays.colour("background", self.background))
        object.__setattr__(self, "provenance", provenance)
        object.__setattr__(self, "boxes", boxes)

    @classmethod
    @checked(sigma=checks.callback, colour=optional(checks.callback), shape=SHAPE, box=BOX, background=arrays.colour)
    def from_function(
        cls, sigma: Field, colour: Field | None = None, *, shape: Sequence[int] = (64, 64, 64),
        box: Numbers = ((-1, -1, -1), (1, 1, 1)), background: Colour = (1, 1, 1),
    ) -> Volume:  # fmt: skip
        """Volume of `sigma(points)` [1/world unit] and `colour(points)` in 0..1, points being (..., 3) in the world.

        Negative densities are taken as 0; without `colour` it is 0.7 grey. The activations are relu and clamped.
        """
        try:
            axes = [np.linspace(low, high, n) for low, high, n in zip(box[0], box[1], shape, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            density = spread_to(shape)("sigma(points)", sigma(points))
            rgb = spread_to((*shape, 3))("colour(points)", GREY if colour is None else colour(points))
            return _plain(density, rgb, affine_of_box(box, shape), background)
        except MemoryError as error:
            raise RaymarchError(f"a volume of {shape} samples does not fit the memory ({error}); lower it") from error

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
        density = RAW("density", density)
        require_three_axes(density)
        if box is not None and spacing is not None:
            raise RaymarchError("box and spacing are both given, want one of them; the other follows")
        steps = np.array(density.shape) - 1
        if box is None:
            half = steps * (1 / steps.max() if spacing is None else np.asarray(spacing) / 2)
            box = np.stack([-half, half])
        rgb = GREY if colour is None else arrays.display("colour", colour)
        rgb = spread_to((*density.shape, 3), 0, 1)("colour", rgb)
        return _plain(density.astype(np.float32), rgb, affine_of_box(box, density.shape), background)

    def __repr__(self) -> str:
        lower, upper = (" ".join(f"{x:.3g}" for x in corner) for corner in self.box)
        size = " x ".join(map(str, self.box_shape)) + (
            f" samples in each of {self.boxes} nested boxes" if self.boxes > 1 else " samples"
        )
        return f"Volume({size}, SH degree {self.degree}, box {lower} to {upper})"

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
        samples, middle = self.box_shape[0], (np.array(self.box_shape) - 1) / 2
        part, affine = slice(n * samples, (n + 1) * samples), self.world_from_index.copy()
        affine[:3, :3] *= 2**n
        affine[:3, 3] += (self.world_from_index - affine)[:3, :3] @ middle
        activation = replace(self.activation, scale=self.activation.scale * 2**n)
        return replace(
            self, density=self.density[part], features=self.features[part], world_from_index=affine,
            activation=activation, boxes=1,
        )  # fmt: skip

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return round((self.features.shape[3] / 3) ** 0.5) - 1

    @property
    def corners(self) -> np.ndarray:
        """Corners (8, 3) of the box in the world."""
        index = np.stack(np.meshgrid(*[(0, n - 1) for n in self.box_shape], indexing="ij"), axis=-1).reshape(-1, 3)
        return index @ self.world_from_index[:3, :3].T + self.world_from_index[:3, 3]

    @property
    def box(self) -> np.ndarray:
        """Axis-aligned bounding box in the world: lower and upper corner (2, 3)."""
        return np.stack([self.corners.min(0), self.corners.max(0)])

    @property
    def voxel(self) -> float:
        """Voxel size: the shortest edge [world unit]."""
        return float(np.linalg.norm(self.world_from_index[:3, :3], axis=0).min())

    def sigma(self) -> np.ndarray:
        """Extinction (x, y, z) [1/world unit] at the samples."""
        return self.activation.sigma(self.density)

    @checked(world_from_world=arrays.array(4, 4))
    def moved(self, world_from_world: Numbers) -> Volume:
        """Volume carried along by an affine motion (4, 4) of the world; its sigma per world unit stays.

        Harmonics are not rotated: at degree 1 and more only a translation leaves what is seen unchanged.
        """
        return replace(self, world_from_index=world_from_world @ self.world_from_index)


VOLUME = checks.instance_of(Volume, "a Volume")


def _plain(density: np.ndarray, rgb: np.ndarray, world_from_index: np.ndarray, background: Colour) -> Volume:
    """The volume of sigma (x, y, z) and colour (x, y, z, 3), float32."""
    features = (rgb - np.float32(0.5)) / np.float32(Y00)
    relu = Activation("relu", 0.0, 1.0, "clamped")
    return Volume(np.array(density), features, world_from_index, relu, background)  # type: ignore[arg-type]  # it reads it

"""Volumes: samples of density and colour on a regular grid, with the activations that turn them into physics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.pose import affine_of_box

DENSITIES = ("softplus", "relu", "exponential")  # of a fit; "identity" is for data and linear problems
COLOURS = ("sigmoid", "clamped")
MAX_DEGREE = 3
MAX_EXPONENT = 15.0
Y00 = 0.28209479177387814


@dataclass(frozen=True)
class Activation:
    """How raw numbers become extinction and colour, after interpolation.

    Attributes:
        density: "softplus" `ln(1 + e^(raw + shift)) / scale`, "relu" `max(raw + shift, 0) / scale`,
            "exponential" `e^min(raw + shift, 15) / scale`, or "identity" `(raw + shift) / scale`, of any sign.
        shift: added to the raw density, no unit.
        scale: a length [world unit]; sigma is in 1/world unit.
        colour: "sigmoid" `1 / (1 + e^-sum)`, "clamped" `max(sum + 1/2, 0)` or "identity" `sum`, of
            `sum_k c_k Y_k(direction)`.

    Example:
        >>> round(float(Activation.of_initial_alpha(0.01, 0.5).sigma(0.0)), 4)  # alpha 0.01 over 0.5
        0.0201
    """

    density: str = "softplus"
    shift: float = 0.0
    scale: float = 1.0
    colour: str = "sigmoid"

    def __post_init__(self):
        for what, name, known in (("density", self.density, DENSITIES), ("colour", self.colour, COLOURS)):
            if name not in (*known, "identity"):
                raise RaymarchError(f"{what} activation {name!r}: want one of {', '.join(known)}, identity")
        if not (np.isfinite(self.shift) and np.isfinite(self.scale) and self.scale > 0):
            raise RaymarchError(f"activation has shift {self.shift} and scale {self.scale}; want finite and positive")

    @classmethod
    def of_initial_alpha(cls, alpha: float, scale: float, density="softplus", colour="sigmoid") -> Activation:
        """The activation under which a zero grid has opacity `alpha` (in 0..1) over the length `scale`."""
        if not 0 < alpha < 1:
            raise RaymarchError(f"initial alpha is {alpha}, want between 0 and 1")
        tau = -np.log1p(-alpha)
        shift = {"softplus": np.log(np.expm1(tau)), "relu": tau, "exponential": np.log(tau)}.get(density, 0.0)
        return cls(density, float(shift), float(scale), colour)

    def sigma(self, raw) -> np.ndarray:
        """Extinction [1/world unit] of raw densities (any shape)."""
        x = np.asarray(raw, float) + self.shift
        if self.density == "softplus":
            return np.logaddexp(0, x) / self.scale
        if self.density == "relu":
            return np.maximum(x, 0) / self.scale
        if self.density == "identity":
            return x / self.scale
        return np.exp(np.minimum(x, MAX_EXPONENT)) / self.scale

    def raw(self, sigma) -> np.ndarray:
        """The raw density whose `sigma` is given: the inverse; densities under 1e-30 / scale come back as that."""
        x = np.asarray(sigma, float) * self.scale
        if self.density != "identity":
            x = np.maximum(x, 0 if self.density == "relu" else 1e-30)
        if self.density == "softplus":
            x = x + np.log(-np.expm1(-x))
        elif self.density == "exponential":
            x = np.log(x)
        return x - self.shift


@dataclass(frozen=True, eq=False)
class Volume:
    """Raw density and colour features sampled at integer indices; the box spans the first to the last sample.

    Attributes:
        density: (x, y, z) raw density, float; at least 2 samples an axis.
        features: (x, y, z, channel) raw colour; channel `3 k + c` holds spherical harmonic k of colour c (r, g, b), so
            there are 3 (degree + 1)^2 channels, degree 0 to 3.
        world_from_index: (4, 4) affine that takes an index (i, j, k, 1) to the world.
        activation: how the raw numbers become sigma [1/world unit] and colour.
        background: colour (3,) in 0..1 behind the volume unless a renderer is told otherwise.
        provenance: what is known of its making; plain numbers, texts, lists and mappings.

    Raises RaymarchError for shapes that disagree, numbers that are not finite, an affine that has no inverse.

    Example:
        >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(32, 32, 32))
        >>> ball.shape, ball.degree
        ((32, 32, 32), 0)
    """

    density: np.ndarray
    features: np.ndarray
    world_from_index: np.ndarray
    activation: Activation = Activation()
    background: tuple[float, float, float] = (1.0, 1.0, 1.0)
    provenance: Mapping = field(default_factory=dict)

    def __post_init__(self):
        density, features = np.asarray(self.density), np.asarray(self.features)
        affine = np.array(self.world_from_index, float)
        if density.ndim != 3 or min(density.shape) < 2:
            raise RaymarchError(f"density has shape {density.shape}, want (x, y, z) with at least 2 samples an axis")
        channels = [3 * (d + 1) ** 2 for d in range(MAX_DEGREE + 1)]
        if features.shape[:3] != density.shape or features.ndim != 4 or features.shape[3] not in channels:
            raise RaymarchError(
                f"features have shape {features.shape}, want {density.shape} and one of {channels} channels"
            )
        for name, values in (("density", density), ("features", features)):
            if not np.issubdtype(values.dtype, np.floating):
                raise RaymarchError(f"{name} is {values.dtype}, want float32 or float64; convert it first")
            if not np.isfinite(values).all():
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
                raise RaymarchError(f"{name} is {values[where]} at {where}; volumes must be finite")
        if affine.shape != (4, 4) or not np.isfinite(affine).all() or not abs(np.linalg.det(affine)) > 0:
            raise RaymarchError(f"world_from_index {affine.tolist()} is no invertible (4, 4) affine")
        if not np.allclose(affine[3], (0, 0, 0, 1), rtol=0, atol=1e-9):
            raise RaymarchError(f"world_from_index has last row {affine[3].tolist()}, want 0, 0, 0, 1; it is an affine")
        edges = np.linalg.norm(affine[:3, :3], axis=0)
        if not (edges.min() > 1e-9 and np.abs(affine).max() < 1e9):
            raise RaymarchError(f"world_from_index has voxels of {edges.tolist()}; scale the world to edges near 1")
        density, features = density.view(), features.view()
        for array in (density, features):
            array.setflags(write=False)
        affine.setflags(write=False)
        object.__setattr__(self, "density", density)
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "world_from_index", affine)
        object.__setattr__(self, "provenance", dict(self.provenance))

    @classmethod
    def from_function(
        cls, sigma, colour=None, *, shape=(64, 64, 64), box=((-1, -1, -1), (1, 1, 1)), background=(1, 1, 1)
    ):
        """Volume of `sigma(points)` [1/world unit] and `colour(points)` in 0..1, points being (..., 3) in the world.

        Negative densities are taken as 0; without `colour` it is 0.7 grey. The activations are relu and clamped.
        """
        try:
            axes = [np.linspace(low, high, n) for low, high, n in zip(box[0], box[1], shape, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            density = np.broadcast_to(np.asarray(sigma(points), np.float32), points.shape[:3])
            rgb = 0.7 if colour is None else np.asarray(colour(points))
            features = np.broadcast_to((np.asarray(rgb, np.float32) - np.float32(0.5)) / np.float32(Y00), points.shape)
        except MemoryError as error:
            raise RaymarchError(f"a volume of {shape} samples does not fit the memory ({error}); lower it") from error
        activation = Activation("relu", 0.0, 1.0, "clamped")
        return cls(np.array(density), np.array(features), affine_of_box(box, shape), activation, tuple(background))

    def __repr__(self) -> str:
        lower, upper = (" ".join(f"{x:.3g}" for x in corner) for corner in self.box)
        return f"Volume({' x '.join(map(str, self.shape))} samples, SH degree {self.degree}, box {lower} to {upper})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z)."""
        return self.density.shape  # type: ignore[return-value]

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return round((self.features.shape[3] / 3) ** 0.5) - 1

    @property
    def corners(self) -> np.ndarray:
        """The box's eight corners (8, 3) in the world."""
        index = np.stack(np.meshgrid(*[(0, n - 1) for n in self.shape], indexing="ij"), axis=-1).reshape(-1, 3)
        return index @ self.world_from_index[:3, :3].T + self.world_from_index[:3, 3]

    @property
    def box(self) -> np.ndarray:
        """Lower and upper corner (2, 3) in the world of the smallest upright box that holds the volume."""
        return np.stack([self.corners.min(0), self.corners.max(0)])

    @property
    def voxel(self) -> float:
        """The shortest voxel edge [world unit]."""
        return float(np.linalg.norm(self.world_from_index[:3, :3], axis=0).min())

    def sigma(self) -> np.ndarray:
        """Extinction (x, y, z) [1/world unit] at the samples."""
        return self.activation.sigma(self.density)

    def moved(self, world_from_world) -> Volume:
        """The volume carried along by an affine motion (4, 4) of the world; its sigma per world unit stays.

        Harmonics are not rotated: at degree 1 and more only a translation leaves what is seen unchanged.
        """
        return replace(self, world_from_index=np.asarray(world_from_world, float) @ self.world_from_index)

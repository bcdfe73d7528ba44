"""Volumes: voxel grids of density and colour (spherical harmonics), with their activations.

The class, how plain densities and colours become one, its card in a notebook, the rule for arguments that are volumes,
and its colours at places in the world, as a march reads them.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import Check, Colour, Numbers, ReadOnly, Wrong, channels_cure, optional, with_cure
from raymarch.arguments.declared import checked, suggest_names
from raymarch.errors import RaymarchError
from raymarch.geometry.boxes import BOX, affine_of_box, larger_box, voxel_of
from raymarch.geometry.ndc import corners_in_world, require_placement
from raymarch.html.card import card_html, count_of_bytes, html_of, numbers_text
from raymarch.html.picture import figure
from raymarch.volumes import thumbnails
from raymarch.volumes.activation import ACTIVATION, Activation
from raymarch.volumes.bricks import BRICKS, Bricks, bricks_text
from raymarch.volumes.channels import WHITE, background_of_channels
from raymarch.volumes.harmonics import Y00, basis
from raymarch.volumes.samples import (
    ALPHA,
    CHANNEL_NAMES,
    COLOUR_CHANNELS,
    INDEX,
    MAPPING,
    RAW,
    SHAPE,
    SPACING,
    require_boxes,
    require_features,
    require_inside,
    require_thin,
    require_three_axes,
    spread_to,
)
from raymarch.volumes.storage import MISSING_CURE, NOT_GIVEN, Dense, Sparse, sparse_of, store_samples

log = logging.getLogger(__name__)

Field = Callable[[np.ndarray], Numbers]  # of points (..., 3) in the world
Samples = tuple[np.ndarray, np.ndarray, np.ndarray, Activation]  # density, features, world_from_index, activation
NO_PROVENANCE: Mapping = MappingProxyType({})


def _volume_channels(value: object) -> tuple[str, ...]:
    names: tuple[str, ...] = CHANNEL_NAMES.read(value)
    if ALPHA in names:
        raise Wrong(f"has {ALPHA}", "that is of images, a volume has density")
    return names


VOLUME_CHANNELS = replace(CHANNEL_NAMES, read=_volume_channels)
# A Volume or a ScalarVolume. A union with Any, not of both, as the body of a checked function sees a Volume.
AnyVolume: TypeAlias = "Volume | Any"


@suggest_names
@dataclass(frozen=True, eq=False, init=False)
class Volume(ReadOnly):
    """Voxel grid of raw density and colour features at integer indices; its box spans the first to the last sample.

    Attributes:
        samples: where they are kept: dense arrays, or bricks of a sparse volume.
        density: (x, y, z) raw density, float; at least 2 samples an axis.
        features: (x, y, z, feature) raw colour; number `3 k + c` holds spherical harmonic k of colour c (r, g, b), so
            there are 3 (degree + 1)^2 of them, degree 0 to 3; of n channels it is `n k + c`.
        world_from_index: (4, 4) affine that takes an index (i, j, k, 1) to the world.
        activation: how the raw numbers become sigma [1/world unit] and colour.
        background: colour (3,) in 0..1 behind the volume unless a renderer is told otherwise.
        provenance: what is known of its making; plain numbers, texts, lists and mappings.
        ndc_from_world: projective (4, 4) by `ndc_of_frustum`, or None; with it `world_from_index` leads to normalised
            device coordinates (NDC), z from -1 (near plane) to 1 (infinity), and sigma counts per unit of length there.
        boxes: nested boxes of an unbounded scene, each twice as large as the last about one centre: their samples lie
            one behind the other along x, the innermost first, which `world_from_index` and `box` are of. A raw density
            means as much opacity over a voxel in each, so sigma counts per 2^n world units in the n-th shell.

        channels: names of what a sample shows: ("red", "green", "blue"), or any others, as thermal, spectral bands,
            labels; then their numbers have no bounds, images have as many, and so has `background` (0 if not given).

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
    background: tuple[float, ...]
    provenance: Mapping
    boxes: int
    ndc_from_world: np.ndarray | None
    channels: tuple[str, ...]

    def __init__(
        self,
        density: np.ndarray = NOT_GIVEN,
        features: np.ndarray = NOT_GIVEN,
        world_from_index: np.ndarray = NOT_GIVEN,
        activation: Activation = Activation(),
        background: Colour = WHITE,
        provenance: Mapping = NO_PROVENANCE,
        boxes: int = 1,
        ndc_from_world: np.ndarray | None = None,
        channels: Sequence[str] = COLOUR_CHANNELS,
        *,
        samples: Dense | Sparse | None = None,
    ) -> None:
        if world_from_index is NOT_GIVEN:
            raise RaymarchError(MISSING_CURE)
        activation = ACTIVATION("activation", activation)
        samples = store_samples(density, features, samples, activation.empty)
        channels = VOLUME_CHANNELS("channels", channels)
        require_features(samples.channels, channels, samples.shape)
        boxes = require_boxes(samples.shape, boxes)
        affine, ndc = require_placement(world_from_index, ndc_from_world, samples.shape, boxes)
        require_thin(samples.ends(activation.empty), samples.shape, affine, activation.sigma)
        kept: dict[str, Any] = {
            "samples": samples,
            "world_from_index": affine,
            "activation": activation,
            "boxes": boxes,
        }
        kept |= {"background": background_of_channels(channels, background), "ndc_from_world": ndc}
        kept |= {"channels": channels}
        for name, value in (kept | {"provenance": MAPPING("provenance", provenance)}).items():
            object.__setattr__(self, name, value)

    @classmethod
    @checked(sigma=checks.callback, colour=optional(checks.callback), shape=SHAPE, box=BOX, background=checks.colour)
    def from_function(
        cls,
        sigma: Field,
        colour: Field | None = None,
        *,
        shape: Sequence[int] = (64, 64, 64),
        box: Numbers = ((-1, -1, -1), (1, 1, 1)),
        background: Colour = (1, 1, 1),
    ) -> Volume:
        """Volume of `sigma(points)` [1/world unit] and `colour(points)` in 0..1, points being (..., 3) in the world.

        Negative densities are taken as 0; without `colour` it is 0.7 grey. The activations are relu and clamped.
        """
        return cls(*_of_function(sigma, colour, shape, box), background)  # type: ignore[arg-type]  # it reads it

    @classmethod
    @checked(box=optional(BOX), spacing=optional(SPACING), background=checks.colour)
    def from_array(
        cls,
        density: Numbers,
        colour: Numbers | None = None,
        *,
        box: Numbers | None = None,
        spacing: Numbers | None = None,
        background: Colour = (1, 1, 1),
    ) -> Volume:
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
        return cls(*_of_array(density, colour, box, spacing), background)  # type: ignore[arg-type]  # it reads it

    @classmethod
    @checked(bricks=BRICKS, shape=SHAPE)
    def of_bricks(
        cls,
        bricks: Bricks,
        shape: Sequence[int],
        world_from_index: np.ndarray,
        activation: Activation = Activation(),
        background: Colour = WHITE,
        provenance: Mapping = NO_PROVENANCE,
        boxes: int = 1,
        ndc_from_world: np.ndarray | None = None,
        channels: Sequence[str] = COLOUR_CHANNELS,
    ) -> Volume:
        """Sparse volume of `shape` samples (x, y, z), of which bricks hold those where something is.

        The other arguments are those of a `Volume`, from `world_from_index` on.

        Example:
            >>> ball = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.4), shape=(32, 32, 32))
            >>> bricks = ball.sparse().bricks
            >>> Volume.of_bricks(bricks, (32, 32, 32), ball.world_from_index, ball.activation)
            Volume(32 x 32 x 32 samples in 8 of 64 bricks, SH degree 0, box -1 -1 -1 to 1 1 1)
        """
        where = (world_from_index, activation, background, provenance, boxes, ndc_from_world)
        kept = Sparse(bricks, shape)  # type: ignore[arg-type]  # three, by the rule
        return cls(NOT_GIVEN, NOT_GIVEN, *where, channels, samples=kept)

    def __repr__(self) -> str:
        return f"Volume({_volume_text(self)})"

    def _repr_html_(self) -> str | None:
        return html_of(volume_card, self)

    @property
    def density(self) -> np.ndarray:
        """Raw density (x, y, z), read-only; of bricks it is made anew each time."""
        return self.samples.density(self.activation.empty)

    @property
    def features(self) -> np.ndarray:
        """Raw colour (x, y, z, channel), read-only; of bricks it is made anew each time."""
        return self.samples.features()

    @property
    def bricks(self) -> Bricks | None:
        """Bricks of a sparse volume; None of a dense one."""
        return self.samples.bricks

    @property
    def nbytes(self) -> int:
        """Size of the samples in memory [byte]."""
        return self.samples.nbytes

    @checked(index=INDEX)
    def at(self, index: Sequence[Numbers]) -> tuple[np.ndarray, np.ndarray]:
        """Raw density (...) and features (..., channel) at three arrays i, j, k of indices, bricks staying bricks.

        Raises RaymarchError for what are no three indices of samples.

        Example:
            >>> ramp = Volume.from_function(lambda p: p[..., 0], shape=(5, 4, 4))
            >>> ramp.at(np.ogrid[3:5, :1, :1])[0].ravel().tolist()
            [0.5, 1.0]
        """
        require_inside(index, self.shape)
        return self.samples.at(index, self.activation.empty)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z), those of all nested boxes along x."""
        return self.samples.shape

    @property
    def box_shape(self) -> tuple[int, int, int]:
        """Count of samples (x, y, z) of one box."""
        x, y, z = self.shape
        return x // self.boxes, y, z

    @property
    def feature_count(self) -> int:
        """Count of features a sample, 3 (degree + 1)^2 of a colour."""
        return self.samples.channels

    @property
    def colours(self) -> int:
        """Count of the channels."""
        return len(self.channels)

    @property
    def is_colour(self) -> bool:
        """Whether the channels are red, green and blue."""
        return self.channels == COLOUR_CHANNELS

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return round((self.feature_count / self.colours) ** 0.5) - 1

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

    def select(self, channels: Sequence[str]) -> Volume:
        """Volume of some of the channels, in this order.

        Raises RaymarchError for a channel that there is not.

        Example:
            >>> fog = Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 2)), np.eye(4), channels=("thermal", "label"))
            >>> fog.select(["label"]).channels
            ('label',)
        """
        which = channel_indices(self, CHANNEL_NAMES("channels", channels))
        return self._of_channels(which, tuple(self.channels[i] for i in which), np.ones(len(which)), 0.0)

    def in_colour(self, channels: Sequence[str] | None = None, ranges: Numbers | None = None) -> Volume:
        """Volume of colours that shows three channels as red, green and blue, or one in grey; itself if it has colours.

        Args:
            channels: names of three or of one; the first three if not given, or the first of fewer.
            ranges: low and high (channel, 2), shown as 0 and 1; if not given, those that the volume was fitted to, or
                0 and 1.

        Raises RaymarchError for a channel that there is not, another count of them, ranges whose high is not over their
        low, and ranges other than 0 and 1 of a volume whose colour activation is not "identity".

        Example:
            >>> fog = Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 2)), np.eye(4), channels=("thermal", "label"))
            >>> fog.in_colour(["label"]).channels
            ('red', 'green', 'blue')
        """
        if channels is None and self.is_colour:
            return self
        names = CHANNEL_NAMES(
            "channels", self.channels[: 3 if self.colours > 2 else 1] if channels is None else channels
        )
        which = channel_indices(self, names)
        if len(which) not in (1, 3):
            raise RaymarchError(f"channels are {len(which)}, want three, for red, green and blue, or one, for grey")
        low, high = (ranges_of(self)[which] if ranges is None else _ranges(ranges, len(which))).T
        if self.activation.colour_rule.name != "identity":
            if ranges is not None and ((low != 0) | (high != 1)).any():
                name = self.activation.colour_rule.name
                raise RaymarchError(f"ranges are given but colour activation {name} bends them; leave them out")
            low, high = np.zeros(len(which)), np.ones(len(which))
        shown = self._of_channels(which, names, 1 / (high - low), -low / (high - low))
        if len(which) == 1:
            shown = shown._of_channels([0, 0, 0], COLOUR_CHANNELS, np.ones(3), 0.0)
        return replace(shown, channels=COLOUR_CHANNELS, background=tuple(np.clip(shown.background, 0, 1).tolist()))

    def _of_channels(self, which: Sequence[int], names: Sequence[str], scale: np.ndarray, offset: Numbers) -> Volume:
        """Volume of channels by their numbers, their values times `scale` and `offset` more."""
        bricks, harmonics = self.bricks, (self.degree + 1) ** 2
        held = self if bricks is None else bricks
        picked = held.features.reshape(*held.features.shape[:-1], harmonics, self.colours)[..., list(which)]
        picked = picked * np.asarray(scale, picked.dtype)
        picked[..., 0, :] += np.asarray(offset, float) / Y00
        features = picked.reshape(*picked.shape[:-2], -1)
        samples: Dense | Sparse
        if bricks is None:
            samples = Dense(self.density, features)
        else:
            samples = Sparse(replace(bricks, features=features), self.shape)
        background = np.asarray(self.background)[list(which)] * scale + offset
        names = tuple(names)
        kept = names if names != COLOUR_CHANNELS else tuple(f"{name}." for name in names)  # not bounded yet
        moved = replace(self, samples=samples, channels=kept, background=tuple(background.tolist()))
        return moved if kept == names else replace(moved, channels=names, background=_within(background))

    @checked(world_from_world=checks.array(4, 4))
    def moved(self, world_from_world: Numbers) -> Volume:
        """Volume carried along by an affine motion (4, 4) of the world; its sigma per world unit stays.

        Harmonics are not rotated: at degree 1 and more only a translation leaves what is seen unchanged.
        """
        return replace(self, **_moved_affine(self, world_from_world))


DEFAULT_GREY = 0.7  # where no colour is given
MAX_UINT8_DENSITY = 8  # bytes beyond it are the values of a scan, not extinctions


def _of_function(sigma: Field, colour: Field | None, shape: Sequence[int], box: Numbers) -> Samples:
    """Samples of functions of the place, as many as `shape` says, the first and the last on the box's faces."""
    try:
        axes = [np.linspace(low, high, n) for low, high, n in zip(*np.asarray(box), shape, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        density = spread_to(shape)("sigma(points)", sigma(points))
        rgb = spread_to((*shape, 3))("colour(points)", DEFAULT_GREY if colour is None else colour(points))
        return _plain(density, rgb, affine_of_box(box, shape))
    except MemoryError as error:
        raise RaymarchError(f"a volume of {shape} samples does not fit the memory ({error}); lower it") from error


def _of_array(density: Numbers, colour: Numbers | None, box: Numbers | None, spacing: Numbers | None) -> Samples:
    """Samples of an array (x, y, z) and colours that broadcast to it, within `box` or `spacing` apart."""
    density = with_cure(RAW, _density_cure)("density", density)
    require_three_axes(density)
    if density.dtype == np.uint8 and density.max() > MAX_UINT8_DENSITY:
        log.warning(
            "density is uint8 up to %d, taken as extinction [1/world unit], which is opaque at once; scale it, or make"
            " an rm.ScalarVolume of a scan's values",
            density.max(),
        )
    if box is not None and spacing is not None:
        raise RaymarchError("box and spacing are both given, want one of them; the other follows")
    steps = np.array(density.shape) - 1
    if box is None:
        half = steps * (1 / steps.max() if spacing is None else np.asarray(spacing) / 2)
        box = np.stack([-half, half])
    rgb = DEFAULT_GREY if colour is None else checks.display("colour", _colours_of("colour", colour, density.shape))
    rgb = spread_to((*density.shape, 3), 0, 1)("colour", rgb)
    return _plain(density.astype(np.float32), rgb, affine_of_box(box, density.shape))


def _density_cure(value: object) -> str:
    return "of magnitudes pass np.abs(it)" if np.asarray(value).dtype.kind == "c" else ""


def _colours_of(name: str, value: Numbers, shape: tuple[int, ...]) -> Numbers:
    """Colours as they are: of one for all, or of one a sample; RaymarchError for any other shape, which NumPy would
    spread over samples that nobody meant."""

    def read(value: object) -> object:
        given = checks.shape_of(value)
        if given is None or given in ((), (3,), (*shape, 3), (*shape, 1)):
            return value
        cure = channels_cure(given, shape)
        if given == shape:
            cure = "of greys pass it[..., None]"
        elif given == (4,):
            cure = "leave the fourth, alpha, out"
        raise Wrong(f"has shape {given}", cure or "give one colour for all, or one a sample")

    return Check(f"(3,) or {(*shape, 3)}", read)(name, value)


def _plain(density: np.ndarray, rgb: np.ndarray, world_from_index: np.ndarray) -> Samples:
    """Of sigma (x, y, z) and colour (x, y, z, 3), float32."""
    features = (rgb - np.float32(0.5)) / np.float32(Y00)
    return np.array(density), features, world_from_index, Activation("relu", 0.0, 1.0, "clamped")


def _moved_affine(volume: Volume, world_from_world: Numbers) -> dict[str, Any]:
    """Where a volume lies after an affine motion (4, 4) of the world."""
    if volume.ndc_from_world is None:
        return {"world_from_index": world_from_world @ volume.world_from_index}
    return {"ndc_from_world": volume.ndc_from_world @ np.linalg.inv(world_from_world)}


def _volume_text(volume: Volume) -> str:
    """Size, degree and place of a volume."""
    lower, upper = (" ".join(f"{x:.3g}" for x in corner) for corner in volume.box)
    size = " x ".join(map(str, volume.box_shape)) + " samples"
    if volume.bricks is not None:
        size += f" in {bricks_text(volume.shape, volume.bricks.count)} bricks"
    size += f" in each of {volume.boxes} nested boxes" if volume.boxes > 1 else ""
    size += " in NDC" if volume.ndc_from_world is not None else ""
    named = "" if volume.is_colour else f", channels {', '.join(volume.channels)}"
    return f"{size}, SH degree {volume.degree}, box {lower} to {upper}{named}"


def volume_card(volume: Volume) -> str:
    """HTML of a volume for a notebook: a small picture, its samples, where it lies and what they mean."""
    lower, upper = volume.box
    unit = "world unit" if volume.ndc_from_world is None else "NDC"
    size = " x ".join(map(str, volume.box_shape)) + (f" in each of {volume.boxes} nested boxes" * (volume.boxes > 1))
    bricks = None if volume.bricks is None else bricks_text(volume.shape, volume.bricks.count)
    rows = [
        ("samples (x, y, z)", size),
        ("bricks", bricks),
        ("box", f"{numbers_text(lower, step=volume.voxel)} to {numbers_text(upper, step=volume.voxel)}"),
        ("voxel", f"{volume.voxel:.4g} {unit}"),
        ("colour", f"spherical harmonics of degree {volume.degree}"),
        ("channels", None if volume.is_colour else ", ".join(volume.channels)),
        ("activation", f"{volume.activation.density_rule.name}, {volume.activation.colour_rule.name}"),
        ("memory", count_of_bytes(volume.nbytes)),
    ]
    return card_html(type(volume).__name__, rows, [volume_picture(volume)])


def volume_picture(volume: Volume) -> str:
    """Small picture of a volume as HTML, made by NumPy alone."""
    return figure(thumbnails.volume_thumbnail(volume.in_colour()), "thumbnail, parallel rays")


def channel_indices(volume: Volume, channels: Sequence[str]) -> list[int]:
    """Numbers of channels by their names; RaymarchError for one that the volume does not have.

    Example:
        >>> channel_indices(Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 3)), np.eye(4)), ("blue", "red"))
        [2, 0]
    """
    for name in channels:
        if name not in volume.channels:
            raise RaymarchError(f"the volume has no channel {name}, want some of {', '.join(volume.channels)}")
    return [volume.channels.index(name) for name in channels]


def ranges_of(volume: Volume) -> np.ndarray:
    """Low and high (channel, 2) of the images that a volume was fitted to; 0 and 1 where it does not tell.

    Example:
        >>> ranges_of(Volume(np.zeros((4, 4, 4)), np.zeros((4, 4, 4, 3)), np.eye(4))).tolist()
        [[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    """
    told, plain = volume.provenance.get("ranges"), np.tile([0.0, 1.0], (volume.colours, 1))
    if isinstance(told, Mapping):
        for i, name in enumerate(volume.channels):
            pair = told.get(name)
            if isinstance(pair, (list, tuple)) and len(pair) == 2 and all(isinstance(x, (int, float)) for x in pair):
                plain[i] = pair if pair[0] < pair[1] else plain[i]
    return plain


def require_colour_volume(volume: Any, what: str) -> None:
    """RaymarchError where a volume has other channels than colours, which `what` wants."""
    if not getattr(volume, "is_colour", True):
        names = ", ".join(volume.channels)
        raise RaymarchError(
            f"{what} wants red, green and blue, the volume has the channels {names}; pass volume.in_colour(), which"
            " shows some of them so"
        )


def _ranges(value: Numbers, count: int) -> np.ndarray:
    ranges: np.ndarray = np.atleast_2d(np.asarray(checks.array(count, 2)("ranges", np.atleast_2d(np.asarray(value)))))
    if (ranges[:, 0] >= ranges[:, 1]).any():
        raise RaymarchError(f"ranges are {ranges.tolist()}, want low under high for each channel")
    return ranges


def _within(background: np.ndarray) -> tuple[float, ...]:
    return tuple(np.clip(background, 0, 1).tolist())


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


VOLUME = checks.with_cure(checks.Check("a Volume", _as_volume, kind=Volume), _volume_cure)


def _in_colour(value: Any) -> Volume:
    return VOLUME.read(value).in_colour()


def _of_colours(value: Any) -> Volume:
    volume: Volume = VOLUME.read(value)
    if not volume.is_colour:
        raise Wrong(
            f"has the channels {', '.join(volume.channels)}", "pass it.in_colour(), which shows some of them so"
        )
    return volume


SHOWN_VOLUME = replace(VOLUME, read=_in_colour)  # as colours, whatever its channels are
COLOUR_VOLUME = replace(VOLUME, wanted="a Volume of red, green and blue", read=_of_colours)
POINTS_AT_ONCE = 1 << 16  # whose colours are interpolated


def seen_colours(volume: Volume, points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Colours (n, 3) in 0..1 at points (n, 3) of the world, seen along unit directions (n, 3) of rays.

    Features are interpolated, summed over harmonics, then activated. Points beyond the box have the colour of its
    border; of nested boxes it is the innermost.

    Example:
        >>> grey = Volume.from_function(lambda p: np.ones(p.shape[:-1]), shape=(4, 4, 4))
        >>> seen_colours(grey, np.zeros((1, 3)), np.array([[0, 0, 1.0]])).round(3).tolist()
        [[0.7, 0.7, 0.7]]
    """
    require_colour_volume(volume, "colouring by a volume")
    index_from_world = np.linalg.inv(volume.world_from_index)
    index = points @ index_from_world[:3, :3].T + index_from_world[:3, 3]
    index = np.clip(index, 0, np.array(volume.box_shape) - 1.0)
    out = np.empty((len(points), 3))
    for first in range(0, len(points), POINTS_AT_ONCE):
        some = slice(first, first + POINTS_AT_ONCE)
        features = _interpolate(volume, index[some])
        harmonics = basis(volume.degree, directions[some])
        total = np.einsum("nk,nkc->nc", harmonics, features.reshape(len(features), -1, 3))
        out[some] = volume.activation.colour_rule.forward(total)
    return np.clip(out, 0, 1)


def _interpolate(volume: Volume, index: np.ndarray) -> np.ndarray:
    """Features (n, channel) at index-space points (n, 3), trilinear."""
    lowest = np.minimum(index.astype(int), np.array(volume.box_shape) - 2)
    within, total = index - lowest, np.zeros((len(index), volume.feature_count))
    for corner in itertools.product((0, 1), repeat=3):
        weight = np.prod(np.where(corner, within, 1 - within), axis=1)
        total += weight[:, None] * volume.at(tuple((lowest + corner).T))[1]
    return total

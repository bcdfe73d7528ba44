"""Samples placed in the world: what of a volume follows from its samples and from where they lie."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch.arguments.arrays import Numbers
from raymarch.arguments.declared import checked
from raymarch.geometry.ndc import corners_in_world
from raymarch.geometry.pose import voxel_of
from raymarch.html.card import Shown, card, count_of_bytes, numbers
from raymarch.html.picture import figure
from raymarch.volumes import cards
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import Bricks, bricks_in_words
from raymarch.volumes.samples import INDEX, require_inside
from raymarch.volumes.storage import Dense, Sparse


class Sampled(Shown):
    """Samples placed in the world; `Volume` has the fields."""

    samples: Dense | Sparse
    world_from_index: np.ndarray
    activation: Activation
    background: tuple[float, float, float]
    boxes: int
    ndc_from_world: np.ndarray | None

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
    def channels(self) -> int:
        """Count of features a sample, 3 (degree + 1)^2."""
        return self.samples.channels

    @property
    def degree(self) -> int:
        """Degree of the spherical harmonics, 0 to 3."""
        return round((self.channels / 3) ** 0.5) - 1

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

    def _card(self) -> str:
        lower, upper = self.box
        unit = "world unit" if self.ndc_from_world is None else "NDC"
        size = " x ".join(map(str, self.box_shape)) + (f" in each of {self.boxes} nested boxes" * (self.boxes > 1))
        bricks = None if self.bricks is None else bricks_in_words(self.shape, self.bricks.count)
        rows = [
            ("samples (x, y, z)", size),
            ("bricks", bricks),
            ("box", f"{numbers(lower, step=self.voxel)} to {numbers(upper, step=self.voxel)}"),
            ("voxel", f"{self.voxel:.4g} {unit}"),
            ("colour", f"spherical harmonics of degree {self.degree}"),
            ("activation", f"{self.activation.density_rule.name}, {self.activation.colour_rule.name}"),
            ("memory", count_of_bytes(self.nbytes)),
        ]
        return card(type(self).__name__, rows, [self.thumbnail_html()])

    def thumbnail_html(self) -> str:
        """Small picture of it as HTML, made by NumPy alone."""
        return figure(cards.of_samples(self), "thumbnail, parallel rays")

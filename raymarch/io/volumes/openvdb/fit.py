"""Fitted volumes as grids of OpenVDB: extinction, and one colour a sample in linear light, as renderers take them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import product

import numpy as np

from raymarch.io.volumes.openvdb.layout import LEAF_SIDE, LEAF_VOXELS, LEAVES_A_SIDE, leaf_numbers
from raymarch.io.volumes.openvdb.writer import Leaves, NewGrid
from raymarch.views.display_values import linear_of_srgb, srgb_of_linear
from raymarch.volumes.activation import Activation, numbers_of
from raymarch.volumes.bricks import Bricks
from raymarch.volumes.harmonics import Y00, basis
from raymarch.volumes.volume import Volume

log = logging.getLogger("raymarch")
BRICKS_AT_ONCE = 32  # whose colours are worked out at a time
READ_ACTIVATION = Activation("relu", 0.0, 1.0, "clamped")  # of a volume that is read: its numbers are what they say


def _sphere() -> tuple[np.ndarray, np.ndarray]:
    """Directions (26, 3) and weights (26,) of a mean over the sphere that is exact up to degree 7 (Lebedev 1976)."""
    several = np.array([one for one in product((-1, 0, 1), repeat=3) if any(one)], float)
    size = np.abs(several).sum(1).astype(int)
    return several / np.sqrt(size)[:, None], np.array([0, 1 / 21, 4 / 105, 9 / 280])[size]


def mean_colours(volume: Volume, features: np.ndarray) -> np.ndarray:
    """Colours (..., 3), as the volume shows them in the mean over all directions, of raw colours (..., channel)."""
    rule = volume.activation.colour_rule
    if volume.degree == 0:
        return numbers_of(rule, "forward", Y00 * features.astype(float))
    directions, weights = _sphere()
    harmonics = basis(volume.degree, directions).T
    shape = features.shape[:-1]
    sums = features.astype(float).reshape(-1, len(harmonics), 3).swapaxes(1, 2) @ harmonics
    return (numbers_of(rule, "forward", sums) @ weights).reshape(*shape, 3)


def grids_of_fit(volume: Volume) -> list[NewGrid]:
    """Grids `density` [1/world unit] and `Cd` (linear light) of a volume that is one grid, by its bricks.

    Where no brick is, colours are that of raw colours of 0, as they are in a march.
    """
    log.warning(
        "the file gets sigma of the volume and one colour a sample in linear light, the mean over directions; harmonics"
        " and activations stay behind"
    )
    sparse = volume.sparse()
    bricks = sparse.bricks
    assert bricks is not None
    rule, empty = volume.activation.density_rule, bricks.density.dtype.type(volume.activation.empty)

    def density(place: tuple[int, int, int]) -> Leaves:
        numbers, which, inside = _bricks_in(bricks, place, volume.shape)
        raw = bricks.density[which].reshape(-1, LEAF_VOXELS, 1)
        holds = (raw != empty if rule.signed else raw > empty) & inside[..., None]
        sigma = np.where(holds, volume.activation.sigma(raw), 0).astype(np.float32)
        return numbers, (sigma != 0)[..., 0], lambda kept: sigma[kept]

    def colours(place: tuple[int, int, int]) -> Leaves:
        numbers, which, inside = _bricks_in(bricks, place, volume.shape)

        def values(kept: np.ndarray) -> np.ndarray:
            chosen = which[kept]
            out = np.empty((len(chosen), LEAF_VOXELS, 3), np.float32)
            for at in range(0, len(chosen), BRICKS_AT_ONCE):
                features = bricks.features[chosen[at : at + BRICKS_AT_ONCE]].reshape(
                    -1, LEAF_VOXELS, volume.feature_count
                )
                out[at : at + BRICKS_AT_ONCE] = linear_of_srgb(mean_colours(volume, features))
            return out

        return numbers, inside, values

    nothing = linear_of_srgb(mean_colours(volume, np.zeros(volume.feature_count)))
    return [
        NewGrid("density", np.zeros(1), volume.shape, density, {"class": "fog volume"}),
        NewGrid("Cd", nothing, volume.shape, colours, {"class": "unknown", "vector_type": "invariant"}),
    ]


def _bricks_in(bricks: Bricks, place: Sequence[int], shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers (n,) of the leaves of a node of 128^3 that are bricks, which bricks, and which voxels (n, 512) lie in a
    volume's shape."""
    part = bricks.table[tuple(slice(n * LEAVES_A_SIDE, (n + 1) * LEAVES_A_SIDE) for n in place)]
    at = np.argwhere(part >= 0)
    first = (np.multiply(place, LEAVES_A_SIDE) + at) * LEAF_SIDE
    i, j, k = (first[:, axis, None] + np.arange(LEAF_SIDE) < n for axis, n in enumerate(shape))
    inside = (i[:, :, None, None] & j[:, None, :, None] & k[:, None, None, :]).reshape(-1, LEAF_VOXELS)
    return leaf_numbers(at), part[part >= 0], inside


def features_of(light: np.ndarray) -> np.ndarray:
    """Raw colours (..., 3) float32, by `READ_ACTIVATION`, of colours in linear light; a part at a time, so that little
    is held twice."""
    out = np.empty(light.shape, np.float32)
    for made, part in zip(out, light, strict=True):
        made[...] = (srgb_of_linear(part.astype(float)) - 0.5) / Y00
    return out

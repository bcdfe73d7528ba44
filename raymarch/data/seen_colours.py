"""Colours of a volume at places in the world, seen in directions: as a march reads them, in NumPy."""

from __future__ import annotations

import itertools

import numpy as np

from raymarch.volumes.harmonics import basis
from raymarch.volumes.volume import Volume

CHUNK = 1 << 16  # points at a time


def seen_colours(volume: Volume, points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Colours (n, 3) in 0..1 at points (n, 3) of the world, seen along unit directions (n, 3) of rays.

    Features are interpolated, summed over harmonics, then activated. Points beyond the box have the colour of its
    border; of nested boxes it is the innermost.

    Example:
        >>> grey = Volume.from_function(lambda p: np.ones(p.shape[:-1]), shape=(4, 4, 4))
        >>> seen_colours(grey, np.zeros((1, 3)), np.array([[0, 0, 1.0]])).round(3).tolist()
        [[0.7, 0.7, 0.7]]
    """
    index_from_world = np.linalg.inv(volume.world_from_index)
    index = points @ index_from_world[:3, :3].T + index_from_world[:3, 3]
    index = np.clip(index, 0, np.array(volume.box_shape) - 1.0)
    out = np.empty((len(points), 3))
    for first in range(0, len(points), CHUNK):
        some = slice(first, first + CHUNK)
        features = _interpolated(volume, index[some])
        harmonics = basis(volume.degree, directions[some])
        total = np.einsum("nk,nkc->nc", harmonics, features.reshape(len(features), -1, 3))
        out[some] = volume.activation.colour_rule.forward(total)
    return np.clip(out, 0, 1)


def _interpolated(volume: Volume, index: np.ndarray) -> np.ndarray:
    """Features (n, channel) at index-space points (n, 3), trilinear."""
    lowest = np.minimum(index.astype(int), np.array(volume.box_shape) - 2)
    within, total = index - lowest, np.zeros((len(index), volume.channels))
    for corner in itertools.product((0, 1), repeat=3):
        weight = np.prod(np.where(corner, within, 1 - within), axis=1)
        total += weight[:, None] * volume.at(tuple((lowest + corner).T))[1]
    return total

"""Volumes of fewer samples: each the mean of those about it, of what they show and not of raw numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import Volume

MIN_SAMPLES = 2  # an axis
MIN_WEIGHT = 1e-3  # of a sample that shows nothing, in the mean of colours


def fewer_samples(shape: tuple[int, int, int], factor: float) -> tuple[int, int, int]:
    """Count of samples along each axis, `factor` times as many cells.

    Example:
        >>> fewer_samples((101, 51, 2), 0.5)
        (51, 26, 2)
    """
    x, y, z = (max(round((n - 1) * factor) + 1, MIN_SAMPLES) for n in shape)
    return x, y, z


def thinner(volume: Volume, factor: float) -> Volume:
    """Volume of the same box, or boxes, with `factor` times as many cells a side, less than 1.

    Extinctions are averaged, and colours by extinction; of values of any sign the values. A plane of samples is read
    at a time, so that a volume in bricks stays one.

    Example:
        >>> fog = Volume.from_function(lambda p: np.full(p.shape[:-1], 2.0), shape=(33, 17, 9))
        >>> half = thinner(fog, 0.5)
        >>> half.shape, float(half.sigma().max()), half.box.tolist() == fog.box.tolist()
        ((17, 9, 5), 2.0, True)
    """
    old = volume.box_shape
    new = fewer_samples(old, factor)
    parts = [_thin_box(volume, box, new) for box in range(volume.boxes)]
    density, features = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    stretch = np.diag([*((n - 1) / (m - 1) for n, m in zip(old, new, strict=True)), 1.0])
    affine = volume.world_from_index @ stretch
    raw = volume.activation.raw(density).astype(np.float32)
    return replace(volume, samples=Dense(raw, features.astype(np.float32)), world_from_index=affine)


def _thin_box(volume: Volume, box: int, shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean values (x, y, z) and features (x, y, z, channel) of one box."""
    old, activation = volume.box_shape, volume.activation
    along = [_weights(n, m) for n, m in zip(old, shape, strict=True)]
    value = np.zeros(shape)
    weight = np.zeros((*shape, 1))
    features = np.zeros((*shape, volume.feature_count))
    j, k = np.ogrid[: old[1], : old[2]]
    for i in range(old[0]):
        density, own = volume.samples.at((np.array(i + box * old[0]), j, k), activation.empty)
        sigma = activation.sigma(density)
        counts = np.ones_like(sigma) if activation.density_rule.signed else sigma + MIN_WEIGHT / volume.voxel
        plane = along[1] @ sigma @ along[2].T
        shares = along[1] @ counts @ along[2].T
        colours = np.einsum("pj,qk,jk,jkc->pqc", along[1], along[2], counts, own, optimize=True)
        for p in np.flatnonzero(along[0][:, i]):
            value[p] += along[0][p, i] * plane
            weight[p, ..., 0] += along[0][p, i] * shares
            features[p] += along[0][p, i] * colours
    return value, features / weight


def _weights(old: int, new: int) -> np.ndarray:
    """Weights (new, old) of samples in the mean about each place, both from face to face: tents as wide as the coarser
    spacing, narrower near the faces, so that they lie evenly about their place."""
    spacing = (old - 1) / (new - 1)
    places = np.arange(new) * spacing
    half = np.clip(np.minimum(places, old - 1 - places), 1, max(spacing, 1.0))
    tents = np.maximum(1 - np.abs(np.arange(old) - places[:, None]) / half[:, None], 0)
    return np.asarray(tents / tents.sum(1, keepdims=True))

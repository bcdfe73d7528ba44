"""Floaters: matter of a fitted volume that hangs loose from the rest, or stands right before the cameras."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from raymarch.data.volume import Volume
from raymarch.diagnosis.finding import Finding
from raymarch.geometry.camera import Camera

CELLS = 64  # a side, in which pieces of matter are told apart
MATTER = 0.2  # opacity over one voxel that counts
SMALL = 0.01  # of the largest piece
LOOSE = 0.03  # of all matter, in small pieces
NEAR = 0.15  # of the way from a camera to the box's middle
SAMPLES, RAYS = 24, 6  # along that way; a side of the image
OPAQUE = 0.03  # of the light that may be lost there


def opacity(volume: Volume) -> np.ndarray:
    """Opacity (x, y, z) of the volume over one voxel, at its samples."""
    return 1 - np.exp(-np.clip(volume.sigma() * volume.voxel, 0, 50))


def loose(volume: Volume) -> Finding | None:
    """Small pieces of matter that are not joined to large ones."""
    alpha: np.ndarray = opacity(volume)
    k = max(-(-max(alpha.shape) // CELLS), 1)
    wide = np.pad(np.where(alpha > MATTER, alpha, 0), [(0, -n % k) for n in alpha.shape])
    x, y, z = (n // k for n in wide.shape)
    mass = wide.reshape(x, k, y, k, z, k).sum((1, 3, 5))
    label = pieces(mass > 0)
    if label.max() < 1:
        return None
    weight = np.bincount(label.ravel(), mass.ravel())[1:]
    small = weight < SMALL * weight.max()
    share = float(weight[small].sum() / weight.sum())
    if share < LOOSE:
        return None
    message = f"{small.sum()} small pieces hang loose from the rest, with {share:.0%} of all that is opaque"
    return Finding(
        "floaters", "warning", message,
        "more smoothness (--set tv_density=1e-3) or sparsity (--set sparsity=1e-3), a tighter --box, or more views",
    )  # fmt: skip


def pieces(full: np.ndarray) -> np.ndarray:
    """Labels (x, y, z) of the pieces that full cells make, from 1; 0 where empty. Cells that share a corner are joined.

    Example:
        >>> pieces(np.array([[[True, True, False, True]]])).tolist()
        [[[1, 1, 0, 2]]]
    """
    index = np.full([n + 2 for n in full.shape], -1)
    count = int(full.sum())
    index[1:-1, 1:-1, 1:-1][full] = np.arange(count)
    here = index[1:-1, 1:-1, 1:-1]
    ends = []
    for step in list(product((-1, 0, 1), repeat=3))[14:]:
        there = index[tuple(slice(1 + d, n + 1 + d) for d, n in zip(step, full.shape, strict=True))]
        joined = (here >= 0) & (there >= 0)
        ends.append(np.stack([here[joined], there[joined]]))
    first, second = np.concatenate(ends, axis=1)
    root = np.arange(count)
    while True:
        least = np.minimum(root[first], root[second])
        before = root.copy()
        np.minimum.at(root, first, least)
        np.minimum.at(root, second, least)
        root = root[root]
        if (root == before).all():
            break
    out = np.zeros(full.shape, int)
    out[full] = np.unique(root, return_inverse=True)[1] + 1
    return out


def before_cameras(volume: Volume, cameras: Sequence[Camera]) -> Finding | None:
    """Matter right before the cameras, where nothing that is wanted can be."""
    boxes = [volume.nested(n) for n in range(volume.boxes)]
    densities = [(box.sigma(), np.linalg.inv(box.world_from_index)) for box in boxes]
    middle = volume.box.mean(0)
    lost = []
    for camera in cameras[:: max(len(cameras) // 48, 1)]:
        rows, columns = (np.arange(RAYS) * n // RAYS + n // (2 * RAYS) for n in (camera.height, camera.width))
        direction = camera.rays((rows[:, None] * camera.width + columns).ravel()).direction
        reach = NEAR * float(np.linalg.norm(middle - camera.position))
        along = (np.arange(SAMPLES) + 0.5) / SAMPLES * reach
        places = camera.position + direction[:, None] * along[:, None]
        found, known = np.zeros(places.shape[:2]), np.zeros(places.shape[:2], bool)
        for sigma, index_from_world in densities:  # the innermost first, which has the say
            index = np.rint(places @ index_from_world[:3, :3].T + index_from_world[:3, 3]).astype(int)
            inside = np.all((index >= 0) & (index < sigma.shape), axis=-1) & ~known
            found[inside] = sigma[tuple(index[inside].T)]
            known |= inside
        lost.append(float((1 - np.exp(-np.clip(found.sum(1) * reach / SAMPLES, 0, 50))).mean()))
    if np.mean(lost) < OPAQUE and np.max(lost) < 10 * OPAQUE:
        return None
    message = (
        f"{np.mean(lost):.0%} of the light is lost right before the cameras, {np.max(lost):.0%} before one of them"
    )
    cure = "--preset photos, which keeps matter off the cameras, or --set near=0.3; or a --box that leaves them out"
    return Finding("near-cameras", "warning", message, cure)

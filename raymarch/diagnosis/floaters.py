"""Floaters: matter of a fitted volume that hangs loose from the rest, or stands right before the cameras."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from raymarch.diagnosis.finding import Finding, setting_of_fit
from raymarch.geometry.camera import Camera
from raymarch.volumes.bricks import BRICK_SIDE
from raymarch.volumes.volume import Volume

BATCH_BRICKS = 4096  # bricks
CELLS_A_SIDE = 64  # a side, in which pieces of matter are told apart
MIN_OPACITY = 0.2  # opacity over one voxel that counts
MAX_SMALL_PIECE = 0.01  # of the largest piece
MIN_LOOSE_FRACTION = 0.03  # of all matter, in small pieces
NEAR_FRACTION = 0.15  # of the way from a camera to the box's middle
MAX_NEAR_PLANE = 0.7  # near plane from which on one farther off would leave little to see
SAMPLES_A_RAY, RAYS_A_SIDE = 24, 6  # along that way; a side of the image
MIN_EFFECTIVE_WEIGHT = 1e-3  # weight of smoothness or sparsity from which on a fit is another
MIN_LIGHT_LOSS = 0.03  # of the light that may be lost there


def opacity_in_parts(volume: Volume, starts: Sequence[np.ndarray], least: float = 0.0) -> np.ndarray:
    """Sums (x, y, z) of the opacities over one voxel, as far as over `least`, of samples in parts of the volume.

    Args:
        volume: whose bricks stay bricks; where none is there is no opacity.
        starts: of each axis the first sample of each part, from 0 on.
        least: opacity up to which a sample does not count.

    Example:
        >>> fog = Volume.from_array(np.full((4, 4, 4), 1e9))
        >>> opacity_in_parts(fog, [np.array([0, 3]), np.array([0]), np.array([0])]).ravel().tolist()
        [48.0, 16.0]
    """

    def opacity(density: np.ndarray) -> np.ndarray:
        alpha = 1 - np.exp(-np.clip(volume.activation.sigma(density) * volume.voxel, 0, 50))
        return np.where(alpha > least, alpha, 0)

    if volume.bricks is None:
        sums = opacity(volume.density)
        for axis, first in enumerate(starts):
            sums = np.add.reduceat(sums, first, axis=axis)
        return sums
    sums, table = np.zeros([len(first) for first in starts]), volume.bricks.table
    places, inside = np.argwhere(table >= 0), np.arange(BRICK_SIDE)
    for some in np.split(places, range(BATCH_BRICKS, len(places), BATCH_BRICKS)):
        alpha = opacity(volume.bricks.density[table[tuple(some.T)]])
        part = np.zeros(alpha.shape, int)
        for axis, (first, length) in enumerate(zip(starts, volume.shape, strict=True)):
            index = np.expand_dims(some[:, axis, None] * BRICK_SIDE + inside, [n for n in (1, 2, 3) if n != axis + 1])
            alpha = np.where(index < length, alpha, 0)
            part = part * len(first) + np.searchsorted(first, index, "right") - 1
        sums += np.bincount(part.ravel(), alpha.ravel(), sums.size).reshape(sums.shape)
    return sums


def loose_matter(volume: Volume) -> Finding | None:
    """Small pieces of matter that are not joined to large ones."""
    k = max(-(-max(volume.shape) // CELLS_A_SIDE), 1)
    mass = opacity_in_parts(volume, [np.arange(0, n, k) for n in volume.shape], MIN_OPACITY)
    label = label_pieces(mass > 0)
    if label.max() < 1:
        return None
    weight = np.bincount(label.ravel(), mass.ravel())[1:]
    small = weight < MAX_SMALL_PIECE * weight.max()
    share = float(weight[small].sum() / weight.sum())
    if share < MIN_LOOSE_FRACTION:
        return None
    message = f"{small.sum()} small pieces hang loose from the rest, with {share:.0%} of all that is opaque"
    more = " or ".join(f"--set {name}={_doubled_weight(volume, name):.2g}" for name in ("tv_density", "sparsity"))
    return Finding("floaters", "warning", message, f"more smoothness or sparsity ({more}), a tighter --box, more views")


def _doubled_weight(volume: Volume, weight: str) -> float:
    """A regulariser's weight that is twice what the volume's fit had, and no less than one that is felt."""
    had = setting_of_fit(volume, weight)
    return (
        max(2 * float(had), MIN_EFFECTIVE_WEIGHT)
        if isinstance(had, (int, float)) and math.isfinite(had)
        else MIN_EFFECTIVE_WEIGHT
    )


def label_pieces(full: np.ndarray) -> np.ndarray:
    """Labels (x, y, z) of the pieces that full cells make, from 1; 0 where empty. Cells that share a corner are joined.

    Example:
        >>> label_pieces(np.array([[[True, True, False, True]]])).tolist()
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


def matter_before_cameras(volume: Volume, cameras: Sequence[Camera]) -> Finding | None:
    """Matter right before the cameras, where nothing that is wanted can be."""
    boxes = [volume.nested(n) for n in range(volume.boxes)]
    placed = [(box, np.linalg.inv(box.world_from_index)) for box in boxes]
    middle = volume.box.mean(0)
    lost = []
    for camera in cameras[:: max(len(cameras) // 48, 1)]:
        rows, columns = (
            np.arange(RAYS_A_SIDE) * n // RAYS_A_SIDE + n // (2 * RAYS_A_SIDE) for n in (camera.height, camera.width)
        )
        rays = camera.rays((rows[:, None] * camera.width + columns).ravel())
        reach = NEAR_FRACTION * float(np.linalg.norm(middle - camera.position))
        along = (np.arange(SAMPLES_A_RAY) + 0.5) / SAMPLES_A_RAY * reach
        places = rays.origin[:, None] + rays.direction[:, None] * along[:, None]
        found, known = np.zeros(places.shape[:2]), np.zeros(places.shape[:2], bool)
        for box, index_from_world in placed:  # the innermost first, which has the say
            index = np.rint(places @ index_from_world[:3, :3].T + index_from_world[:3, 3]).astype(int)
            inside = np.all((index >= 0) & (index < box.shape), axis=-1) & ~known
            found[inside] = box.activation.sigma(box.at(index[inside].T)[0])
            known |= inside
        lost.append(float((1 - np.exp(-np.clip(found.sum(1) * reach / SAMPLES_A_RAY, 0, 50))).mean()))
    if np.mean(lost) < MIN_LIGHT_LOSS and np.max(lost) < 10 * MIN_LIGHT_LOSS:
        return None
    message = (
        f"{np.mean(lost):.0%} of the light is lost right before the cameras, {np.max(lost):.0%} before one of them"
    )
    return Finding("near-cameras", "warning", message, _near_plane_cure(volume))


def _near_plane_cure(volume: Volume) -> str:
    """Cure of matter before the cameras, by the near plane that the volume's fit had."""
    near = setting_of_fit(volume, "near")
    if isinstance(near, (int, float)) and near >= NEAR_FRACTION:  # other cameras look there
        farther = f", or --set near={near + 0.2:.2g} (it was {near:.2g})" if near < MAX_NEAR_PLANE else ""
        return f"a --box that leaves the cameras out{farther}"
    return "--preset photos, which keeps matter off the cameras, or --set near=0.3; or a --box that leaves them out"

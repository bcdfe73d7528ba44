"""Part of a volume that the rays of a camera meet most: small enough for a check in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from raymarch.geometry.boxes import meet_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.ndc import rays_in_ndc
from raymarch.volumes.storage import Dense
from raymarch.volumes.volume import Volume

MOST = 64  # samples a side
RAYS = 1024  # along which the part is looked for
STEPS = 128


def part_met(volume: Volume, camera: Camera, seed: int, clip: Clip | None = None) -> Volume:
    """Crop of a volume, at most `MOST` samples a side, about the place that holds most of what one ray meets.

    Weights are those of emission and absorption on every so many samples of the volume, nearest neighbours, in NumPy. A
    volume that is small already is returned as it is; of one that no ray meets the middle is.

    Example:
        >>> big = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(80, 80, 80))
        >>> part_met(big, Camera.look_at((0, -4, 0)), 0).shape
        (64, 64, 64)
    """
    shape = np.array(volume.box_shape)
    if (shape <= MOST).all():
        return volume
    if volume.boxes > 1:
        return _thinned(volume, -(-int(shape.max()) // (MOST // 2)))
    lower = np.clip(
        np.round(_middle(volume, camera, seed, clip)).astype(int) - MOST // 2, 0, np.maximum(shape - MOST, 0)
    )
    some = [np.arange(start, min(start + MOST, n)) for start, n in zip(lower, shape, strict=True)]
    place = volume.world_from_index.copy()
    place[:3, 3] += place[:3, :3] @ lower
    return replace(volume, samples=Dense(*volume.at(np.ix_(*some))), world_from_index=place)


def _thinned(volume: Volume, stride: int) -> Volume:
    """Volume of every so many samples of each of the nested boxes, as a ray may meet all of them."""
    boxes, shape = volume.boxes, volume.box_shape
    i, j, k = (np.arange(0, n, stride) for n in shape)
    samples = Dense(*volume.at(np.ix_((np.arange(boxes)[:, None] * shape[0] + i).ravel(), j, k)))
    place = volume.world_from_index.copy()
    place[:3, :3] *= stride
    return replace(volume, samples=samples, world_from_index=place)


def _middle(volume: Volume, camera: Camera, seed: int, clip: Clip | None) -> np.ndarray:
    """Index (3,) of the heaviest sample of random rays."""
    last = np.array(volume.shape) - 1.0
    stride = -(-max(volume.shape) // MOST)
    sigma = volume.activation.sigma(volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0])
    total = camera.width * camera.height
    rays = camera.rays(np.random.default_rng(seed).permutation(total)[:RAYS])
    near, far = (0.0, np.inf) if clip is None or volume.ndc_from_world is not None else clip.cut(rays)
    if volume.ndc_from_world is not None:
        rays = rays_in_ndc(volume.ndc_from_world, rays)
    index_from_world = np.linalg.inv(volume.world_from_index)
    o = rays.origin @ index_from_world[:3, :3].T + index_from_world[:3, 3]
    d = rays.direction @ index_from_world[:3, :3].T
    enters, leaves = meet_box(o, d, np.stack([np.zeros(3), last]))
    near, far = np.maximum(enters, near), np.minimum(leaves, far)
    inside = far > near
    if not inside.any():
        return last / 2
    o, d, near, far = o[inside], d[inside], near[inside, None], far[inside, None]
    t = near + (far - near) * (np.arange(STEPS) + 0.5) / STEPS
    p = np.clip(o[:, None] + t[..., None] * d[:, None], 0, last)
    cells = np.minimum(np.round(p / stride).astype(int), np.array(sigma.shape) - 1)
    tau = np.maximum(sigma[tuple(np.moveaxis(cells, -1, 0))], 0) * (far - near) / STEPS
    before = np.cumsum(tau, axis=1) - tau
    weight = np.exp(-before) * -np.expm1(-tau)
    if weight.max() <= 0:
        return last / 2
    return p[np.unravel_index(int(weight.argmax()), weight.shape)]

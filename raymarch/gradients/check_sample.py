"""What a gradient check looks at: the part of a volume that rays meet most, rays that meet something, a background."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raymarch.geometry.boxes import meet_box
from raymarch.geometry.camera import Camera
from raymarch.geometry.clip import Clip
from raymarch.geometry.ndc import rays_in_ndc
from raymarch.gradients.linearised import Linearised
from raymarch.rendering.march_settings import EXACT, March
from raymarch.views.views import require_colour
from raymarch.volumes.default_table import has_values_alone
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.storage import Dense, Sparse
from raymarch.volumes.volume import Volume, ranges_of

MAX_SIDE = 64  # samples a side of a part: small enough for a check in double precision
SEARCH_RAYS = 1024  # along which the part is looked for
SEARCH_STEPS = 128
CANDIDATES_A_RAY = 16  # rays that are looked at for each that is taken
MIN_OPACITY = 0.01  # from which a ray counts as having met something


def background_to_check(volume: Volume) -> tuple[float, ...]:
    """A background that no channel is lost on: the volume's own, unless it is black somewhere."""
    if not volume.is_colour:
        return tuple(c if c != 0 else 0.25 for c in volume.background)
    return tuple(c if c > 0 else 0.25 for c in require_colour(volume.background))


def pixels_to_check(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], rays: int, seed: int
) -> np.ndarray:
    """Random pixels that the volumes' boxes cover, those that meet something first."""
    rng = np.random.default_rng(seed)
    some = rng.permutation(_covered_pixels(volumes, camera))[: CANDIDATES_A_RAY * rays]
    met = _transmittance(volumes, camera, marches, some) < 1 - MIN_OPACITY
    return np.concatenate([some[met], some[~met]])[:rays]


def _transmittance(
    volumes: Sequence[Volume], camera: Camera, marches: Sequence[March], pixels: np.ndarray
) -> np.ndarray:
    looking = list(marches)
    if len(volumes) == 1 and not (marches[0].rule.classifies or has_values_alone(volumes[0])):
        looking = [replace(marches[0], mode=EXACT.mode, iso=None, shading=None)]
    with Linearised(volumes, camera, march=looking, pixels=pixels) as seen:
        return seen.image()[:, 3]


def _covered_pixels(volumes: Sequence[Volume], camera: Camera) -> np.ndarray:
    """Pixels of the rectangles that hold the boxes' corners; all where some lie behind, or none of it is seen."""
    pixels = np.arange(camera.width * camera.height).reshape(camera.height, camera.width)
    covered = np.zeros(pixels.shape, bool)
    for volume in volumes:
        seen, depth = camera.project(volume.corners)
        if (depth <= 0).any():
            return pixels.ravel()
        columns, rows = (slice(max(int(a.min()), 0), max(int(np.ceil(a.max())), 0)) for a in seen.T)
        covered[rows, columns] = True
    return pixels[covered] if covered.any() else pixels.ravel()


def over_ranges(volume: Volume) -> Volume:
    """Volume of channels with the ranges of its images at 0..1, so that differences do not drown in the rounding of
    large numbers, as of kelvins; others as they are."""
    if volume.is_colour or volume.activation.colour_rule.name != "identity":
        return volume
    samples, (low, high) = volume.samples, ranges_of(volume).T
    features = (samples.features() if samples.bricks is None else samples.bricks.features).astype(float)
    parts = features.reshape(*features.shape[:-1], -1, volume.colours)
    parts[..., 0, :] -= low / Y00
    features = (parts / (high - low)).reshape(features.shape)
    held = replace(samples.bricks, features=features) if samples.bricks is not None else None
    moved = Dense(samples.density(0.0), features) if held is None else Sparse(held, samples.shape)
    behind = (np.asarray(volume.background) - low) / (high - low)
    return replace(volume, samples=moved, background=tuple(behind.tolist()))


def crop_met(volume: Volume, camera: Camera, seed: int, clip: Clip | None = None) -> Volume:
    """Crop of a volume, at most `MAX_SIDE` samples a side, about the place that holds most of what one ray meets.

    Weights are those of emission and absorption on every so many samples of the volume, nearest neighbours, in NumPy. A
    volume that is small already is returned as it is; of one that no ray meets the middle is.

    Example:
        >>> big = Volume.from_function(lambda p: 9.0 * (np.linalg.norm(p, axis=-1) < 0.5), shape=(80, 80, 80))
        >>> crop_met(big, Camera.look_at((0, -4, 0)), 0).shape
        (64, 64, 64)
    """
    shape = np.array(volume.box_shape)
    if (shape <= MAX_SIDE).all():
        return volume
    if volume.boxes > 1:
        return _thin_volume(volume, -(-int(shape.max()) // (MAX_SIDE // 2)))
    lower = np.clip(
        np.round(_middle(volume, camera, seed, clip)).astype(int) - MAX_SIDE // 2, 0, np.maximum(shape - MAX_SIDE, 0)
    )
    some = [np.arange(start, min(start + MAX_SIDE, n)) for start, n in zip(lower, shape, strict=True)]
    place = volume.world_from_index.copy()
    place[:3, 3] += place[:3, :3] @ lower
    return replace(volume, samples=Dense(*volume.at(np.ix_(*some))), world_from_index=place)


def _thin_volume(volume: Volume, stride: int) -> Volume:
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
    stride = -(-max(volume.shape) // MAX_SIDE)
    sigma = volume.activation.sigma(volume.at(np.ix_(*(np.arange(0, n, stride) for n in volume.shape)))[0])
    total = camera.width * camera.height
    rays = camera.rays(np.random.default_rng(seed).permutation(total)[:SEARCH_RAYS])
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
    t = near + (far - near) * (np.arange(SEARCH_STEPS) + 0.5) / SEARCH_STEPS
    p = np.clip(o[:, None] + t[..., None] * d[:, None], 0, last)
    cells = np.minimum(np.round(p / stride).astype(int), np.array(sigma.shape) - 1)
    tau = np.maximum(sigma[tuple(np.moveaxis(cells, -1, 0))], 0) * (far - near) / SEARCH_STEPS
    before = np.cumsum(tau, axis=1) - tau
    weight = np.exp(-before) * -np.expm1(-tau)
    if weight.max() <= 0:
        return last / 2
    return p[np.unravel_index(int(weight.argmax()), weight.shape)]

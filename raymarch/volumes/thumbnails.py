"""Thumbnails of volumes for notebooks: a small image by emission and absorption, or of maxima, by NumPy alone.

They must not wait for a compiler, nor ask for a device that a fit owns or another thread: so rays are parallel, samples
are those nearest to a place, and of a large volume every few samples are looked at. What is exact is `rm.render`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from raymarch.geometry.boxes import corners_of
from raymarch.geometry.pose import look_at
from raymarch.volumes.activation import Activation
from raymarch.volumes.harmonics import Y00
from raymarch.volumes.storage import Dense, Sparse

THUMBNAIL_SIDE = 144  # pixels of a thumbnail
MAX_SIDE_SAMPLES = 96  # samples an axis that are looked at
STEPS_A_RAY = 128  # a ray
VIEW_DIRECTION = (0.75, -1.0, 0.55)  # direction from which a volume is seen, as an orbit's cameras do
NDC_VIEW_DIRECTION = (0.0, 0.001, -1.0)  # in NDC, whose z goes from the near plane on
MIN_OPACITY = 1e-3  # opacity and transmittance that are not looked at
GREY_PERCENTILES = (1.0, 99.9)  # percentiles from black to white


def thin_samples(samples: Dense | Sparse, shape: tuple[int, int, int], empty: float) -> tuple[np.ndarray, ...]:
    """Raw density (x, y, z) and the colours of the first harmonic (x, y, z, 3) of every few samples, and the strides.

    Of nested boxes `shape` is that of one, and what is looked at is the innermost.
    """
    strides = np.array([-(-n // MAX_SIDE_SAMPLES) for n in shape])
    index = np.ogrid[tuple(slice(0, n, s) for n, s in zip(shape, strides, strict=True))]
    density, features = samples.at([np.asarray(n) for n in index], empty)
    return density, features[..., :3], strides


class Placed(Protocol):
    """What of a `Volume` its thumbnail is made of."""

    @property
    def samples(self) -> Dense | Sparse: ...

    @property
    def world_from_index(self) -> np.ndarray: ...

    @property
    def activation(self) -> Activation: ...

    @property
    def background(self) -> tuple[float, ...]: ...

    @property
    def ndc_from_world(self) -> np.ndarray | None: ...

    @property
    def box_shape(self) -> tuple[int, int, int]: ...


def volume_thumbnail(volume: Placed, side: int = THUMBNAIL_SIDE) -> np.ndarray:
    """Image (side, side, 3) of a volume by emission and absorption, its rays parallel; of values alone their maxima.

    Of nested boxes it is the innermost, of NDC what its cameras see.
    """
    eye = VIEW_DIRECTION if volume.ndc_from_world is None else NDC_VIEW_DIRECTION
    density, features, strides = thin_samples(volume.samples, volume.box_shape, volume.activation.empty)
    affine = volume.world_from_index @ np.diag([*strides, 1.0])
    if volume.activation.density_rule.signed and not features.any():
        return apply_window(maxima(density, affine, eye, side))
    sigma, flat = np.asarray(volume.activation.sigma(density), np.float32), features.reshape(-1, 3)
    step = np.float32(_across(affine, sigma.shape) / STEPS_A_RAY)
    colour, left = np.zeros((side * side, 3), np.float32), np.ones(side * side, np.float32)
    for rays, at in _samples(affine, sigma.shape, eye, side):
        alpha = -np.expm1(-np.maximum(sigma.ravel()[at], 0) * step)
        seen = (alpha > MIN_OPACITY) & (left[rays] > MIN_OPACITY)
        rays, at, alpha = rays[seen], at[seen], alpha[seen]
        own = np.clip(volume.activation.colour_rule.forward(Y00 * flat[at].astype(float)), 0, 1)
        colour[rays] += ((left[rays] * alpha)[:, None] * own).astype(np.float32)
        left[rays] *= 1 - alpha
    image = (colour + left[:, None] * np.asarray(volume.background, np.float32)).reshape(side, side, 3)
    return image if volume.ndc_from_world is None else image[:, ::-1]  # NDC are left-handed


def projection_thumbnail(values: np.ndarray, world_from_index: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Maximum intensity projection (SIDE, SIDE) of values (x, y, z), grey in 0..1, black where no ray meets them.

    With a `sign` of -1 it is of their opposites, as of values that are stored the other way round.
    """
    strides = [-(-n // MAX_SIDE_SAMPLES) for n in values.shape]
    thin = sign * values[tuple(slice(None, None, s) for s in strides)].astype(float)
    return apply_window(maxima(thin, world_from_index @ np.diag([*strides, 1.0]), VIEW_DIRECTION, THUMBNAIL_SIDE))


def maxima(values: np.ndarray, affine: np.ndarray, eye: tuple[float, float, float], side: int) -> np.ndarray:
    """Largest value (side, side) along each of parallel rays, NaN where it meets none."""
    most, flat = np.full(side * side, -np.inf), values.ravel()
    for rays, at in _samples(affine, values.shape, eye, side):
        most[rays] = np.maximum(most[rays], flat[at])
    return np.where(np.isfinite(most), most, np.nan).reshape(side, side)


def apply_window(values: np.ndarray, window: tuple[float, float] | None = None) -> np.ndarray:
    """Values as grey in 0..1 over a window, by default from their 1st to their 99.9th percentile; NaN is 0.

    Example:
        >>> apply_window(np.array([[0.0, 5.0, 20.0]]), (0.0, 10.0)).tolist()
        [[0.0, 0.5, 1.0]]
    """
    met = values[np.isfinite(values)]
    low, high = np.percentile(met, GREY_PERCENTILES) if window is None and met.size else window or (0.0, 1.0)
    return np.nan_to_num(np.clip((values - low) / max(float(high - low), 1e-30), 0, 1), nan=0.0)


def _across(affine: np.ndarray, shape: tuple[int, ...]) -> float:
    """Diagonal of a box."""
    corners = corners_of(affine, shape)
    return float(np.linalg.norm(np.ptp(corners, axis=0)))


def _samples(
    affine: np.ndarray, shape: tuple[int, ...], eye: tuple[float, float, float], side: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rays that are inside, and the number of the sample nearest to each, step after step from the front."""
    centre, across = corners_of(affine, shape).mean(0), _across(affine, shape)
    turn = look_at(centre + np.asarray(eye, float) / np.linalg.norm(eye), centre)[:3, :3]
    local = (corners_of(affine, shape) - centre) @ turn
    half = 1.02 * float(abs(local[:, :2]).max())
    index_from_world = np.linalg.inv(affine)
    u = (2 * (np.arange(side) + 0.5) / side - 1) * half
    plane = np.stack(np.broadcast_arrays(u[None, :], -u[:, None], 0 * u[:, None]), -1).reshape(-1, 3)
    linear = index_from_world[:3, :3] @ turn
    start = plane @ linear.T + index_from_world[:3, :3] @ centre + index_from_world[:3, 3] + 0.5
    heading = linear[:, 2]
    every, (_, ny, nz) = np.arange(side * side), shape
    start, heading = start.astype(np.float32), heading.astype(np.float32)
    for t in across * (0.5 - (np.arange(STEPS_A_RAY) + 0.5) / STEPS_A_RAY):
        index = np.floor(start + np.float32(t) * heading).astype(np.int32)
        inside = ((index >= 0) & (index < shape)).all(-1)
        i, j, k = index[inside].T
        yield every[inside], (i * ny + j) * nz + k

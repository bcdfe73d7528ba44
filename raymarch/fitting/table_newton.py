"""Gauss-Newton step of a transfer function towards pictures of a known volume."""

from __future__ import annotations

import numpy as np

from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.rendering.march_settings import March
from raymarch.views.views import Views
from raymarch.volumes.transfer_function import MOST_OPAQUE, TransferFunction
from raymarch.volumes.volume import Volume

DAMPING = 1e-6  # of the mean of the normal matrix's diagonal
ROUNDS = 8  # in which numbers at their bounds are held


def gauss_newton_step(volume: Volume, views: Views, march: March, rays: int, seed: int) -> TransferFunction:
    """Table of `march` after one step, by random rays of all views that count, kept within 0..1."""
    table = march.transfer
    assert table is not None
    counted = [_pixels_that_count(views, i) for i in range(len(views))]
    fullest = max(range(len(views)), key=lambda i: len(counted[i]))
    size, each = 4 * len(table.values), min(max(rays // len(views), 1), len(counted[fullest]))
    columns = [Parameters(table=unit.reshape(-1, 4)) for unit in np.eye(size)]
    normal, right = np.zeros((size, size)), np.zeros(size)
    rng = np.random.default_rng(seed)
    first, at_first = views.cameras[fullest], counted[fullest][:each]
    with Linearised(volume, first, background=views.background, march=march, pixels=at_first) as seen:
        for i, camera in enumerate(views.cameras):
            if not len(counted[i]):
                continue
            pixels = rng.choice(counted[i], min(each, len(counted[i])), replace=False)
            seen.set_camera(camera, pixels=pixels)
            residual = (views.rgb(i).reshape(-1, 3)[pixels] - seen.image()[:, :3]).reshape(-1)
            slopes = seen.tangents(columns)[:, :3].reshape(-1, size)
            normal, right = normal + slopes.T @ slopes, right + slopes.T @ residual
    most = np.tile([1.0, 1.0, 1.0, MOST_OPAQUE], len(table.values))
    return table.with_rgba(bounded_step(normal, right, table.rgba.ravel(), most).reshape(-1, 4))


def _pixels_that_count(views: Views, view: int) -> np.ndarray:
    """Pixels of a view that no mask takes out, row by row."""
    camera, mask = views.cameras[view], views.mask(view)
    return np.arange(camera.width * camera.height) if mask is None else np.flatnonzero(mask)


def bounded_step(normal: np.ndarray, right: np.ndarray, start: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Numbers after a step that solves `normal step = right`, from 0 to `most`; those that end there are held there."""
    damped = normal + DAMPING * np.trace(normal) / len(start) * np.eye(len(start))
    step, free = np.zeros(len(start)), np.ones(len(start), bool)
    for _ in range(ROUNDS):
        held = np.where(free, 0.0, step)
        step = held.copy()
        step[free] = np.linalg.solve(damped[np.ix_(free, free)], (right - damped @ held)[free])
        over = free & ((start + step < 0) | (start + step > most))
        if not over.any():
            break
        step[over] = (np.clip(start + step, 0, most) - start)[over]
        free &= ~over
    return np.clip(start + step, 0, most)

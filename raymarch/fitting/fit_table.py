"""Transfer function recovered from pictures of a known volume: by Adam on a Tape, then by steps of Gauss and Newton."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from raymarch.arguments.checks import callback, number, optional, whole
from raymarch.arguments.declared import checked
from raymarch.device.brick_grid import grid_for
from raymarch.device.image_store import ImagePyramid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.fitting import differentiable_passes
from raymarch.fitting.pruning import narrow
from raymarch.fitting.settings.objective import LOSSES
from raymarch.gradients.linearised import Linearised
from raymarch.gradients.parameters import Parameters
from raymarch.html.card import card_html, html_of
from raymarch.html.picture import curve
from raymarch.kernels.fit.losses import count_targets
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.rendering.march_settings import March
from raymarch.views.views import COLOUR_VIEWS, Views, require_colour
from raymarch.volumes.transfer_function import MAX_OPACITY, TRANSFER, TransferFunction, table_picture
from raymarch.volumes.volume import COLOUR_VOLUME, Volume

SLOTS = 4
BETAS, EPS = (0.9, 0.99), 1e-12
FINAL_RATE = 0.01  # of the first rate, at the end
DAMPING = 1e-6  # of the mean of the normal matrix's diagonal
MAX_BOUND_ROUNDS = 8  # in which numbers at their bounds are held


@dataclass(frozen=True, eq=False)
class TableFit:
    """Result of `fit_table`.

    Attributes:
        table: what was found, of the knots of the start.
        loss: (step,) mean squared error of the rays of each step.
        seconds: that it took.
    """

    table: TransferFunction
    loss: np.ndarray
    seconds: float

    def _repr_html_(self) -> str | None:
        return html_of(table_fit_card, self)


def table_fit_card(fit: TableFit) -> str:
    """HTML of a table's fit for a notebook: steps, loss, and the table."""
    rows = [
        ("steps", len(fit.loss)),
        ("loss", f"{fit.loss[0]:.4g} to {fit.loss[-1]:.4g}" if len(fit.loss) else None),
        ("seconds", f"{fit.seconds:.1f}"),
    ]
    drawn = curve(range(len(fit.loss)), np.log10(np.maximum(fit.loss, 1e-30)).tolist(), "log10 of the loss")
    return card_html("TableFit", rows, [table_picture(fit.table), drawn])


@checked(
    volume=COLOUR_VOLUME,
    views=COLOUR_VIEWS,
    start=TRANSFER,
    steps=whole(1, 10**6),
    newton=whole(0, 1000),
    rays=whole(16, 1 << 22),
    rate=number(0, 1, above=True),
    step=number(1e-3, 1e6),
    seed=whole(0, 2**31 - 1),
    show=optional(callback),
)
def fit_table(
    volume: Volume,
    views: Views,
    start: TransferFunction,
    *,
    steps: int = 100,
    newton: int = 6,
    rays: int = 8192,
    rate: float = 0.03,
    step: float = 0.5,
    seed: int = 0,
    show: Callable[[int, float], None] | None = None,
) -> TableFit:
    """Transfer function by which a known volume looks as in the views: colours and opacities of the knots of `start`.

    By the gradient of the squared error of random tiles of rays, recorded on a Tape, and Adam; knots stay where they
    are. A knot whose values lie nowhere, or behind what is opaque, keeps what it started with, and so does the colour
    of one that stays clear.

    Args:
        volume: of values, as they are known.
        views: cameras and images of it; those with alpha tell opacity too.
        start: knots, their first colours and opacities, and the unit length of these. An opacity of 0.1 everywhere is a
            good start: what is clear has no colour to correct, and what is opaque hides the rest.
        steps, rays: how many of Adam, and of how many rays each.
        newton: steps of Gauss and Newton after them, by tangents of as many rays, the last two of four times as many:
            they see which knots stand in for each other.
        rate: Adam's first step size, of colours and opacities in 0..1; it falls a hundredfold.
        step: length of a march step [voxel], as the pictures were made or shorter.
        seed: of the tiles that are drawn.
        show: called with each step's number and loss.

    Raises RaymarchError for views that do not see the volume.

    Example:
        >>> fit_table(head, views, TransferFunction.of_colormap("gray", 0, 4000)).table  # doctest: +SKIP
    """
    began = time.perf_counter()
    march = March(mode="transfer", transfer=start, step=step, min_weight=0.0)
    knots, table = len(start.values), start
    adam = _Adam(start.rgba, rate)
    losses = np.empty(steps)
    with ExitStack() as owners:
        images = owners.enter_context(ImagePyramid(views, rays))
        store = images.use(0)
        grid = owners.enter_context(grid_for(volume, slots=SLOTS))
        grid.upload(volume)
        dt = step * grid.voxel
        narrow(grid, store, None, dt)
        tiles = max(rays // store.fields.tile**2, 1)
        buffer = owners.enter_context(RayBuffer(count := tiles * store.fields.tile**2))
        behind = ti.Vector(list(require_colour(views.background)))
        variant, loss = march.variant(grid), LOSSES["squared"]
        for k in range(steps):
            store.choose(tiles, seed)
            draw_tiles(buffer.fields, store.fields, tiles, 1, 0.0, seed, k, 0.0)
            counted = count_targets(buffer.fields, count) if store.masked else count
            buffer.clear_table_gradient()
            buffer.set_table(table)
            with ti.ad.Tape(buffer.fields.loss, clear_gradients=False):
                differentiable_passes.march(grid, buffer, count, dt, march.min_transmittance, 0.0, behind, variant)
                differentiable_passes.compare(
                    buffer, loss, count, behind, 1.0 if views.shows_silhouettes else 0.0, counted
                )
            losses[k] = buffer.fields.loss[None]
            gradient = buffer.table_gradient(knots)
            if not np.isfinite(gradient).all():
                raise RaymarchError(f"gradient is not finite at step {k}; lower the rate, {rate:g}")
            table = start.with_rgba(adam.step(gradient, k, k / steps))
            if show is not None:
                show(k, float(losses[k]))
    for k in range(newton):
        several = rays if k < newton - 2 else 4 * rays
        table = gauss_newton_step(volume, views, replace(march, transfer=table), several, k + seed)
    return TableFit(table, losses, time.perf_counter() - began)


class _Adam:
    """Adam of a table's numbers (knot, 4), kept within their bounds."""

    def __init__(self, rgba: np.ndarray, rate: float):
        self._rgba, self._rate = rgba, rate
        self._mean, self._square = np.zeros_like(rgba), np.zeros_like(rgba)

    def step(self, gradient: np.ndarray, number: int, progress: float) -> np.ndarray:
        """Numbers after step `number`, at `progress` in 0..1."""
        self._mean = BETAS[0] * self._mean + (1 - BETAS[0]) * gradient
        self._square = BETAS[1] * self._square + (1 - BETAS[1]) * gradient**2
        mean, square = self._mean / (1 - BETAS[0] ** (number + 1)), self._square / (1 - BETAS[1] ** (number + 1))
        moved = self._rgba - self._rate * FINAL_RATE**progress * mean / (np.sqrt(square) + EPS)
        self._rgba = moved.clip(0, [1, 1, 1, MAX_OPACITY])
        return self._rgba


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
    most = np.tile([1.0, 1.0, 1.0, MAX_OPACITY], len(table.values))
    return table.with_rgba(bounded_step(normal, right, table.rgba.ravel(), most).reshape(-1, 4))


def _pixels_that_count(views: Views, view: int) -> np.ndarray:
    """Pixels of a view that no mask takes out, row by row."""
    camera, mask = views.cameras[view], views.mask(view)
    return np.arange(camera.width * camera.height) if mask is None else np.flatnonzero(mask)


def bounded_step(normal: np.ndarray, right: np.ndarray, start: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Numbers after a step that solves `normal step = right`, from 0 to `most`; those that end there are held there."""
    damped = normal + DAMPING * np.trace(normal) / len(start) * np.eye(len(start))
    step, free = np.zeros(len(start)), np.ones(len(start), bool)
    for _ in range(MAX_BOUND_ROUNDS):
        held = np.where(free, 0.0, step)
        step = held.copy()
        step[free] = np.linalg.solve(damped[np.ix_(free, free)], (right - damped @ held)[free])
        over = free & ((start + step < 0) | (start + step > most))
        if not over.any():
            break
        step[over] = (np.clip(start + step, 0, most) - start)[over]
        free &= ~over
    return np.clip(start + step, 0, most)

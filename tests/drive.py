"""Drive the device as the package does; grids and buffers are kept, so that kernels compile once a process.

They are kept for the tests of one file, then closed (`hand_back`): from the pool the next file, and whatever of the
package it tries, gets the same trees with all that was compiled for them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from cases import BACKGROUND, FINEST

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.geometry.camera import Camera
from raymarch.geometry.orbit import orbit
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.field import occupancy
from raymarch.kernels.field.touched import ALL_BITS
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.integrator.passes import passes_of
from raymarch.kernels.modes.registry import MODES
from raymarch.rendering.renderer import Renderer
from raymarch.views.views import Views
from raymarch.volumes.volume import Volume

ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-4}  # of the largest number, on a GPU
open_things: list[Grid | RayBuffer] = []


def kept(thing):
    """The thing, to be closed by `hand_back`."""
    open_things.append(thing)
    return thing


def same_sums(got, want):
    """The same bits; on a GPU, which adds up in any order, the same but for rounding."""
    if runtime.runs_on_cpu():
        np.testing.assert_array_equal(got, want)
        assert got.tobytes() == want.tobytes()  # zeros of either sign, too
    else:
        np.testing.assert_allclose(got, want, rtol=0, atol=ROUNDING[want.dtype] * np.abs(want).max())


def hand_back():
    """Close what is kept."""
    for make in (grid_of, ray_buffer, adam_grid, listing_grid):
        make.cache_clear()
    while open_things:
        open_things.pop().close()


@cache
def grid_of(degree=1, block=4, slots=2) -> Grid:
    """The one grid of its kind, at the finest shape of the tests."""
    return kept(Grid(FINEST, degree, slots=slots, block=block))


@cache
def ray_buffer() -> RayBuffer:
    """The one buffer."""
    return kept(RayBuffer(512))


def image(volume, rays, step, background=BACKGROUND, min_transmittance=0.0, min_weight=0.0, *, block=4, slots=2, **how):
    """Colour and transmittance (ray, 4), nothing skipped; `step` in world units; `how`: a reading's mode and jitter."""
    grid, buffer = grid_of(volume.degree, block, slots), ray_buffer()
    grid.upload(volume)
    return image_on(grid, buffer, rays, step, background, min_transmittance, min_weight, **how)


def image_on(grid, buffer, rays, step, background=BACKGROUND, min_transmittance=0.0, min_weight=0.0, **how):
    """The same of a grid as it is."""
    buffer.upload(rays)
    variant = reading_of(grid, buffer, **how)
    march(
        grid.fields, buffer.fields, variant, len(rays), step, min_transmittance, min_weight, ti.Vector(list(background))
    )
    return buffer.image(len(rays))


def reading_of(grid, buffer, mode="emission-absorption", jitter=None):
    """How the grid is read; a jitter (ray, 2) is put into the buffer."""
    if jitter is not None:
        padded = np.zeros((*buffer.fields.jitter.shape, 2))
        padded[: len(jitter)] = jitter
        buffer.fields.jitter.from_numpy(padded)
    return grid.variant.replace(mode=MODES.get(mode, mode), jittered=jitter is not None)


def depth(volume, rays, step, min_transmittance=0.0):
    """Mean distance (ray,)."""
    grid, buffer = grid_of(volume.degree), ray_buffer()
    grid.upload(volume)
    buffer.upload(rays)
    passes_of(grid.variant.mode).depth(grid.fields, buffer.fields, grid.variant, len(rays), step, min_transmittance)
    return buffer.depth(len(rays))


def gradient(
    volume,
    rays,
    d_image,
    step,
    background=BACKGROUND,
    min_transmittance=0.0,
    min_weight=0.0,
    *,
    block=4,
    slots=2,
    times=1,
    **how,
):
    """(d_density, d_features) of sum(image * d_image), accumulated `times` times."""
    grid, buffer = grid_of(volume.degree, block, slots), ray_buffer()
    for gradients in (grid.fields.density.grad, grid.fields.features.grad):
        gradients.fill(0)
    image(volume, rays, step, background, min_transmittance, min_weight, block=block, slots=slots, **how)
    variant = reading_of(grid, buffer, **how)
    buffer.set_image_gradient(np.asarray(d_image))
    for _ in range(times):
        march_adjoint(
            grid.fields,
            buffer.fields,
            variant,
            len(rays),
            step,
            min_transmittance,
            min_weight,
            ti.Vector(list(background)),
        )
        grid.reduce_slots()
    return grid.download_gradient()


@cache
def adam_grid(degree=0) -> Grid:
    """The one grid with Adam's moments, for what steps."""
    return kept(Grid((8, 6, 5), degree, slots=1, moments=True))


def set_gradient(grid, d_density, d_features):
    """Put a gradient on a grid at its finest shape as if a fold had left it, every block dirty."""
    for field, values in ((grid.fields.density.grad, d_density), (grid.fields.features.grad, d_features)):
        padded = np.zeros(field.to_numpy().shape)
        padded[tuple(slice(n) for n in values.shape)] = values
        field.from_numpy(padded)
    grid.fields.block_has_gradient.fill(1)
    if grid.degree > 0:
        grid.fields.feature_samples.fill(ALL_BITS)


def set_rays(image, target):
    """Put images and targets (ray, 4) at the front of the buffer, the loss at 0."""
    buffer = ray_buffer()
    for field, values in ((buffer.fields.image, image), (buffer.fields.target, target)):
        padded = np.zeros((*field.shape, 4))
        padded[: len(values)] = values
        field.from_numpy(padded)
    buffer.fields.loss[None] = 0
    return buffer


def set_occupied(grid, occupied):
    """Say which of a grid's cells are occupied."""
    occupancy.cells_in(np.where(occupied, 0, 255).astype(np.uint8), grid.fields.empty_distance)


def distances(grid):
    """Distances of a grid's cells to the nearest occupied and to the nearest empty one."""
    return tuple(
        field.to_numpy()[tuple(map(slice, grid.cells))]
        for field in (grid.fields.empty_distance, grid.fields.occupied_distance)
    )


@cache
def listing_grid() -> Grid:
    """The one grid with many occupancy cells, the last one of an axis cut."""
    return kept(Grid((17, 14, 11), 0))


BALL_BOX = ((-0.8, -0.8, -0.8), (0.8, 0.8, 0.8))


def ball_cameras(size=24):
    """Three rings of cameras around BALL_BOX."""
    like = Camera.look_at((1, 0, 0), fov=0.45, width=size, height=size)
    return [c for angle in (0.6, -0.5, 0.1) for c in orbit((0, 0, 0), 4, 5, elevation=np.rad2deg(angle), like=like)]


@cache
def ball_views() -> Views:
    """RGBA images of a soft ball whose colour changes from place to place."""
    ball = Volume.from_function(
        lambda p: 12 * np.clip(5 - 8 * np.linalg.norm(p, axis=-1), 0, 1), lambda p: 0.5 + 0.6 * p, shape=(24, 24, 24)
    )
    images = []
    with Renderer(ball) as renderer:
        for camera in ball_cameras():
            seen = renderer.render(camera, "black", depth=False)
            alpha = seen.opacity[..., None]
            images.append(np.concatenate([seen.image / np.maximum(alpha, 1e-6), alpha], axis=-1))
    return Views(ball_cameras(), np.round(np.clip(images, 0, 1) * 255).astype(np.uint8))


def volume_adjoint(seen, d_image):
    """Density and colour of `seen.adjoint(d_image)` without exposure; what moves rays would compile a kernel more."""
    passes, view = passes_of(seen.march.rule), seen.viewpoint
    call = seen.march.call(seen.grid, len(seen.rays), view.background, view.dt)
    passes.march(seen.grid.fields, seen.buffer.fields, *call)
    seen.buffer.set_image_gradient(d_image)
    seen.grid.begin_gradient()
    passes.adjoint(seen.grid.fields, seen.buffer.fields, *call)
    seen.grid.reduce_slots()
    return Parameters(*seen.grid.download_gradient())


def best_agreement(along, wanted):
    """Relative error of the central difference of `along(h)` against `wanted`, the step swept over decades."""
    differences = [(along(h) - along(-h)) / (2 * h) for h in 10.0 ** np.arange(-2, -7, -1)]
    return min(abs(d - wanted) / abs(wanted) for d in differences)

"""A march that keeps its samples for its adjoint and one that does not: images, gradients and what was kept."""

from __future__ import annotations

import cases
import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting import differentiable_passes
from raymarch.kernels.integrator.sample import MAX_KEPT_COLOURS, MAX_KEPT_DENSITIES

# a ray; the last lane is the sample's number
ROOM = {"kept_density": MAX_KEPT_DENSITIES, "kept_colour": MAX_KEPT_COLOURS}
STEPS = {"fewer samples than there is room for": 0.9, "more": 0.04}  # voxels


def forget(buffer, grid):
    """What is kept bears the number of no sample."""
    for name in ROOM:
        getattr(buffer.fields, name).fill(-1)


def lose_samples(buffer, grid):
    """Whoever looks densities and colours up finds others."""
    grid.fields.density.fill(-3)
    grid.fields.features.fill(0)


def gradients(degree, step, least, jittered, *, keeps, between=lambda buffer, grid: None):
    """Image, gradients of density and features; `between` happens after the march and before its adjoint."""
    v, rng = cases.volume(degree=degree), np.random.default_rng(0)
    rays = cases.rays(v)
    with Grid(v.shape, degree, slots=2) as grid, RayBuffer(len(rays), keeps) as buffer:
        grid.upload(v)
        buffer.upload(rays)
        room = buffer.fields.jitter.shape[0]
        real = np.float32 if runtime.single_precision() else np.float64
        jitter = np.stack([rng.uniform(0, 0.9, room), rng.uniform(0.9, 1.1, room)], -1)
        buffer.fields.jitter.from_numpy(jitter.astype(real))
        buffer.fields.image.grad.from_numpy(rng.normal(size=(room, 4)).astype(real))
        variant = grid.variant.replace(jittered=jittered)
        call = len(rays), step * v.voxel, 0.0, least, ti.Vector(list(cases.BACKGROUND)), variant
        if keeps:
            forget(buffer, grid)
        differentiable_passes.march(grid, buffer, *call)
        image = buffer.image(len(rays))
        kept = None
        if keeps:
            numbers = {name: getattr(buffer.fields, name).to_numpy()[:, -1].reshape(room, -1) for name in ROOM}
            kept = {name: (of_rays[: len(rays)] >= 0).sum(1) for name, of_rays in numbers.items()}
        between(buffer, grid)
        differentiable_passes.march.grad(grid, buffer, *call)
        return kept, (image, *grid.download_gradient())


def whether(keeps, *case):
    """Image and gradients of a case, with samples kept or without: for a worker process."""
    return gradients(*case, keeps=keeps)[1]

"""Marches through a flat grid in the worker process: images, gradients, and whether samples went in long groups."""

from __future__ import annotations

import cases
import drive
import numpy as np

from raymarch import runtime
from raymarch.device.brick_grid import grid_for
from raymarch.device.ray_buffer import RayBuffer
from raymarch.geometry.camera import Camera
from raymarch.kernels.integrator.march_adjoint import reads_ahead
from raymarch.kernels.integrator.sample import has_lanes, uses_long_groups
from raymarch.rendering.march_settings import March
from raymarch.rendering.medium import OneVolume
from raymarch.rendering.renderer import render_camera
from raymarch.rendering.shading import Shading
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.transfer_function import TransferFunction

TABLE = TransferFunction(
    np.array([-2.0, -0.5, 0.6, 2.5]),
    np.array([[0, 0, 1], [0, 1, 0], [1, 0.5, 0], [1, 1, 1]]),
    np.array([0, 0.02, 0, 0.3]),
    unit_length=1.0,
)
MARCHES = {
    "maximum": March(mode="maximum", step=0.4),
    "transfer": March(mode="transfer", transfer=TABLE, step=0.3),
    "lit": March(mode="transfer", transfer=TABLE, step=0.3, shading=Shading()),
    "own": March(mode="emission-absorption", step=0.3),
}


def image(block, slots, step, min_transmittance, min_weight, mode):
    """(whether in long groups, whether on a CPU, image (ray, 4)); a grid without slots is only read."""
    v = cases.volume("rotated", 0)
    call = cases.BACKGROUND, min_transmittance, min_weight
    seen = drive.image(v, cases.rays(v), step * v.voxel, *call, block=block, slots=slots, mode=mode)
    grid = drive.grid_of(0, block, slots)
    return uses_long_groups(grid.fields, drive.reading_of(grid, drive.ray_buffer(), mode)), runtime.runs_on_cpu(), seen


def gradient(block, step, min_transmittance, min_weight, mode):
    """(whether the adjoint goes in long groups, whether on a CPU, d_density, d_features) for a cotangent of a seed."""
    v = cases.volume("rotated", 0)
    rays, call = cases.rays(v), (cases.BACKGROUND, min_transmittance, min_weight)
    d_image = np.random.default_rng(2).normal(size=(len(rays), 4))
    gradients = drive.gradient(v, rays, d_image, step * v.voxel, *call, block=block, mode=mode)
    return reads_ahead(drive.grid_of(0, block, 2).fields), runtime.runs_on_cpu(), *gradients


def scan(name, block, seen, slopes=False):
    """(whether densities are read in long groups, whether there is room for colours, image (y, x, 3) and depth (y, x))
    of a scan by one of `MARCHES`; `seen` and `slopes` as `grid_for` takes them."""
    rng = np.random.default_rng(57)
    volume = ScalarVolume(rng.normal(size=(19, 23, 17)).astype(np.float32), np.eye(4)).as_volume()
    camera = Camera.look_at((40, -30, 25), (9, 11, 8), fov=0.6, width=24, height=20)
    with grid_for(volume, block=block, seen=seen, slopes=slopes) as grid, RayBuffer(512) as buffer:
        grid.upload(volume)
        shown = render_camera(OneVolume(grid, MARCHES[name]), buffer, camera, (0.1, 0.2, 0.3), True)
        return has_lanes(grid.fields, grid.fields.density), grid.fields.features is not None, shown.image, shown.depth

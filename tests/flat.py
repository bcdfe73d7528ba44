"""A march through a flat grid of degree 0 in the worker process: its image, and whether samples went in long groups."""

from __future__ import annotations

import cases
import drive

from raymarch import runtime
from raymarch.kernels.integrator.sample import uses_long_groups


def image(slots, step, min_transmittance, min_weight, mode):
    """(whether in long groups, whether on a CPU, image (ray, 4)); a grid without slots is only read."""
    v = cases.volume("rotated", 0)
    call = cases.BACKGROUND, min_transmittance, min_weight
    seen = drive.image(v, cases.rays(v), step * v.voxel, *call, block=1, slots=slots, mode=mode)
    grid = drive.grid_of(0, 1, slots)
    return uses_long_groups(grid.fields, drive.reading_of(grid, drive.ray_buffer(), mode)), runtime.runs_on_cpu(), seen

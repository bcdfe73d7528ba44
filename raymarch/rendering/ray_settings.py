"""Run-time settings of a march's mode, put where its kernels read them: another value compiles nothing."""

from __future__ import annotations

import numpy as np

from raymarch.data.volume import Volume
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.rendering.march import March
from raymarch.rendering.shading import Shading


def set_ray_settings(buffer: RayBuffer, grid: Grid, march: March, iso: float | None = None) -> None:
    """Put what a march's mode has of its own into a buffer: the level of a surface, `iso` if given, and its shading."""
    if "iso" in march.rule.parameters:
        value = float(march.iso if iso is None else iso)  # type: ignore[arg-type]  # March asks for one
        with np.errstate(all="ignore"):
            level = float(grid.activation.raw(value))
        if not np.isfinite(level) or abs(grid.activation.sigma(level) - value) > 1e-3 * abs(value):
            raise RaymarchError(
                f"iso is {value:g}, which no density of activation {_name(grid)} is; choose a positive one"
            )
        buffer.set_surface(level, (march.shading or Shading()).numbers())


def _name(grid: Grid) -> str:
    return grid.activation.density_rule.name


def require_seen(volume: Volume, march: March) -> None:
    """RaymarchError where a mode does not march such a volume."""
    rule = march.rule
    if volume.boxes > 1 and not rule.boxes:
        raise RaymarchError(f"mode {rule.name} does not go through nested boxes; take volume.nested(0), the innermost")
    if volume.ndc_from_world is not None and not rule.ndc:
        raise RaymarchError(f"mode {rule.name} does not march volumes in NDC; resample it to a box in the world")

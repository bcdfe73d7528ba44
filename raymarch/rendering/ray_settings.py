"""Run-time settings of a march's mode, put where its kernels read them: another value compiles nothing."""

from __future__ import annotations

import numpy as np

from raymarch.data.default_table import has_values_alone, range_of
from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.kernels.march.modes import MODES
from raymarch.rendering.march_settings import March
from raymarch.rendering.shading import Shading
from raymarch.rendering.visibility import skip_invisible
from raymarch.volumes.activation import Activation
from raymarch.volumes.volume import Volume

OF_EXTINCTION = (MODES["emission-absorption"], MODES["additive"])  # of which light that grows has no end


def set_ray_settings(buffer: RayBuffer, grid: Grid, march: March, iso: float | None = None) -> None:
    """Put what a march's mode has of its own into a buffer: a surface's level (`iso` if given) and shading, a transfer
    function."""
    if march.transfer is not None:
        buffer.set_table(march.transfer)
        if march.shading is not None:
            buffer.set_surface(0.0, march.shading.numbers())
    if march.clip is not None:
        buffer.set_planes(march.clip.planes_in(grid.ndc_from_world))
    if "iso" in march.rule.parameters:
        value = float(march.iso if iso is None else iso)  # type: ignore[arg-type]  # March asks for one
        buffer.set_surface(level_of(value, grid.activation), (march.shading or Shading()).numbers())


def level_of(iso: float, activation: Activation) -> float:
    """Raw density where the value is `iso`; RaymarchError for what the activation never gives."""
    with np.errstate(all="ignore"):
        level = float(activation.raw(iso))
        found = float(activation.sigma(level)) if np.isfinite(level) else np.inf
    if abs(found - iso) > 1e-3 * abs(iso):
        name = activation.density_rule.name
        raise RaymarchError(f"iso is {iso:g}, which no density of activation {name} is; choose a positive one")
    return level


def skip_unseen(grid: Grid, volume: Volume, march: March) -> None:
    """Empty-space skipping of what a march cannot see in a volume.

    RaymarchError for a surface of a value that the volume does not have.
    """
    if march.iso is None or "iso" not in march.rule.parameters:
        skip_invisible(grid, volume, march)
    elif grid.mark_surface(level_of(march.iso, volume.activation)) == 0:
        low, high = range_of(volume)
        raise RaymarchError(
            f"iso is {march.iso:g} but values go from {low:g} to {high:g}, so there is no surface; choose one between"
        )


def require_seen(volume: Volume, march: March) -> None:
    """RaymarchError where a mode does not march such a volume."""
    rule = march.rule
    if volume.boxes > 1 and (rule.classifies or not rule.boxes):  # a table reads values and lengths as of one box
        other = "maximum" if has_values_alone(volume) else "emission-absorption"
        raise RaymarchError(
            f"mode {rule.name} does not go through nested boxes; take volume.nested(0), the innermost, or mode {other}"
        )
    if rule in OF_EXTINCTION and has_values_alone(volume):
        low, high = range_of(volume)
        if low < 0:
            raise RaymarchError(
                f"values go from {low:g} to {high:g}, which mode {rule.name} takes for extinction, want 0 or more; show"
                " them in mode transfer, isosurface or maximum"
            )
    if volume.ndc_from_world is not None and not rule.ndc:
        raise RaymarchError(f"mode {rule.name} does not march volumes in NDC; resample it to a box in the world")

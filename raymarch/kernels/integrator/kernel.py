"""Variant of a march: what its kernels are compiled for, beside a grid's layout."""

from __future__ import annotations

from dataclasses import dataclass

from raymarch.kernels.field.activation import ColourFunctions, DensityFunctions
from raymarch.kernels.integrator.mode import AnyMode
from raymarch.kernels.modes.registry import MODES


@dataclass(frozen=True)
class Variant:
    """Variant: functions of the activations, the compositing mode, whether rays have a jitter of their own, and whether
    their samples' gradients are scaled near the cameras (`near_gradient`), whether rays are clipped, and under which
    influence on its ray a sample's gradient is left to chance (`roulette`), 0 for none."""

    density: DensityFunctions
    colour: ColourFunctions
    mode: AnyMode = MODES["emission-absorption"]
    jittered: bool = False
    near_scaled: bool = False
    clipped: bool = False
    roulette: float = 0.0

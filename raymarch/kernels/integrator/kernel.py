"""What a march kernel is compiled for beside a grid's layout (`Variant`), and the arguments of all (`MarchCall`)."""

from __future__ import annotations

from typing import NamedTuple

from raymarch.engine import ti
from raymarch.engine.record import record, replace
from raymarch.kernels.field.activation import ColourFunctions, DensityFunctions
from raymarch.kernels.integrator.mode import Mode


@record()
class Variant:
    """Variant: functions of the activations, the compositing mode, whether rays have a jitter of their own, and whether
    their samples' gradients are scaled near the cameras (`near_gradient`), whether rays are clipped, and under which
    influence on its ray a sample's gradient is left to chance (`roulette`), 0 for none. Rays of a step that is `dealt`
    to several ranks are a part of all (`kernels.rays.dealt_rays`)."""

    density: DensityFunctions
    colour: ColourFunctions
    mode: Mode
    jittered: bool = False
    near_scaled: bool = False
    clipped: bool = False
    roulette: float = 0.0
    dealt: bool = False

    def replace(self, **changes) -> Variant:
        """This variant with other values of these fields."""
        return replace(self, **changes)


class MarchCall(NamedTuple):
    """The last arguments of every march kernel: `march(grid.fields, rays.fields, *call)`; those of depth take four.

    Attributes:
        variant: what the kernel is compiled for.
        count: rays of the buffer that are marched.
        dt: length of a step [world unit].
        min_transmittance, min_weight: where a ray ends, and which samples are black.
        background: colour (3,) behind the volume.
    """

    variant: Variant
    count: int
    dt: float
    min_transmittance: float
    min_weight: float
    background: ti.Vector

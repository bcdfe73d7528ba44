"""March call: the last arguments of every march kernel, in their order."""

from __future__ import annotations

from typing import NamedTuple

import taichi as ti

from raymarch.kernels.integrator.kernel import Variant


class MarchCall(NamedTuple):
    """`march(grid.fields, rays.fields, *call)`; `march_depth` takes the first four.

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

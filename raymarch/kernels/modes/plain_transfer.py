"""Parts that all pictures through a transfer function share: those of the plain march's samples.

A mode that composites in a way of its own is compiled as the plain one, so that rules of one sample hold, and takes its
depth and normals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.depth import march_depth, march_normals
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.passes import DEPTH, DepthPasses
from raymarch.kernels.modes.transfer import TRANSFER


@cache
def _plain(variant: Variant) -> Variant:
    return replace(variant, mode=TRANSFER)


def as_plain(kernel: Callable) -> Callable:
    """A kernel that is told mode transfer in place of its own."""

    def told(*arguments: Any) -> None:
        kernel(*(_plain(one) if isinstance(one, Variant) else one for one in arguments))

    return told


def refusing(why: str) -> Callable:
    """What stands for a pass that a mode has not: RaymarchError that says why, and what to do."""

    def refuse(*_: Any) -> None:
        raise RaymarchError(why)

    return refuse


depth_of_samples, normals_of_samples = as_plain(march_depth), as_plain(march_normals)
depth_gradients_of_samples = DepthPasses(
    as_plain(DEPTH.adjoint), as_plain(DEPTH.tangent), as_plain(DEPTH.geometry_adjoint), as_plain(DEPTH.geometry_tangent)
)

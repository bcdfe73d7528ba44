"""Passes of a mode: the kernels that march its rays, their adjoints and tangents, and depth.

Modes that composite sample by sample share one set; a mode of the whole ray (an extremum, a surface) brings its own.
All take the arguments of a `MarchCall` last, in its order, whether they need them or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.kernels.march.depth import march_depth
from raymarch.kernels.march.geometry import geometry_adjoint, geometry_tangent
from raymarch.kernels.march.march import march, march_adjoint
from raymarch.kernels.march.march_tangent import march_tangent
from raymarch.kernels.march.mode import AnyMode, RayMode
from raymarch.kernels.march.normals import march_normals


@dataclass(frozen=True)
class Passes:
    """Passes of a mode: kernels over a grid and a buffer of rays.

    Attributes:
        march: (grid, rays, *call): image (ray, 4), colour with background and transmittance.
        adjoint: (grid, rays, *call): d_density, d_features += (d image / d them)' d_image.
        tangent: (grid, dots, rays, dot_image, *call): dot_image (ray, column) of columns of moved samples.
        geometry_adjoint: (grid, rays, moved, *call): gradients of origin, direction, view direction and dt by ray.
        geometry_tangent: (grid, rays, moved, *call): dot_image of columns of moved rays.
        depth: (grid, rays, *call[:4]): distance of what a ray meets, infinite for nothing.
        normals: (grid, rays, *call[:4]): its unit normal in the world, facing the eye, in `rays.sum_even`; 0 for none.
            None where a mode has no surface to speak of.
    """

    march: Callable
    adjoint: Callable
    tangent: Callable
    geometry_adjoint: Callable
    geometry_tangent: Callable
    depth: Callable
    normals: Callable | None = None


COMPOSITING = Passes(
    march, march_adjoint, march_tangent, geometry_adjoint, geometry_tangent, march_depth, march_normals
)


def after(search: Callable, passes: Passes) -> Passes:
    """Passes each of which goes after a search along the rays: search(grid, rays, variant, count, dt)."""

    def searched(kernel: Callable, rays: int, variant: int) -> Callable:
        def search_and(*arguments: Any) -> None:
            search(arguments[0], arguments[rays], *arguments[variant : variant + 3])
            kernel(*arguments)

        return search_and

    return Passes(
        searched(passes.march, 1, 2),
        searched(passes.adjoint, 1, 2),
        searched(passes.tangent, 2, 4),
        searched(passes.geometry_adjoint, 1, 3),
        searched(passes.geometry_tangent, 1, 3),
        searched(passes.depth, 1, 2),
        passes.normals and searched(passes.normals, 1, 2),
    )


def passes_of(mode: AnyMode) -> Passes:
    """Passes of a mode: its own, or those of all that composite sample by sample.

    Example:
        >>> from raymarch.kernels.march.modes import MODES
        >>> passes_of(MODES["x-ray"]) is COMPOSITING
        True
    """
    passes = mode.passes if isinstance(mode, RayMode) else COMPOSITING
    if not isinstance(passes, Passes):
        raise RaymarchError(f"mode {mode.name!r}: passes are {passes!r}, want Passes of six kernels")
    return passes

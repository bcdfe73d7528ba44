"""Passes of a mode: the kernels that march its rays, their adjoints and tangents, and depth.

Modes that composite sample by sample share one set; a mode of the whole ray (an extremum, a surface) brings its own.
All take the arguments of a `MarchCall` last, in its order, whether they need them or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.depth import depth_adjoint, depth_tangent, march_depth, march_normals
from raymarch.kernels.integrator.depth_geometry import depth_geometry_adjoint, depth_geometry_tangent
from raymarch.kernels.integrator.geometry import geometry_adjoint, geometry_tangent
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.integrator.march_tangent import march_tangent
from raymarch.kernels.integrator.mode import AnyMode, RayMode


@dataclass(frozen=True)
class DepthPasses:
    """Gradients of depth, after the depth itself; kernels as those of `Passes`, d_depth being `rays.depth.grad`.

    Attributes:
        adjoint: (grid, rays, *call[:4]): d_density += (d depth / d density)' d_depth.
        tangent: (grid, dots, rays, dot_depth, *call[:4]): dot_depth (ray, column) of columns of moved samples.
        geometry_adjoint: (grid, rays, moved, *call[:4]): gradients of origin, direction and dt by ray.
        geometry_tangent: (grid, rays, moved, dot_depth, *call[:4]): dot_depth of columns of moved rays.
    """

    adjoint: Callable
    tangent: Callable
    geometry_adjoint: Callable
    geometry_tangent: Callable


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
        depth_gradients: those of `depth`; None where it has none.
    """

    march: Callable
    adjoint: Callable
    tangent: Callable
    geometry_adjoint: Callable
    geometry_tangent: Callable
    depth: Callable
    normals: Callable | None = None
    depth_gradients: DepthPasses | None = None


DEPTH = DepthPasses(depth_adjoint, depth_tangent, depth_geometry_adjoint, depth_geometry_tangent)
COMPOSITING = Passes(
    march, march_adjoint, march_tangent, geometry_adjoint, geometry_tangent, march_depth, march_normals, DEPTH
)


def after(search: Callable, passes: Passes) -> Passes:
    """Passes each of which goes after a search along the rays: search(grid, rays, variant, count, dt)."""

    def searched(kernel: Callable, rays: int, variant: int) -> Callable:
        def search_and(*arguments: Any) -> None:
            search(arguments[0], arguments[rays], *arguments[variant : variant + 3])
            kernel(*arguments)

        return search_and

    slopes = passes.depth_gradients
    return Passes(
        searched(passes.march, 1, 2),
        searched(passes.adjoint, 1, 2),
        searched(passes.tangent, 2, 4),
        searched(passes.geometry_adjoint, 1, 3),
        searched(passes.geometry_tangent, 1, 3),
        searched(passes.depth, 1, 2),
        passes.normals and searched(passes.normals, 1, 2),
        slopes
        and DepthPasses(
            searched(slopes.adjoint, 1, 2),
            searched(slopes.tangent, 2, 4),
            searched(slopes.geometry_adjoint, 1, 3),
            searched(slopes.geometry_tangent, 1, 4),
        ),
    )


def passes_of(mode: AnyMode) -> Passes:
    """Passes of a mode: its own, or those of all that composite sample by sample.

    Example:
        >>> from raymarch.kernels.modes.registry import MODES
        >>> passes_of(MODES["x-ray"]) is COMPOSITING
        True
    """
    passes = mode.passes if isinstance(mode, RayMode) else COMPOSITING
    if not isinstance(passes, Passes):
        raise RaymarchError(f"mode {mode.name!r}: passes are {passes!r}, want Passes of six kernels")
    return passes

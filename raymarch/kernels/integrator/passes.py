"""Passes of a mode: the kernels that march its rays, their adjoints and tangents, of image, depth and normals.

All are the loops of `loops` over the mode's integrands, but for the march and its adjoint by the volume of modes that
composite along steps, which have kernels of their own: those of a fit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from raymarch.engine import ti
from raymarch.errors import RaymarchError
from raymarch.kernels.integrator.colour import IMAGE
from raymarch.kernels.integrator.distance import DISTANCE
from raymarch.kernels.integrator.integrand import Integrand
from raymarch.kernels.integrator.loops import by_steps, go_along, integrate, integrate_pull, integrate_push
from raymarch.kernels.integrator.march import march
from raymarch.kernels.integrator.march_adjoint import march_adjoint
from raymarch.kernels.integrator.mode import Mode
from raymarch.kernels.integrator.normal import NORMAL
from raymarch.kernels.integrator.scene import PULL, PUSH, Scene


@dataclass(frozen=True)
class DepthPasses:
    """Gradients of depth, after the depth itself; kernels as those of `Passes`, d_depth being `rays.depth.grad`.

    Attributes:
        adjoint: (grid, rays, *call[:4]): d_density += (d depth / d density)' d_depth.
        tangent: (grid, dots, rays, dot_depth, *call[:4]): dot_depth (ray, column) of columns of moved samples.
        geometry_adjoint: (grid, rays, moved, *call[:4]): gradients of origin, direction and dt by ray.
        geometry_tangent: (grid, rays, moved, dot_depth, *call[:4]): dot_depth of columns of moved rays.
        both_adjoints: (grid, rays, moved, *call[:4]): both adjoints in one pass.
    """

    adjoint: Callable
    tangent: Callable
    geometry_adjoint: Callable
    geometry_tangent: Callable
    both_adjoints: Callable


@dataclass(frozen=True)
class Passes:
    """Passes of a mode over a grid and a buffer of rays; `call` is a `MarchCall`.

    Attributes:
        march: (grid, rays, *call): image (ray, 4), colour with background and transmittance.
        adjoint: (grid, rays, *call): d_density, d_features += (d image / d them)' d_image.
        tangent: (grid, dots, rays, dot_image, *call): dot_image (ray, column) of columns of moved samples.
        geometry_adjoint: (grid, rays, moved, *call): gradients of origin, direction, view direction and dt by ray.
        geometry_tangent: (grid, rays, moved, *call): dot_image of columns of moved rays.
        both_adjoints: (grid, rays, moved, *call): both adjoints, in one pass where the mode has no march of its own.
        depth: (grid, rays, *call[:4]): distance of what a ray meets, infinite for nothing.
        normals: (grid, rays, *call[:4]): its unit normal in the world, facing the eye, in `rays.sum_even`; 0 for none.
            None where a mode has no surface to speak of.
        depth_gradients: those of `depth`; None where the mode has none.
    """

    march: Callable
    adjoint: Callable
    tangent: Callable
    geometry_adjoint: Callable
    geometry_tangent: Callable
    both_adjoints: Callable
    depth: Callable
    normals: Callable | None = None
    depth_gradients: DepthPasses | None = None


class Pass:
    """Launches of the loops over one integrand of a mode, the mode's search before each."""

    def __init__(self, mode: Mode, integrand: Integrand, of_depth: bool):
        self.mode, self.integrand, self.of_depth = mode, integrand, of_depth

    def value(self, grid: Any, rays: Any, *call: Any) -> None:
        self._go(integrate, grid, rays, call)

    def adjoint(self, grid: Any, rays: Any, *call: Any) -> None:
        self._go(integrate_pull, grid, rays, call, task=PULL, by_volume=True)

    def geometry_adjoint(self, grid: Any, rays: Any, moved: Any, *call: Any) -> None:
        self._go(integrate_pull, grid, rays, call, task=PULL, moved=moved)

    def both_adjoints(self, grid: Any, rays: Any, moved: Any, *call: Any) -> None:
        self._go(integrate_pull, grid, rays, call, task=PULL, moved=moved, by_volume=True)

    def tangent(self, grid: Any, dots: Any, rays: Any, out: Any, *call: Any) -> None:
        self._go(integrate_push, grid, rays, call, task=PUSH, dots=dots, out=out)

    def geometry_tangent(self, grid: Any, rays: Any, moved: Any, *call: Any) -> None:
        out, call = (call[0], call[1:]) if self.of_depth else (moved.dot_image, call)
        self._go(integrate_push, grid, rays, call, task=PUSH, moved=moved, out=out)

    def _go(self, kernel: Callable, grid: Any, rays: Any, call: tuple[Any, ...], **how: Any) -> None:
        variant, count, dt, *cuts = call
        variant = variant.replace(mode=self.mode)
        if self.mode.search is not None:
            self.mode.search(grid, rays, variant, count, dt)
        if self.of_depth:
            cuts = [cuts[0], 0.0, ti.Vector([0.0, 0.0, 0.0])]
        scene = Scene(grid, rays, variant, self.integrand, go=go_along, traverse=self.mode.traverse or by_steps, **how)
        kernel(scene, count, dt, *cuts)


def refusing(why: str) -> Callable:
    """What stands for a pass that a mode has not: RaymarchError that says why, and what to do."""

    def refuse(*_: Any) -> None:
        raise RaymarchError(why)

    return refuse


@cache
def passes_of(mode: Mode) -> Passes:
    """Passes of a mode.

    Example:
        >>> from raymarch.kernels.modes.registry import MODES
        >>> passes_of(MODES["x-ray"]).march is march
        True
    """
    if mode.no_image:
        none = refusing(mode.no_image)
        return Passes(none, none, none, none, none, none, none)
    seen, plain = Pass(mode, mode.image or IMAGE, of_depth=False), mode.plain or mode
    depth = Pass(plain, plain.distance or DISTANCE, of_depth=True)
    by_normal = Pass(mode, mode.normal, of_depth=True) if mode.normal else Pass(plain, NORMAL, of_depth=True)
    of_fits = mode.image is None and mode.traverse is None

    def one_after_the_other(grid: Any, rays: Any, moved: Any, *call: Any) -> None:
        march_adjoint(grid, rays, *call)
        seen.geometry_adjoint(grid, rays, moved, *call)

    return Passes(
        march if of_fits else seen.value,
        march_adjoint if of_fits else seen.adjoint,
        seen.tangent,
        seen.geometry_adjoint,
        seen.geometry_tangent,
        one_after_the_other if of_fits else seen.both_adjoints,
        depth.value,
        by_normal.value if mode.has_normals else None,
        DepthPasses(depth.adjoint, depth.tangent, depth.geometry_adjoint, depth.geometry_tangent, depth.both_adjoints),
    )

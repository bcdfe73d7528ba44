"""March, loss and regularisers for a `ti.ad.Tape`: kernels with hand-written adjoints.

Taichi does not differentiate the march: `grad_replaced` hides the loop from it and `grad_for` names the adjoint.
"""

from __future__ import annotations

from raymarch.device.grid import Grid
from raymarch.device.ray_buffer import RayBuffer
from raymarch.engine import ti
from raymarch.fitting.settings.objective import Loss, Regulariser
from raymarch.kernels.fit import losses
from raymarch.kernels.fit import regularise as kernels
from raymarch.kernels.integrator import distortion_loss as distortion_kernels
from raymarch.kernels.integrator.depth_loss import DEPTH_LOSS, add_depth_loss, add_depth_loss_adjoint
from raymarch.kernels.integrator.kernel import Variant
from raymarch.kernels.integrator.passes import Pass, passes_of


@ti.ad.grad_replaced
def march(
    grid: Grid,
    buffer: RayBuffer,
    count: int,
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.Vector,
    variant: Variant | None = None,
    near_scaled: bool = False,
) -> None:
    """Forward pass: the buffer's rays rendered into its image; its adjoint adds to the grid's gradient.

    With `near_scaled` that is scaled near the cameras, by what the buffer's `set_near` was told; a variant's roulette
    is the adjoint's alone, and its march that of any.
    """
    variant = (variant or grid.variant).replace(roulette=0.0)
    passes = passes_of(variant.mode)
    passes.march(grid.fields, buffer.fields, variant, count, dt, min_transmittance, min_weight, background)


@ti.ad.grad_for(march)
def _(
    grid: Grid,
    buffer: RayBuffer,
    count: int,
    dt: float,
    min_transmittance: float,
    min_weight: float,
    background: ti.Vector,
    variant: Variant | None = None,
    near_scaled: bool = False,
) -> None:
    variant = (variant or grid.variant).replace(near_scaled=near_scaled)
    passes = passes_of(variant.mode)
    passes.adjoint(grid.fields, buffer.fields, variant, count, dt, min_transmittance, min_weight, background)
    grid.reduce_slots()


@ti.ad.grad_replaced
def compare(
    buffer: RayBuffer,
    loss: Loss,
    count: int,
    background: ti.Vector,
    opacity: float,
    counted: int | None = None,
    parts: int = 1,
) -> None:
    """Image loss: a robust loss of `count` pixels against their targets, and their opacity's error, added to the loss.

    `counted` of them have a target, all where it is None; a pixel is the mean of `parts` rays.

    Its gradient is added to the image's at once, also outside a Tape, the loss's own being 1, as a Tape has it: one
    launch for both.
    """
    call = (count, parts, background, loss.scale, opacity, counted or count)
    losses.robust_loss(buffer.fields, loss.value, loss.slope, *call)


@ti.ad.grad_for(compare)
def _(
    buffer: RayBuffer,
    loss: Loss,
    count: int,
    background: ti.Vector,
    opacity: float,
    counted: int | None = None,
    parts: int = 1,
) -> None:
    """Nothing: the gradient is there."""


@ti.ad.grad_replaced
def add_distortion(
    grid: Grid, buffer: RayBuffer, count: int, dt: float, min_transmittance: float, unit: float, weight: float
) -> None:
    """Distortion loss of the buffer's rays, added to the loss; `unit` [world unit] is the depth taken as a half.

    To be recorded after the march of the same rays, whose adjoint adds up what the slots hold of both.
    """
    call = (grid.variant, count, dt, min_transmittance, unit, weight)
    distortion_kernels.distortion(grid.fields, buffer.fields, *call)


@ti.ad.grad_for(add_distortion)
def _(
    grid: Grid, buffer: RayBuffer, count: int, dt: float, min_transmittance: float, unit: float, weight: float
) -> None:
    call = (grid.variant, count, dt, min_transmittance, unit, weight)
    distortion_kernels.distortion_adjoint(grid.fields, buffer.fields, *call)


@ti.ad.grad_replaced
def add_depth(
    grid: Grid, buffer: RayBuffer, depths: RayBuffer, count: int, dt: float, min_transmittance: float, weight: float
) -> None:
    """Depth loss of `count` rays of a buffer of their own, added to the loss; see `kernels.integrator.depth_loss`.

    To be recorded after the march of the colours' rays, whose adjoint adds up what the slots hold of both.
    """
    _depth_loss_of(grid).value(grid.fields, depths.fields, grid.variant, count, dt, min_transmittance)
    add_depth_loss(depths.fields, buffer.fields, count, weight)


@ti.ad.grad_for(add_depth)
def _(
    grid: Grid, buffer: RayBuffer, depths: RayBuffer, count: int, dt: float, min_transmittance: float, weight: float
) -> None:
    add_depth_loss_adjoint(depths.fields, buffer.fields, count, weight)
    _depth_loss_of(grid).adjoint(grid.fields, depths.fields, grid.variant, count, dt, min_transmittance)


def _depth_loss_of(grid: Grid) -> Pass:
    """Passes of the depth loss over a grid, in its mode."""
    return Pass(grid.variant.mode, DEPTH_LOSS, of_depth=True)


def _blocks(grid: Grid, seed: int, step: int) -> tuple[ti.Vector, ti.Vector, ti.Vector]:
    """This step's random shift, the level's shape and how many blocks cover it, as kernel arguments."""
    mixed = (seed * 2654435761 + step * 40503) & 0xFFFFFFFF
    mixed ^= mixed >> 15
    shift = [(mixed >> (2 * a)) % kernels.TILE_EDGE for a in range(3)]
    blocks = [(n + s + kernels.TILE_EDGE - 1) // kernels.TILE_EDGE for n, s in zip(grid.shape, shift, strict=True)]
    return ti.Vector(blocks), ti.Vector(list(grid.shape)), ti.Vector(shift)


def _chance(fraction: float) -> int:
    """Chance of a block as 32 bits."""
    return min(round(fraction * 2**32), 2**32 - 1)


def _weight(grid: Grid, regulariser: Regulariser, fraction: float) -> float:
    """The weight over the voxels that makes the mean over steps the full sum's."""
    voxels = grid.shape[0] * grid.shape[1] * grid.shape[2]
    if regulariser.of == kernels.OPTICAL_DEPTH:
        return regulariser.weight / (fraction * voxels)
    return regulariser.weight / (fraction * (kernels.TILE_EDGE - 1) / kernels.TILE_EDGE * voxels)


def _call(
    grid: Grid, regulariser: Regulariser, seed: int, step: int, fraction: float
) -> tuple[ti.Vector, ti.Vector, ti.Vector, int, int, int, float]:
    """The kernel's last arguments: which blocks, when, at what chance, and the weight of one."""
    return *_blocks(grid, seed, step), seed, step, _chance(fraction), _weight(grid, regulariser, fraction)


@ti.ad.grad_replaced
def regularise(grid: Grid, buffer: RayBuffer, regulariser: Regulariser, seed: int, step: int, fraction: float) -> None:
    """Regulariser, estimated on a random `fraction` of the blocks, added to the loss.

    Its gradient is added at once, also outside a Tape, the loss's own being 1, as a Tape has it: both come of the same
    look at neighbours.
    """
    penalty = (regulariser.of, regulariser.value, regulariser.slope)
    call = _call(grid, regulariser, seed, step, fraction)
    kernels.regularise(grid.fields, buffer.fields, grid.variant, *penalty, *call)


@ti.ad.grad_for(regularise)
def _(grid: Grid, buffer: RayBuffer, regulariser: Regulariser, seed: int, step: int, fraction: float) -> None:
    """Nothing: the gradient is there."""

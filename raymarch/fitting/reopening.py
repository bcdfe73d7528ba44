"""Reopening of a grid as a level begins: what a coarse one left opaque, or where no ray looks, hides nothing in it."""

from __future__ import annotations

import math

from raymarch.data.activation import Activation
from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.fitting.seen import mark
from raymarch.fitting.settings import FitSettings
from raymarch.kernels.field.transfer import clear_moments
from raymarch.kernels.fit.bound import bound_density

FAINT = 0.005  # opacity over a voxel of what no ray sees: little fog to other cameras, and room to grow
LOOKED = (
    2.0  # draws of each pixel in the last level from which on all rays are asked: it takes a twentieth of that time
)


def reopen(
    grid: Grid, store: ImageStore, buffer: RayBuffer, settings: FitSettings, near: float, drawn: float
) -> None:  # fmt: skip
    """Begin a level, whose moments are 0, with samples no more opaque than `reopen`, and faint where no ray sees any.

    Rays are asked, with weights over `unseen`, where each pixel was `drawn` often enough in the last level. Densities
    that are values seen through a table stay.
    """
    activation, seen = grid.activation, settings.reopen
    if activation.density_rule.signed:
        return
    unseen = seen
    if settings.unseen > 0 and drawn >= LOOKED:
        unseen = min(FAINT, settings.initial_alpha, seen)
        mark(grid, store, buffer, settings, near, 1.0, settings.unseen, samples=True)
    if unseen < 1:
        bound_density(grid.fields, grid.blocks, raw_of_alpha(activation, seen), raw_of_alpha(activation, unseen))
        clear_moments(grid.fields)  # where the marks were


def raw_of_alpha(activation: Activation, alpha: float) -> float:
    """Raw density of an opacity 0..1 over the activation's scale.

    Example:
        >>> round(raw_of_alpha(Activation.of_initial_alpha(0.05, 0.1), 0.05), 9)
        0.0
    """
    return float(activation.raw(-math.log1p(-alpha) / activation.scale)) if alpha < 1 else math.inf

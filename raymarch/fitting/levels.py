"""Change of a fit's level: what no camera sees is ruled out, and the grid made finer, where its bricks allow."""

from __future__ import annotations

from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.fitting.plan import Plan
from raymarch.fitting.seen import prune_unseen


def refine_to(level: int, grid: Grid, plan: Plan, store: ImageStore, buffer: RayBuffer, tiles: int) -> bool:
    """Refine the grid of a fit to a level of its plan; whether there was room for it."""
    if plan.settings.prune_weight > 0:
        prune_unseen(grid, store, buffer, plan.settings, tiles, plan.near)
    if room := grid.fits(shape := plan.shape_of(level)):
        grid.refine(shape)
    return room

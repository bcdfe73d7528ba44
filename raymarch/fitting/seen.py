"""Pruning by weight: cells that no training ray sees are ruled out, whatever is in them."""

from __future__ import annotations

import numpy as np

from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.fitting.settings import FitSettings
from raymarch.kernels.march.seen import mark_seen
from raymarch.kernels.rays.camera import draw_tiles

SHARE = 1 / 16  # of the rays that are asked: each cell that a camera sees is seen by many
FEWEST = 32  # steps' worth of rays


def prune_unseen(
    grid: Grid, store: ImageStore, buffer: RayBuffer, settings: FitSettings, tiles: int, near: float
) -> None:
    """Keep the occupied cells in or beside which a sample has a weight over `prune_weight` on some training ray."""
    rays, step = tiles * store.fields.tile**2, settings.step * grid.voxel
    ends = step, settings.min_transmittance, settings.prune_weight
    grid.fields.scratch.fill(0)
    for batch in range(max(round(SHARE * store.listed / tiles), FEWEST)):
        draw_tiles(buffer.fields, store.fields, store.listed, tiles, batch, settings.seed + 1, near)
        mark_seen(grid.fields, buffer.fields, grid.variant, rays, *ends)
    seen = widened(grid.fields.scratch.to_numpy()[tuple(map(slice, grid.cells))] != 0)
    grid.allow(seen & grid.allowed_cells())
    grid.occupy(seen & grid.occupied_cells())


def widened(cells: np.ndarray) -> np.ndarray:
    """Marks (x, y, z) and their neighbours', corners included.

    Example:
        >>> widened(np.array([[[True, False, False]]])).tolist()
        [[[True, True, False]]]
    """
    for axis in range(cells.ndim):
        wide, along = cells.copy(), np.moveaxis(cells, axis, 0)
        np.moveaxis(wide, axis, 0)[1:] |= along[:-1]
        np.moveaxis(wide, axis, 0)[:-1] |= along[1:]
        cells = wide
    return cells

"""Cells of a fit that may hold anything: those over a threshold, those that a training ray sees, what is reopened."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence

import numpy as np

from raymarch.device.brick_grid import BrickGrid
from raymarch.device.grid import Grid
from raymarch.device.image_store import ImageStore
from raymarch.device.ray_buffer import RayBuffer
from raymarch.errors import RaymarchError
from raymarch.fitting.settings.settings import FitSettings
from raymarch.fitting.table_activation import march_of
from raymarch.kernels.field import occupancy
from raymarch.kernels.fit.hull import bound_density
from raymarch.kernels.fit.targets import draw_tiles
from raymarch.kernels.integrator.mark_seen import mark_seen
from raymarch.kernels.rays.tile_list import list_tiles
from raymarch.volumes.transfer_function import TransferFunction

log = logging.getLogger(__name__)

RAY_FRACTION = 1 / 16  # of the rays that are asked: each cell that a camera sees is seen by many
MIN_BATCHES = 32  # steps' worth of rays
FALLBACK_WEIGHTS = ((0.01, True), (0.01, False), (0.03, False), (0.1, False))  # weight, and whether neighbours stay
MIN_SEEN_WEIGHT = 1e-3  # weight up to which nobody sees a cell of a sparse grid, unless the settings say it
# of the occupied cells: where most must go they are no leavings, but a fog that is still to clear
MIN_KEPT_FRACTION = 0.25


class Pruning:
    """Pruning of a fit's cells by what its rays see; its grid, images and ray buffer are the fit's own."""

    def __init__(self, grid: Grid, store: ImageStore, buffer: RayBuffer, settings: FitSettings, near: float):
        self.grid, self._store, self._buffer, self._settings, self._near = grid, store, buffer, settings, near

    def next_level(self, level: int, shape: tuple[int, int, int], most: Callable[[int], int]) -> bool:
        """Prune the grid and resample it at a finer level, if there is room for it; whether its moments begin anew.

        `most` is as of `make_room`. The first level is not pruned but for room: what is thinner than its voxels has yet
        to form there, and a cell that is ruled out never comes back.
        """
        begun = self.grid.moments_begun
        if level > 1:
            self.prune()
        if self.make_room(shape, most):
            self.grid.refine(shape)
        return self.grid.moments_begun > begun

    def prune(self) -> None:
        """Keep the occupied cells in or beside which a sample has a weight over `prune_weight` on some ray, if that
        is over 0 and any would stay."""
        least = self._settings.prune_weight
        if least is None:
            least = MIN_SEEN_WEIGHT if isinstance(self.grid, BrickGrid) else 0.0
        if least > 0:
            seen = dilate(self._seen(least))
            if (seen & self.grid.occupied_cells()).any():
                self._keep(seen)
            else:
                log.warning("no ray has %g of its light from any cell, so all cells stay; lower prune_weight", least)

    def make_room(self, shape: Sequence[int], most: Callable[[int], int]) -> bool:
        """Have the grid grow for a level of `shape`, or prune harder and say so; whether there is room in the end.

        `most` tells how many bricks memory has room for where there is room for so many already. Where nothing helps
        all cells stay.
        """
        grid = self.grid
        if not isinstance(grid, BrickGrid) or _has_room(grid, shape, most):
            return True
        before, wanted, size = (grid.allowed_cells(), grid.occupied_cells()), grid.wanted(shape), _words(shape)
        what = f"{wanted:,} bricks are wanted for {size} samples but there is room for {grid.room:,}"
        for least, wide in FALLBACK_WEIGHTS:
            seen = self._seen(least)
            self._keep(dilate(seen) if wide else seen)
            if grid.occupied_cells().sum() > MIN_KEPT_FRACTION * before[1].sum() and _has_room(grid, shape, most):
                log.warning(
                    "%s, so cells are empty that no ray has %g of its light from; give more memory", what, least
                )
                return True
        grid.allow(before[0])
        grid.occupy(before[1])
        grid.measure_occupancy()
        log.warning("%s; the fit goes on with %s, give more memory or a lower resolution", what, _words(grid.shape))
        return False

    def _seen(self, least: float) -> np.ndarray:
        """Cells (x, y, z) bool with a sample of a weight over `least` on a ray."""
        grid, rays, s = self.grid, self._buffer.fields, self._settings
        tile = self._store.fields.tile**2
        tiles = max(s.rays // tile, 1)
        occupancy.cells_in(np.zeros(grid.cells, np.uint8), grid.fields.seen)
        for batch in range(max(round(RAY_FRACTION * self._store.listed / tiles), MIN_BATCHES)):
            self._store.choose(tiles, s.seed + 1, start=batch * tiles)
            draw_tiles(rays, self._store.fields, tiles, 1, self._near, s.seed, batch, 0.0)
            ends = s.step * grid.voxel, s.min_transmittance
            mark_seen(grid.fields, rays, march_of(s).variant(grid), tiles * tile, *ends, least)
        return grid.numbers_of_cells("seen") != 0

    def _keep(self, cells: np.ndarray) -> None:
        """Rule out all other cells; rays that are asked next leap by the distances of those that stay."""
        self.grid.allow(cells & self.grid.allowed_cells())
        self.grid.occupy(cells & self.grid.occupied_cells())
        self.grid.measure_occupancy()


def _has_room(grid: BrickGrid, shape: Sequence[int], most: Callable[[int], int]) -> bool:
    """Whether there is room for a level of `shape`, or the grid could grow for it, and has."""
    wanted = grid.wanted(shape)
    return wanted <= grid.room or (wanted <= most(grid.room) and grid.grow(wanted))


def dilate(cells: np.ndarray) -> np.ndarray:
    """Marks (x, y, z) and their neighbours', corners included.

    Example:
        >>> dilate(np.array([[[True, False, False]]])).tolist()
        [[[True, True, False]]]
    """
    for axis in range(cells.ndim):
        wide, along = cells.copy(), np.moveaxis(cells, axis, 0)
        np.moveaxis(wide, axis, 0)[1:] |= along[:-1]
        np.moveaxis(wide, axis, 0)[:-1] |= along[1:]
        cells = wide
    return cells


def _words(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape)


def reopen(grid: Grid, most: float) -> None:
    """Bound the opacity of samples over the activation's scale, a voxel of the finest level, to `most` in 0..1.

    What a coarse level has made opaque has next to no gradient left to move by, and hides what the next would show.
    Densities that are values seen through a table stay as they are.
    """
    activation = grid.activation
    if most < 1 and not activation.density_rule.signed:
        bound_density(grid.fields, grid.blocks, float(activation.raw(-math.log1p(-most) / activation.scale)))


def narrow(
    grid: Grid, store: ImageStore, least: float | None, step: float, table: TransferFunction | None = None
) -> float:
    """Occupancy update: cells with sigma over `least` [1/world unit], tiles whose rays meet one; the fraction marked.

    With None the cells are those that are marked already. With a table sigma is what it says.

    Raises RaymarchError where no cell or no tile is left.
    """
    if least is None:
        occupied = grid.measure_occupancy()
    elif table is not None:
        occupied = grid.refresh_through(table, -math.expm1(-least * table.unit_length), margin=1)
    else:
        occupied = grid.refresh_occupancy(least, margin=1)
    if occupied == 0:
        raise RaymarchError(
            "every cell of the volume became empty; check poses, box and background, or take more steps"
        )
    if grid.boxes > 1:  # whose rays all meet something
        return occupied
    store.listed = list_tiles(store.fields, grid.fields, step, store.tiles)
    if store.listed == 0:
        raise RaymarchError("no ray of any view meets the box; check the box and the poses")
    return occupied

"""Sparse grid on the device: a pool of bricks, of those alone that occupied cells read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.grid import Grid, begin_anew, require_gradient, require_room, stretch
from raymarch.device.grid_layout import NO_COLOUR_DEGREE
from raymarch.device.memory import grid_bytes, pool_shape
from raymarch.device.pool import SMALL_TREE_BYTES, release
from raymarch.engine import ti
from raymarch.errors import RaymarchError, one_line
from raymarch.kernels.field import copies, occupancy
from raymarch.kernels.field.bricks import BRICK_BLOCKS, BRICK_SAMPLES
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import BRICK_SIDE, Bricks, table_shape
from raymarch.volumes.storage import Sparse, sparse_of
from raymarch.volumes.volume import Volume

# Places of bricks in a pool: which bricks a grid's cells read, and in which order they lie, along a Morton curve.

CELL_ROUNDING = 1e-3  # voxels by which a sample may lie outside its cell

log = logging.getLogger(__name__)


def read_bricks(cells: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Bricks (x, y, z) bool of a level of `shape` samples that any of the marked cells (x, y, z) bool reads.

    Example:
        >>> cells = np.zeros((4, 4, 4), bool)
        >>> cells[0, 0, 1] = True  # samples 4 to 8 along z
        >>> np.argwhere(read_bricks(cells, (17, 17, 17))).tolist()
        [[0, 0, 0], [0, 0, 1]]
    """
    bricks = cells
    for axis, (samples, count) in enumerate(zip(shape, table_shape(shape), strict=True)):
        first, last = _reach(cells.shape[axis], samples)
        along = np.moveaxis(bricks, axis, 0)
        found = np.zeros((count, *along.shape[1:]), bool)
        for brick in range(count):
            found[brick] = along[np.searchsorted(last, brick) : np.searchsorted(first, brick, "right")].any(0)
        bricks = np.moveaxis(found, 0, axis)
    return bricks


def _reach(cells: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """First and last brick along an axis that each cell reads."""
    edges = np.arange(cells + 1) * (samples - 1) / cells
    first = np.floor(edges[:-1] - CELL_ROUNDING).clip(0)
    last = np.floor(edges[1:] + CELL_ROUNDING).clip(max=samples - 2) + 1
    return first.astype(int) // BRICK_SIDE, last.astype(int) // BRICK_SIDE


def places_of(bricks: np.ndarray) -> np.ndarray:
    """Table (x, y, z) int32 of the places of bricks, 1 for the first along a Morton curve; 0 where none is.

    Example:
        >>> places_of(np.ones((2, 2, 2), bool)).ravel().tolist()
        [1, 2, 3, 4, 5, 6, 7, 8]
    """
    at = np.argwhere(bricks)
    table = np.zeros(bricks.shape, np.int32)
    table[tuple(at[np.argsort(_morton(at), kind="stable")].T)] = np.arange(1, len(at) + 1)
    return table


def _morton(at: np.ndarray) -> np.ndarray:
    """Morton codes of indices (n, 3): their bits in turn."""
    code = np.zeros(len(at), np.int64)
    for bit in range(20):
        for axis in range(3):
            code |= ((at[:, axis].astype(np.int64) >> bit) & 1) << (3 * bit + 2 - axis)
    return code


class BrickGrid(Grid):
    """Sparse voxel grid on the device: bricks of 8^3 samples in a pool with room for `bricks` of them.

    Args:
        shape: the finest count of samples (x, y, z).
        degree, slots, moments, boxes, ndc_from_world, colours: as of `Grid`.
        bricks: how many there is room for, at any level.

    Where no brick is, nothing is: such samples are empty, and a gradient that they would have is dropped. At first no
    brick is there; `hold` says which are.

    Raises RaymarchError as `Grid` does, and where more bricks are wanted than there is room for.

    Example:
        >>> with BrickGrid((64, 64, 64), 0, bricks=8) as grid:
        ...     grid.hold(np.ones(grid.cells, bool))
        Traceback (most recent call last):
            ...
        raymarch.errors.RaymarchError: 512 bricks are wanted but there is room for 8; ...
    """

    def __init__(
        self,
        shape: Sequence[int],
        degree: int,
        *,
        bricks: int,
        slots: int = 0,
        moments: bool = False,
        boxes: int = 1,
        ndc_from_world: np.ndarray | None = None,
        colours: int = 3,
    ):
        how: dict[str, Any] = {
            "colours": colours,
            "slots": slots,
            "moments": moments,
            "boxes": boxes,
            "ndc_from_world": ndc_from_world,
        }
        super().__init__(shape, degree, block=1, places=max(int(bricks), 1), **how)
        self.room = max(int(bricks), 1)
        self._put(np.zeros((1, 1, 1), np.int32))

    @property
    def bricks(self) -> int:
        """Count of bricks that are there."""
        return self._bricks

    @property
    def blocks(self) -> ti.Vector:
        """Blocks of marks of the bricks that are there."""
        return ti.Vector([1, 1, self._places * BRICK_BLOCKS])

    @property
    def _places(self) -> int:
        return 1 + self._bricks

    def hold(self, cells: np.ndarray) -> None:
        """Take the bricks that the marked cells (x, y, z) bool read at this level in place of those there are.

        What is in them is not set. RaymarchError where there is no room.
        """
        self._put(self._table(cells, self.shape))

    def wanted(self, shape: Sequence[int]) -> int:
        """Count of bricks that the occupied cells read at a level of `shape`."""
        return int(read_bricks(self.occupied_cells(), shape).sum())

    def _table(self, cells: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        """Places of the bricks that cells read at a level."""
        return places_of(self._require_room(read_bricks(cells, shape)))

    def _require_room(self, bricks: np.ndarray) -> np.ndarray:
        if (wanted := int(bricks.sum())) > self.room:
            raise RaymarchError(
                f"{wanted} bricks are wanted but there is room for {self.room}; raise memory or lower the resolution"
            )
        return bricks

    def _put(self, table: np.ndarray) -> None:
        """Put a table of places."""
        copies.table_in(self.fields, np.ascontiguousarray(table, np.int32))
        self._bricks = int(np.count_nonzero(table))

    def table(self) -> np.ndarray:
        """Places (x, y, z) int32 of the level's bricks, from 1 on; 0 where none is."""
        assert self.fields.table is not None
        return self.fields.table.to_numpy()[tuple(map(slice, table_shape(self.shape)))]

    def put_table(self, table: np.ndarray) -> None:
        """Take the bricks of a `table` in place of those there are; what is in them is not set."""
        self._require_room(table > 0)
        self._put(table)

    def set_activation(self, activation: Activation) -> None:
        """Set the activation by which raw numbers are read; the missing bricks are empty by it."""
        super().set_activation(activation)
        copies.clear_missing(self.fields, activation.empty)

    def fill(self, density: float, feature: float) -> None:
        """Constant values on the samples of the bricks that are there."""
        copies.fill_places(self.fields, self._places, density, feature)

    def _upload_samples(self, volume: Volume) -> None:
        bricks = sparse_of(volume.samples, volume.activation.empty).bricks
        self._require_room(bricks.table >= 0)
        self._put(bricks.table + 1)
        self._put_bricks(bricks)
        occupancy.occupy(self.fields)

    def _put_bricks(self, bricks: Bricks) -> None:
        """Put values to the places that the table has, in its order."""
        if bricks.count:
            flat = bricks.density.reshape(-1, BRICK_SAMPLES), bricks.features.reshape(bricks.count, BRICK_SAMPLES, -1)
            copies.bricks_in(*(np.array(a, runtime.dtype(), order="C") for a in flat), self.fields)

    def refine(self, shape: Sequence[int]) -> None:
        """Resample the values to the bricks that occupied cells read at a finer level; moments start from zero."""
        table = self._table(self.occupied_cells(), shape)
        require_gradient(self)
        old_top = self.max_index
        copies.save_places(self.fields, self._places)
        self._put(table)
        stretch(self, shape)
        top, level = ti.Vector(old_top.tolist()), ti.Vector(list(self.shape))
        copies.refine_places(self.fields, top, self._places, level, self.activation.empty)
        begin_anew(self)

    def grow(self, bricks: int) -> bool:
        """Make room for so many bricks, if there is memory: it is taken anew, and what was compiled is compiled again.

        Values, level and occupancy stay; moments and gradients start from zero. Where there is none all stays as it is.
        """
        how = self.slots, self.moments
        width = np.dtype(runtime.dtype()).itemsize
        copy = grid_bytes(pool_shape(self.bricks), self.degree, width=width, colours=self.colours)
        try:  # with what the grid has now: once it is given back, its moments are lost
            require_room(self, (*self.finest, bricks), freed=self._tree.size - copy)
        except RaymarchError:
            return False
        self.end_fit()  # or the copy would lie beside all of it
        kept, cells, allowed = self.download_bricks(), self.occupied_cells(), self.allowed_cells()
        activation, level = self.activation, (self.shape, self.world_from_index)
        nonfinite = self.fields.nonfinite_step[None]
        self.close()
        self.slots, self.moments = how
        release()  # of the old pool too, before the new one is there
        try:
            self._allocate(bricks)
            self.room, grown = bricks, True
        except RaymarchError:  # there is room for what there was
            self._allocate(self.room)
            grown = False
        begin_anew(self)
        self.fields.nonfinite_step[None] = nonfinite
        self.set_level(*level)
        self.set_activation(activation)
        self._put(kept.table + 1)
        self._put_bricks(kept)
        self.allow(allowed)
        self.occupy(cells)
        self.measure_occupancy()
        return grown

    def end_fit(self) -> None:
        """Free gradients and moments, most of a fit's memory, unless all is small; values are read as before."""
        self.slots, self.moments = 0, False
        if self._tree.size > SMALL_TREE_BYTES:  # or it is kept for the next fit, with what was compiled for it
            self._shed()

    def download_bricks(self) -> Bricks:
        """Raw density and features of the bricks that are there."""
        return self._record(self.table())

    def carved_samples(self, empty: tuple[float, float] | None = None) -> Sparse:
        """Samples of the level, those that no occupied cell reads made empty, without bricks that have no others."""
        table = self.table()
        read = read_bricks(self.occupied_cells(), self.shape)
        return Sparse(self._record(np.where(read, table, 0), carved=True), self.shape)

    def _record(self, table: np.ndarray, carved: bool = False) -> Bricks:
        """Record of the bricks that a table has the places of, in the order of these."""
        places, width = np.sort(table[table > 0]), self.colours * (self.degree + 1) ** 2
        density = np.empty((len(places), BRICK_SAMPLES), runtime.dtype())
        features = np.empty((*density.shape, width), density.dtype)
        if len(places):
            copies.bricks_out(self.fields, places, density, features)
            if carved:
                ends = ti.Vector(list(self.shape)), self.activation.empty
                copies.empty_unread(self.fields, places, density, features, *ends)
        numbers = np.where(table > 0, np.searchsorted(places, table), -1).astype(np.int32)
        cube = (len(places), BRICK_SIDE, BRICK_SIDE, BRICK_SIDE)
        return Bricks(numbers, density.reshape(cube), features.reshape(*cube, width))


def grid_for(
    volume: Volume, *, slots: int = 0, block: int | None = None, seen: bool = False, slopes: bool = False
) -> Grid:
    """Grid with room for a volume, which is not uploaded yet: sparse if that is. One that is only `seen` has room for
    colours only if there are any; for `slopes` in their place if these are asked for and memory suffices."""
    how: dict[str, Any] = {"slots": slots, "boxes": volume.boxes, "ndc_from_world": volume.ndc_from_world}
    how["colours"] = volume.colours
    if volume.bricks is not None:
        return BrickGrid(volume.shape, volume.degree, bricks=volume.bricks.count, **how)
    plain = seen and volume.degree == 0 and volume.colours == 3 and not volume.samples.coloured()
    if plain and slopes:
        try:
            return Grid(volume.shape, 0, block=block, slopes=True, **how)
        except RaymarchError as error:
            log.info("slopes are found anew for each sample, as memory does not hold them: %s", one_line(error))
    return Grid(volume.shape, NO_COLOUR_DEGREE if plain else volume.degree, block=block, **how)

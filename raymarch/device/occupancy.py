"""Occupancy of a grid on the device: which of its cells may hold anything, and which do."""

from __future__ import annotations

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.device.grid_fields import Fields
from raymarch.device.owner import Owner
from raymarch.kernels.field import distance, occupancy
from raymarch.kernels.field.distance import FULL
from raymarch.volumes.activation import Activation
from raymarch.volumes.transfer_function import TransferFunction

SLAB = 1 << 15  # cells whose values are looked up in a table at a time, if that holds one row of them


class Occupancy(Owner[Fields]):
    """Occupancy of a grid's cells, of which there are `cells`; what is marked as empty, marches leap over.

    Its blocks are `mark` samples a side.
    """

    cells: tuple[int, ...]
    shape: tuple[int, int, int]
    mark: int
    activation = Activation()

    def allow(self, cells: np.ndarray) -> None:
        """Set the hull mask, the cells (`self.cells`) that may ever count as occupied: all do at first."""
        occupancy.cells_in(np.ascontiguousarray(cells, np.uint8), self.fields.hull_mask)

    def occupied_cells(self) -> np.ndarray:
        """Marks (x, y, z) bool of the cells that count as occupied."""
        return self.numbers_of_cells("empty_distance") == 0

    def allowed_cells(self) -> np.ndarray:
        """Marks (x, y, z) bool of the cells that may ever count as occupied."""
        return self.numbers_of_cells("hull_mask") != 0

    def occupy(self, cells: np.ndarray) -> None:
        """Mark cells (x, y, z) bool as occupied, and the others as empty; `measure_occupancy` makes distances of it."""
        occupancy.cells_in(np.where(cells, np.uint8(0), np.uint8(FULL)), self.fields.empty_distance)

    def refresh_occupancy(self, least: float, margin: int = 0) -> float:
        """Mark cells with sigma over `least` [1/world unit], `margin` voxels wider; the fraction occupied."""
        occupancy.mark_occupied(self.fields, float(self.activation.raw(least)), margin, *self.shape)
        return self.measure_occupancy()

    def refresh_through(self, table: TransferFunction, most: float = 0.0, margin: int = 0) -> float:
        """Mark cells with a value of an opacity over `most`, `margin` voxels wider; the fraction occupied."""
        self._occupy_through(table, most, margin)
        return self.measure_occupancy()

    def _occupy_through(self, table: TransferFunction, most: float, margin: int) -> None:
        """Marks of `refresh_through`, slab by slab: what is looked up in a table takes a dozen numbers a cell."""
        marks = self.numbers_of_cells("hull_mask")
        rows, thick = marks.reshape(-1, self.cells[-1]), max(SLAB // self.cells[-1], 1)
        for first in range(0, len(rows), thick):
            slab = rows[first : first + thick]
            raw = np.empty((2, *slab.shape), runtime.dtype())
            occupancy.raw_ranges(self.fields, first, raw, margin, *self.shape)
            low, high = self.activation.sigma(raw)
            slab[...] = np.where((slab != 0) & ~table.is_clear(low, high, most), 0, FULL)
        occupancy.cells_in(marks, self.fields.empty_distance)

    def mark_surface(self, level: float) -> float:
        """Mark the cells that the isosurface of a raw level may go through; the fraction occupied."""
        occupancy.mark_straddling(self.fields, level, *self.shape)
        return self.measure_occupancy()

    def measure_occupancy(self) -> float:
        """Distance transform and occupied blocks of the cells marked so far; returns the fraction of cells occupied."""
        to_occupied = self.numbers_of_cells("empty_distance")
        to_empty, scratch = np.empty_like(to_occupied), np.empty_like(to_occupied)
        count = np.count_nonzero(to_occupied == 0)
        cells, axes = ti.Vector(list(self.cells)), [ti.Vector(axis) for axis in np.eye(3, dtype=int).tolist()]
        for a in range(3):
            distance.spread_along(to_occupied, to_empty, scratch, cells, axes[a], axes[a - 2], axes[a - 1], a == 0)
        blocks = np.empty([-(-n // self.mark) + 1 for n in self.shape], np.uint8)
        per_index = ti.Vector([c / (n - 1.0) for c, n in zip(self.cells, self.shape, strict=True)])
        distance.reach_blocks(to_occupied, blocks, cells, per_index, self.mark)
        occupancy.occupancy_in(to_occupied, to_empty, blocks, self.fields)
        return float(count / np.prod(self.cells))

    def numbers_of_cells(self, name: str) -> np.ndarray:
        """Numbers (x, y, z) u8 of a field that has one for each cell."""
        numbers = np.empty(self.cells, np.uint8)
        occupancy.cells_out(getattr(self.fields, name), numbers)
        return numbers

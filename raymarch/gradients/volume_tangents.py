"""Volume tangents on the device: several directions of density and colour, carried side by side."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.device.grid_layout import STEP
from raymarch.device.memory import require_memory
from raymarch.device.owner import Owner
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.field import transfer
from raymarch.volumes.bricks import Bricks, held_samples
from raymarch.volumes.transfer_function import MOST_KNOTS

WIDEST = 48  # numbers of one sample that a kernel unrolls


@dataclass(frozen=True, eq=False)
class DotFields:
    """Fields of `VolumeTangents`: a vector of columns a sample; channel c of column d is number d channels + c.

    `table` (knot, column) are directions of a transfer function, zero where the march has none; `still` where the
    samples themselves do not move, and there is no room for them.
    """

    density: ti.Field
    features: ti.Field | None
    table: ti.Field
    still: bool
    columns: int
    channels: int


class VolumeTangents(Owner[DotFields]):
    """Volume tangents: `columns` directions of a volume of `shape` samples, with `channels` of colour each or none.

    Of a sparse volume directions move the samples of its `bricks` alone, as gradients do.
    """

    name = "this dot grid"

    def __init__(
        self,
        shape: tuple[int, int, int],
        channels: int,
        columns: int,
        still: bool = False,
        bricks: Bricks | None = None,
    ):
        runtime.start()
        self._still, shape = still, (1, 1, 1) if still else shape
        self.shape, self.columns, self._channels = shape, columns, channels
        self._held: list[tuple[int, ...]] | None = None
        self._bricks, self._table_clear = bricks, False
        width = 4 if runtime.single_precision() else 8
        numbers = columns * (1 + channels)

        def size_of(room: Sequence[int]) -> int:
            return (math.prod(room) * numbers + (MOST_KNOTS + 1) * columns * 4) * width

        def require() -> None:
            require_memory(shape, size_of(shape), numbers, "take fewer columns at once")

        self._own((columns, channels, still), self._build, size_of, room=tuple(shape), step=STEP, require=require)

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, DotFields]:
        tree, columns, channels = ti.FieldsBuilder(), self.columns, self._channels
        density = ti.Vector.field(columns, float)
        features = ti.Vector.field(columns * channels, float) if channels else None
        for each in filter(None, (density, features)):
            tree.dense(ti.ijk, room).place(each)
        table = ti.Vector.field(4, float)
        tree.dense(ti.ij, (MOST_KNOTS + 1, columns)).place(table)
        return tree, DotFields(density, features, table, self._still, columns, channels)

    @staticmethod
    def columns_for(channels: int, wanted: int) -> int:
        """Count of columns that go side by side, so that kernels stay small."""
        return max(1, min(wanted, WIDEST // max(channels, 1)))

    def upload(self, dots: Sequence[Parameters]) -> None:
        """Upload of directions, at most `columns`; what they leave out is zero. What is there already stays."""
        held = [tuple(map(_checksum, (dot.density, dot.colour, dot.table))) for dot in dots]
        if self._held == held:
            return
        self._held = held
        f, dtype = self.fields, runtime.dtype()
        density = np.zeros((*self.shape, f.columns), dtype)
        features = np.zeros((*self.shape, f.columns * f.channels), dtype)
        for column, dot in enumerate(dots):
            if dot.density is not None:
                density[..., column] = dot.density
            if dot.colour is not None and f.channels:
                features[..., column * f.channels : (column + 1) * f.channels] = dot.colour
        if self._bricks is not None and not self._still:
            missing = ~held_samples(self._bricks, self.shape)
            density[missing], features[missing] = 0.0, 0.0
        transfer.directions_in(density, f.density)
        if f.features is not None:
            transfer.directions_in(features, f.features)
        if any(dot.table is not None for dot in dots) or not self._table_clear:
            table = np.zeros((MOST_KNOTS + 1, f.columns, 4), dtype)
            for column, dot in enumerate(dots):
                if dot.table is not None:
                    table[: len(dot.table), column] = dot.table
            f.table.from_numpy(table)
            self._table_clear = all(dot.table is None for dot in dots)


def _checksum(numbers: np.ndarray | None) -> int:
    """Of an array's bytes: it is the caller's, and may be changed in place."""
    return -1 if numbers is None else zlib.crc32(np.ascontiguousarray(numbers).data)

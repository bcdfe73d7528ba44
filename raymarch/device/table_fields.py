"""Transfer function on the device: its knots, bins that find them, the slots of its gradient, and who owns them."""

from __future__ import annotations

from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.grid_layout import MAX_SLOTS, set_numbers
from raymarch.device.pool import Owner
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.field.tables import table_in
from raymarch.kernels.rays.segment_ends import MAX_FACES
from raymarch.volumes.transfer_function import MAX_KNOTS, TransferFunction

TABLE_BINS = 2048
TABLE_BYTES = (MAX_KNOTS + 1) * (10 * 8 + MAX_SLOTS * 4 * 8) + TABLE_BINS * 4


@record(eq=False)
class TableFields:
    """Device fields of a transfer function, in the ray buffer, so that another table compiles nothing.

    Attributes:
        above, per_value: (knot,) distance from the first value, and 1 / that to the next; one knot more, infinitely
            far, ends them.
        rgba, rise: (knot,) colour and opacity, and by how much they rise a unit of value until the next knot.
        first: (bin,) the knot below each of so many bins of equal width.
        place: value where the bins begin, bins a unit of value, the last bin's number, 1 / unit_length.
        d_rgba: (slot, knot) gradient by `rgba`, in double precision: a knot adds up many samples.
    """

    above: ti.Field
    per_value: ti.Field
    rgba: ti.Field
    rise: ti.Field
    first: ti.Field
    place: ti.Field
    d_rgba: ti.Field


def table_fields() -> TableFields:
    """Fields of a table, not yet placed."""
    return TableFields(
        above=ti.field(float),
        per_value=ti.field(float),
        rgba=ti.Vector.field(4, float),
        rise=ti.Vector.field(4, float),
        first=ti.field(ti.i32),
        place=ti.Vector.field(4, float),
        d_rgba=ti.Vector.field(4, ti.f64),
    )


def place_table(tree: ti.FieldsBuilder, sums: ti.FieldsBuilder, table: TableFields) -> None:
    """Places of a table's fields in a tree, and of its gradient in the one for sums in double precision."""
    tree.dense(ti.i, MAX_KNOTS + 1).place(table.rgba, table.rise)
    for each in (table.above, table.per_value):
        tree.dense(ti.i, MAX_KNOTS + 1).place(each)
    tree.dense(ti.i, TABLE_BINS).place(table.first)
    sums.dense(ti.ij, (MAX_SLOTS, MAX_KNOTS + 1)).place(table.d_rgba)
    tree.place(table.place)


def upload_table(table: TableFields, values: np.ndarray, rgba: np.ndarray, unit_length: float) -> None:
    """Put knots (knot,) with colour and opacity (knot, 4) on the device."""
    n, dtype = len(values), runtime.dtype()
    knots = np.zeros((MAX_KNOTS + 1, 10))
    above, per_value, shades, rise = knots[:, 0], knots[:, 1], knots[:, 2:6], knots[:, 6:]
    above[:], above[:n] = np.inf, values - values[0]
    per_value[: n - 1] = 1 / np.diff(above[:n].astype(dtype).astype(float))
    shades[:n], shades[n] = rgba, rgba[-1]
    rise[: n - 1] = np.diff(rgba, axis=0) * per_value[: n - 1, None]
    width = (values[-1] - values[0]) / (TABLE_BINS - 1)
    # a value that rounding puts into the next bin is below none
    edges = values[0] + width * (np.arange(TABLE_BINS) - 0.01)
    first = np.maximum(np.searchsorted(values, edges, "right") - 1, 0)
    table_in(knots, first.astype(np.int32), table)
    set_numbers(table, place=(values[0], 1 / width, TABLE_BINS - 1, 1 / unit_length))


def table_gradient(table: TableFields, knots: int) -> np.ndarray:
    """Sum over slots, in their order, of the gradient (knot, 4)."""
    total = np.zeros((knots, 4))
    for of_slot in table.d_rgba.to_numpy()[:, :knots]:
        total += of_slot
    return total


class TableMemory:
    """Memory of what a volume is read by, its transfer function and the planes that clip it; of an owner whose `fields`
    have `table`, `planes` and `plane_count`. What is there already costs nothing."""

    fields: Any
    _table: TransferFunction | None = None
    _planes: np.ndarray | None = None

    def set_table(self, table: TransferFunction) -> None:
        """Set the transfer function."""
        if table is not self._table:
            upload_table(self.fields.table, table.values, table.rgba, table.unit_length)
            self._table = table

    def move_table(self, table: TransferFunction, by: np.ndarray) -> None:
        """Set a transfer function with `by` (knot, 4) added to its colours and opacities, wherever that leads."""
        upload_table(self.fields.table, table.values, table.rgba + by, table.unit_length)
        self._table = None

    def clear_table_gradient(self) -> None:
        """Set the gradient by the table to zero."""
        self.fields.table.d_rgba.fill(0)

    def table_gradient(self, knots: int) -> np.ndarray:
        """Gradient (knot, 4) by colours and opacities of the table: what the slots hold, added up in their order."""
        return table_gradient(self.fields.table, knots)

    def set_planes(self, planes: np.ndarray) -> None:
        """Set the planes (plane, 4) that rays are clipped by: normal and offset where the grid lies, world or NDC."""
        if self._planes is None or not np.array_equal(planes, self._planes):
            room = np.zeros((MAX_FACES, 4), runtime.dtype())
            room[: len(planes)] = planes
            self.fields.planes.from_numpy(room)
            self.fields.plane_count[None] = len(planes)
            self._planes = planes


@record(eq=False)
class MemberFields:
    """Device fields of a `MemberSettings`; `planes` (normal, offset) of the world, the first `plane_count` of them;
    `shown` is 0 where nothing of the volume is to be seen, so that rays are not cut at its box."""

    table: TableFields
    planes: ti.Field
    plane_count: ti.Field
    shown: ti.Field


class MemberSettings(TableMemory, Owner[MemberFields]):
    """Settings of one of several volumes that are marched together; freed by `close`."""

    name = "this volume's settings"

    def __init__(self) -> None:
        runtime.start()
        self._own((), self._build, lambda room: TABLE_BYTES)

    @staticmethod
    def _build(room: tuple[int, ...]) -> tuple[list[ti.FieldsBuilder], MemberFields]:
        tree, sums = ti.FieldsBuilder(), ti.FieldsBuilder()
        f = MemberFields(table_fields(), ti.Vector.field(4, float), ti.field(ti.i32), ti.field(ti.i32))
        place_table(tree, sums, f.table)
        tree.dense(ti.i, MAX_FACES).place(f.planes)
        tree.place(f.plane_count, f.shown)
        return [tree, sums], f

    def set_shown(self, shown: bool) -> None:
        """Set whether anything of the volume is to be seen."""
        set_numbers(self.fields, shown=shown)

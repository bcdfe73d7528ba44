"""Settings of one of several volumes on the device: its transfer function, the planes that cut it, whether it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.device.numbers import set_numbers
from raymarch.device.owner import Owner
from raymarch.device.table_fields import (
    TABLE_BYTES,
    TableFields,
    place_table,
    table_fields,
    table_gradient,
    upload_table,
)
from raymarch.kernels.rays.clip import MOST
from raymarch.volumes.transfer_function import TransferFunction


@dataclass(frozen=True, eq=False)
class MemberFields:
    """Device fields of a `MemberSettings`; `planes` (normal, offset) of the world, the first `plane_count` of them;
    `shown` is 0 where nothing of the volume is to be seen, so that rays are not cut at its box."""

    table: TableFields
    planes: ti.Field
    plane_count: ti.Field
    shown: ti.Field


class MemberSettings(Owner[MemberFields]):
    """Settings of one of several volumes that are marched together; freed by `close`."""

    name = "this volume's settings"

    def __init__(self) -> None:
        runtime.start()
        self._own((), self._build, lambda room: TABLE_BYTES)

    @staticmethod
    def _build(room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, MemberFields]:
        tree = ti.FieldsBuilder()
        f = MemberFields(table_fields(), ti.Vector.field(4, float), ti.field(ti.i32), ti.field(ti.i32))
        place_table(tree, f.table)
        tree.dense(ti.i, MOST).place(f.planes)
        tree.place(f.plane_count, f.shown)
        return tree, f

    def upload(self, table: TransferFunction | None, planes: np.ndarray, shown: bool) -> None:
        """Set the transfer function if there is one, the planes (plane, 4), and whether anything is to be seen."""
        if table is not None:
            upload_table(self.fields.table, table.values, table.rgba, table.unit_length)
        if len(planes):
            room = np.zeros((MOST, 4), runtime.dtype())
            room[: len(planes)] = planes
            self.fields.planes.from_numpy(room)
        set_numbers(self.fields, plane_count=len(planes), shown=shown)

    def move_table(self, table: TransferFunction, by: np.ndarray) -> None:
        """Set a transfer function with `by` (knot, 4) added to its colours and opacities, wherever that leads."""
        upload_table(self.fields.table, table.values, table.rgba + by, table.unit_length)

    def clear_table_gradient(self) -> None:
        """Gradient by the table to zero."""
        self.fields.table.d_rgba.fill(0)

    def table_gradient(self, knots: int) -> np.ndarray:
        """Gradient (knot, 4) by colours and opacities of the table: what the slots hold, added up in their order."""
        return table_gradient(self.fields.table, knots)

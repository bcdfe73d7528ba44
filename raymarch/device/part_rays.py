"""Rays that wait for parts of a volume larger than memory: where each goes on, what it carries, the whole's place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch import runtime
from raymarch.device.grid_layout import NO_COLOUR_DEGREE, set_numbers
from raymarch.device.memory import require_memory
from raymarch.device.pool import Owner
from raymarch.device.ray_buffer import RAY_STEP
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.integrator.integrand import KEPT_NUMBERS
from raymarch.kernels.rays.ray_arrays import scalars_out

MAX_PARTS = 1 << 18
INTEGRANDS = ("image", "depth", "normals")  # what a ray may carry at once
INTEGERS_A_RAY, NUMBERS_A_RAY = 7, 4 + KEPT_NUMBERS * len(INTEGRANDS)


@record(eq=False)
class PartFields:
    """Device fields of `PartRays`; kernels take them for the whole volume's grid, of which they have the place alone.

    Attributes:
        index_from_world, max_index, cells, cells_per_index, shift, inverse_scale: of the whole, as of a grid.
        side, offset, counts: cells of a part along each axis, cells by which the first is shorter, parts (x, y, z).
        first: index, in the whole, of the first sample of the part that is there.
        clear: (part,) whether nothing is seen of it; `waiting` how many rays wait for it.
        cell, spot: (ray,) where a ray goes on, cell and (t, side); `then_cell`, `then` behind the part.
        waits: (ray,) number of the part that a ray waits for.
        image, depth, normals: (ray,) numbers of what is carried of each.
        degree: of the harmonics of the whole's colours.
    """

    index_from_world: ti.Field
    max_index: ti.Field
    cells: ti.Field
    cells_per_index: ti.Field
    shift: ti.Field
    inverse_scale: ti.Field
    side: ti.Field
    offset: ti.Field
    counts: ti.Field
    first: ti.Field
    clear: ti.Field
    waiting: ti.Field
    cell: ti.Field
    spot: ti.Field
    then_cell: ti.Field
    then: ti.Field
    waits: ti.Field
    image: ti.Field
    depth: ti.Field
    normals: ti.Field
    ndc: bool = False
    boxes: int = 1
    segments: int = 1
    degree: int = NO_COLOUR_DEGREE


def bytes_a_ray() -> int:
    """Bytes that each ray takes here."""
    return 4 * INTEGERS_A_RAY + NUMBERS_A_RAY * np.dtype(runtime.dtype()).itemsize


class PartRays(Owner[PartFields]):
    """Rays that wait for parts: `capacity` of them, and `parts` at most, of a volume whose colours have harmonics up to
    `degree`; freed by `close`."""

    name = "this renderer"

    def __init__(self, capacity: int, parts: int, degree: int = NO_COLOUR_DEGREE):
        self.capacity, self.parts = int(capacity), int(parts)
        runtime.start()
        room = (self.capacity, self.parts)

        def size_of(room: tuple[int, ...]) -> int:
            return room[0] * bytes_a_ray() + 5 * room[1]

        def require() -> None:
            require_memory(room[:1], size_of(room), NUMBERS_A_RAY, "take a smaller image")

        def build(room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, PartFields]:
            return self._build(room, degree)

        self._own((degree,), build, size_of, room=room, step=RAY_STEP, require=require)

    @staticmethod
    def _build(room: tuple[int, ...], degree: int) -> tuple[ti.FieldsBuilder, PartFields]:
        tree = ti.FieldsBuilder()
        f = PartFields(
            degree=degree,
            index_from_world=ti.Matrix.field(3, 4, float),
            max_index=ti.Vector.field(3, float),
            cells=ti.Vector.field(3, ti.i32),
            cells_per_index=ti.Vector.field(3, float),
            shift=ti.field(float),
            inverse_scale=ti.field(float),
            side=ti.Vector.field(3, ti.i32),
            offset=ti.Vector.field(3, ti.i32),
            counts=ti.Vector.field(3, ti.i32),
            first=ti.Vector.field(3, ti.i32),
            clear=ti.field(ti.u8),
            waiting=ti.field(ti.i32),
            cell=ti.Vector.field(3, ti.i32),
            spot=ti.Vector.field(2, float),
            then_cell=ti.Vector.field(3, ti.i32),
            then=ti.Vector.field(2, float),
            waits=ti.field(ti.i32),
            **{name: ti.Vector.field(KEPT_NUMBERS, float) for name in INTEGRANDS},
        )
        for each in (f.index_from_world, f.max_index, f.cells, f.cells_per_index, f.shift, f.inverse_scale):
            tree.place(each)
        for each in (f.side, f.offset, f.counts, f.first):
            tree.place(each)
        for each in (f.clear, f.waiting):
            tree.dense(ti.i, room[1]).place(each)
        for each in (f.cell, f.spot, f.then_cell, f.then, f.waits, f.image, f.depth, f.normals):
            tree.dense(ti.i, room[0]).place(each)
        return tree, f

    def set_parts(self, side: Sequence[int], offset: Sequence[int], counts: Sequence[int]) -> None:
        """Set how the cells of the whole are cut; of no part it is known yet that nothing is seen of it."""
        set_numbers(self.fields, side=side, offset=offset, counts=counts)
        self.fields.clear.fill(0)

    def set_first(self, first: Sequence[int]) -> None:
        """Set the first sample of the part that is there."""
        set_numbers(self.fields, first=first)

    def set_clear(self, number: int) -> None:
        """Say that nothing is seen of a part."""
        self.fields.clear[number] = 1

    def waits(self, rays: int) -> np.ndarray:
        """Number of the part (ray,) that each of the first rays waits for; below 0 of one that waits for none."""
        out = np.empty(rays, np.int32)
        scalars_out(self.fields.waits, out)
        return out

    def waiting(self, parts: int) -> np.ndarray:
        """How many rays wait for each part (part,)."""
        out = np.empty(parts, np.int32)
        scalars_out(self.fields.waiting, out)
        return out

"""Tangents on the device, side by side in columns: of rays, with their gradients, and of a volume's samples."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence

import numpy as np

from raymarch import runtime
from raymarch.device.grid_layout import ROOM_STEP
from raymarch.device.memory import require_memory
from raymarch.device.pool import Owner
from raymarch.device.ray_buffer import RAY_STEP
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.gradients.parameters import Parameters
from raymarch.kernels.field import copies
from raymarch.kernels.rays import ray_arrays
from raymarch.volumes.bricks import Bricks, held_samples
from raymarch.volumes.transfer_function import MAX_KNOTS

MAX_UNROLLED_NUMBERS = 48  # numbers of one sample that a kernel unrolls


@record(eq=False)
class MotionFields:
    """Device fields of `RayTangents`: d_ by ray, dot_ by ray and column; origin and direction in index space.

    `iso` is the value of a surface, `frame` the turn and stretch (3, 3) from the world into index space, for what sees
    normals: no other mode writes or reads them. Their dot_ are of a column alone, like that of dt.
    Those of `place` are of the ray where the grid's affine leads to, the world or NDC: what clips a ray stands there.
    No other march writes or reads them.
    """

    d_origin: ti.Field
    d_index_direction: ti.Field
    d_view_direction: ti.Field
    d_dt: ti.Field
    d_iso: ti.Field
    d_frame: ti.Field
    d_place_origin: ti.Field
    d_place_way: ti.Field
    dot_origin: ti.Field
    dot_index_direction: ti.Field
    dot_view_direction: ti.Field
    dot_dt: ti.Field
    dot_iso: ti.Field
    dot_frame: ti.Field
    dot_place_origin: ti.Field
    dot_place_way: ti.Field
    dot_image: ti.Field
    dot_depth: ti.Field
    columns: int


def bytes_of_tangents(rays: int, columns: int, colours: int = 3) -> int:
    """Bytes of so many rays' gradients, and of as many tangents of each."""
    return rays * (26 + (27 + colours) * columns) * (4 if runtime.single_precision() else 8)


class RayTangents(Owner[MotionFields]):
    """Ray tangents: gradients of `capacity` rays and `columns` tangents of each, of images of so many `colours`; freed
    by `close`."""

    name = "this ray motion"

    def __init__(self, capacity: int, columns: int = 1, colours: int = 3):
        runtime.start()
        self._columns, self._colours = columns, colours

        def size_of(room: Sequence[int]) -> int:
            return bytes_of_tangents(room[0], columns, colours)

        self._own((columns, colours), self._build, size_of, room=(int(capacity),), step=RAY_STEP)

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, MotionFields]:
        tree, columns = ti.FieldsBuilder(), self._columns
        f = MotionFields(
            d_origin=ti.Vector.field(3, float),
            d_index_direction=ti.Vector.field(3, float),
            d_view_direction=ti.Vector.field(3, float),
            d_dt=ti.field(float),
            d_iso=ti.field(float),
            d_frame=ti.Matrix.field(3, 3, float),
            d_place_origin=ti.Vector.field(3, float),
            d_place_way=ti.Vector.field(3, float),
            dot_origin=ti.Vector.field(3, float),
            dot_index_direction=ti.Vector.field(3, float),
            dot_view_direction=ti.Vector.field(3, float),
            dot_dt=ti.field(float),
            dot_place_origin=ti.Vector.field(3, float),
            dot_place_way=ti.Vector.field(3, float),
            dot_iso=ti.field(float),
            dot_frame=ti.Matrix.field(3, 3, float),
            dot_image=ti.Vector.field(1 + self._colours, float),
            dot_depth=ti.field(float),
            columns=columns,
        )
        for each in (
            f.d_origin,
            f.d_index_direction,
            f.d_view_direction,
            f.d_dt,
            f.d_place_origin,
            f.d_place_way,
            f.d_iso,
            f.d_frame,
        ):
            tree.dense(ti.i, room).place(each)
        for each in (
            f.dot_origin,
            f.dot_index_direction,
            f.dot_view_direction,
            f.dot_image,
            f.dot_depth,
            f.dot_place_origin,
            f.dot_place_way,
        ):
            tree.dense(ti.ij, (*room, columns)).place(each)
        tree.dense(ti.i, columns).place(f.dot_dt, f.dot_iso, f.dot_frame)
        return tree, f

    def upload(
        self, origin: np.ndarray, index_direction: np.ndarray, view_direction: np.ndarray, dt: np.ndarray
    ) -> None:
        """Put tangents on the device: (ray, column, 3) three times, and (column,)."""
        dtype, f = runtime.dtype(), self.fields
        values = (np.ascontiguousarray(each, dtype) for each in (origin, index_direction, view_direction, dt))
        ray_arrays.tangents_in(*values, f)

    def upload_surface(self, iso: np.ndarray, frame: np.ndarray) -> None:
        """Put what moves a surface beside the rays on the device: (column,), and (column, 3, 3) of the frame."""
        dtype, f = runtime.dtype(), self.fields
        f.dot_iso.from_numpy(np.ascontiguousarray(iso, dtype))
        f.dot_frame.from_numpy(np.ascontiguousarray(frame, dtype))

    def surface_gradients(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradients by a surface's value () and by the frame (3, 3), added up over the rays in their order, in f64."""
        f = self.fields
        return f.d_iso.to_numpy()[:count].sum(dtype=float), f.d_frame.to_numpy()[:count].sum(0, dtype=float)

    def upload_place(self, origin: np.ndarray, way: np.ndarray) -> None:
        """Put tangents of rays where the grid's affine leads to on the device: (ray, column, 3) twice."""
        ray_arrays.place_tangents_in(
            *(np.ascontiguousarray(each, runtime.dtype()) for each in (origin, way)), self.fields
        )

    def place_gradients(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Gradients by origin and way (ray, 3) where the grid's affine leads to, in f64: those of a clipped march."""
        origin, way = np.empty((2, count, 3), runtime.dtype())
        ray_arrays.place_gradients_out(self.fields, origin, way)
        return origin.astype(float), way.astype(float)

    def dot_image(self, count: int) -> np.ndarray:
        """Tangents of the image (ray, column, 4); of channels (ray, column, channel + 1)."""
        out = np.empty((count, self.fields.columns, 1 + self._colours), runtime.dtype())
        ray_arrays.columns_out(self.fields.dot_image, out)
        return out

    def dot_depth(self, count: int) -> np.ndarray:
        """Tangents of depth (ray, column)."""
        return self.fields.dot_depth.to_numpy()[:count]

    def gradients(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Gradients by index-space origin and direction, view direction (ray, 3), and dt (ray,), in f64."""
        origin, way, view = np.empty((3, count, 3), runtime.dtype())
        dt = np.empty(count, runtime.dtype())
        ray_arrays.gradients_out(self.fields, origin, way, view, dt)
        return origin.astype(float), way.astype(float), view.astype(float), dt.astype(float)


@record(eq=False)
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
            return (math.prod(room) * numbers + (MAX_KNOTS + 1) * columns * 4) * width

        def require() -> None:
            require_memory(shape, size_of(shape), numbers, "take fewer columns at once")

        self._own((columns, channels, still), self._build, size_of, room=tuple(shape), step=ROOM_STEP, require=require)

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, DotFields]:
        tree, columns, channels = ti.FieldsBuilder(), self.columns, self._channels
        density = ti.Vector.field(columns, float)
        features = ti.Vector.field(columns * channels, float) if channels else None
        for each in filter(None, (density, features)):
            tree.dense(ti.ijk, room).place(each)
        table = ti.Vector.field(4, float)
        tree.dense(ti.ij, (MAX_KNOTS + 1, columns)).place(table)
        return tree, DotFields(density, features, table, self._still, columns, channels)

    @staticmethod
    def columns_for(channels: int, wanted: int) -> int:
        """Count of columns that go side by side, so that kernels stay small."""
        return max(1, min(wanted, MAX_UNROLLED_NUMBERS // max(channels, 1)))

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
        copies.directions_in(density, f.density)
        if f.features is not None:
            copies.directions_in(features, f.features)
        if any(dot.table is not None for dot in dots) or not self._table_clear:
            table = np.zeros((MAX_KNOTS + 1, f.columns, 4), dtype)
            for column, dot in enumerate(dots):
                if dot.table is not None:
                    table[: len(dot.table), column] = dot.table
            f.table.from_numpy(table)
            self._table_clear = all(dot.table is None for dot in dots)


def _checksum(numbers: np.ndarray | None) -> int:
    """Of an array's bytes: it is the caller's, and may be changed in place."""
    return -1 if numbers is None else zlib.crc32(np.ascontiguousarray(numbers).data)

"""Ray buffer on the device: origin, direction, image and its gradient, target, depth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from raymarch import runtime
from raymarch.device.grid_layout import set_numbers
from raymarch.device.memory import numbers_a_ray, require_memory
from raymarch.device.pool import Owner
from raymarch.device.table_fields import (
    TABLE_BYTES,
    TableFields,
    TableMemory,
    place_table,
    table_fields,
)
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.errors import RaymarchError
from raymarch.geometry.rays import Rays
from raymarch.kernels.integrator.sample import MAX_KEPT_COLOURS, MAX_KEPT_DENSITIES
from raymarch.kernels.light.shading import MATERIAL_NUMBERS
from raymarch.kernels.rays import ray_arrays
from raymarch.kernels.rays.segment_ends import MAX_FACES

RAY_STEP = 4096  # rays that the room of a small buffer is rounded up to


@record(eq=False)
class RayFields:
    """Device fields of a `RayBuffer`; `image` and `target` are (red, green, blue, T) and (.., alpha), an alpha of -1
    where there is no target: a mask takes the pixel out.

    `jitter` is a ray's (phase, stretch), read by marches with jitter only. `sum_even`, `sum_odd` are the march's own:
    sums over each first and each second sample of a pair, of which it makes the image, because the compiler makes
    vectors of what ends in four neighbouring stores, and mixes up the samples of a pair that end in the same ones.
    `near` is read by adjoints with gradients scaled near the cameras only: how far before their cameras rays begin, and
    from which distance on gradients are whole [world unit]. `iso` is a surface's raw level, `shading` how it is lit, by
    the indices of `kernels.light.shading`. `sum_even` also takes normals, and `sum_odd` what a mode of whole rays finds
    along them before its other passes. `table` is read by modes that classify only.
    `planes` (normal, offset), the first `plane_count` of them, are read by marches that clip.
    `kept_density` and `kept_colour` are what a march keeps for its adjoint (`kernels.integrator.sample`), as (raw
    density, number of the sample) and (red, green, blue, number of the sample). `draw` numbers its roulette's draws.
    `deal` is of a step that several ranks share (`kernels.rays.dealt_rays`): how many rays are dealt at a time, the
    first of the virtual slots that are this rank's, and their count.
    `weights` is the sum of weights that `depth` is the mean by, 0 where nothing is met; it and `depth.grad` are for the
    adjoint of depth.

    `colours` is the count of numbers that a colour has, 3 unless the buffer is `of_channels`: then `image` and `target`
    have as many, targets under `losses.UNKNOWN` those that a view does not have, and `behind` is the background.
    """

    origin: ti.Field
    direction: ti.Field
    image: ti.Field
    sum_even: ti.Field
    sum_odd: ti.Field
    target: ti.Field
    depth: ti.Field
    weights: ti.Field
    jitter: ti.Field
    loss: ti.Field
    near: ti.Field
    iso: ti.Field
    shading: ti.Field
    table: TableFields
    planes: ti.Field
    plane_count: ti.Field
    draw: ti.Field
    deal: ti.Field
    kept_density: ti.Field | None
    kept_colour: ti.Field | None
    behind: ti.Field | None = None
    colours: int = 3
    of_channels: bool = False


def size_of(room: tuple[int, ...], keeps: bool = False, colours: int = 3) -> int:
    """Bytes of a buffer."""
    return room[0] * numbers_a_ray(keeps, colours) * (4 if runtime.single_precision() else 8) + TABLE_BYTES


class RayBuffer(TableMemory, Owner[RayFields]):
    """Ray buffer of `capacity` rays; made in the process's Taichi thread, freed by `close`.

    With `keeps` it has room for densities and colours of samples, which a march then keeps for its adjoint. With
    `channels` its images have as many numbers a pixel as that, and a background that is put here (`set_behind`).
    """

    name = "this ray buffer"

    def __init__(self, capacity: int, keeps: bool = False, channels: int | None = None):
        self.capacity, self.channels = int(capacity), channels
        self._behind: list[float] | None = None  # that was put last
        self.colours = colours = 3 if channels is None else channels
        runtime.start()

        def require() -> None:
            of_kept = max(
                2 * MAX_KEPT_DENSITIES, (1 + colours) * MAX_KEPT_COLOURS
            )  # fields of their own, the larger counts
            indexed = of_kept if keeps else numbers_a_ray(False, colours)
            bytes_of_all = size_of((self.capacity,), keeps, colours)
            require_memory((self.capacity,), bytes_of_all, indexed, "take fewer rays at once")

        self._own(
            (keeps, channels),
            lambda room: self._build(room, keeps, channels),
            lambda room: size_of(room, keeps, colours),
            room=(self.capacity,),
            step=RAY_STEP,
            require=require,
        )
        self.fields.image.grad.fill(0)

    @staticmethod
    def _build(room: tuple[int, ...], keeps: bool, channels: int | None) -> tuple[list[ti.FieldsBuilder], RayFields]:
        tree, sums, colours = ti.FieldsBuilder(), ti.FieldsBuilder(), 3 if channels is None else channels
        f = RayFields(
            origin=ti.Vector.field(3, float),
            direction=ti.Vector.field(3, float),
            image=ti.Vector.field(1 + colours, float, needs_grad=True),
            sum_even=ti.Vector.field(max(4, 1 + colours), float),
            sum_odd=ti.Vector.field(max(4, 1 + colours), float),
            target=ti.Vector.field(1 + colours, float),
            depth=ti.field(float, needs_grad=True),
            weights=ti.field(float),
            jitter=ti.Vector.field(2, float),
            loss=ti.field(ti.f64, needs_grad=True),
            near=ti.Vector.field(2, float),
            iso=ti.field(float),
            shading=ti.Vector.field(MATERIAL_NUMBERS, float),
            table=table_fields(),
            planes=ti.Vector.field(4, float),
            plane_count=ti.field(ti.i32),
            draw=ti.field(ti.i32),
            deal=ti.Vector.field(3, ti.i32),
            kept_density=ti.Vector.field(2, float) if keeps else None,
            kept_colour=ti.Vector.field(1 + colours, float) if keeps else None,
            behind=None if channels is None else ti.Vector.field(colours, float),
            colours=colours,
            of_channels=channels is not None,
        )
        for each in (f.image, f.image.grad, f.depth, f.depth.grad):
            tree.dense(ti.i, room).place(each)
        sums.place(f.loss)
        sums.lazy_grad()
        tree.lazy_grad()  # before the rest is placed: it would give all of it gradients
        for each in (f.origin, f.direction, f.sum_even, f.sum_odd, f.target, f.weights, f.jitter):
            tree.dense(ti.i, room).place(each)
        tree.place(f.near, f.plane_count, f.iso, f.shading, f.draw, f.deal)
        if f.behind is not None:
            tree.place(f.behind)
        if f.kept_colour is not None:
            tree.dense(ti.i, room[0] * MAX_KEPT_DENSITIES).place(f.kept_density)
            tree.dense(ti.i, room[0] * MAX_KEPT_COLOURS).place(f.kept_colour)
        place_table(tree, sums, f.table)
        tree.dense(ti.i, MAX_FACES).place(f.planes)
        return [tree, sums], f

    def _require_room(self, count: int) -> None:
        if count > self.capacity:
            raise RaymarchError(f"{count} rays do not fit a buffer of {self.capacity}; make it larger")

    def upload(self, rays: Rays) -> None:
        """Put rays at the front of the buffer."""
        self._require_room(len(rays))
        if len(rays):
            ray_arrays.rays_in(np.ascontiguousarray(rays.origin), np.ascontiguousarray(rays.direction), self.fields)

    def set_near(self, begin: float, whole: float) -> None:
        """Set how far before their cameras rays begin, and from which distance on gradients are whole [world unit]."""
        set_numbers(self.fields, near=(begin, whole))

    def set_surface(self, level: float, shading: Sequence[float]) -> None:
        """Set the raw level of a surface, and how it is lit, by the indices of `kernels.light.shading`."""
        set_numbers(self.fields, iso=level, shading=shading)

    def set_behind(self, background: Sequence[float] | np.ndarray) -> ti.Vector:
        """The background as kernels take it: three numbers; of channels it is put into the buffer."""
        numbers = [float(c) for c in background]
        if self.channels is None:
            return ti.Vector(numbers)
        if numbers != self._behind:  # a step of a fit asks several times, and each would wait for the device
            set_numbers(self.fields, behind=numbers)
            self._behind = numbers
        return ti.Vector([0.0, 0.0, 0.0])

    def set_image_gradient(self, d_image: np.ndarray) -> None:
        """Set d_image (ray, 4): the gradient of a loss by colour and transmittance, the last."""
        if d_image.ndim != 2 or d_image.shape[1] != 1 + self.colours:
            raise RaymarchError(f"image gradient has shape {d_image.shape}, want (ray, {1 + self.colours})")
        self._require_room(len(d_image))
        ray_arrays.vectors_in(np.ascontiguousarray(d_image, np.float64), self.fields.image.grad)

    def image(self, count: int) -> np.ndarray:
        """Colour and transmittance (ray, 4) of the first `count` rays; of channels (ray, channel + 1)."""
        self._require_room(count)
        out = np.empty((count, 1 + self.colours), runtime.dtype())
        ray_arrays.vectors_out(self.fields.image, out)
        return out

    def normals(self, count: int) -> np.ndarray:
        """Unit normals (ray, 3) in the world of what the first `count` rays meet, facing the eye; 0 for nothing."""
        self._require_room(count)
        out = np.empty((count, max(4, 1 + self.colours)), runtime.dtype())
        ray_arrays.vectors_out(self.fields.sum_even, out)
        return out[:, :3]

    def depth(self, count: int) -> np.ndarray:
        """Mean distance (ray,) [world unit] of what the first `count` rays meet; infinite for an opacity under 1 %."""
        self._require_room(count)
        out = np.empty(count, runtime.dtype())
        ray_arrays.scalars_out(self.fields.depth, out)
        return out

"""Points with values deposited in a grid or an image: once from NumPy, or on the device inside a Tape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import taichi as ti

from raymarch import runtime
from raymarch.errors import RaymarchError
from raymarch.kernels import splat as kernels
from raymarch.memory import require_memory
from raymarch.owner import Owner


def splat(positions, values, shape) -> np.ndarray:
    """Deposit points in a grid or an image by multilinear weights: the transpose of interpolation.

    `target[I] = sum over points p of values[p] * product over axes a of max(1 - |positions[p, a] - I[a]|, 0)`.
    Samples are at integer indices, positions in index space and in the order of the axes, so for an image they are
    (row, column). A point gives its value to the 4 or 8 samples around it; what would fall on samples outside is lost,
    so a point a whole index or more outside gives nothing. The same input gives the same bits on any number of CPU
    threads. For gradients, or to do it many times, see `Splat`.

    Args:
        positions: (point, 2) or (point, 3) [index].
        values: (point, channel), or (point,) for one number a point.
        shape: of the grid or image, samples along each of its 2 or 3 axes.

    Returns:
        (\\*shape, channel), or `shape` where values is (point,); f32, or f64 where the runtime was started so.

    Raises RaymarchError where shapes do not match, there are no points, or a number is not finite.

    Example:
        >>> splat([[0.5, 1.0]], [8.0], (2, 3))  # half way between rows 0 and 1, on column 1
        array([[0., 4., 0.],
               [0., 4., 0.]]...)
    """
    runtime.start()
    runtime.require_owner()
    values = _numbers(values, "values", "numbers")
    columns = values[:, None] if values.ndim == 1 else values
    if columns.ndim != 2 or 0 in columns.shape:
        raise RaymarchError(f"values have shape {values.shape}, want (point,) or (point, channel) of one point or more")
    shape = _shape(shape)
    positions = _checked(positions, "positions", (len(columns), len(shape)))
    numbers = columns.shape[1]
    require_memory(shape, math.prod(shape) * numbers * 8, numbers, "make it smaller")
    target = np.zeros((*shape, numbers), runtime.dtype())
    kernels.splat_arrays(positions, _checked(columns, "values", columns.shape), target)
    return target[..., 0] if values.ndim == 1 else target


@dataclass(frozen=True, eq=False)
class SplatFields:
    """The fields as kernels see them: (point, axis), (point, channel), (\\*shape, channel), each with its `grad`."""

    positions: ti.Field
    values: ti.Field
    target: ti.Field


class Splat(Owner[SplatFields]):
    """Room for `count` points and the grid or image they are deposited in, on the device, all with gradients.

    `positions`, `values` and `target` are Taichi fields of numbers that your own kernels may read and write:
    (point, axis), (point, channel) and (\\*shape, channel). Inside a `ti.ad.Tape`, `deposit` carries the gradient of
    `target` to `positions` and `values`; kernels before and after it are differentiated by Taichi. Freed by `close`, or
    use it in a `with`. A Tape clears all gradients as it begins; with `clear_gradients=False` call `clear_gradients`.

    Derivatives by position are one-sided where a point is on a sample's row, column or slice: those to the right,
    towards greater indices. Gradients that are already there are added to.

    Args:
        count: points.
        shape: of the target, samples along each of its 2 or 3 axes.
        channels: numbers a point carries.

    Raises RaymarchError where these are not positive, or do not fit the memory.

    Example:
        >>> with Splat(1, (2, 3)) as one:
        ...     one.upload([[0.5, 1.0]], [[8.0]])
        ...     one.deposit()
        ...     one.target.to_numpy()[..., 0]
        array([[0., 4., 0.],
               [0., 4., 0.]]...)
    """

    name = "this splat"

    def __init__(self, count: int, shape, channels: int = 1):
        runtime.start()
        runtime.require_owner()
        self.shape = _shape(shape)
        self.count, self.channels = _whole(count, "count"), _whole(channels, "channels")
        cells = self.count * (len(self.shape) + self.channels) + math.prod(self.shape) * self.channels
        require_memory(self.shape, 2 * cells * np.dtype(runtime.dtype()).itemsize, self.channels, "take a smaller one")
        f = SplatFields(*(ti.field(float, needs_grad=True) for _ in range(3)))
        tree = ti.FieldsBuilder()
        for field in (f.positions, f.positions.grad):
            tree.dense(ti.ij, (self.count, len(self.shape))).place(field)
        for field in (f.values, f.values.grad):
            tree.dense(ti.ij, (self.count, self.channels)).place(field)
        for field in (f.target, f.target.grad):
            tree.dense(ti.axes(*range(len(self.shape) + 1)), (*self.shape, self.channels)).place(field)
        tree.lazy_grad()
        self._own(tree, f)

    @property
    def positions(self) -> ti.Field:
        """Where the points are, (point, axis) [index]."""
        return self.fields.positions

    @property
    def values(self) -> ti.Field:
        """What they carry, (point, channel)."""
        return self.fields.values

    @property
    def target(self) -> ti.Field:
        """What `deposit` made of them, (\\*shape, channel)."""
        return self.fields.target

    def upload(self, positions, values) -> None:
        """Set positions (point, axis) [index] and values (point, channel)."""
        positions = _checked(positions, "positions", (self.count, len(self.shape)))
        values = _checked(values, "values", (self.count, self.channels))
        self.positions.from_numpy(positions)
        self.values.from_numpy(values)

    @ti.ad.grad_replaced
    def deposit(self) -> None:
        kernels.splat(self.fields)

    @ti.ad.grad_for(deposit)
    def _deposit_adjoint(self) -> None:
        kernels.splat_adjoint(self.fields)

    # grad_replaced drops a docstring.
    deposit.__doc__ = "Set the target to the sum over points of weight times value; inside a Tape, its adjoint follows."

    def tangent(self, dot_positions, dot_values) -> np.ndarray:
        """How the target (\\*shape, channel) changes as positions and values change at these rates."""
        dot_target = np.zeros((*self.shape, self.channels), runtime.dtype())
        dot_positions = _checked(dot_positions, "dot_positions", (self.count, len(self.shape)))
        dot_values = _checked(dot_values, "dot_values", (self.count, self.channels))
        kernels.splat_tangent(self.fields, dot_positions, dot_values, dot_target)
        return dot_target

    def clear_gradients(self) -> None:
        """The gradients of positions, values and target to zero; not inside a Tape."""
        for field in (self.positions, self.values, self.target):
            field.grad.fill(0)


def _whole(n, name: str) -> int:
    if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
        raise RaymarchError(f"{name} is {n!r}, want a whole number, 1 or more")
    return int(n)


def _shape(shape) -> tuple[int, ...]:
    try:
        lengths = tuple(shape)
    except TypeError:
        lengths = ()
    if len(lengths) not in (2, 3):
        raise RaymarchError(f"shape is {shape!r}, want 2 numbers for an image or 3 for a grid, without the channels")
    return tuple(_whole(n, "a length of shape") for n in lengths)


def _numbers(values, name: str, wanted: str) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise RaymarchError(f"{name} are not an array of numbers, want {wanted}") from None


def _checked(values, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Finite numbers of that shape, as kernels take them."""
    array = _numbers(values, name, f"shape {shape}")
    if array.shape != shape:
        kind = "axis" if "positions" in name else "channel"
        raise RaymarchError(f"{name} have shape {array.shape}, want {shape}: a row a point, a column a {kind}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise RaymarchError(
            f"{name} of point {row} are {array[row].tolist()}, want finite numbers; leave the point out"
        )
    return np.ascontiguousarray(array, runtime.dtype())

"""Splatting: points deposited in a grid or an image, once from NumPy, or on the device inside a `ti.ad.Tape`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from raymarch import runtime
from raymarch.arguments.checks import MAX_NUMBER, Check, Numbers, Wrong, array, numeric, whole
from raymarch.arguments.declared import checked
from raymarch.device.memory import MAX_CELLS, require_memory
from raymarch.device.pool import Owner
from raymarch.engine import ti
from raymarch.engine.record import record
from raymarch.kernels.integrator import splat as kernels

COUNT = whole(1, MAX_CELLS)


def _shape(value: Iterable[object]) -> tuple[int, ...]:
    shape = tuple(COUNT.read(n) for n in value)
    if len(shape) not in (2, 3):
        raise ValueError
    return shape


def _columns(value: object) -> np.ndarray:
    values = numeric(value)
    if values.ndim not in (1, 2) or values.size == 0:
        raise Wrong(f"has shape {values.shape}")
    return values


VALUES = Check("(point,) or (point, channel) numbers of one point or more", _columns)
SHAPE = Check("2 whole numbers from 1 for an image or 3 for a grid, without the channels", _shape)


@checked(shape=SHAPE)
def splat(positions: Numbers, values: Numbers, shape: Sequence[int]) -> np.ndarray:
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
    flat = VALUES("values", values).ndim == 1
    columns = np.reshape(values, (-1, 1)) if flat else values
    values = array("point", "channel")("values", columns)
    count, numbers = values.shape
    positions = _places(positions, count, len(shape))
    runtime.start()
    runtime.require_owner()
    require_memory(shape, math.prod(shape) * numbers * 8, numbers, "make it smaller")
    target = np.zeros((*shape, numbers), runtime.dtype())
    kernels.splat_arrays(_kernel_numbers(positions), _kernel_numbers(values), target)
    return target[..., 0] if flat else target


@record(eq=False)
class SplatFields:
    """Device fields of a `Splat`: (point, axis), (point, channel), (\\*shape, channel), each with its `grad`."""

    positions: ti.Field
    values: ti.Field
    target: ti.Field


class Splat(Owner[SplatFields]):
    """Differentiable splatting on the device: `count` points, and the grid or image that they are deposited in.

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

    @checked(count=COUNT, shape=SHAPE, channels=COUNT)
    def __init__(self, count: int, shape: Sequence[int], channels: int = 1):
        runtime.start()
        runtime.require_owner()
        self.shape, self.count, self.channels = shape, count, channels
        cells = self.count * (len(self.shape) + self.channels) + math.prod(self.shape) * self.channels
        size = 2 * cells * np.dtype(runtime.dtype()).itemsize

        def require() -> None:
            require_memory(self.shape, size, self.channels, "take a smaller one")

        if not self._own((self.count, self.channels, self.shape), self._build, lambda room: size, require=require):
            for field in (self.positions, self.values, self.target):
                field.fill(0)
                field.grad.fill(0)

    def _build(self, room: tuple[int, ...]) -> tuple[ti.FieldsBuilder, SplatFields]:
        f = SplatFields(*(ti.field(float, needs_grad=True) for _ in range(3)))
        tree = ti.FieldsBuilder()
        for field in (f.positions, f.positions.grad):
            tree.dense(ti.ij, (self.count, len(self.shape))).place(field)
        for field in (f.values, f.values.grad):
            tree.dense(ti.ij, (self.count, self.channels)).place(field)
        for field in (f.target, f.target.grad):
            tree.dense(ti.axes(*range(len(self.shape) + 1)), (*self.shape, self.channels)).place(field)
        tree.lazy_grad()
        return tree, f

    @property
    def positions(self) -> ti.Field:
        """Positions of the points, (point, axis) [index]."""
        return self.fields.positions

    @property
    def values(self) -> ti.Field:
        """Values of the points, (point, channel)."""
        return self.fields.values

    @property
    def target(self) -> ti.Field:
        """Result of `deposit`, (\\*shape, channel)."""
        return self.fields.target

    def upload(self, positions: Numbers, values: Numbers) -> None:
        """Set positions (point, axis) [index] and values (point, channel)."""
        positions = _places(positions, self.count, len(self.shape))
        values = array(self.count, self.channels)("values", values)
        self.positions.from_numpy(_kernel_numbers(positions))
        self.values.from_numpy(_kernel_numbers(values))

    @ti.ad.grad_replaced
    def deposit(self) -> None:
        kernels.splat(self.fields)

    @ti.ad.grad_for(deposit)
    def _deposit_adjoint(self) -> None:
        kernels.splat_adjoint(self.fields)

    # grad_replaced drops a docstring.
    deposit.__doc__ = "Set the target to the sum over points of weight times value; inside a Tape, its adjoint follows."

    def tangent(self, dot_positions: Numbers, dot_values: Numbers) -> np.ndarray:
        """Jacobian-vector product: change of the target (\\*shape, channel) as positions and values change so."""
        dot_target = np.zeros((*self.shape, self.channels), runtime.dtype())
        dot_positions = array(self.count, len(self.shape))("dot_positions", dot_positions)
        dot_values = array(self.count, self.channels)("dot_values", dot_values)
        kernels.splat_tangent(self.fields, _kernel_numbers(dot_positions), _kernel_numbers(dot_values), dot_target)
        return dot_target

    def clear_gradients(self) -> None:
        """The gradients of positions, values and target to zero; not inside a Tape."""
        for field in (self.positions, self.values, self.target):
            field.grad.fill(0)


def _places(positions: Numbers, count: int, axes: int) -> np.ndarray:
    """Positions (point, axis); those too far away for single precision are brought as near as that is far."""
    most = float(np.finfo(float).max)
    return np.clip(array(count, axes, low=-most, high=most)("positions", positions), -MAX_NUMBER, MAX_NUMBER)


def _kernel_numbers(values: np.ndarray) -> np.ndarray:
    """Numbers as kernels take them."""
    return np.ascontiguousarray(values, runtime.dtype())

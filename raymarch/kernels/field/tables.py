"""Single numbers of a tree, set by one kernel for all: of those that Python sets, each element compiles a kernel."""

from typing import Any

import taichi as ti
from taichi.lang.field import ScalarField
from taichi.lang.matrix import MatrixField


def elements(owner: Any, names: tuple[str, ...]) -> list[ScalarField]:
    """Elements of fields of an owner, row by row, one field behind the other."""
    fields = (getattr(owner, name) for name in names)
    each = (map(ScalarField, field.vars) if isinstance(field, MatrixField) else [field] for field in fields)
    return [element for some in each for element in some]


@ti.kernel
def numbers_in(values: ti.types.ndarray(dtype=ti.f64, ndim=1), owner: ti.template(), names: ti.template()):
    """Copy an array to fields that have one scalar, vector or matrix each, in the order of their names."""
    for _ in range(1):  # one task, whatever else
        for k, element in ti.static(list(enumerate(elements(owner, names)))):
            element[None] = ti.cast(values[k], element.dtype)


@ti.kernel
def table_in(
    knots: ti.types.ndarray(dtype=ti.f64, ndim=2), first: ti.types.ndarray(dtype=ti.i32, ndim=1),  # (knot, 10), (bin,)
    table: ti.template(),
):  # fmt: skip
    """Copy the knots of a transfer function, (above, per_value, rgba, rise), and the bins that find them."""
    for k in range(knots.shape[0]):
        table.above[k], table.per_value[k] = ti.cast(knots[k, 0], float), ti.cast(knots[k, 1], float)
        for c in ti.static(range(4)):
            table.rgba[k][c], table.rise[k][c] = ti.cast(knots[k, 2 + c], float), ti.cast(knots[k, 6 + c], float)
    for b in range(first.shape[0]):
        table.first[b] = first[b]

"""Memory layout of a grid: its fields, dense in blocks, gradients and their slots on branches of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import taichi as ti
from taichi.lang.matrix import MatrixField

from raymarch import runtime
from raymarch.device.grid_fields import Fields
from raymarch.device.layout_cache import in_force
from raymarch.device.layout_choice import LayoutChoice, kind_of
from raymarch.device.mark_fields import mark_fields, touched_fields
from raymarch.device.memory import APART, BLOCK_EDGE, MAX_CELLS, cells_of, padded
from raymarch.device.numbers import set_numbers
from raymarch.errors import RaymarchError
from raymarch.kernels.field.bricks import BLOCKS as BLOCKS_A_BRICK
from raymarch.kernels.field.bricks import SAMPLES
from raymarch.kernels.fit.coarse import CUBE
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import table_shape

STEP = 32  # samples along an axis that the room of a small grid is rounded up to
BLOCKS = (1, 2, 4, 8)
MOST_BOXES = 16  # the outermost is 32,768 times as large as the innermost
SLOTS = 64  # unrolled where they are added up
OF_CUBES = ("m_cube", "v_cube")


def _as_one(features: MatrixField, density: ti.Field) -> MatrixField:
    """A field of vectors over fields that lie side by side: its numbers are theirs."""
    return MatrixField([*features.vars, *density.vars], 4, 1, 1)


def block_for(shape: Sequence[int], degree: int, slots: int) -> int:
    """Block size of the layout by the choice in force for grids of that kind; the defaults of any but the CPU."""
    return getattr(in_force().choice if runtime.on_cpu() else LayoutChoice(), kind_of(shape, degree, slots))


def require_layout(shape: tuple[int, ...], slots: int, block: int, boxes: int = 1) -> None:
    """Layout check: RaymarchError for a shape, a count of cells, a number of slots or a block that no grid has."""
    if len(shape) != 3 or min(shape) < 2:
        raise RaymarchError(f"grid shape is {shape}, want three counts of at least 2")
    if (cells := math.prod(cells_of(shape))) > MAX_CELLS:
        size = " x ".join(map(str, shape))
        raise RaymarchError(
            f"a grid of {size} has {cells:,} occupancy cells where Taichi can index {MAX_CELLS:,}; lower the resolution"
        )
    if not 1 <= boxes <= MOST_BOXES or shape[0] % boxes:
        raise RaymarchError(f"nested boxes are {boxes}, want 1 to {MOST_BOXES} that share {shape[0]} samples along x")
    if block not in BLOCKS:
        raise RaymarchError(f"block is {block}, want one of {BLOCKS}")
    if not isinstance(slots, (int, np.integer)) or not 0 <= slots <= SLOTS:
        raise RaymarchError(f"slots is {slots}, want a whole number up to {SLOTS}")


def build(
    room: tuple[int, ...], degree: int, slots: int, moments: bool, block: int, boxes: int, ndc: bool, sparse: bool
) -> tuple[list[ti.FieldsBuilder], Fields]:
    """Field builders, not yet finished, with the fields of a grid of this room: of a sparse one (x, y, z, bricks),
    which has what only a fit needs, gradients and moments, in a second builder."""
    tree, edge = ti.FieldsBuilder(), max(block, BLOCK_EDGE)
    beside = ti.FieldsBuilder() if sparse and (slots or moments) else tree
    whole = [-(-n // edge) for n in room[:3]]  # whole blocks of marks: what reduces slots visits all of one
    samples = [n // block for n in padded(room[:3], block)]
    if sparse:
        places = room[3] + 1  # and the one of bricks that are missing
        samples, whole = [1, 1, places * SAMPLES], [0, 0, places * BLOCKS_A_BRICK - 1]
    values = _values(tree, beside, samples, degree, slots, moments, block)
    marks, place = mark_fields(tree, whole, cells_of(room[:3])), _place(tree, ndc)
    cubes = [(n + 1) * edge // CUBE for n in whole]
    words = [cubes[0], cubes[1], 2 * cubes[2]] if sparse else [2 * cubes[0], cubes[1], cubes[2]]
    step = {**_cubes(beside, cubes, degree, moments), **touched_fields(beside, words, degree, slots)}
    index = _index(tree, room) if sparse else dict.fromkeys(("table", "old_table", "brick"))
    return [tree] if beside is tree else [tree, beside], Fields(
        degree=degree, block=edge, slots=slots, boxes=boxes, **values, **step, **marks, **place, **index
    )


def place(
    fields: Fields, world_from_index: np.ndarray, max_index: np.ndarray, shape: Sequence[int], cells: Sequence[int],
    ndc_from_world: np.ndarray | None, activation: Activation,
) -> None:  # fmt: skip
    """Level of a grid: where its boxes lie in the world, whose last sample `max_index` is, its occupancy cells, and how
    its numbers are read."""
    set_numbers(
        fields,
        index_from_world=np.linalg.inv(world_from_index)[:3],
        max_index=max_index,
        cells=cells,
        cells_per_index=np.array(cells) / (np.array(shape) - 1.0),
        shift=activation.shift,
        inverse_scale=1 / activation.scale,
        **({} if ndc_from_world is None else {"ndc_from_world": ndc_from_world}),
    )


def _values(
    tree: ti.FieldsBuilder, beside: ti.FieldsBuilder, blocks: list[int], degree: int, slots: int, moments: bool,
    block: int,
) -> dict:  # fmt: skip
    """Density and features, their gradients and slots: side by side at degree 0, else each alone; moments. All but the
    values lie in `beside`, if that is another tree, where gradients are the first slot."""
    channels, fit, sparse = 3 * (degree + 1) ** 2, slots > 0, beside is not tree

    def dense(
        *places: ti.Field | None, leading: int = 0, of: ti.FieldsBuilder = beside, as_one: bool = degree == 0
    ) -> tuple[ti.Field | None, ...]:
        there = [place for place in places if place is not None]
        for some in [there] if as_one else [[place] for place in there]:
            array = of.dense(ti.i, leading) if leading else of
            node = array.dense(ti.jkl if leading else ti.ijk, tuple(blocks))
            whole = of if block == 1 else array  # slots of a flat grid, or of a pool, are asked as one (`gather`)
            whole.dense(ti.j if leading and whole is array else ti.i, APART).place(ti.field(float))
            (node.dense(ti.jkl if leading else ti.ijk, block) if block > 1 else node).place(*some)
        return places

    def pair(numbers: int = channels, **how: bool) -> tuple[ti.Field | None, ti.Field]:
        return ti.Vector.field(numbers, float, **how) if numbers else None, ti.field(float, **how)

    features, density = dense(*pair(needs_grad=fit and not sparse), of=tree)
    d_features = d_density = m_features = m_density = v_features = v_density = None
    if fit and not sparse:
        dense(_grad(features), _grad(density))  # on a branch of their own, or lazy_grad would interleave them
        tree.lazy_grad()  # before the rest is placed: it would give moments and slots gradients too, interleaved
    if fit:
        d_features, d_density = dense(*pair(), leading=slots)
    if moments:
        (m_features, m_density), (v_features, v_density) = (dense(*pair(3), as_one=True) for _ in range(2))
    return {
        "density": density,
        "features": features,
        "packed": _as_one(features, density) if degree == 0 else None,
        "d_density": d_density,
        "d_features": d_features,
        "d_packed": _as_one(d_features, d_density) if degree == 0 and fit else None,
        "g_density": d_density if sparse else _grad(density),
        "g_features": d_features if sparse else _grad(features),
        "m_density": m_density,
        "m_features": m_features,
        "v_density": v_density,
        "v_features": v_features,
    }


def _grad(field: ti.Field | None) -> ti.Field | None:
    return None if field is None else field.grad


def _cubes(tree: ti.FieldsBuilder, shape: list[int], degree: int, moments: bool) -> dict:
    """Moments of cubes of samples, features and density the last."""
    fields = {name: ti.Vector.field(3 * (degree + 1) ** 2 + 1, float) if moments else None for name in OF_CUBES}
    for field in filter(None, fields.values()):
        tree.dense(ti.ijk, tuple(shape)).place(field)
    return fields


def _index(tree: ti.FieldsBuilder, room: tuple[int, ...]) -> dict:
    """Where the bricks of a pool lie, and which lies where."""
    fields = {"table": ti.field(ti.i32), "old_table": ti.field(ti.i32), "brick": ti.Vector.field(3, ti.i32)}
    for name in ("table", "old_table"):
        tree.dense(ti.ijk, table_shape(room[:3])).place(fields[name])
    tree.dense(ti.i, room[3] + 1).place(fields["brick"])
    return fields


def _place(tree: ti.FieldsBuilder, ndc: bool) -> dict:
    """Where the level lies in the world, how its numbers are read, and whether they ran away."""
    fields = {
        "index_from_world": ti.Matrix.field(3, 4, float),
        "max_index": ti.Vector.field(3, float),
        "cells": ti.Vector.field(3, ti.i32),
        "cells_per_index": ti.Vector.field(3, float),
        "shift": ti.field(float),
        "inverse_scale": ti.field(float),
        "nonfinite_step": ti.field(ti.i32),
    }
    if ndc:
        fields["ndc_from_world"] = ti.Matrix.field(4, 4, float)
    for field in fields.values():
        tree.place(field)
    return {"ndc_from_world": None, **fields}

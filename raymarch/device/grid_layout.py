"""Memory layout of a grid: its fields, dense in blocks, gradients and their slots on branches of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device.layout_choice import LayoutChoice, current_choice, kind_of
from raymarch.device.memory import ARRAY_SPACING, BLOCK_EDGE, MAX_CELLS, cells_of, padded_shape
from raymarch.engine import MatrixField, ti
from raymarch.engine.record import record
from raymarch.errors import RaymarchError
from raymarch.kernels.field.bricks import BRICK_BLOCKS as BLOCKS_A_BRICK
from raymarch.kernels.field.bricks import BRICK_SAMPLES
from raymarch.kernels.field.tables import field_names, numbers_in
from raymarch.kernels.fit.adam import CUBE_SIDE
from raymarch.volumes.activation import Activation
from raymarch.volumes.bricks import table_shape

NO_COLOUR_DEGREE = -1  # degree of a grid of density alone, as X-rays see
PACKED_COLOURS = 3  # of which a sample of degree 0 is four numbers, read at once
ROOM_STEP = 32  # samples along an axis that the room of a small grid is rounded up to
BLOCK_EDGES = (1, 2, 4, 8)
MAX_BOXES = 16  # the outermost is 32,768 times as large as the innermost
MAX_SLOTS = 64  # unrolled where they are added up
CUBE_FIELDS = ("m_cube", "v_cube")
BLOCK_FIELDS = ("block_written", "block_has_gradient", "block_occupied")
CELL_FIELDS = ("empty_distance", "occupied_distance", "seen", "hull_mask")


@record(eq=False)
class Fields:
    """Device fields of a grid, as kernels see them; gradients and their slots lie on dense branches of their own.

    At degree 0 of three colours `packed` and `d_packed` are features and density as one vector, which is how they lie
    in memory; else they are None, and the grid is `parted`. A grid of degree `NO_COLOUR_DEGREE` has density alone, and
    all that is of features is None. `colours` is the count of channels that a sample's colour has. `block` is the edge
    of the blocks that the three fields `block_...` are about.

    A sparse grid has its samples, and its marks of blocks, in a pool of bricks (`kernels/field/bricks`): `table` has
    the place of each brick in it, 0 where none is, `old_table` that before the last change of level, `brick` which
    brick is at a place. They are None of a dense grid.

    `g_density` and `g_features` are the gradient: `density.grad` and `features.grad` of a dense grid, which `lazy_grad`
    makes; of a sparse one the first slot of `d_density` and `d_features`, which saves a copy.

    Where a grid `holds_slopes`, its features are no colours but the smooth slope of the raw density in index space.

    `feature_cells` and `feature_samples` are the bit masks of `kernels/field/touched`: the cells at whose corners each
    slot added features since they were last added up, and the samples whose features have a gradient; None unless the
    grid is parted.
    """

    density: ti.Field
    features: ti.Field | None
    packed: ti.Field | None
    degree: int
    colours: int
    block: int
    slots: int
    boxes: int
    d_density: ti.Field | None
    d_features: ti.Field | None
    d_packed: ti.Field | None
    g_density: ti.Field | None
    g_features: ti.Field | None
    m_density: ti.Field | None
    m_features: ti.Field | None
    v_density: ti.Field | None
    v_features: ti.Field | None
    m_cube: ti.Field | None
    v_cube: ti.Field | None
    feature_cells: ti.Field | None
    feature_samples: ti.Field | None
    block_written: ti.Field
    block_has_gradient: ti.Field
    block_occupied: ti.Field
    empty_distance: ti.Field
    occupied_distance: ti.Field
    seen: ti.Field
    hull_mask: ti.Field
    index_from_world: ti.Field
    ndc_from_world: ti.Field | None
    max_index: ti.Field
    cells: ti.Field
    cells_per_index: ti.Field
    shift: ti.Field
    inverse_scale: ti.Field
    nonfinite_step: ti.Field
    table: ti.Field | None
    old_table: ti.Field | None
    brick: ti.Field | None
    holds_slopes: bool = False

    @property
    def ndc(self) -> bool:
        """Whether the boxes lie in normalised device coordinates, not in the world itself."""
        return self.ndc_from_world is not None

    @property
    def packs(self) -> bool:
        """Whether features and density lie side by side."""
        return self.packed is not None

    @property
    def parted(self) -> bool:
        """Whether there are features, and density lies elsewhere."""
        return self.features is not None and self.packed is None

    @property
    def lanes(self) -> int:
        """Count of numbers of a colour, and one more."""
        return self.colours + 1

    @property
    def segments(self) -> int:
        """Segments of a ray through the nested boxes."""
        return 2 * self.boxes - 1


def mark_fields(tree: ti.FieldsBuilder, blocks: Sequence[int], cells: Sequence[int]) -> dict[str, ti.Field]:
    """What is known of so many blocks, and one past the end along each axis, and of cells, a byte each."""
    fields, one_past = {}, [n + 1 for n in blocks]
    for name, shape in {**dict.fromkeys(BLOCK_FIELDS, one_past), **dict.fromkeys(CELL_FIELDS, cells)}.items():
        fields[name] = ti.field(ti.u8)
        tree.dense(ti.ijk, tuple(shape)).place(fields[name])
    return fields


def touched_fields(
    tree: ti.FieldsBuilder, words: Sequence[int], parted: bool, slots: int
) -> dict[str, ti.Field | None]:
    """Bit masks of `kernels/field/touched`, of so many words; None of a grid that is not parted, and of no gradient."""
    if not (parted and slots):
        return {"feature_cells": None, "feature_samples": None}
    of_slots, of_all = ti.field(ti.i32), ti.field(ti.i32)
    tree.dense(ti.i, slots).dense(ti.jkl, tuple(words)).place(of_slots)
    tree.dense(ti.ijk, tuple(words)).place(of_all)
    return {"feature_cells": of_slots, "feature_samples": of_all}


def set_numbers(fields: Any, **values: Any) -> None:
    """Set fields that have one scalar, vector or matrix each, by name, in one launch.

    The same names in the same order are one kernel for each tree of fields.
    """
    flat = np.concatenate([np.ravel(np.asarray(value, float)) for value in values.values()])
    numbers_in(flat, fields, field_names(tuple(values)))


def _vector_field(features: MatrixField, density: ti.Field) -> MatrixField:
    """A field of vectors over fields that lie side by side: its numbers are theirs."""
    return MatrixField([*features.vars, *density.vars], 4, 1, 1)


def block_for(shape: Sequence[int], degree: int, slots: int, moments: bool) -> int:
    """Block size of the layout by the choice in force for grids of that kind; the defaults of any but the CPU."""
    choice = current_choice().choice if runtime.runs_on_cpu() else LayoutChoice()
    return getattr(choice, kind_of(shape, degree, slots, moments))


def require_layout(shape: tuple[int, ...], slots: int, block: int, boxes: int = 1) -> None:
    """Layout check: RaymarchError for a shape, a count of cells, a number of slots or a block that no grid has."""
    if len(shape) != 3 or min(shape) < 2:
        raise RaymarchError(f"grid shape is {shape}, want three counts of at least 2")
    if (cells := math.prod(cells_of(shape))) > MAX_CELLS:
        size = " x ".join(map(str, shape))
        raise RaymarchError(
            f"a grid of {size} has {cells:,} occupancy cells where Taichi can index {MAX_CELLS:,}; lower the resolution"
        )
    if not 1 <= boxes <= MAX_BOXES or shape[0] % boxes:
        raise RaymarchError(f"nested boxes are {boxes}, want 1 to {MAX_BOXES} that share {shape[0]} samples along x")
    if block not in BLOCK_EDGES:
        raise RaymarchError(f"block is {block}, want one of {BLOCK_EDGES}")
    if not isinstance(slots, (int, np.integer)) or not 0 <= slots <= MAX_SLOTS:
        raise RaymarchError(f"slots is {slots}, want a whole number up to {MAX_SLOTS}")


def build(
    room: tuple[int, ...],
    degree: int,
    colours: int,
    slots: int,
    moments: bool,
    block: int,
    boxes: int,
    ndc: bool,
    sparse: bool,
    slopes: bool,
) -> tuple[list[ti.FieldsBuilder], Fields]:
    """Field builders, not yet finished, with the fields of a grid of this room: of a sparse one (x, y, z, bricks),
    which has what only a fit needs, gradients and moments, in a second builder."""
    tree, edge = ti.FieldsBuilder(), max(block, BLOCK_EDGE)
    beside = ti.FieldsBuilder() if sparse and (slots or moments) else tree
    whole = [-(-n // edge) for n in room[:3]]  # whole blocks of marks: what reduces slots visits all of one
    samples = [n // block for n in padded_shape(room[:3], block)]
    if sparse:
        places = room[3] + 1  # and the one of bricks that are missing
        samples, whole = [1, 1, places * BRICK_SAMPLES], [0, 0, places * BLOCKS_A_BRICK - 1]
    values = _values(tree, beside, samples, degree, colours, slots, moments, block)
    marks, place = mark_fields(tree, whole, cells_of(room[:3])), _place(tree, ndc)
    cubes = [(n + 1) * edge // CUBE_SIDE for n in whole]
    words = [cubes[0], cubes[1], 2 * cubes[2]] if sparse else [2 * cubes[0], cubes[1], cubes[2]]
    parted = values["features"] is not None and values["packed"] is None
    width = colours * (degree + 1) ** 2 + 1
    step = {**_cubes(beside, cubes, width, moments), **touched_fields(beside, words, parted, slots)}
    index = _index(tree, room) if sparse else dict.fromkeys(("table", "old_table", "brick"))
    return [tree] if beside is tree else [tree, beside], Fields(
        degree=degree,
        colours=colours,
        block=edge,
        slots=slots,
        boxes=boxes,
        holds_slopes=slopes,
        **values,
        **step,
        **marks,
        **place,
        **index,
    )


def place_level(
    fields: Fields,
    world_from_index: np.ndarray,
    max_index: np.ndarray,
    shape: Sequence[int],
    cells: Sequence[int],
    ndc_from_world: np.ndarray | None,
    activation: Activation,
) -> None:
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
    tree: ti.FieldsBuilder,
    beside: ti.FieldsBuilder,
    blocks: list[int],
    degree: int,
    colours: int,
    slots: int,
    moments: bool,
    block: int,
) -> dict:
    """Density and features, their gradients and slots: side by side at degree 0 of three colours, else each alone;
    moments. All but the values lie in `beside`, if that is another tree, where gradients are the first slot."""
    channels, fit, sparse = colours * (degree + 1) ** 2, slots > 0, beside is not tree
    packs = degree == 0 and colours == PACKED_COLOURS

    def dense(
        *places: ti.Field | None, leading: int = 0, of: ti.FieldsBuilder = beside, as_one: bool = packs
    ) -> tuple[ti.Field | None, ...]:
        there = [place for place in places if place is not None]
        for some in [there] if as_one else [[place] for place in there]:
            array = of.dense(ti.i, leading) if leading else of
            node = array.dense(ti.jkl if leading else ti.ijk, tuple(blocks))
            whole = of if block == 1 else array  # slots of a flat grid, or of a pool, are asked as one (`gather`)
            whole.dense(ti.j if leading and whole is array else ti.i, ARRAY_SPACING).place(ti.field(float))
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
        (m_features, m_density), (v_features, v_density) = (
            dense(*pair(colours), as_one=packs or colours == 3) for _ in range(2)
        )
    return {
        "density": density,
        "features": features,
        "packed": _vector_field(features, density) if packs else None,
        "d_density": d_density,
        "d_features": d_features,
        "d_packed": _vector_field(d_features, d_density) if packs and fit else None,
        "g_density": d_density if sparse else _grad(density),
        "g_features": d_features if sparse else _grad(features),
        "m_density": m_density,
        "m_features": m_features,
        "v_density": v_density,
        "v_features": v_features,
    }


def _grad(field: ti.Field | None) -> ti.Field | None:
    return None if field is None else field.grad


def _cubes(tree: ti.FieldsBuilder, shape: list[int], width: int, moments: bool) -> dict:
    """Moments of cubes of samples, features and density the last."""
    fields = {name: ti.Vector.field(width, float) if moments else None for name in CUBE_FIELDS}
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

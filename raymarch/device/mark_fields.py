"""Marks of a grid on the device: what is known of its blocks, of its cells and of which samples a step touched."""

from __future__ import annotations

from collections.abc import Sequence

import taichi as ti

OF_BLOCKS = ("block_written", "block_has_gradient", "block_occupied")
OF_CELLS = ("empty_distance", "occupied_distance", "seen", "hull_mask")


def mark_fields(tree: ti.FieldsBuilder, blocks: Sequence[int], cells: Sequence[int]) -> dict[str, ti.Field]:
    """What is known of so many blocks, and one past the end along each axis, and of cells, a byte each."""
    fields, one_past = {}, [n + 1 for n in blocks]
    for name, shape in {**dict.fromkeys(OF_BLOCKS, one_past), **dict.fromkeys(OF_CELLS, cells)}.items():
        fields[name] = ti.field(ti.u8)
        tree.dense(ti.ijk, tuple(shape)).place(fields[name])
    return fields


def touched_fields(tree: ti.FieldsBuilder, words: Sequence[int], degree: int, slots: int) -> dict[str, ti.Field | None]:
    """Bit masks of `kernels/field/touched`, of so many words; None up to degree 0, and where there is no gradient."""
    if not (degree > 0 and slots):
        return {"feature_cells": None, "feature_samples": None}
    of_slots, of_all = ti.field(ti.i32), ti.field(ti.i32)
    tree.dense(ti.i, slots).dense(ti.jkl, tuple(words)).place(of_slots)
    tree.dense(ti.ijk, tuple(words)).place(of_all)
    return {"feature_cells": of_slots, "feature_samples": of_all}

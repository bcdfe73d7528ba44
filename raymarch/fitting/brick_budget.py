"""Room for a fit's bricks: whether it takes any, how many the memory's budget has room for, and the bytes of all."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from raymarch import runtime
from raymarch.device import memory
from raymarch.device.brick_places import bricks_read
from raymarch.device.memory import LIBRARIES, Memory, cells_of, grid_bytes, index_bytes, pool_shape
from raymarch.errors import RaymarchError
from raymarch.fitting.plan.budget import (
    CHECKED,
    bytes_of_rays,
    bytes_of_result,
    excess_of,
    grid_of_boxes,
    host_room,
    images_of_fit,
    lack_on_host,
    memory_of_fit,
    shape_of_level,
)
from raymarch.fitting.settings.settings import FitSettings
from raymarch.volumes.bricks import BRICK, table_shape

SLOTS = 2  # gradient buffers: each takes as much as the samples
LARGE = 5e9  # bytes of a dense grid up to which it is as quick and needs no table
OF_THE_HULL = 12  # bytes of a cell: the hull's counts, marks that are looked at


def takes_bricks(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> bool:
    """Whether a fit in `box` (2, 3) keeps its samples in bricks: as the settings say, or where a dense grid is large.

    Example:
        >>> takes_bricks(FitSettings(resolution=64), [(-1, -1, -1), (1, 1, 1)], (100, 400, 400, 4))
        False
    """
    if settings.bricks is None and settings.transfer is None:
        return memory_of_fit(settings, box, images).parts["grid"] > LARGE
    return bool(settings.bricks)


def memory_of_bricks(settings: FitSettings, shape: tuple[int, int, int], images: Sequence[int], room: int) -> Memory:
    """Peak memory of a fit with room for so many bricks, to images as of `memory_of_fit`.

    Example:
        >>> one, two = (memory_of_bricks(FitSettings(), (512, 512, 512), (9, 8, 8, 4), n) for n in (10_000, 20_000))
        >>> two.parts["grid"] < 2 * one.parts["grid"]
        True
    """
    width, degree = 4 if runtime.single_precision() else 8, settings.sh_degree
    one = grid_bytes(pool_shape(room), degree)
    slots = slots_of(settings)
    pool = grid_bytes(pool_shape(room), degree, slots=slots, moments=True, width=width, merged=True)
    parts = {
        "libraries": LIBRARIES,
        **images_of_fit(settings, images),
        "grid": pool,
        "cells": sum(index_bytes(shape, room)) + OF_THE_HULL * math.prod(cells_of(shape)),
        "rays": bytes_of_rays(settings),
        "result": max(int(one * CHECKED) * width // 4 - (pool - one * width // 4), 0),  # once the rest is given back
    }
    return Memory(shape, degree, slots, parts)


def require_cells(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> None:
    """RaymarchError where not even the cells of a fit, which are looked at before any brick is, are in its budget."""
    _, shape = grid_of_boxes(box, settings)
    needed = memory_of_bricks(settings, shape, images, 1)
    excess, budget, whose = excess_of(settings, needed)
    if excess > 0:
        what = f"{needed.total:,} bytes without any brick"
        raise RaymarchError(_words(shape, f"takes about {what} but {int(budget):,} {whose}"))


def require_first_level(settings: FitSettings, box: np.ndarray, images: Sequence[int], share: float) -> None:
    """RaymarchError where the bricks of a fit's first level are over its budget, by arithmetic alone: at least such a
    share of its box is full."""
    _, shape = grid_of_boxes(box, settings)
    least = int(share * math.prod(table_shape(shape_of_level(settings, shape, 0))))
    needed = memory_of_bricks(settings, shape, images, least)
    excess, budget, whose = excess_of(settings, needed)
    if excess > 0:
        what = f"{needed.total:,} bytes or more for {least:,} bricks of its first level"
        raise RaymarchError(_words(shape, f"takes about {what} but {int(budget):,} {whose}"))


def room_for_bricks(
    settings: FitSettings, shape: tuple[int, int, int], hull: np.ndarray | None, images: Sequence[int]
) -> tuple[int, Memory]:
    """Count of bricks that a fit has room for at first, and its memory then: all that the `hull`'s cells read at any
    level, for most of them are still there at the last (docs/performance.md), or as many as the budget allows.

    RaymarchError where those of the first level are over it, or their result over the host's memory.
    """
    cells = np.ones(cells_of(shape), bool) if hull is None else hull
    levels = range(len(settings.levels))
    counts = [int(bricks_read(cells, shape_of_level(settings, shape, i)).sum()) for i in levels]
    room = max(counts)
    if bytes_of_result(counts[0] * BRICK**3, settings.sh_degree) > host_room():
        raise RaymarchError(_words(shape, lack_on_host(counts[0] * BRICK**3, settings.sh_degree)))
    needed = memory_of_bricks(settings, shape, images, room)
    excess, budget, whose = excess_of(settings, needed)
    if excess > 0 or room > most_bricks(settings):
        each = (needed.total - memory_of_bricks(settings, shape, images, 0).total) / max(room, 1)
        room = min(room - math.ceil(max(excess, 0) / each), most_bricks(settings))
        if room < counts[0]:
            first = memory_of_bricks(settings, shape, images, counts[0])
            what = f"{first.total:,} bytes for the {counts[0]:,} bricks of its first level"
            raise RaymarchError(_words(shape, f"takes about {what} but {int(budget):,} {whose}"))
        needed = memory_of_bricks(settings, shape, images, room)
    return room, needed


def room_to_grow(settings: FitSettings, shape: tuple[int, int, int], images: Sequence[int], room: int) -> int:
    """Count of bricks that the budget has room for in the midst of a fit, which has `room` for some already, whose
    values are kept while the pool is taken anew."""
    now, one = (memory_of_bricks(settings, shape, images, n) for n in (room, room + 1))
    excess, _, _ = excess_of(settings, now, taken=now.total)
    kept = grid_bytes(pool_shape(room), settings.sh_degree, width=4 if runtime.single_precision() else 8)
    return min(room - math.ceil((excess + kept) / (one.total - now.total)), most_bricks(settings))


def most_bricks(settings: FitSettings) -> int:
    """Count of bricks whose numbers, in all gradient buffers, Taichi can index, and whose result the host has room for.

    Example:
        >>> most_bricks(FitSettings(sh_degree=2))
        77671
    """
    numbers = BRICK**3 * slots_of(settings) * 3 * (settings.sh_degree + 1) ** 2
    return int(min(memory.MAX_CELLS // numbers - 1, host_room() / bytes_of_result(BRICK**3, settings.sh_degree)))


def slots_of(settings: FitSettings) -> int:
    """Count of gradient buffers of a fit in bricks."""
    return settings.slots or (SLOTS if runtime.on_cpu() else 1)


def _words(shape: tuple[int, int, int], lack: str) -> str:
    size = " x ".join(str(n) for n in shape)
    return f"a fit of {size} samples in bricks {lack}; lower the resolution"

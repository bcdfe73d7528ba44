"""Memory budget of a fit, told before anything is allocated, and what would fit where it is too much.

First of a dense grid; then of bricks: whether a fit takes any, how many there is room for, and the bytes of all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raymarch import runtime
from raymarch.device import memory
from raymarch.device.brick_grid import read_bricks
from raymarch.device.grid_layout import block_for
from raymarch.device.memory import (
    LIBRARY_BYTES,
    Memory,
    cells_of,
    grid_bytes,
    index_bytes,
    numbers_a_ray,
    padded_shape,
    pool_shape,
)
from raymarch.errors import RaymarchError
from raymarch.fitting.depth_targets import BYTES_A_TARGET, MAX_TARGETS, RAYS_PER_DEPTH_RAY
from raymarch.fitting.plan.survey import ImagesOfChannels, pixels_at_once
from raymarch.fitting.settings.settings import FitSettings
from raymarch.geometry.boxes import affine_of_box, grid_of_box, require_nested
from raymarch.io.volumes.volume_file import bytes_of_file
from raymarch.views.resize import HALVING_BYTES_A_PIXEL
from raymarch.volumes.bricks import BRICK_SIDE, table_shape

SLOT_BUDGET = 3 << 30  # bytes of gradient buffers up to which more slots are taken
CHECK_FACTOR = 1.25  # a volume's arrays and what checking their numbers takes
ASSUMED_RESOLUTION = 208  # samples a side, as long as no pictures have told how many
MAX_MEMORY_FRACTION = 0.9  # of the free memory that a fit may take


def memory_of_fit(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> Memory:
    """Peak memory of a fit in `box` (2, 3) to images of this shape (view, height, width, channel), or as of
    `Survey.images`.

    Example:
        >>> memory_of_fit(FitSettings(), [(-1, -1, -1), (1, 1, 1)], (100, 400, 400, 4)).shape
        (208, 208, 208)
    """
    _, shape = grid_of_boxes(box, settings)
    colours = colours_of(images)
    one, width = grid_bytes(shape, settings.sh_degree, colours=colours), 4 if runtime.single_precision() else 8
    slots = slots_for(settings, one)
    block = settings.block or block_for(shape, settings.sh_degree, slots, moments=True)
    parts = {
        "libraries": LIBRARY_BYTES,
        **images_of_fit(settings, images),
        "grid": grid_bytes(
            padded_shape(shape, block), settings.sh_degree, slots=slots, moments=True, width=width, colours=colours
        ),
        "rays": bytes_of_rays(settings, colours),
        **bytes_of_depths(settings),
        "result": int(one * CHECK_FACTOR) * width // 4,
    }
    return Memory(shape, settings.sh_degree, slots, parts, colours)


def colours_of(images: Sequence[int]) -> int:
    """Count of a colour's numbers: 3 but of channels.

    Example:
        >>> colours_of((100, 10, 3)), colours_of(ImagesOfChannels.of(100, 10, 6, 5))
        (3, 5)
    """
    return getattr(images, "colours", 3)


def keeps_colours(settings: FitSettings, colours: int = 3) -> bool:
    """Whether a fit's march keeps its samples' colours for the adjoint: where they are more than one read each."""
    return (settings.sh_degree > 0 or colours != 3) and settings.nested == 1


def bytes_of_rays(settings: FitSettings, colours: int = 3) -> int:
    """Bytes of the rays of a step.

    Example:
        >>> flat, bent = (bytes_of_rays(FitSettings(rays=8192, sh_degree=degree)) for degree in (0, 1))
        >>> bent > flat
        True
    """
    rays = settings.rays * settings.supersample**2
    numbers = numbers_a_ray(keeps_colours(settings, colours), colours)
    return rays * numbers * (4 if runtime.single_precision() else 8)


def bytes_of_depths(settings: FitSettings) -> dict[str, int]:
    """Bytes of the known distances of a fit, and of their rays, as a part of its memory; none where it has no depth.

    Example:
        >>> bytes_of_depths(FitSettings())
        {}
    """
    if not settings.depth_weight:
        return {}
    rays = max(settings.rays // RAYS_PER_DEPTH_RAY, 1) * numbers_a_ray(False) * (4 if runtime.single_precision() else 8)
    return {"depths": MAX_TARGETS * BYTES_A_TARGET + rays}


def bytes_of_result(samples: int, degree: int, colours: int = 3) -> int:
    """Bytes of the host that the result of a fit takes at its peak: its arrays, checked, and its file, which is made in
    memory.

    Example:
        >>> bytes_of_result(1000, 0) > bytes_of_file(1000, 0)
        True
    """
    width = 4 if runtime.single_precision() else 8
    arrays = grid_bytes((samples,), degree, width=width, colours=colours)
    return int(arrays * CHECK_FACTOR) + bytes_of_file(samples, degree, colours) * width // 4


def images_of_fit(settings: FitSettings, images: Sequence[int]) -> dict[str, int]:
    """Bytes of an image set, as of `memory_of_fit`: read, on the device, and made smaller to be put there.

    Example:
        >>> images_of_fit(FitSettings(), (100, 10, 3))
        {'images': 700, 'smaller images': 195}
    """
    pixels, at_once, channels = images if len(images) == 3 else _of_one_size(*images)
    of_channels, width = isinstance(images, ImagesOfChannels), 1
    halving = HALVING_BYTES_A_PIXEL[4 if of_channels else channels]
    if of_channels:  # floats, and alpha beside them on the device
        halving, width = halving + 8 * channels, 4
    # which takes memory of the machine
    made = at_once * halving if runtime.runs_on_cpu() else 0
    smaller = width * pixels * channels // 4 + made if settings.pyramid and len(settings.levels) > 1 else 0
    stored = 4 * (1 + colours_of(images)) if of_channels else 4
    return {"images": pixels * (width * channels + stored), "smaller images": smaller}


def _of_one_size(count: int, height: int, width: int, channels: int) -> tuple[int, int, int]:
    return count * height * width, pixels_at_once(count, height * width), channels


def slots_for(settings: FitSettings, one: int) -> int:
    """Count of gradient buffers of a fit whose samples take `one` bytes in single precision."""
    return settings.slots or (1 if not runtime.runs_on_cpu() else int(np.clip(SLOT_BUDGET // one, 2, 4)))


def shape_of_level(settings: FitSettings, shape: tuple[int, int, int], level: int) -> tuple[int, int, int]:
    """Samples (x, y, z) at a level of a fit of `shape` at the finest.

    Example:
        >>> shape_of_level(FitSettings(levels=((0, 0.5), (0.4, 1))), (65, 33, 3), 0)
        (33, 17, 4)
    """
    scale = settings.levels[level][1]
    whole = shape[0] // settings.nested, *shape[1:]
    x, y, z = (max(round((n - 1) * scale) + 1, 4) if scale < 1 else n for n in whole)
    return settings.nested * x, y, z


def grid_of_boxes(box: np.ndarray, settings: FitSettings) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Grid of a fit: the innermost box grown to whole voxels, and the samples of all boxes, one behind another in x."""
    whole, (x, y, z) = grid_of_box(box, settings.resolution or ASSUMED_RESOLUTION, 2 if settings.ndc else None)
    require_nested(affine_of_box(whole, (x, y, z)), (x, y, z), settings.nested)
    return whole, (settings.nested * x, y, z)


def require_budget(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> Memory:
    """`memory_of_fit`, or RaymarchError where it is over `settings.memory` or over what is free, on the device and, for
    the result, on the host: it names the resolution up to which all fit."""
    needed = memory_of_fit(settings, box, images)
    excess, budget, whose = excess_of(settings, needed)  # asked once: what is free may be more a moment later
    if excess <= 0 and _has_host_room(needed):
        return needed
    largest = 3  # too coarse for any grid
    # One by one: a finer grid may take less than one with more slots, and what is named must hold for all below it.
    while _fits(settings, memory_of_fit(replace(settings, resolution=largest + 1), box, images)):
        largest += 1
    if largest == 3 and excess > 0:
        least = memory_of_fit(replace(settings, resolution=4), box, images)
        raise RaymarchError(
            f"the smallest fit of these images takes about {least.total:,} bytes, {least.parts['images']:,} of them for"
            f" the images, but {int(budget):,} {whose}; {_cure(settings, least, budget)}"
        )
    cure = f"take a resolution of {largest} or less" if largest > 3 else "free some memory"
    size = " x ".join(str(n) for n in needed.shape)
    lack = f"takes about {needed.total:,} bytes but {int(budget):,} {whose}"
    if excess <= 0:
        lack = host_shortage(math.prod(needed.shape), needed.sh_degree, needed.colours)
    raise RaymarchError(f"a fit of {size} samples at SH degree {needed.sh_degree} {lack}; {cure}")


def _cure(settings: FitSettings, least: Memory, budget: float) -> str:
    """What helps where not even the coarsest grid fits."""
    more = "free some memory"
    if settings.memory is not None and budget == settings.memory * 1e9:
        more = f"raise memory to {math.ceil(least.total / 1e7) / 100:g} GB or more"
    without = least.total - least.parts["images"] - least.parts["smaller images"]
    return more + (", or take fewer or smaller images" if without < budget else "")


def _fits(settings: FitSettings, needed: Memory) -> bool:
    """Whether it is within the budget, and of no more numbers than Taichi can index."""
    numbers = math.prod(padded_shape(needed.shape)) * needed.colours * (needed.sh_degree + 1) ** 2 * needed.slots
    return is_within(settings, needed) and numbers <= memory.MAX_CELLS


def is_within(settings: FitSettings, needed: Memory) -> bool:
    """Whether a fit in a dense grid is within the budget, and its result within the host's memory."""
    return _has_host_room(needed) and excess_of(settings, needed)[0] <= 0


def _has_host_room(needed: Memory) -> bool:
    return bytes_of_result(math.prod(needed.shape), needed.sh_degree, needed.colours) <= host_room()


def excess_of(settings: FitSettings, needed: Memory, taken: int | None = None) -> tuple[float, float, str]:
    """Bytes over the budget, the budget, and where it comes from; `taken` are there already, libraries and images if
    not given."""
    beside = needed.parts["libraries"] + needed.parts["images"]
    taken = beside if taken is None else taken
    free = MAX_MEMORY_FRACTION * memory.available_bytes() + taken
    if settings.memory is not None and settings.memory * 1e9 < free:
        return needed.total - settings.memory * 1e9, settings.memory * 1e9, "is the budget"
    if (widest := runtime.max_tree_bytes()) is not None and widest + beside < free:
        return (
            needed.total - widest - beside,
            widest + beside,
            "are the most on Vulkan, which takes a grid in one piece",
        )
    return needed.total - free, free, "are free"


def host_room() -> float:
    """Bytes of the host's memory that a result may take; without end on a CPU, whose budget has its arrays already."""
    return math.inf if runtime.runs_on_cpu() else MAX_MEMORY_FRACTION * memory.host_bytes()


def host_shortage(samples: int, degree: int, colours: int = 3) -> str:
    """The host's memory for a result of so many samples, in words."""
    taken = bytes_of_result(samples, degree, colours)
    return f"gives a result of about {taken:,} bytes but {int(host_room()):,} of the host's memory are free"


BRICK_SLOTS = 2  # gradient buffers: each takes as much as the samples
MAX_DENSE_BYTES = 5e9  # bytes of a dense grid up to which it is as quick and needs no table
HULL_BYTES_A_CELL = 12  # bytes of a cell: the hull's counts, marks that are looked at


def takes_bricks(settings: FitSettings, box: np.ndarray, images: Sequence[int]) -> bool:
    """Whether a fit in `box` (2, 3) keeps its samples in bricks: as the settings say, or where a dense grid is large.

    Example:
        >>> takes_bricks(FitSettings(resolution=64), [(-1, -1, -1), (1, 1, 1)], (100, 400, 400, 4))
        False
    """
    if settings.bricks is None and settings.transfer is None:
        return memory_of_fit(settings, box, images).parts["grid"] > MAX_DENSE_BYTES
    return bool(settings.bricks)


def memory_of_bricks(settings: FitSettings, shape: tuple[int, int, int], images: Sequence[int], room: int) -> Memory:
    """Peak memory of a fit with room for so many bricks, to images as of `memory_of_fit`.

    Example:
        >>> one, two = (memory_of_bricks(FitSettings(), (512, 512, 512), (9, 8, 8, 4), n) for n in (10_000, 20_000))
        >>> two.parts["grid"] < 2 * one.parts["grid"]
        True
    """
    width, degree, colours = 4 if runtime.single_precision() else 8, settings.sh_degree, colours_of(images)
    one = grid_bytes(pool_shape(room), degree, colours=colours)
    slots = slots_of(settings)
    how: dict[str, Any] = {"slots": slots, "moments": True, "width": width, "merged": True, "colours": colours}
    pool = grid_bytes(pool_shape(room), degree, **how)
    parts = {
        "libraries": LIBRARY_BYTES,
        **images_of_fit(settings, images),
        "grid": pool,
        "cells": sum(index_bytes(shape, room)) + HULL_BYTES_A_CELL * math.prod(cells_of(shape)),
        "rays": bytes_of_rays(settings, colours),
        **bytes_of_depths(settings),
        # once the rest is given back
        "result": max(int(one * CHECK_FACTOR) * width // 4 - (pool - one * width // 4), 0),
    }
    return Memory(shape, degree, slots, parts, colours)


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
    counts = [int(read_bricks(cells, shape_of_level(settings, shape, i)).sum()) for i in levels]
    room = max(counts)
    first = counts[0] * BRICK_SIDE**3, settings.sh_degree, colours_of(images)
    if bytes_of_result(*first) > host_room():
        raise RaymarchError(_words(shape, host_shortage(*first)))
    needed = memory_of_bricks(settings, shape, images, room)
    excess, budget, whose = excess_of(settings, needed)
    if excess > 0 or room > max_bricks(settings, colours_of(images)):
        each = (needed.total - memory_of_bricks(settings, shape, images, 0).total) / max(room, 1)
        room = min(room - math.ceil(max(excess, 0) / each), max_bricks(settings, colours_of(images)))
        if room < counts[0]:
            least = memory_of_bricks(settings, shape, images, counts[0])
            what = f"{least.total:,} bytes for the {counts[0]:,} bricks of its first level"
            raise RaymarchError(_words(shape, f"takes about {what} but {int(budget):,} {whose}"))
        needed = memory_of_bricks(settings, shape, images, room)
    return room, needed


def room_to_grow(settings: FitSettings, shape: tuple[int, int, int], images: Sequence[int], room: int) -> int:
    """Count of bricks that the budget has room for in the midst of a fit, which has `room` for some already, whose
    values are kept while the pool is taken anew."""
    now, one = (memory_of_bricks(settings, shape, images, n) for n in (room, room + 1))
    excess, _, _ = excess_of(settings, now, taken=now.total)
    width = 4 if runtime.single_precision() else 8
    kept = grid_bytes(pool_shape(room), settings.sh_degree, width=width, colours=colours_of(images))
    return min(room - math.ceil((excess + kept) / (one.total - now.total)), max_bricks(settings, colours_of(images)))


def max_bricks(settings: FitSettings, colours: int = 3) -> int:
    """Count of bricks whose numbers, in all gradient buffers, Taichi can index, and whose result the host has room for.

    Example:
        >>> max_bricks(FitSettings(sh_degree=2))
        77671
    """
    numbers = BRICK_SIDE**3 * slots_of(settings) * colours * (settings.sh_degree + 1) ** 2
    result = bytes_of_result(BRICK_SIDE**3, settings.sh_degree, colours)
    return int(min(memory.MAX_CELLS // numbers - 1, host_room() / result))


def slots_of(settings: FitSettings) -> int:
    """Count of gradient buffers of a fit in bricks."""
    return settings.slots or (BRICK_SLOTS if runtime.runs_on_cpu() else 1)


def _words(shape: tuple[int, int, int], lack: str) -> str:
    size = " x ".join(str(n) for n in shape)
    return f"a fit of {size} samples in bricks {lack}; lower the resolution"

"""Trees of OpenVDB's files as they are read: where nodes and tiles lie first, the values of the leaves after them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.strict import require_file_budget
from raymarch.io.volumes.openvdb.layout import (
    LEAF_SIDE,
    LEAF_VOXELS,
    LEAVES_A_SIDE,
    LOWER_SIDE,
    NODES_A_SIDE,
    UPPER_SIDE,
    VALUE_TYPES,
    split_type,
)
from raymarch.io.volumes.openvdb.stream import Stream, Values, bits
from raymarch.io.volumes.source import RESTORE_CURE

LEAF_MASK = LEAF_VOXELS // 8  # bytes
LEAF_BYTES = 32  # bytes that are kept of each leaf
NO_BOX = np.array([[np.iinfo(np.int64).max] * 3, [np.iinfo(np.int64).min] * 3])


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tiles, cubes of one value: first voxels (n, 3), side, values (n, width), and whether they are active (n,)."""

    origins: np.ndarray
    side: int
    values: np.ndarray
    active: np.ndarray


@dataclass(eq=False)
class Tree:
    """Tree of a grid, without the values of its leaves.

    Attributes:
        dtype, width: of the numbers, and how many a voxel has.
        background: value (width,) where nothing is stored.
        origins: (leaf, 3) first voxels of the leaves, in the order of their values.
        tiles: that are active or have another value than the background, larger ones first.
        box: (2, 3) first and last index of what is active; `NO_BOX` where nothing is.
        at: byte at which the leaves' values begin. flags, half: how they are packed.
    """

    dtype: np.dtype
    width: int
    background: np.ndarray
    flags: int
    half: bool
    origins: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int64))
    tiles: list[Tiles] = field(default_factory=list)
    box: np.ndarray = field(default_factory=NO_BOX.copy)
    at: int = 0

    def leaves(self, file: BinaryIO, end: int, box: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """First voxel (3,) and values (8, 8, 8, width) of the leaves that reach into a box (2, 3), in their order."""
        stream = Stream(file, self.at, end)
        values = Values(stream, self.flags, self.dtype, self.width, self.half)
        values.background = self.background
        wanted = ((self.origins <= box[1]) & (self.origins + LEAF_SIDE > box[0])).all(1)
        shape = (LEAF_SIDE, LEAF_SIDE, LEAF_SIDE, self.width)
        for origin, is_wanted in zip(self.origins, wanted.tolist(), strict=True):
            mask = stream.take(LEAF_MASK)
            if not is_wanted:
                values.skip(mask)
                continue
            found = values.node(bits(mask))
            yield origin, np.broadcast_to(self.background, shape) if found is None else found.reshape(shape)
        if stream.at != end:
            raise RaymarchError(
                f"values of a grid end at byte {stream.at:,}, but its entry says {end:,}; {RESTORE_CURE}"
            )

    def fill(self, file: BinaryIO, end: int, low: np.ndarray, slices: Sequence[slice], part: slice) -> np.ndarray:
        """Dense values (x, y, z, n) of the voxels at `slices` from voxel `low` on, of each value the numbers `part`."""
        starts = np.array([one.start or 0 for one in slices])
        steps = np.array([one.step or 1 for one in slices])
        counts = [len(range(one.start or 0, one.stop, one.step or 1)) for one in slices]
        first = low + starts
        last = first + (np.array(counts) - 1) * steps
        width = len(range(self.width)[part])
        out = np.empty((*counts, width), self.dtype)
        out[...] = self.background[part]
        for tiles in self.tiles:
            near = ((tiles.origins <= last) & (tiles.origins + tiles.side > first)).all(1)
            for origin, value in zip(tiles.origins[near], tiles.values[near], strict=True):
                there, _ = _overlap(origin, tiles.side, first, steps, counts)
                if there is not None:
                    out[there] = value[part]
        for origin, values in self.leaves(file, end, np.stack([first, last])):
            there, here = _overlap(origin, LEAF_SIDE, first, steps, counts)
            if there is not None:
                out[there] = values[here][..., part]
        return out


def _overlap(
    origin: np.ndarray, side: int, first: np.ndarray, steps: np.ndarray, counts: Sequence[int]
) -> tuple[tuple[slice, ...] | None, tuple[slice, ...]]:
    """Slices of an array of every so many voxels that lie in a cube, and of the cube's voxels; None where none do."""
    there, here = [], []
    for at, begin, step, count in zip(origin.tolist(), first.tolist(), steps.tolist(), counts, strict=True):
        a, b = max(-((begin - at) // step), 0), min(-((begin - at - side) // step), count)
        if a >= b:
            return None, ()
        there.append(slice(a, b))
        here.append(slice(begin + a * step - at, begin + b * step - at, step))
    return tuple(there), tuple(here)


def read_tree(stream: Stream, kind: str, flags: int) -> Tree:
    """Tree that begins at the next byte of a stream, of a type as stored."""
    name, half = split_type(kind)
    dtype, width = np.dtype(VALUE_TYPES[name][0]), VALUE_TYPES[name][1]
    if (buffers := stream.number("i")) != 1:
        raise RaymarchError(f"has {buffers} values for each voxel, want 1; {RESTORE_CURE}")
    values = Values(stream, flags, dtype, width, half)
    values.background = values.one()
    tree = Tree(dtype, width, values.background, flags, half)
    builder = _Builder(stream, values, tree)
    tile_count, children = stream.number("I"), stream.number("I")
    for _ in range(tile_count):
        origin, value, active = stream.numbers("<i4", 3), values.one(), stream.take(1) != b"\0"
        builder.add(origin[None], UPPER_SIDE, value[None], np.array([active]))
    for _ in range(children):
        builder.read_upper(stream.numbers("<i4", 3).astype(np.int64) & -UPPER_SIDE)
    tree.origins = np.concatenate(builder.origins) if builder.origins else tree.origins
    tree.tiles.sort(key=lambda tiles: -tiles.side)
    tree.at = stream.at
    return tree


class _Builder:
    """What is known of a tree while its nodes are read, one after the other; what is kept counts against the budget."""

    def __init__(self, stream: Stream, values: Values, tree: Tree) -> None:
        self.stream, self.values, self.tree = stream, values, tree
        self.origins: list[np.ndarray] = []
        self.held = 0

    def read_upper(self, origin: np.ndarray) -> None:
        """Node of 32^3 nodes or tiles."""
        for place in self._inner(origin, NODES_A_SIDE, LOWER_SIDE):
            leaves = self._inner(place, LEAVES_A_SIDE, LEAF_SIDE)
            self._keep(len(leaves) * LEAF_BYTES)
            self.origins.append(leaves)
            masks = self.stream.numbers("u1", len(leaves) * LEAF_MASK).reshape(-1, LEAF_SIDE, LEAF_SIDE)
            rows: np.ndarray = np.bitwise_or.reduce(masks, axis=1)  # each byte has eight voxels along z
            columns: np.ndarray = np.bitwise_or.reduce(rows, axis=1)
            along_z = bits(columns.tobytes()).reshape(-1, LEAF_SIDE)
            ends: list[np.ndarray] = [np.bitwise_or.reduce(masks, axis=2) != 0, rows != 0, along_z]
            full = columns != 0
            if full.any():
                low = np.stack([one.argmax(1) for one in ends], 1)
                high = LEAF_SIDE - 1 - np.stack([one[:, ::-1].argmax(1) for one in ends], 1)
                self._widen((leaves + low)[full].min(0), (leaves + high)[full].max(0))

    def _inner(self, origin: np.ndarray, side: int, below: int) -> np.ndarray:
        """First voxels (n, 3) of a node's children, `side` a side and of `below` voxels each; its tiles are kept."""
        children, active = (bits(self.stream.take(side**3 // 8)) for _ in range(2))
        found = self.values.node(active)
        if found is not None:
            apart = active | (found != self.tree.background).any(1)
            numbers = np.flatnonzero(apart & ~children)
            if len(numbers):
                self.add(origin + _places(numbers, side) * below, below, found[numbers], active[numbers])
        return origin + _places(np.flatnonzero(children), side) * below

    def add(self, origins: np.ndarray, side: int, values: np.ndarray, active: np.ndarray) -> None:
        """Keep tiles."""
        origins = origins.astype(np.int64)
        self._keep(origins.nbytes + values.nbytes + active.nbytes)
        self.tree.tiles.append(Tiles(origins, side, values, active))
        if active.any():
            self._widen(origins[active].min(0), origins[active].max(0) + side - 1)

    def _keep(self, size: int) -> None:
        self.held += size
        require_file_budget(self.held, "its nodes and tiles")

    def _widen(self, low: np.ndarray, high: np.ndarray) -> None:
        box = self.tree.box
        self.tree.box = np.stack([np.minimum(box[0], low), np.maximum(box[1], high)])


def _places(numbers: np.ndarray, side: int) -> np.ndarray:
    """Places (n, 3) of a node's children by their numbers."""
    return np.stack(np.unravel_index(numbers, (side, side, side)), 1).astype(np.int64)

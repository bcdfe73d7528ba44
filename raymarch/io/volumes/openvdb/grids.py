"""Grids of an OpenVDB file: their list, what each says of itself, and which of them is meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.io.volumes.openvdb.layout import (
    COPY_MARK,
    MAGIC,
    OLDEST_VERSION,
    UUID_BYTES,
    VALUE_TYPES,
    VERSION,
    split_type,
)
from raymarch.io.volumes.openvdb.stream import Stream
from raymarch.io.volumes.openvdb.tree import Tree, read_tree
from raymarch.io.volumes.source import RESTORE_CURE

SAVE_CURE = "save it again: vdb_tool -read IN.vdb -write OUT.vdb"
FOG_CURE = "make fog of it: vdb_tool -read IN.vdb -ls2fog -write OUT.vdb, or Convert VDB in Houdini"
DENSITY = "density"  # the grid that is taken where there are several
COLOURS = ("Cd", "color", "Color", "colour", "rgb", "albedo")  # names of colours beside it, those of Houdini first
SAME_PLACE = 1e-6  # of a voxel: what places of a grid of colours may be off those of its density


@dataclass(frozen=True, eq=False)
class Grid:
    """Grid of a file, before its tree is read.

    Attributes:
        name: unique in its file. type: as stored.
        source: grid whose tree it has: itself, or one that it is a copy of.
        begin, end: its bytes. tree_at: at which its tree begins, of a source.
        flags: how its values are packed. metadata: what it says. affine: (4, 4), from an index to the world.
        fault: why it is not read, "" if it is.
    """

    name: str
    type: str
    begin: int
    end: int
    tree_at: int
    flags: int
    metadata: Mapping[str, Any]
    affine: np.ndarray
    fault: str = ""
    source: Grid | None = None

    @property
    def kind(self) -> str:
        """Its class: "fog volume", "level set", "staggered" or "unknown"."""
        return str(self.metadata.get("class", "unknown"))

    @property
    def width(self) -> int:
        """Numbers a voxel, 0 of a grid that is not read."""
        return 0 if self.fault else VALUE_TYPES[split_type(self.type)[0]][1]

    def tree(self, file: BinaryIO) -> Tree:
        """Its tree, without the values of leaves; RaymarchError for another kind of grid and for damage."""
        holder = self.source or self
        try:
            return read_tree(Stream(file, holder.tree_at, holder.end), holder.type, holder.flags)
        except RaymarchError as error:
            raise RaymarchError(f"grid {self.name[:40]!r}: {error}") from error

    def values(self, file: BinaryIO, tree: Tree, low: np.ndarray, slices: Sequence[slice], part: slice) -> np.ndarray:
        """Dense values (x, y, z, n), as `Tree.fill` gives them."""
        return tree.fill(file, (self.source or self).end, low, slices, part)


def read_grids(file: BinaryIO, size: int) -> list[Grid]:
    """Grids of a file of so many bytes; RaymarchError for other versions, and for streams, which do not say where
    grids are."""
    stream = Stream(file, 0, size)
    if stream.take(8) != MAGIC:
        raise RaymarchError(f"does not begin as OpenVDB; {RESTORE_CURE}")
    version = stream.number("I")
    if not OLDEST_VERSION <= version <= VERSION:
        cure = SAVE_CURE if version < OLDEST_VERSION else "save it by OpenVDB 10"
        raise RaymarchError(f"is of version {version}, want {OLDEST_VERSION} to {VERSION}; {cure}")
    stream.skip(8)  # the version of the library
    if not stream.take(1)[0]:
        raise RaymarchError(f"is a stream that does not say where its grids are; {SAVE_CURE}")
    stream.skip(UUID_BYTES)
    stream.metadata()
    found: list[Grid] = []
    names, parents = [], []
    count = stream.number("i")
    if count < 1:
        raise RaymarchError(f"has {count} grids, want one or more; {RESTORE_CURE}")
    for _ in range(count):
        name, kind, parent = stream.text(), stream.text(), stream.text()
        begin, _, end = (stream.number("q") for _ in range(3))  # between them where values begin, but for copies
        if not stream.at <= begin <= end <= size:
            raise RaymarchError(
                f"says that grid {name[:40]!r} is at bytes {begin:,} to {end:,} of {size:,}; {RESTORE_CURE}"
            )
        found.append(_read_header(Stream(file, begin, end), name, kind))
        names.append(name)
        parents.append(parent)
        stream.move(end)
    owners = {name: one for name, one, parent in zip(names, found, parents, strict=True) if not parent}
    for i, parent in enumerate(parents):
        if parent and parent not in owners:
            said = f"says that grid {found[i].name[:40]!r} has the tree of {parent[:40]!r}, which there is not"
            raise RaymarchError(f"{said}; {RESTORE_CURE}")
        if parent:
            found[i] = replace(found[i], type=owners[parent].type, source=owners[parent])
    return found


def _read_header(stream: Stream, name: str, kind: str) -> Grid:
    begin, flags, metadata = stream.at, stream.number("I"), stream.metadata()
    affine, fault = np.eye(4), ""
    try:
        affine = stream.affine()
        split_type(kind)
    except RaymarchError as error:
        fault = str(error)
    return Grid(_told_name(name), kind, begin, stream.end, stream.at, flags, metadata, affine, fault)


def _told_name(name: str) -> str:
    """Name of a grid for messages: with its number where several have it."""
    plain, mark, number = name.partition(COPY_MARK)
    return f"{plain}[{number}]" if mark else plain


@dataclass(frozen=True, eq=False)
class Choice:
    """Grid that is meant, which number of each value, its colours if they are read along, and what is to be said."""

    grid: Grid
    component: int
    colours: Grid | None
    remarks: tuple[str, ...]


def choose_grid(grids: Sequence[Grid], channel: int | None) -> Choice:
    """Grid that a channel means: scalars and components of vectors, counted in the file's order.

    Without one the grid "density", with the colours beside it, else the first of numbers. RaymarchError, with the
    cure, for a channel that there is not and a file of other grids.
    """
    channels = [(grid, component) for grid in grids for component in range(grid.width)]
    if channel is not None:
        if channel >= len(channels):
            names = ", ".join(f"{i} {_channel_name(*one)}" for i, one in enumerate(channels[:8])) or "none"
            raise RaymarchError(f"channel is {channel}, but it has {len(channels)} ({names}); choose one of those")
        grid, component = channels[channel]
        _require_fog(grid)
        return Choice(grid, component, None, ())
    scalars = [grid for grid in grids if grid.width == 1]
    if not scalars:
        if channels:
            names = ", ".join(f"{i} {_channel_name(*one)}" for i, one in enumerate(channels[:8]))
            raise RaymarchError(
                f"has {len(channels)} channels ({names}), none of a scalar; choose one by channel=0 (--channel 0 in the"
                " shell)"
            )
        raise RaymarchError(f"grid {grids[0].name[:40]!r} {grids[0].fault}")
    order = sorted(scalars, key=lambda grid: (grid.kind == "level set", grid.name != DENSITY))
    chosen = order[0]
    _require_fog(chosen)
    vectors = {grid.name: grid for grid in grids if grid.width == 3}
    colours = next((vectors[name] for name in COLOURS if name in vectors), None)
    remarks = []
    if colours is not None and not _same_place(chosen.affine, colours.affine):
        remarks.append(f"has colours ({colours.name[:40]}) on another grid than {chosen.name[:40]}, which stay unread")
        colours = None
    taken = (chosen, colours)
    left = [(i, one) for i, one in enumerate(channels) if one[0] not in taken and one[0].kind != "level set"]
    if any(grid not in taken for grid in grids):
        names = first_names([grid.name for grid in grids], 6)
        more = f"; for {_channel_name(*left[0][1])} choose one by channel={left[0][0]}" if left else ""
        remarks.append(f"has grids {names}, of which {chosen.name[:40]} is taken{more}")
    return Choice(chosen, 0, colours, tuple(remarks))


def _channel_name(grid: Grid, component: int) -> str:
    return grid.name[:40] if grid.width == 1 else f"{grid.name[:40]}[{component}]"


def _require_fog(grid: Grid) -> None:
    if grid.kind == "level set":
        raise RaymarchError(
            f"grid {grid.name[:40]!r} is a level set, of distances from a surface, want a fog volume; {FOG_CURE}"
        )


def _same_place(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max() <= SAME_PLACE * np.linalg.norm(a[:3, :3], axis=0).min())


def is_openvdb(path: Path) -> bool:
    """Whether a file begins as OpenVDB's."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC

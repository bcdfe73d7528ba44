"""Writing of OpenVDB's files: grids of single or half precision, packed by zip or not, of leaves that hold something.

Only active values are stored: all others are the background. The same grids give the same bytes.
"""

from __future__ import annotations

import hashlib
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.volumes.openvdb.layout import (
    ACTIVE_ONLY,
    BACKGROUND,
    HALF_SUFFIX,
    LEAF_SIDE,
    LEAF_VOXELS,
    LEAVES_A_SIDE,
    LIBRARY,
    LOWER_SIDE,
    MAGIC,
    NODES_A_SIDE,
    TREE_SUFFIX,
    UPPER_SIDE,
    UUID_BYTES,
    VERSION,
    ZIP,
    map_of_affine,
    metadata,
    text,
)

COMPRESSIONS = ("zip", "none")
ZIP_LEVEL = 6  # as OpenVDB has it; 4 is a tenth larger for scans, and hardly quicker
MAX_HALF = 65504.0  # beyond which half precision is infinite
UUID_AT = len(MAGIC) + 13  # byte of the text that tells two files apart
NO_VOXELS = np.array([[2**31 - 1] * 3, [-(2**31)] * 3], "<i4")  # first and last of none
Leaves = tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True, eq=False)
class NewGrid:
    """Grid that is to be written.

    Attributes:
        name: of it. background: value (width,) of voxels that are not active; width is 1 or 3.
        shape: voxels (x, y, z), the first of which is (0, 0, 0).
        leaves: `leaves(node)` of the node (a, b, c) of 128^3 voxels: numbers (n,) of its leaves, rising; which voxels
            are active (n, 512); a function that gives values (m, 512, width) float32 of m of them, by a mask (n,).
        metadata: beside that of any grid.
    """

    name: str
    background: np.ndarray
    shape: tuple[int, int, int]
    leaves: Callable[[tuple[int, int, int]], Leaves]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def type(self) -> str:
        """Type of its values."""
        return "float" if len(self.background) == 1 else "vec3s"


@dataclass(eq=False)
class _Node:
    """Node of 128^3 voxels: its place, the numbers (n,) of its leaves that have an active voxel, and masks (n, 64)."""

    place: tuple[int, int, int]
    leaves: np.ndarray
    masks: np.ndarray


def write_grids(
    path: Path, grids: Sequence[NewGrid], world_from_index: np.ndarray, *, half: bool, compression: str
) -> None:
    """File of grids in one place.

    Raises RaymarchError for values that half precision does not hold.
    """
    with path.open("wb+") as file:
        out = _Sink(file)
        out.write(MAGIC + struct.pack("<3I?", VERSION, *LIBRARY, True) + bytes(UUID_BYTES))
        out.write(metadata({"creator": "raymarch"}) + struct.pack("<i", len(grids)))
        for grid in grids:
            _write_grid(out, grid, world_from_index, half, compression == "zip")
        file.seek(UUID_AT)
        file.write(str(uuid.UUID(bytes=out.digest.digest()[:16], version=4)).encode())


class _Sink:
    """File that is written forwards, and the digest of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.digest = file, hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.file.write(data)
        self.digest.update(data)

    def patch(self, at: int, data: bytes) -> None:
        end = self.file.tell()
        self.file.seek(at)
        self.file.write(data)
        self.file.seek(end)


def _write_grid(out: _Sink, grid: NewGrid, world_from_index: np.ndarray, half: bool, is_packed: bool) -> None:
    nodes = [found for place in _nodes_of(grid.shape) if (found := _survey(grid, place)) is not None]
    out.write(text(grid.name) + text(f"Tree_{grid.type}{TREE_SUFFIX}{HALF_SUFFIX * half}") + text(""))
    offsets_at = out.file.tell()
    out.write(bytes(24))
    begin = out.file.tell()
    out.write(struct.pack("<I", ACTIVE_ONLY | ZIP * is_packed))
    out.write(metadata(_metadata_of(grid, nodes, half, is_packed)) + map_of_affine(world_from_index))
    _write_topology(out, grid, nodes, half, is_packed)
    block = out.file.tell()
    for node in nodes:
        _write_values(out, grid, node, half, is_packed)
    out.patch(offsets_at, struct.pack("<3q", begin, block, out.file.tell()))


def _nodes_of(shape: Sequence[int]) -> list[tuple[int, int, int]]:
    """Places of the nodes of 128^3 voxels, in the order in which their trees have them."""
    x, y, z = (range(-(-n // LOWER_SIDE)) for n in shape)
    return sorted(product(x, y, z), key=lambda place: tuple(n // NODES_A_SIDE for n in place))


def _survey(grid: NewGrid, place: tuple[int, int, int]) -> _Node | None:
    """Node of the leaves that hold something; None where none does."""
    numbers, active, _ = grid.leaves(place)
    kept = active.any(1)
    if not kept.any():
        return None
    return _Node(place, numbers[kept], np.packbits(active[kept], axis=1, bitorder="little"))


def _metadata_of(grid: NewGrid, nodes: Sequence[_Node], half: bool, is_packed: bool) -> dict[str, Any]:
    """Metadata that OpenVDB writes of any grid: its active voxels, their box, and the bytes of its tree in memory."""
    count, box = 0, NO_VOXELS.astype(np.int64)
    for node in nodes:
        active = np.unpackbits(node.masks, axis=1, bitorder="little").reshape(-1, *(LEAF_SIDE,) * 3)
        count += int(active.sum())
        first = np.stack(np.unravel_index(node.leaves, (LEAVES_A_SIDE,) * 3), 1) * LEAF_SIDE
        first += np.multiply(node.place, LOWER_SIDE)
        for axis in range(3):
            some: Any = active.any(tuple(k for k in (1, 2, 3) if k != axis + 1))
            low, high = some.argmax(1), LEAF_SIDE - 1 - some[:, ::-1].argmax(1)
            box[0, axis] = min(box[0, axis], (first[:, axis] + low).min())
            box[1, axis] = max(box[1, axis], (first[:, axis] + high).max())
    return {
        **grid.metadata,
        **({"is_saved_as_half_float": True} if half else {}),
        "name": grid.name,
        "creator": "raymarch",
        "file_compression": "zip + active values" if is_packed else "active values",
        "file_bbox_min": box[0].astype("<i4"),
        "file_bbox_max": box[1].astype("<i4"),
        "file_voxel_count": np.int64(count),
        "file_mem_bytes": np.int64(_bytes_in_memory(grid, nodes)),
    }


def _bytes_in_memory(grid: NewGrid, nodes: Sequence[_Node]) -> int:
    """Bytes of a tree in OpenVDB's memory: values, masks and places of nodes, of those within pointers or values."""
    width = len(grid.background)
    inner, leaf = (8 if width == 1 else 16), 4 * width * LEAF_VOXELS + 96
    sizes = [n**3 * inner + n**3 // 4 + 12 for n in (NODES_A_SIDE, LEAVES_A_SIDE)]
    uppers = len({tuple(n // NODES_A_SIDE for n in node.place) for node in nodes})
    root = 1304 if width == 1 else 1320
    return root + uppers * sizes[0] + len(nodes) * sizes[1] + sum(len(node.leaves) for node in nodes) * leaf


def _write_topology(out: _Sink, grid: NewGrid, nodes: Sequence[_Node], half: bool, is_packed: bool) -> None:
    """Root, nodes and masks of the leaves: where everything lies. There are no tiles."""
    background = _rounded(grid.background, half).astype("<f4").tobytes()
    uppers = [
        (place, list(some)) for place, some in groupby(nodes, lambda node: tuple(n // NODES_A_SIDE for n in node.place))
    ]
    out.write(struct.pack("<i", 1) + background + struct.pack("<2I", 0, len(uppers)))
    no_tiles = bytes([BACKGROUND]) + bytes(8 * (is_packed and not half))
    for place, some in uppers:
        out.write(np.multiply(place, UPPER_SIDE).astype("<i4").tobytes())
        inner = np.array([node.place for node in some]) % NODES_A_SIDE
        numbers = np.ravel_multi_index(tuple(inner.T), (NODES_A_SIDE,) * 3)
        out.write(_mask(numbers, NODES_A_SIDE**3) + bytes(NODES_A_SIDE**3 // 8) + no_tiles)
        for node in some:
            out.write(_mask(node.leaves, LEAVES_A_SIDE**3) + bytes(LEAVES_A_SIDE**3 // 8) + no_tiles)
            out.write(node.masks.tobytes())


def _write_values(out: _Sink, grid: NewGrid, node: _Node, half: bool, is_packed: bool) -> None:
    """Active values of a node's leaves."""
    numbers, active, values_of = grid.leaves(node.place)
    kept = np.isin(numbers, node.leaves)
    pieces = []
    for mask, chosen, of_leaf in zip(node.masks, active[kept], values_of(kept), strict=True):
        data = _rounded(of_leaf[chosen], half).tobytes()
        pieces += [mask.tobytes(), bytes([BACKGROUND])]
        if is_packed:
            packed = zlib.compress(data, ZIP_LEVEL)
            shorter = len(packed) < len(data)
            pieces.append(struct.pack("<q", len(packed) if shorter else -len(data)))
            data = packed if shorter else data
        pieces.append(data)
    out.write(b"".join(pieces))


def _rounded(values: np.ndarray, half: bool) -> np.ndarray:
    """Values as they are stored; RaymarchError for those beyond half precision."""
    if not half:
        return values.astype("<f4", copy=False)
    most = float(np.abs(values).max(initial=0))
    if most > MAX_HALF:
        raise RaymarchError(
            f"has values up to {most:.5g}, want at most {MAX_HALF:.0f} in half precision; save it without half"
        )
    return values.astype("<f2")


def _mask(numbers: np.ndarray, size: int) -> bytes:
    """Bits of a mask of `size`."""
    mask = np.zeros(size, bool)
    mask[numbers] = True
    return np.packbits(mask, bitorder="little").tobytes()

"""OpenVDB's files put together and taken apart by hand, slowly, voxel by voxel: what the laws hold raymarch's against.

It shares no line with `raymarch.io.volumes.openvdb`; OpenVDB itself is asked in `test_volumes_of_openvdb.py`.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from dataclasses import dataclass, field

import numpy as np

ZIP, MASK, BLOSC = 1, 2, 4
KINDS = {"float": "f", "double": "d", "half": "e", "int32": "i", "int64": "q", "vec3s": "fff", "vec3d": "ddd"}
MAPS = {
    "AffineMap": 16, "UnitaryMap": 16, "ScaleMap": 15, "UniformScaleMap": 15, "TranslationMap": 3,
    "ScaleTranslateMap": 18, "UniformScaleTranslateMap": 18,
}  # fmt: skip


@dataclass
class Made:
    """Grid to be put together: leaves by first voxel, each values and mask (8, 8, 8); tiles by first voxel and side."""

    name: str = "density"
    kind: str = "float"
    half: bool = False
    flags: int = MASK
    background: object = 0.0
    leaves: dict = field(default_factory=dict)
    tiles: dict = field(default_factory=dict)  # (origin, side): (value, active)
    metadata: dict = field(default_factory=lambda: {"class": "fog volume"})
    map: tuple = ("TranslationMap", (0.0, 0.0, 0.0))
    parent: str = ""
    type: str = ""  # in place of that of its kind
    buffers: int = 1


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def metadata(values):
    out = struct.pack("<I", len(values))
    for name, value in values.items():
        if isinstance(value, str):
            kind, data = "string", value.encode()
        elif isinstance(value, tuple) and len(value) == 3:
            kind, data = "vec3i", struct.pack("<3i", *value)
        else:
            kind, data = value  # of a type of one's own
        out += text(name) + text(kind) + struct.pack("<I", len(data)) + data
    return out


def bits(flags):
    flat = np.asarray(flags, bool).ravel()
    return sum(1 << k for k in np.flatnonzero(flat).tolist()).to_bytes(len(flat) // 8, "little")


def one(grid, value, stored=False):
    letters = KINDS[grid.kind]
    if stored and grid.half and letters[0] in "fd":
        letters = "e" * len(letters)
    return struct.pack("<" + letters, *np.atleast_1d(value).tolist())


def packed(grid, data, count):
    if grid.half and not count and KINDS[grid.kind][0] in "fd":
        return b""
    if not grid.flags & (ZIP | BLOSC):
        return data
    if grid.flags & BLOSC and len(data) >= 48:
        from imagecodecs import blosc_encode

        chunk = blosc_encode(data + bytes(max(128 - len(data), 0)), typesize=4)
        return struct.pack("<q", len(chunk)) + bytes(chunk)
    if grid.flags & ZIP and not grid.flags & BLOSC and len(zlib.compress(data)) < len(data):
        return struct.pack("<q", len(zlib.compress(data))) + zlib.compress(data)
    return struct.pack("<q", -len(data)) + data


def node_values(grid, values, active, present):
    """Bytes of a node's values, in the smallest of the ways that hold its inactive ones; `present` are no children."""
    flat = [tuple(np.atleast_1d(value).tolist()) for value in values]
    back = tuple(np.atleast_1d(grid.background).tolist())
    minus = tuple(-x for x in back)
    others = list(dict.fromkeys(v for v, on, there in zip(flat, active, present, strict=True) if there and not on))
    if not grid.flags & MASK or len(others) > 2:
        data = b"".join(one(grid, value, stored=True) for value in flat)
        return b"\6" + packed(grid, data, len(flat))
    chosen = [v == others[-1] for v in flat] if len(others) == 2 else []
    if others in ([], [back]):
        head = b"\0"
    elif others == [minus]:
        head = b"\1"
    elif len(others) == 1:
        head = b"\2" + one(grid, others[0])
    elif set(others) == {back, minus}:
        head, chosen = b"\3", [v == back for v in flat]
    elif back in others:
        head = b"\4" + one(grid, next(v for v in others if v != back))
        chosen = [v == back for v in flat]
    else:
        head = b"\5" + one(grid, others[0]) + one(grid, others[1])
    if len(others) == 2:
        head += bits(chosen)
    some = [value for value, on in zip(flat, active, strict=True) if on]
    return head + packed(grid, b"".join(one(grid, value, stored=True) for value in some), len(some))


def tree(grid):
    """Topology and values of a grid's tree."""
    zero = (0,) * len(KINDS[grid.kind])

    def below(origins, origin, side):
        return sorted(o for o in origins if all(a <= b < a + side for a, b in zip(origin, o, strict=True)))

    def inner(origin, side, child):
        """Masks and values of a node, with the first voxels of its children."""
        count = side // child
        places = [
            tuple(a + child * n for a, n in zip(origin, at, strict=True))
            for at in itertools.product(range(count), repeat=3)
        ]
        nodes = {tuple(n // child * child for n in leaf) for leaf in below(grid.leaves, origin, side)}
        smaller = [o for (o, s) in grid.tiles if s < child and below([o], origin, side)]
        nodes |= {tuple(n // child * child for n in o) for o in smaller}
        tiles = {o: value for (o, s), value in grid.tiles.items() if s == child}
        children = [place in nodes for place in places]
        active = [place in tiles and tiles[place][1] for place in places]
        values = [
            zero if is_child else tiles[place][0] if place in tiles else grid.background
            for place, is_child in zip(places, children, strict=True)
        ]
        data = bits(children) + bits(active) + node_values(grid, values, active, [not c for c in children])
        return data, [place for place in places if place in nodes]

    tops = sorted({tuple(n // 4096 * 4096 for n in o) for o in grid.leaves}
                  | {tuple(n // 4096 * 4096 for n in o) for (o, s) in grid.tiles if s < 4096})  # fmt: skip
    roots = [(o, value) for (o, s), value in grid.tiles.items() if s == 4096]
    topology = struct.pack("<i", grid.buffers) + one(grid, grid.background) + struct.pack("<2I", len(roots), len(tops))
    for origin, (value, active) in roots:
        topology += struct.pack("<3i", *origin) + one(grid, value) + bytes([active])
    buffers = b""
    for top in tops:
        data, lowers = inner(top, 4096, 128)
        topology += struct.pack("<3i", *top) + data
        for lower in lowers:
            data, leaves = inner(lower, 128, 8)
            topology += data
            for leaf in leaves:
                values, active = grid.leaves[leaf]
                topology += bits(active)
                flat = np.reshape(values, (512, -1))
                buffers += bits(active) + node_values(grid, flat, np.ravel(active).tolist(), [True] * 512)
    return topology, buffers


def file_of(grids, version=224, seekable=True, count=None):
    """Bytes of a file of several grids."""
    out = struct.pack("<qIII?", 0x56444220, version, 10, 0, seekable) + b"0" * 36 + metadata({})
    out += struct.pack("<i", len(grids) if count is None else count)
    for grid in grids:
        kind = grid.type or f"Tree_{grid.kind}_5_4_3" + "_HalfFloat" * grid.half
        out += text(grid.name) + text(kind) + text(grid.parent)
        head = struct.pack("<I", grid.flags) + metadata(grid.metadata)
        head += text(grid.map[0]) + struct.pack(f"<{len(grid.map[1])}d", *grid.map[1])
        topology, buffers = (b"", b"") if grid.parent else tree(grid)
        begin = len(out) + 24
        block = begin + len(head) + len(topology)
        out += struct.pack("<3q", begin, block, block + len(buffers)) + head + topology + buffers
    return out


class Taken:
    """File taken apart: grids by name, each a mapping of active voxels to values, with its metadata and matrix."""

    def __init__(self, data):
        self.data, self.at = data, 0
        assert self.read("q")[0] == 0x56444220
        self.version, *_ = self.read("3I")
        assert self.read("?")[0]
        self.uuid = self.bytes(36).decode()
        self.metadata = self.notes()
        self.grids = {}
        for _ in range(self.read("i")[0]):
            name, kind, parent = self.text(), self.text(), self.text()
            begin, block, end = self.read("3q")
            assert (self.at, parent) == (begin, "")
            self.grids[name] = self.grid(kind, block)
            assert self.at == end
        assert self.at == len(data)

    def bytes(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size : self.at]

    def read(self, form):
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def text(self):
        return self.bytes(self.read("I")[0]).decode()

    def notes(self):
        found = {}
        for _ in range(self.read("I")[0]):
            name, kind, data = self.text(), self.text(), self.bytes(self.read("I")[0])
            forms = {"vec3i": "3i", "int64": "q", "vec3d": "3d", "bool": "?", "int32": "i"}
            found[name] = data.decode() if kind == "string" else struct.unpack("<" + forms[kind], data)
        return found

    def grid(self, kind, block):
        half = kind.endswith("_HalfFloat")
        letters = KINDS[kind.split("_")[1]]
        flags = self.read("I")[0]
        found = {"type": kind, "flags": flags, "metadata": self.notes(), "voxels": {}, "leaves": []}
        found["map"] = (name := self.text(), self.read(f"{MAPS[name]}d"))
        assert self.read("i") == (1,)
        found["background"] = self.read(letters)
        tiles, tops = self.read("2I")
        assert tiles == 0
        order = []
        for _ in range(tops):
            top = self.read("3i")
            for lower in self.inner(top, 32, 128, flags, half):
                for leaf in self.inner(lower, 16, 8, flags, half):
                    order.append((leaf, self.bytes(64)))
        assert self.at == block
        for leaf, mask in order:
            assert self.bytes(64) == mask and self.bytes(1) == b"\0"
            active = [k for k in range(512) if mask[k // 8] >> k % 8 & 1]
            stored = "e" * len(letters) if half else letters
            size = struct.calcsize("<" + stored) * len(active)
            length = self.read("q")[0] if flags & ZIP else -size
            data = self.bytes(size) if length < 0 else zlib.decompress(self.bytes(length))
            assert len(data) == size and length in (-size, *range(1, size))
            found["leaves"].append(leaf)
            for k, value in zip(active, struct.iter_unpack("<" + stored, data), strict=True):
                place = (leaf[0] + k // 64, leaf[1] + k // 8 % 8, leaf[2] + k % 8)
                found["voxels"][place] = value
        return found

    def inner(self, origin, count, child, flags, half):
        size = count**3 // 8
        children, active = (int.from_bytes(self.bytes(size), "little") for _ in range(2))
        assert active == 0 and self.bytes(1) == b"\0"
        if flags & ZIP and not half:
            assert self.read("q") == (0,)
        return [
            tuple(a + child * n for a, n in zip(origin, at, strict=True))
            for k, at in enumerate(itertools.product(range(count), repeat=3))
            if children >> k & 1
        ]


def matrix_of(name, numbers):
    """Matrix (4, 4) from an index to the world, columns being what OpenVDB has as rows."""
    if name in ("AffineMap", "UnitaryMap"):
        return np.reshape(numbers, (4, 4)).T
    matrix = np.eye(4)
    if "Translat" in name:
        matrix[:3, 3] = numbers[:3]
    if "Scale" in name:
        scale = np.array(numbers[3:] if "Translate" in name else numbers).reshape(5, 3)
        np.testing.assert_allclose(scale[1:], [abs(scale[0]), 1 / scale[0], scale[0] ** -2.0, 0.5 / scale[0]])
        matrix[:3, :3] = np.diag(scale[0])
    return matrix

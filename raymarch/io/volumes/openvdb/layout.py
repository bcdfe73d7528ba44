"""Layout of OpenVDB's files (.vdb): constants of the trees, types of values, metadata, and maps to the world.

By the files that OpenVDB 10 writes (version 224 of the format; 222 is the oldest that is read). All is little-endian.
Indices are those of C: in a node of side n voxel (x, y, z) has number (x n + y) n + z.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError

MAGIC = b" BDV\0\0\0\0"
VERSION, OLDEST_VERSION = 224, 222
LIBRARY = (10, 0)  # version of OpenVDB that the written files say
UUID_BYTES = 36

# Flags of how a grid's values are packed.
ZIP, ACTIVE_ONLY, BLOSC = 1, 2, 4

# Tree: a root, nodes of 32^3 nodes, of 16^3 leaves, of 8^3 voxels.
LEAF_SIDE, LEAVES_A_SIDE, NODES_A_SIDE = 8, 16, 32
LOWER_SIDE = LEAF_SIDE * LEAVES_A_SIDE  # voxels: 128
UPPER_SIDE = LOWER_SIDE * NODES_A_SIDE  # voxels: 4096
LEAF_VOXELS = LEAF_SIDE**3
TREE_SUFFIX, HALF_SUFFIX = "_5_4_3", "_HalfFloat"
COPY_MARK = "\x1e"  # before the number of a grid of the same name

VALUE_TYPES = {  # of numbers, and how many a voxel has
    "float": ("<f4", 1),
    "double": ("<f8", 1),
    "half": ("<f2", 1),
    "int32": ("<i4", 1),
    "int64": ("<i8", 1),
    "vec3s": ("<f4", 3),
    "vec3d": ("<f8", 3),
}

# How the inactive values of a node are stored, by the byte before its values.
BACKGROUND, NEGATIVE, ONE, SIGNS, ONE_OR_BACKGROUND, TWO, ALL = range(7)

MAP_NUMBERS = {  # doubles of each map to the world
    "AffineMap": 16,
    "UnitaryMap": 16,
    "ScaleMap": 15,
    "UniformScaleMap": 15,
    "TranslationMap": 3,
    "ScaleTranslateMap": 18,
    "UniformScaleTranslateMap": 18,
}
UNIFORM = 1e-12  # of a spacing: what scales may differ by that are written as one
METADATA = {"int32": "<i4", "int64": "<i8", "float": "<f4", "double": "<f8", "vec3i": "(3,)<i4", "vec3d": "(3,)<f8"}


def text(value: str) -> bytes:
    """Text as it is stored: its length in bytes, and it.

    Example:
        >>> text("Cd")
        b'\\x02\\x00\\x00\\x00Cd'
    """
    data = value.encode("utf-8")
    return struct.pack("<I", len(data)) + data


def metadata(values: Mapping[str, Any]) -> bytes:
    """Metadata of a file or grid: texts, booleans, and arrays of a type that `METADATA` has."""
    out = [struct.pack("<I", len(values))]
    for name, value in sorted(values.items()):
        if isinstance(value, str):
            kind, data = "string", value.encode("utf-8")
        elif isinstance(value, bool):
            kind, data = "bool", bytes([value])
        else:
            kind = next(kind for kind, dtype in METADATA.items() if np.dtype(dtype) == _row(value))
            data = value.tobytes()
        out += [text(name), text(kind), struct.pack("<I", len(data)), data]
    return b"".join(out)


def _row(value: np.ndarray) -> np.dtype:
    """Type of an array as one value."""
    return np.dtype((value.dtype, value.shape)) if value.ndim else value.dtype


def metadata_value(kind: str, data: bytes) -> Any:
    """Value of metadata; None for a type, or a size, that is not known."""
    if kind == "string":
        return data.decode("utf-8", "replace")
    if kind == "bool" and len(data) == 1:
        return data != b"\0"
    dtype = np.dtype(METADATA.get(kind, "V0"))
    return np.frombuffer(data, dtype.base).tolist() if 0 < dtype.itemsize == len(data) else None


def affine_of_map(kind: str, numbers: np.ndarray) -> np.ndarray:
    """Affine (4, 4) from an index to the world of a map's doubles; OpenVDB multiplies rows from the left.

    Raises RaymarchError for another kind of map.

    Example:
        >>> affine_of_map("TranslationMap", np.array([1.0, 2, 3]))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    affine = np.eye(4)
    if kind in ("AffineMap", "UnitaryMap"):
        return np.array(numbers, float).reshape(4, 4).T
    if kind == "TranslationMap":
        affine[:3, 3] = numbers
    elif kind in ("ScaleMap", "UniformScaleMap"):
        affine[:3, :3] = np.diag(numbers[:3])
    else:
        affine[:3, :3], affine[:3, 3] = np.diag(numbers[3:6]), numbers[:3]
    return affine


def map_of_affine(affine: np.ndarray) -> bytes:
    """Map of an affine (4, 4) as OpenVDB writes it: of the simplest kind that holds it.

    Beside scales are their absolute values, inverses, squares of those, and halves of the inverses.
    """
    scale, shift = np.diag(affine)[:3].copy(), affine[:3, 3]
    if (affine[:3, :3] != np.diag(scale)).any() or scale.min() <= 0:
        return text("AffineMap") + np.asarray(affine.T, "<f8").tobytes()
    uniform = bool(np.ptp(scale) <= UNIFORM * scale.max())
    scale = np.full(3, scale[0]) if uniform else scale
    moved = bool(shift.any())
    kind = "Uniform" * uniform + "Scale" + "Translate" * moved + "Map"
    numbers = [shift] * moved + [scale, np.abs(scale), 1 / scale, 1 / scale**2, 0.5 / scale]
    return text(kind) + np.asarray(numbers, "<f8").tobytes()


def leaf_numbers(places: np.ndarray) -> np.ndarray:
    """Numbers (n,) of leaves at places (n, 3) in their node of 16^3.

    Example:
        >>> leaf_numbers(np.array([(0, 0, 1), (1, 0, 0)])).tolist()
        [1, 256]
    """
    return np.asarray(places) @ (LEAVES_A_SIDE**2, LEAVES_A_SIDE, 1)


def split_type(stored: str) -> tuple[str, bool]:
    """Type of values of a grid's type as stored, such as "Tree_float_5_4_3_HalfFloat", and whether they are of half
    precision; RaymarchError, with the cure, for a grid of another kind.

    Example:
        >>> split_type("Tree_vec3s_5_4_3")
        ('vec3s', False)
    """
    half = stored.endswith(HALF_SUFFIX)
    plain = stored.removesuffix(HALF_SUFFIX)
    kind = plain.removeprefix("Tree_").removesuffix(TREE_SUFFIX)
    if plain == f"Tree_{kind}{TREE_SUFFIX}" and kind in VALUE_TYPES:
        return kind, half and VALUE_TYPES[kind][0][1] == "f"
    if "ptdata" in plain or "ptidx" in plain:
        cure = "turn them into fog: vdb_tool -read IN.vdb -vdb2points -points2ls -ls2fog -write OUT.vdb"
        raise RaymarchError(f"holds points ({plain[:40]}), want numbers; {cure}")
    cure = "in Python with pyopenvdb: np.save('a.npy', array) of what grid.copyToArray(array) fills"
    raise RaymarchError(
        f"is a {plain[:40]}, want one of {', '.join(VALUE_TYPES)} in a tree of nodes of 32, 16 and 8 a side; {cure}"
    )

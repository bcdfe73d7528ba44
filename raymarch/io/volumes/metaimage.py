"""MetaImage, of ITK and elastix: a text header and values in one file (.mha), or a header that names a file (.mhd).

Array axes are (x, y, z), the first the fastest; the world is LPS, as ITK has it.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import ScalarVolume
from raymarch.data.selection import Selection
from raymarch.data.world_axes import world_from_world
from raymarch.errors import RaymarchError
from raymarch.io.files.strict_text import finites
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.axis_units import short_unit
from raymarch.io.volumes.file_beside import file_beside
from raymarch.io.volumes.scalar_format import scalar_format, single_values
from raymarch.io.volumes.source import Slices, Source, text_of
from raymarch.io.volumes.stored_values import CURE, read_packed, read_raw, require_packed, require_size

WORLD = "LPS"
LONGEST_HEADER = 1 << 16  # bytes
TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
    "MET_LONG": "i4", "MET_ULONG": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip
NAMES = {kind: name for name, kind in reversed(TYPES.items())}
UNITS = ("um", "mm", "cm")
LAST = "ElementDataFile"
UNKNOWN = "???"


def detect(path: Path) -> bool:
    """Whether a file begins as a MetaImage does."""
    with path.open("rb") as file:
        lines = file.read(4096).split(b"\n")[:12]
    keys = [line.split(b"=")[0].strip() for line in lines]
    return b"NDims" in keys and (b"ObjectType" in keys[:1] or b"NDims" in keys[:1])


def header_of(path: Path) -> tuple[dict[str, str], int]:
    """Fields of a header by name, and its length [byte]."""
    fields: dict[str, str] = {}
    with path.open("rb") as file:
        head = file.read(LONGEST_HEADER)
    at = 0
    while LAST not in fields:
        end = head.find(b"\n", at)
        line = head[at : end if end >= 0 else len(head)].decode("latin-1").strip()
        at = end + 1 if end >= 0 else len(head)
        key, equals, value = line.partition("=")
        if line and (not equals or key.strip() in fields):
            raise RaymarchError(f"{path}: has the line {line[:60]!r}, want KEY = VALUE, each key once; {CURE}")
        if line:
            fields[key.strip()] = value.strip()
        if end < 0 and LAST not in fields:
            raise RaymarchError(f"{path}: has no {LAST} in its first {LONGEST_HEADER:,} bytes; {CURE}")
    return fields, at


def _is_true(text: str) -> bool:
    """Whether a field says yes, as MetaIO reads it: by its first letter."""
    return text[:1] in ("T", "t", "1")


def source(path: Path, selection: Selection) -> Source:
    """Source of a MetaImage; RaymarchError for lists of files, files elsewhere and types that are not known."""
    fields, length = header_of(path)
    count = int(_numbers(fields, path, "1", "NDims")[0])
    if not 3 <= count <= 8:
        raise RaymarchError(f"{path}: has {count} dimensions, want 3 or 4; {CURE}")
    if fields.get("ElementType") not in TYPES or not _is_true(fields.get("BinaryData", "True")):
        kind = fields.get("ElementType", "no type")
        raise RaymarchError(f"{path}: holds {kind[:40]}, want binary values of one of {', '.join(TYPES)}; {CURE}")
    order = next((fields[key] for key in ("ElementByteOrderMSB", "BinaryDataByteOrderMSB") if key in fields), "False")
    dtype = np.dtype(TYPES[fields["ElementType"]]).newbyteorder(">" if _is_true(order) else "<")
    sizes = tuple(int(n) for n in _numbers(fields, path, " ".join(["0"] * count), "DimSize"))
    channels = int(_numbers(fields, path, "1", "ElementNumberOfChannels")[0])
    shape = (channels, *sizes) if channels > 1 else sizes
    first = len(shape) - len(sizes)
    index, remarks = chosen(path, shape, (first, first + 1, first + 2), selection)
    affine, doubts = _placed(fields, path, count)
    packed = _is_true(fields.get("CompressedData", "False"))
    data, begin = file_beside(path, fields[LAST], length, local="LOCAL")
    skip = int(_numbers(fields, path, "0", "HeaderSize")[0])
    if skip < -1 or (skip == -1 and packed):
        raise RaymarchError(f"{path}: has a HeaderSize of {skip}, want 0 or more; {CURE}")

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if packed:
            return read_packed(data, begin + skip, shape, dtype, where, "zlib")
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        return read_raw(data, data.stat().st_size - size if skip == -1 else begin + skip, shape, dtype, where)

    def holds() -> None:
        if packed:
            require_packed(data, begin + skip, shape, dtype, "zlib")
        else:
            require_size(data, 0 if skip == -1 else begin + skip, shape, dtype)

    unknown = fields.get("AnatomicalOrientation") == UNKNOWN
    return Source(
        (sizes[0], sizes[1], sizes[2]), dtype, affine, read, packed,
        _numbers(fields, path, "1", "ElementToIntensityFunctionSlope")[0],
        _numbers(fields, path, "0", "ElementToIntensityFunctionOffset")[0],
        length_unit=fields["DistanceUnits"] if fields.get("DistanceUnits") in UNITS else "",
        world="" if unknown else WORLD, name=text_of(fields.get("Comment", "")), remarks=remarks + doubts,
        holds=holds,
    )  # fmt: skip


def _numbers(fields: dict[str, str], path: Path, default: str, *keys: str) -> list[float]:
    """Numbers of the first key that the header has, as many as the default has."""
    key = next((key for key in keys if key in fields), keys[0])
    return finites(fields.get(key, default), len(default.split()), f"{path}: {key}")


def _placed(fields: dict[str, str], path: Path, count: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Affine of the first three axes; rows of the matrix in the header are the directions of the array's axes."""
    ones, zeros = " ".join(["1"] * count), " ".join(["0"] * count)
    matrix = " ".join(str(int(x)) for x in np.eye(count).ravel())
    steps = _numbers(fields, path, ones, "ElementSpacing", "ElementSize")[:3]
    turn = np.reshape(_numbers(fields, path, matrix, "TransformMatrix", "Rotation", "Orientation"), (count, count))
    affine = np.eye(4)
    affine[:3, :3] = turn[:3, :3].T * steps
    affine[:3, 3] = _numbers(fields, path, zeros, "Offset", "Position", "Origin")[:3]
    said = "ElementSpacing" in fields or "ElementSize" in fields
    return affine, () if said else ("says no spacing; 1 is assumed",)


def write(volume: ScalarVolume, path: Path) -> None:
    """MetaImage of a scalar volume in one file, header and packed values, its world LPS where one is known."""
    values = single_values(volume)
    packed = zlib.compress(np.asarray(values, values.dtype.newbyteorder("<")).tobytes(order="F"), 4)
    affine = world_from_world(volume.world, WORLD) @ volume.world_from_index
    edges = affine[:3, :3]
    steps = np.linalg.norm(edges, axis=0)
    fields: dict[str, Any] = {
        "ObjectType": "Image",
        "NDims": 3,
        "BinaryData": True,
        "BinaryDataByteOrderMSB": False,
        "CompressedData": True,
        "CompressedDataSize": len(packed),
        "TransformMatrix": (edges / steps).T.ravel(),
        "Offset": affine[:3, 3],
        "CenterOfRotation": np.zeros(3),
        "AnatomicalOrientation": "RAI" if volume.world else UNKNOWN,
        "ElementSpacing": steps,
        "DimSize": volume.shape,
    }
    if (unit := short_unit(volume.length_unit)) in UNITS:
        fields["DistanceUnits"] = unit
    if volume.name:
        fields["Comment"] = volume.name
    fields |= {"ElementType": NAMES[f"{values.dtype.kind}{values.dtype.itemsize}"], LAST: "LOCAL"}
    lines = [f"{key} = {_text(value)}\n" for key, value in fields.items()]
    path.write_bytes("".join(lines).encode("latin-1", "replace") + packed)


def _text(value: Any) -> str:
    several = value.tolist() if isinstance(value, np.ndarray) else value
    return " ".join(map(repr, several)) if isinstance(several, (list, tuple)) else str(several)


METAIMAGE = scalar_format("MetaImage", (".mha", ".mhd"), detect, source, write)

"""MetaImage, of ITK and elastix: a text header and values in one file (.mha), or a header that names files (.mhd).

Array axes are (x, y, z), the first the fastest; the world is LPS, as ITK has it.
"""

from __future__ import annotations

import math
import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.strict import finite_numbers
from raymarch.io.volumes.files_beside import file_beside, files_beside, files_of_pattern
from raymarch.io.volumes.length_units import short_unit
from raymarch.io.volumes.scalar_format import choose_index, scalar_format, single_values
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, decode_text, text_of
from raymarch.io.volumes.stored_values import (
    read_packed,
    read_raw,
    read_text,
    require_packed,
    require_size,
    values_of_files,
)
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection
from raymarch.volumes.world_axes import world_from_world

WORLD = "LPS"
MAX_HEADER_BYTES = 1 << 16  # bytes
TYPES = {
    "MET_CHAR": "i1", "MET_UCHAR": "u1", "MET_SHORT": "i2", "MET_USHORT": "u2", "MET_INT": "i4", "MET_UINT": "u4",
    "MET_LONG": "i4", "MET_ULONG": "u4", "MET_LONG_LONG": "i8", "MET_ULONG_LONG": "u8", "MET_FLOAT": "f4",
    "MET_DOUBLE": "f8",
}  # fmt: skip
TYPE_NAMES = {kind: name for name, kind in reversed(TYPES.items())}
UNITS = ("um", "mm", "cm")
REPEATED_FIELDS = ("Comment",)
UNREAD_FIELDS = ("ImagePosition", "HeaderSizePerSlice", "SliceThickness")  # of old writers, that would bear on places
LAST_FIELD = "ElementDataFile"
UNKNOWN_AXIS = "???"


def detect(path: Path) -> bool:
    """Whether a file begins as a MetaImage does."""
    with path.open("rb") as file:
        lines = file.read(4096).split(b"\n")[:12]
    keys = [re.split(b"[=:]", line)[0].strip() for line in lines]
    return b"NDims" in keys and (b"ObjectType" in keys[:1] or b"NDims" in keys[:1])


def header_of(path: Path) -> tuple[dict[str, str], int]:
    """Fields of a header by name, and its length [byte]."""
    fields: dict[str, str] = {}
    with path.open("rb") as file:
        head = file.read(MAX_HEADER_BYTES)
    at = 0
    while LAST_FIELD not in fields:
        end = head.find(b"\n", at)
        line = decode_text(head[at : end if end >= 0 else len(head)]).strip()
        at = end + 1 if end >= 0 else len(head)
        key, separator, value = line.partition("=" if "=" in line else ":")  # MetaIO takes either
        key, value = key.strip(), value.strip()
        if line and key in REPEATED_FIELDS and key in fields:
            value = f"{fields[key]} {value}"
        elif line and (not separator or key in fields):
            raise RaymarchError(f"{path}: has the line {line[:60]!r}, want KEY = VALUE, each key once; correct it")
        if line:
            fields[key] = value
        if end < 0 and LAST_FIELD not in fields and fields.get("ObjectType", "Image") != "Image":
            raise RaymarchError(
                f"{path}: is a {fields['ObjectType'][:20]} of MetaIO, want an Image; name the image that it belongs to"
            )
        if end < 0 and LAST_FIELD not in fields:
            raise RaymarchError(f"{path}: has no {LAST_FIELD} in its first {MAX_HEADER_BYTES:,} bytes; {RESTORE_CURE}")
    return fields, at


def _is_true(text: str) -> bool:
    """Whether a field says yes, as MetaIO reads it: by its first letter."""
    return text[:1] in ("T", "t", "1")


def source(path: Path, selection: Selection) -> Source:
    """Source of a MetaImage; RaymarchError for types that are not known."""
    fields, length = header_of(path)
    count = _whole(fields, path, "NDims", 3)
    if not 3 <= count <= 8:
        more = "a slice is no volume, stack several by np.stack" if count == 2 else RESTORE_CURE
        raise RaymarchError(f"{path}: has {count} dimensions, want 3 or 4; {more}")
    kind = fields.get("ElementType", "no type").removesuffix("_ARRAY")  # of channels
    if kind not in TYPES:
        raise RaymarchError(
            f"{path}: holds {kind[:40]}, want values of one of {', '.join(TYPES)}; save it as one of these, as by"
            " SimpleITK.Cast"
        )
    order = next((fields[key] for key in ("ElementByteOrderMSB", "BinaryDataByteOrderMSB") if key in fields), "False")
    dtype = np.dtype(TYPES[kind]).newbyteorder(">" if _is_true(order) else "<")
    sizes = tuple(int(n) for n in _numbers(fields, path, " ".join(["0"] * count), "DimSize"))
    channels = _whole(fields, path, "ElementNumberOfChannels", 1)
    shape = (channels, *sizes) if channels > 1 else sizes
    first = len(shape) - len(sizes)
    index, remarks = choose_index(path, shape, (first, first + 1, first + 2), selection)
    affine, doubts = _affine_of(fields, path, count)
    packed = _is_true(fields.get("CompressedData", "False"))
    is_text = not _is_true(fields.get("BinaryData", "True"))
    files, begin = _files(fields, path, length)
    skip = _whole(fields, path, "HeaderSize", 0)
    if skip < -1:
        raise RaymarchError(f"{path}: has a HeaderSize of {skip}, want -1 or more; {RESTORE_CURE}")

    def start(file: Path, part: tuple[int, ...]) -> int:
        """Where values of that shape begin in a file, or what is packed does."""
        size = math.prod(map(int, part)) * dtype.itemsize
        if skip == -1 and packed:
            size = _whole(fields, path, "CompressedDataSize", file.stat().st_size - begin)
        return max(file.stat().st_size - size, 0) if skip == -1 else begin + skip

    def all_of(file: Path, part: tuple[int, ...]) -> np.ndarray:
        """All values of one file."""
        whole = (slice(None),) * len(part)
        if packed:
            return read_packed(file, start(file, part), part, dtype, whole, "zlib")
        if is_text:
            return read_text(file, begin + max(skip, 0), part, dtype)
        return read_raw(file, start(file, part), part, dtype, whole)

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if len(files) > 1:
            return values_of_files(files, all_of, shape, dtype, path)[where]
        if packed or is_text:
            return all_of(files[0], shape)[where]
        return read_raw(files[0], start(files[0], shape), shape, dtype, where)

    def holds() -> None:
        if len(files) > 1 or is_text:
            return
        if packed:
            require_packed(files[0], start(files[0], shape), shape, dtype, "zlib")
        else:
            require_size(files[0], 0 if skip == -1 else begin + skip, shape, dtype)

    unknown = fields.get("AnatomicalOrientation") == UNKNOWN_AXIS
    return Source(
        (sizes[0], sizes[1], sizes[2]),
        dtype,
        affine,
        read,
        packed or is_text or len(files) > 1,
        _numbers(fields, path, "1", "ElementToIntensityFunctionSlope")[0],
        _numbers(fields, path, "0", "ElementToIntensityFunctionOffset")[0],
        length_unit=_unit(fields),
        world="" if unknown else WORLD,
        name=text_of(fields.get("Comment") or fields.get("Name", "")),
        remarks=remarks + doubts,
        holds=holds,
    )


def _unit(fields: dict[str, str]) -> str:
    """Unit of length; "" where none is said, or "?" is."""
    told = fields.get("DistanceUnits", "").strip("\"'")
    return "" if told in ("?", UNKNOWN_AXIS) else short_unit(told)


def _files(fields: dict[str, str], path: Path, length: int) -> tuple[list[Path], int]:
    """Files with the values, one behind the other, and where a header ends in the first."""
    name = fields[LAST_FIELD]
    if name.split()[:1] == ["LIST"]:
        with path.open("rb") as header:
            header.seek(length)
            names = [line.strip() for line in decode_text(header.read(MAX_HEADER_BYTES)).splitlines()]
        return files_beside(path, [one for one in names if one]), 0
    names = [] if (path.parent / name).is_file() else files_of_pattern(path, name)
    if names:
        return files_beside(path, names), 0
    file, begin = file_beside(path, name, length, local="LOCAL")
    return [file], begin


def _whole(fields: dict[str, str], path: Path, key: str, default: int) -> int:
    """Whole number of a key."""
    return int(_numbers(fields, path, str(default), key)[0])


def _numbers(fields: dict[str, str], path: Path, default: str, *keys: str) -> list[float]:
    """Numbers of the first key that the header has, as many as the default has."""
    key = next((key for key in keys if key in fields), keys[0])
    return finite_numbers(fields.get(key, default), len(default.split()), f"{path}: {key}")


def _affine_of(fields: dict[str, str], path: Path, count: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Affine of the first three axes; rows of the matrix in the header are the directions of the array's axes."""
    ones, zeros = " ".join(["1"] * count), " ".join(["0"] * count)
    matrix = " ".join(str(int(x)) for x in np.eye(count).ravel())
    steps = _numbers(fields, path, ones, "ElementSpacing", "ElementSize")[:3]
    turn = np.reshape(_numbers(fields, path, matrix, "TransformMatrix", "Rotation", "Orientation"), (count, count))
    affine = np.eye(4)
    affine[:3, :3] = turn[:3, :3].T * steps
    affine[:3, 3] = _numbers(fields, path, zeros, "Offset", "Position", "Origin")[:3]
    remarks = []
    if "ElementSpacing" not in fields and "ElementSize" not in fields:
        remarks.append("says no spacing; 1 is assumed")
    sides = fields.get("AnatomicalOrientation", "")
    if not {"TransformMatrix", "Rotation", "Orientation"} & {*fields} and sides not in ("", "RAI", UNKNOWN_AXIS, "?"):
        remarks.append(
            f"says that its axes come from {sides[:20]} (AnatomicalOrientation), which is not read, as by ITK"
        )
    if told := [key for key in UNREAD_FIELDS if key in fields and any(map(_differs, fields[key].split()))]:
        remarks.append(f"has {', '.join(told)}, which raymarch does not read")
    return affine, tuple(remarks)


def _differs(word: str) -> bool:
    """Whether a word of a field is another than 0."""
    try:
        return float(word) != 0
    except ValueError:
        return True


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
        "AnatomicalOrientation": "RAI" if volume.world else UNKNOWN_AXIS,
        "ElementSpacing": steps,
        "DimSize": volume.shape,
    }
    if (unit := short_unit(volume.length_unit)) in UNITS:
        fields["DistanceUnits"] = unit
    if volume.name:
        fields["Comment"] = volume.name
    fields |= {"ElementType": TYPE_NAMES[f"{values.dtype.kind}{values.dtype.itemsize}"], LAST_FIELD: "LOCAL"}
    lines = [f"{key} = {_text(value)}\n" for key, value in fields.items()]
    path.write_bytes("".join(lines).encode("utf-8", "replace") + packed)


def _text(value: Any) -> str:
    several = value.tolist() if isinstance(value, np.ndarray) else value
    return " ".join(map(repr, several)) if isinstance(several, (list, tuple)) else str(several)


METAIMAGE = scalar_format("MetaImage", (".mha", ".mhd"), detect, source, write, loses=("unit",))

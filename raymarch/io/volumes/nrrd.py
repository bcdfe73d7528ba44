"""NRRD, of Teem and 3D Slicer: header and values in one file (.nrrd), or a header that names files beside it (.nhdr).

Array axes are (x, y, z), the first the fastest. The world is what `space` says, LPS in 3D Slicer's files.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.io.volumes.files_beside import file_beside, files_beside, files_of_pattern
from raymarch.io.volumes.length_units import common_unit, short_unit
from raymarch.io.volumes.scalar_format import choose_index, scalar_format, single_values
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, decode_text, text_of
from raymarch.io.volumes.stored_values import (
    read_end,
    read_packed,
    read_raw,
    read_text,
    require_packed,
    require_size,
    skip_lines,
    values_of_files,
)
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection

MAX_HEADER_BYTES = 1 << 20  # bytes
MAGIC = b"NRRD000"
MAX_VERSION = 5
MAX_AXES = 16
SPACES = {"right-anterior-superior": "RAS", "left-posterior-superior": "LPS", "left-anterior-superior": "LAS"}
SPACE_NAMES = {world: name for name, world in SPACES.items()}
# By name, count of axes; "" of the world where it names no sides.
KNOWN_SPACES = {
    **{name: (world, 3) for name, world in SPACES.items()},
    **{name: (name.upper(), 3) for name in ("ras", "lps", "las")},
    **{f"{name}-time": (world, 4) for name, world in SPACES.items()},
    **{f"{name}t": (name.upper(), 4) for name in ("ras", "lps", "las")},
    **{f"{name}{end}": ("", n) for name in ("scanner-xyz", "3d-right-handed", "3d-left-handed")
       for end, n in (("", 3), ("-time", 4))},
}  # fmt: skip
PACKINGS = {"gzip": "gzip", "gz": "gzip", "bzip2": "bzip2", "bz2": "bzip2"}
TEXT_ENCODINGS = ("ascii", "text", "txt")
TYPES = {
    "i1": "signed char, int8, int8_t", "u1": "uchar, unsigned char, uint8, uint8_t",
    "i2": "short, short int, signed short, signed short int, int16, int16_t",
    "u2": "ushort, unsigned short, unsigned short int, uint16, uint16_t", "i4": "int, signed int, int32, int32_t",
    "u4": "uint, unsigned int, uint32, uint32_t",
    "i8": "longlong, long long, long long int, signed long long, signed long long int, int64, int64_t",
    "u8": "ulonglong, unsigned long long, unsigned long long int, uint64, uint64_t", "f4": "float", "f8": "double",
}  # fmt: skip
TYPE_OF = {name: kind for kind, names in TYPES.items() for name in names.split(", ")}
SAVED_TYPES = {kind: names.split(", ")[-2 if kind[0] != "f" else 0] for kind, names in TYPES.items()}
SPACE_KINDS = ("domain", "space", "none", "???", "")
KNOWN_FIELDS = {
    "dimension", "type", "blocksize", "encoding", "endian", "content", "min", "max", "oldmin", "oldmax", "datafile",
    "lineskip", "byteskip", "number", "sampleunits", "sizes", "spacings", "thicknesses", "axismins", "axismaxs",
    "centerings", "labels", "units", "kinds", "space", "spacedimension", "spaceunits", "spaceorigin",
    "spacedirections", "measurementframe",
}  # fmt: skip
FIELD_SYNONYMS = {"centers": "centerings"}
PYNRRD_CURE = "np.save('a.npy', nrrd.read({!r})[0])"
VECTORS = re.compile(r"(?:none|\([^()]*\))", re.IGNORECASE)


@dataclass(frozen=True)
class Header:
    """Header of an NRRD.

    Attributes:
        fields: texts by the name of a field in small letters, without spaces.
        length: of the header [byte].
        files: names of files that the header lists behind its fields.
    """

    fields: dict[str, str]
    length: int
    files: tuple[str, ...]


def detect(path: Path) -> bool:
    """Whether a file begins as an NRRD does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def header_of(path: Path) -> Header:
    """Header of a file; RaymarchError for lines that are none, fields that are there twice, and those that are not."""
    with path.open("rb") as file:
        head = file.read(MAX_HEADER_BYTES)
    first, at = _line(head, 0)
    if not re.fullmatch(r"NRRD\d{4}", first) or int(first[4:]) > MAX_VERSION:
        raise RaymarchError(
            f"{path}: begins with {first[:20]!r}, want NRRD0001 to NRRD000{MAX_VERSION}; {RESTORE_CURE}"
        )
    fields: dict[str, str] = {}
    names: list[str] = []
    while at < len(head):
        line, at = _line(head, at)
        if not line:
            break
        name, value = _field(line)
        if line.startswith("#") or name is None:
            continue
        if not name:
            raise RaymarchError(f"{path}: has the line {text_of(line)[:60]!r}, want FIELD: VALUE; {RESTORE_CURE}")
        if name in fields:
            raise RaymarchError(f"{path}: has the field {name!r} twice; take one of the two lines out of its header")
        fields[name] = value
        if name == "datafile" and value.upper().startswith("LIST"):
            names, at = [line.strip() for line in decode_text(head[at:]).splitlines()], len(head)
    for wanted in ("type", "dimension", "sizes", "encoding"):
        if wanted not in fields:
            raise RaymarchError(f"{path}: lacks the field {wanted!r}; {RESTORE_CURE}")
    return Header(fields, at, tuple(name for name in names if name))


def _line(head: bytes, at: int) -> tuple[str, int]:
    """Line of a header that begins at a byte, without what ends it, and where the next begins."""
    end = head.find(b"\n", at)
    end = len(head) if end < 0 else end
    return decode_text(head[at:end]).rstrip(), end + 1


def _field(line: str) -> tuple[str | None, str]:
    """Name and value of a line; None for a key that is the user's own, "" for what is neither."""
    colon = line.find(":")
    if colon < 1:
        return "", ""
    if line[colon + 1 : colon + 2] == "=":
        return None, line[colon + 2 :]
    name = re.sub(r"\s", "", line[:colon]).lower()
    return FIELD_SYNONYMS.get(name, name), line[colon + 1 :].strip()


def source(path: Path, selection: Selection) -> Source:
    """Source of an NRRD file; RaymarchError for types and packings that are not known."""
    header = header_of(path)
    fields = header.fields
    sizes = tuple(_whole(path, fields, "sizes", word) for word in fields["sizes"].split())
    dimension = _whole(path, fields, "dimension")
    if len(sizes) != dimension or len(sizes) > MAX_AXES:
        raise RaymarchError(f"{path}: has {len(sizes)} sizes for {dimension} dimensions; {RESTORE_CURE}")
    encoding = fields["encoding"].lower()
    if not (encoding in PACKINGS or encoding in (*TEXT_ENCODINGS, "raw", "hex")):
        known = "want raw, text, hex, gzip or bzip2"
        raise RaymarchError(f"{path}: is encoded as {encoding[:40]!r}, {known}; save it so, by unu save -e gzip")
    dtype, doubts = _type(path, fields, encoding)
    spatial, affine, world, unit, remarks, kinds = _placement(fields, len(sizes), path)
    index, more = choose_index(path, sizes, spatial, selection, names=kinds)
    files, begin = _files(path, header)
    lines, skip = _whole(path, fields, "lineskip", default=0), _whole(path, fields, "byteskip", default=0)
    if lines < 0 or skip < -1:
        raise RaymarchError(
            f"{path}: has a line skip of {lines} and a byte skip of {skip}, want 0 or more, or -1; {RESTORE_CURE}"
        )

    def start(file: Path, shape: tuple[int, ...]) -> int:
        """Where values of that shape begin in a file, or what is packed does."""
        if skip == -1 and encoding == "raw":
            return max(file.stat().st_size - require_size(file, 0, shape, dtype), 0)
        return skip_lines(file, begin, lines) + (0 if encoding in PACKINGS or skip == -1 else skip)

    def all_of(file: Path, shape: tuple[int, ...]) -> np.ndarray:
        """All values of one file."""
        whole = (slice(None),) * len(shape)
        if encoding == "raw":
            return read_raw(file, start(file, shape), shape, dtype, whole)
        if encoding not in PACKINGS:
            return read_text(file, start(file, shape), shape, dtype, encoding == "hex")
        if skip == -1:
            return read_end(file, start(file, shape), shape, dtype, PACKINGS[encoding])
        return read_packed(file, start(file, shape), shape, dtype, whole, PACKINGS[encoding], skip=skip)

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if len(files) > 1:
            return values_of_files(files, all_of, sizes, dtype, path)[where]
        if encoding == "raw":
            return read_raw(files[0], start(files[0], sizes), sizes, dtype, where)
        return all_of(files[0], sizes)[where]

    def holds() -> None:
        if len(files) == 1 and encoding == "raw":
            require_size(files[0], start(files[0], sizes), sizes, dtype)
        elif len(files) == 1 and encoding in PACKINGS:
            require_packed(files[0], start(files[0], sizes), sizes, dtype, PACKINGS[encoding], max(skip, 0))

    unread = sorted(name for name in fields if name not in KNOWN_FIELDS)
    if unread:
        more += (f"has fields that NRRD does not know and that are not read ({first_names(unread, 4)})",)
    return Source(
        tuple(sizes[axis] for axis in spatial),  # type: ignore[arg-type]
        dtype,
        affine,
        read,
        encoding != "raw" or len(files) > 1,
        unit=fields.get("sampleunits", "").strip('"'),
        length_unit=unit,
        world=world,
        name=fields.get("content", ""),
        remarks=doubts + remarks + more,
        holds=holds,
    )


def _whole(path: Path, fields: dict[str, str], name: str, word: str | None = None, default: int | None = None) -> int:
    """Whole number of a field, or of a word of it."""
    text = fields.get(name) if word is None else word
    if text is None and default is not None:
        return default
    if text is None or not re.fullmatch(r"[+-]?\d{1,30}", text.strip()):
        raise RaymarchError(f"{path}: {name} is {text_of(text)[:40]!r}, want whole numbers; {RESTORE_CURE}")
    return int(text)


def _type(path: Path, fields: dict[str, str], encoding: str) -> tuple[np.dtype, tuple[str, ...]]:
    """Type of the numbers as they are stored, and what of them is in doubt."""
    told = " ".join(fields["type"].lower().split())
    if told == "block":
        size = fields.get("blocksize", "some")
        raise RaymarchError(
            f"{path}: holds blocks of {size[:20]} bytes, want numbers; write their type into the header, such as"
            " type: float"
        )
    if told not in TYPE_OF:
        raise RaymarchError(
            f"{path}: holds values of type {told[:40]!r}, want one of {', '.join(SAVED_TYPES.values())}; save it "
            "as int64 or"
            " double with the program that wrote it"
        )
    dtype, remarks = np.dtype(TYPE_OF[told]), []
    endian = fields.get("endian", "").lower()
    if dtype.itemsize > 1 and encoding not in TEXT_ENCODINGS:
        if endian not in ("little", "big"):
            remarks.append("says no order of bytes (endian); little is assumed")
        dtype = dtype.newbyteorder(">" if endian == "big" else "<")
    if "oldmin" in fields or "oldmax" in fields:
        told = f"{text_of(fields.get('oldmin', '?'))[:20]} to {text_of(fields.get('oldmax', '?'))[:20]}"
        remarks.append(f"says that its values were {told} before they were quantized, which is not applied")
    return dtype, tuple(remarks)


def _files(path: Path, header: Header) -> tuple[list[Path], int]:
    """Files with the values, one behind the other whatever the header says of their axes, and where a header ends."""
    name = header.fields.get("datafile")
    if name is None:
        return [path], header.length
    if name.upper().startswith("LIST"):
        return files_beside(path, header.files), 0
    names = [] if (path.parent / name).is_file() else files_of_pattern(path, name)
    return (files_beside(path, names), 0) if names else ([file_beside(path, name, 0)[0]], 0)


def _numbers(path: Path, fields: dict[str, str], name: str, count: int) -> np.ndarray | None:
    """Numbers of a field, one for each axis, NaN where it says none; None of a field that is not there."""
    if name not in fields:
        return None
    try:
        found = np.array([float("nan" if word.lower() == "none" else word) for word in fields[name].split()])
    except ValueError as error:
        raise RaymarchError(
            f"{path}: {name} is {text_of(fields[name])[:60]!r}, want numbers; {RESTORE_CURE}"
        ) from error
    if len(found) != count:
        raise RaymarchError(f"{path}: has {len(found)} {name} for {count} axes; {RESTORE_CURE}")
    return found


def _vectors(path: Path, fields: dict[str, str], name: str) -> list[np.ndarray | None] | None:
    """Vectors of a field; None for one that is none, or NaN."""
    if name not in fields:
        return None
    text, found = fields[name], []
    if VECTORS.sub("", text).strip():
        raise RaymarchError(f"{path}: {name} is {text_of(text)[:60]!r}, want vectors (x,y,z) or none; {RESTORE_CURE}")
    for word in VECTORS.findall(text):
        try:
            vector = None if word.lower() == "none" else np.array([float(x) for x in word[1:-1].split(",")])
        except ValueError as error:
            raise RaymarchError(f"{path}: {name} has {text_of(word)[:60]!r}, want numbers; {RESTORE_CURE}") from error
        found.append(None if vector is None or np.isnan(vector).all() else vector)
    return found


def _texts(fields: dict[str, str], name: str) -> list[str]:
    """Texts of a field, in quotes or not."""
    text = fields.get(name, "")
    quoted = re.findall(r'"((?:[^"\\]|\\.)*)"', text)
    return quoted if quoted else text.split()


def _placement(
    fields: dict[str, str], count: int, path: Path
) -> tuple[list[int], np.ndarray, str, str, tuple[str, ...], list[str]]:
    """The three axes that are of space, their affine, the names of the world's sides, the unit of length, what had to
    be assumed, and the kinds of all axes."""
    if count < 3:
        raise RaymarchError(
            f"{path}: has {count} axes, want x, y and z; a slice is no volume, stack several by np.stack"
        )
    remarks: list[str] = []
    space = " ".join(fields.get("space", "").lower().split())
    world, _ = KNOWN_SPACES.get(space, ("", 0))
    if space and space not in KNOWN_SPACES:
        remarks.append(f"says a space that NRRD does not know ({text_of(space)[:40]}), which is not read")
    if space.startswith("3d-left-handed"):
        remarks.append("says that its space is left-handed, which is not read: pictures of it are mirror images")
    kinds = [kind.lower() for kind in fields.get("kinds", "").split()][:count]
    kinds += [""] * (count - len(kinds))
    directions = _vectors(path, fields, "spacedirections")
    if directions is not None:
        spatial, vectors, kinds = _direction_axes(path, directions, count, kinds)
    else:
        spatial, vectors, more = _spacing_axes(path, fields, count, kinds)
        remarks += more
    affine = np.eye(4)
    affine[:3, :3] = np.stack(vectors, axis=1)
    origin = _vectors(path, fields, "spaceorigin")
    if origin and origin[0] is not None:
        if len(origin[0]) < 3 or np.isnan(origin[0][:3]).any():
            raise RaymarchError(
                f"{path}: has an origin of {fields['spaceorigin'][:60]}, want x, y and z; {RESTORE_CURE}"
            )
        affine[:3, 3] = origin[0][:3]
    elif origin:
        remarks.append("says that its origin is none; 0 is taken")
    elif directions is None and (low := _numbers(path, fields, "axismins", count)) is not None:
        halves = 0.5 * _is_cell_centred(fields, count)[spatial]
        affine[:3, 3] = np.nan_to_num(low[spatial] + halves * affine[:3, :3].diagonal())
    if "measurementframe" in fields and count > 3:
        remarks.append("has a measurement frame, which is not applied: components are as they are stored")
    of_axes = [one for k, one in enumerate(_texts(fields, "units")) if k in spatial]
    units = _texts(fields, "spaceunits")[:3] or of_axes
    factors, unit, more_units = common_unit(units) if len(units) == 3 else ([1.0] * 3, "", ())
    if len({*units}) == 1:
        factors, unit = [1.0] * 3, short_unit(units[0])
    affine[:3] *= np.array(factors)[:, None]
    return spatial, affine, world, unit, (*remarks, *more_units), kinds


def _direction_axes(
    path: Path, directions: list[np.ndarray | None], count: int, kinds: list[str]
) -> tuple[list[int], list[np.ndarray], list[str]]:
    """Axes of space by their directions, the directions, and the kinds of all axes, of which one may be of time."""
    how = f"take it by {PYNRRD_CURE.format(path.name)}"
    rows = [np.zeros(0) if one is None else one for one in directions]
    lengths = {len(row) for row in rows if row.size}
    if len(rows) != count or len(lengths) > 1 or lengths - {3, 4}:
        raise RaymarchError(f"{path}: has directions of {sorted(lengths)} numbers for {len(rows)} axes, want 3; {how}")
    of_time = [row.size == 4 and row[3] != 0 for row in rows]
    if any(timed and row[:3].any() for timed, row in zip(of_time, rows, strict=True)):
        raise RaymarchError(f"{path}: has an axis that runs through space and time alike; {how}")
    spatial = [axis for axis, row in enumerate(rows) if row.size and not of_time[axis]]
    if len(spatial) != 3:
        raise RaymarchError(f"{path}: has {len(spatial)} axes of space, want 3; {how}")
    kinds = ["time" if timed else kind for timed, kind in zip(of_time, kinds, strict=True)]
    return spatial, [rows[axis][:3] for axis in spatial], kinds


def _spacing_axes(
    path: Path, fields: dict[str, str], count: int, kinds: list[str]
) -> tuple[list[int], list[np.ndarray], list[str]]:
    """Axes of space of a file without directions, their steps as vectors, and what had to be assumed."""
    remarks = []
    steps = _steps(path, fields, count)
    spatial = [axis for axis in range(count) if kinds[axis] in SPACE_KINDS]
    if len(spatial) != 3 and steps is not None and np.isfinite(steps).sum() == 3:
        spatial = np.flatnonzero(np.isfinite(steps)).tolist()
    spatial = spatial if len(spatial) == 3 else list(range(3))
    if steps is None:
        remarks.append("says no spacing; 1 is assumed")
        steps = np.ones(count)
    if unsaid := [axis for axis, step in zip("xyz", steps[spatial], strict=True) if np.isnan(step)]:
        remarks.append(f"says no spacing along {', '.join(unsaid)}; 1 is assumed")
    vectors = [step * one for step, one in zip(np.nan_to_num(steps[spatial], nan=1.0), np.eye(3), strict=True)]
    return spatial, vectors, remarks


def _steps(path: Path, fields: dict[str, str], count: int) -> np.ndarray | None:
    """Steps along the axes of a file without directions: its spacings, else what its ends come to; None of neither."""
    if (spacings := _numbers(path, fields, "spacings", count)) is not None:
        return spacings
    low, high = (_numbers(path, fields, name, count) for name in ("axismins", "axismaxs"))
    if low is None or high is None or np.isnan(high - low).all():
        return None
    sizes = np.array([float(word) for word in fields["sizes"].split()])
    return (high - low) / np.maximum(sizes - ~_is_cell_centred(fields, count), 1)


def _is_cell_centred(fields: dict[str, str], count: int) -> np.ndarray:
    """Whether the ends of each axis are those of cells, half a step beyond the samples in their middles; as Teem and
    ITK take it where none are said."""
    told = fields.get("centerings", "").split()
    return np.array([one.lower() != "node" for one in told] + [True] * (count - len(told)))[:count]


def write(volume: ScalarVolume, path: Path) -> None:
    """NRRD of a scalar volume, packed by gzip, its world by `space` where that is known; texts in UTF-8."""
    values = single_values(volume)
    values = np.asarray(values, values.dtype.newbyteorder("<"))
    affine = volume.world_from_index
    lines = ["NRRD0005", f"type: {SAVED_TYPES[values.dtype.str[1:]]}", "dimension: 3"]
    lines += [f"space: {SPACE_NAMES[volume.world]}" if volume.world else "space dimension: 3"]
    lines += ["sizes: " + " ".join(map(str, volume.shape))]
    lines += ["space directions: " + " ".join(_vector(affine[:3, axis]) for axis in range(3))]
    lines += ["kinds: domain domain domain", "endian: little", "encoding: gzip"]
    lines += [f"space origin: {_vector(affine[:3, 3])}"]
    if volume.length_unit:
        lines.append("space units: " + " ".join([f'"{_quote(short_unit(volume.length_unit))}"'] * 3))
    if volume.unit:
        lines.append(f"sample units: {volume.unit}")
    if volume.name:
        lines.append(f"content: {volume.name}")
    packer = zlib.compressobj(4, zlib.DEFLATED, 31)  # as gzip
    with path.open("wb") as file:
        file.write("\n".join([*lines, "", ""]).encode("utf-8", "replace"))
        for part in range(volume.shape[2]):
            file.write(packer.compress(values[:, :, part].tobytes(order="F")))
        file.write(packer.flush())


def _vector(numbers: np.ndarray) -> str:
    return f"({','.join(map(repr, numbers.tolist()))})"


def _quote(text: str) -> str:
    return text.replace("\\", "").replace('"', "'")


NRRD = scalar_format("NRRD", (".nrrd", ".nhdr"), detect, source, write)

"""NRRD, of Teem and 3D Slicer: header and values in one file (.nrrd), or a header that names a file beside it (.nhdr).

Array axes are (x, y, z), the first the fastest. The world is what `space` says, LPS in 3D Slicer's files.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError, named
from raymarch.io.files.limits import require_file_budget
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.axis_units import short_unit
from raymarch.io.volumes.file_beside import file_beside
from raymarch.io.volumes.scalar_format import scalar_format, single_values, wanted
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import (
    CURE,
    LONGEST_WORD,
    Index,
    read_packed,
    read_raw,
    require_packed,
    require_size,
    values_of_words,
)

LONGEST_HEADER = 1 << 20  # bytes
MAGIC = b"NRRD000"
SPACES = {"right-anterior-superior": "RAS", "left-posterior-superior": "LPS", "left-anterior-superior": "LAS"}
NAMES = {world: name for name, world in SPACES.items()}
PACKINGS = {"gzip": "gzip", "gz": "gzip", "bzip2": "bzip2", "bz2": "bzip2"}
TEXTS = ("ascii", "text", "txt")
MUS = {"µ".encode(): b" u", "μ".encode(): b" u", "µ".encode("latin-1"): b"u"}
LIST = re.compile(rb"(?im)^data ?file *: *LIST")
SPACE_KINDS = ("domain", "space", "none", "???", "")


def detect(path: Path) -> bool:
    """Whether a file begins as an NRRD does."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def header_of(path: Path) -> tuple[dict[str, Any], int]:
    """Fields of a header by name, and its length [byte]."""
    with wanted("pynrrd", "NRRD"):
        import nrrd
    with path.open("rb") as file:
        head = file.read(LONGEST_HEADER)
    if LIST.search(head.split(b"\n\n")[0]):
        raise RaymarchError(f"{path}: its values are in several files; save it in one, with 3D Slicer or pynrrd")
    for mu, as_long in MUS.items():  # pynrrd leaves out what is not ASCII, and micrometres would be metres
        head = head.replace(mu, as_long)
    stream = io.BytesIO(head)
    fields = dict(nrrd.read_header(stream))
    return fields, stream.tell()


def source(path: Path, selection: Selection) -> Source:
    """Source of an NRRD file; RaymarchError for lists of files, files elsewhere and packings that are not known."""
    fields, length = header_of(path)
    import nrrd

    sizes = tuple(int(n) for n in fields["sizes"])
    if len(sizes) != fields["dimension"] or len(sizes) > 16:
        raise RaymarchError(f"{path}: has {len(sizes)} sizes for {fields['dimension']} dimensions; {CURE}")
    if fields["type"] == "block":
        raise RaymarchError(f"{path}: holds blocks of bytes, want numbers; {CURE}")
    dtype = nrrd.reader._determine_datatype(fields)
    spatial, affine, remarks = _placed(fields, len(sizes), path)
    index, more = chosen(path, sizes, spatial, selection, names=fields.get("kinds"))
    data, offset = _data_file(path, fields, length)
    encoding = str(fields["encoding"]).lower()

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if encoding == "raw":
            return read_raw(
                data, data.stat().st_size - _size(sizes, dtype) if offset < 0 else offset, sizes, dtype, where
            )
        if encoding in TEXTS:
            return _read_text(data, offset, sizes, dtype, where)
        if encoding not in PACKINGS:
            raise RaymarchError(f"{path}: is encoded as {encoding[:40]!r}, want raw, gzip, bzip2 or text; {CURE}")
        return read_packed(data, offset, sizes, dtype, where, PACKINGS[encoding])

    def holds() -> None:
        if encoding == "raw":
            require_size(data, max(offset, 0), sizes, dtype)
        elif encoding in PACKINGS:
            require_packed(data, offset, sizes, dtype, PACKINGS[encoding])

    units = fields.get("space units") or [one for k, one in enumerate(fields.get("units") or []) if k in spatial]
    if len({*units}) > 1:
        more += (f"has axes in several units ({named(units, 4)}); their numbers are taken as they are",)
    return Source(
        tuple(sizes[axis] for axis in spatial),  # type: ignore[arg-type]
        dtype, affine, read, encoding != "raw",
        unit=str(fields.get("sample units", "")),
        length_unit=short_unit(str(units[0])) if len({*units}) == 1 else "",
        world=SPACES.get(str(fields.get("space", "")).lower(), _short_space(fields)),
        name=str(fields.get("content", "")),
        remarks=remarks + more,
        holds=holds,
    )  # fmt: skip


def write(volume: ScalarVolume, path: Path) -> None:
    """NRRD of a scalar volume, packed by gzip, its world by `space` where that is known."""
    with wanted("pynrrd", "NRRD"):
        import nrrd

    affine = volume.world_from_index
    header: dict[str, Any] = {"space": NAMES[volume.world]} if volume.world else {"space dimension": 3}
    header |= {
        "kinds": ["domain"] * 3,
        "space directions": affine[:3, :3].T,
        "space origin": affine[:3, 3],
        "encoding": "gzip",
    }
    if volume.length_unit:
        header["space units"] = [_ascii(short_unit(volume.length_unit))] * 3
    if volume.unit:
        header["sample units"] = _ascii(volume.unit)
    if volume.name:
        header["content"] = _ascii(volume.name)
    with path.open("wb") as file:  # by a name that ends in .nhdr the values would go to a file beside it
        nrrd.write(file, np.asfortranarray(single_values(volume)), header, compression_level=4)


def _ascii(text: str) -> str:
    """Text of letters that a header may have, others replaced."""
    return text.encode("ascii", "replace").decode()


def _short_space(fields: Mapping[str, Any]) -> str:
    space = str(fields.get("space", "")).upper()
    return space if space in NAMES else ""


def _placed(fields: Mapping[str, Any], count: int, path: Path) -> tuple[list[int], np.ndarray, tuple[str, ...]]:
    """The three axes that are of space, their affine, and what had to be assumed."""
    if count < 3:
        raise RaymarchError(f"{path}: has {count} axes, want x, y and z; a slice is no volume")
    directions, remarks = fields.get("space directions"), []
    if directions is not None:
        rows = [None if one is None or np.isnan(one).all() else np.asarray(one, float) for one in directions]
        spatial = [axis for axis, row in enumerate(rows) if row is not None]
        vectors = [row for row in rows if row is not None]
    else:
        kinds = [str(kind).lower() for kind in fields.get("kinds", [])] or [""] * count
        spatial = [axis for axis in range(count) if kinds[axis : axis + 1] and kinds[axis] in SPACE_KINDS]
        spatial = spatial if len(spatial) == 3 else list(range(3))
        steps = _steps(fields, count)
        if steps is None:
            remarks.append("says no spacing; 1 is assumed")
            steps = np.ones(count)
        if unsaid := [axis for axis, step in zip("xyz", steps[spatial], strict=True) if np.isnan(step)]:
            remarks.append(f"says no spacing along {', '.join(unsaid)}; 1 is assumed")
        vectors = [step * one for step, one in zip(np.nan_to_num(steps[spatial], nan=1.0), np.eye(3), strict=True)]
    if len(spatial) != 3 or any(len(one) != 3 for one in vectors):
        raise RaymarchError(f"{path}: has {len(spatial)} axes of space, want 3; {CURE}")
    affine = np.eye(4)
    affine[:3, :3] = np.stack(vectors, axis=1)
    if (origin := fields.get("space origin")) is not None:
        affine[:3, 3] = np.asarray(origin, float)
    elif directions is None:
        low, halves = _per_axis(fields, "mins", count)[spatial], 0.5 * _of_cells(fields, count)[spatial]
        affine[:3, 3] = np.nan_to_num(low + halves * affine[:3, :3].diagonal())
    return spatial, affine, tuple(remarks)


def _steps(fields: Mapping[str, Any], count: int) -> np.ndarray | None:
    """Steps along the axes of a file without directions: its spacings, else what its ends come to; None of neither."""
    if (spacings := fields.get("spacings")) is not None:
        return np.asarray(spacings, float)
    low, high = (_per_axis(fields, name, count) for name in ("mins", "maxs"))
    if np.isnan(high - low).all():
        return None
    return (high - low) / np.maximum(np.asarray(fields["sizes"], float) - ~_of_cells(fields, count), 1)


def _per_axis(fields: Mapping[str, Any], name: str, count: int) -> np.ndarray:
    found = fields.get(f"axis {name}", fields.get(f"axis{name}"))
    return np.full(count, np.nan) if found is None else np.asarray(found, float)


def _of_cells(fields: Mapping[str, Any], count: int) -> np.ndarray:
    """Whether the ends of each axis are those of cells, half a step beyond the samples in their middles; as Teem and
    ITK take it where none are said."""
    told = fields.get("centerings", fields.get("centers")) or []
    told = told.split() if isinstance(told, str) else list(told)  # pynrrd knows one of the two names
    return np.array([str(one).lower() != "node" for one in told] + [True] * (count - len(told)))[:count]


def _data_file(path: Path, fields: Mapping[str, Any], length: int) -> tuple[Path, int]:
    """The file with the values and where they begin; -1 where they are its last bytes."""
    name = fields.get("data file", fields.get("datafile"))
    data, offset = (path, length) if name is None else file_beside(path, str(name), 0)
    lines, skip = (
        int(fields.get("line skip", fields.get("lineskip", 0))),
        int(fields.get("byte skip", fields.get("byteskip", 0))),
    )
    if lines or skip < -1 or (skip and str(fields["encoding"]).lower() != "raw"):
        raise RaymarchError(f"{path}: has a line skip of {lines} and a byte skip of {skip}, want none; {CURE}")
    return data, -1 if skip == -1 else offset + skip


def _size(sizes: tuple[int, ...], dtype: np.dtype) -> int:
    return int(np.prod([int(n) for n in sizes], dtype=object)) * dtype.itemsize


def _read_text(path: Path, offset: int, sizes: tuple[int, ...], dtype: np.dtype, index: Index) -> np.ndarray:
    count = _size(sizes, dtype) // dtype.itemsize
    if 2 * count - 1 > path.stat().st_size - offset:
        raise RaymarchError(f"{path}: declares {count:,} values but is too short for them; {CURE}")
    require_file_budget(count * LONGEST_WORD, f"{path}: its {count:,} values as text")
    with path.open("rb") as file:
        file.seek(offset)
        words = file.read().split()
    return values_of_words(words, sizes, dtype, path)[index]


NRRD = scalar_format("NRRD", (".nrrd", ".nhdr"), detect, source, write)

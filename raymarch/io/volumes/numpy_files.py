"""NumPy's files: .npy, an array and nothing else; .npz, an archive of the fields of a scalar volume.

Array axes are (x, y, z) as in Python: `array[i, j, k]`. A .npz of another program may hold one array of three axes.
"""

from __future__ import annotations

import io
import logging
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import SIZES, ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError
from raymarch.io.files.limits import require_file_budget
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.scalar_format import plain_values, scalar_format
from raymarch.io.volumes.source import Slices, Source, text_of
from raymarch.io.volumes.stored_values import CURE, MOST_RATIO, Index, require_size

log = logging.getLogger("raymarch")
LONGEST_HEADER = 10_000
MOST_MEMBERS = 100
LARGEST_FIELD = 1 << 16  # bytes of a member that is no array of values
NOTHING = "says no spacing; 1 is assumed (rm.load takes spacing=)"
TEXTS = ("unit", "length_unit", "world", "name")


def detect_npy(path: Path) -> bool:
    """Whether a file begins as NumPy's arrays do."""
    with path.open("rb") as file:
        return file.read(6) == b"\x93NUMPY"


def detect_npz(path: Path) -> bool:
    """Whether a file is an archive of arrays with one of three axes or more."""
    if not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return _main(archive, path) is not None
    except Exception:  # zipfile and zlib raise anything for damaged files
        return False


def _header(stream: Any, where: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether the first axis is the fastest, and type of an array."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise RaymarchError(f"{where}: is of version {version}, want 1 or 2; {CURE}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(stream, max_header_size=LONGEST_HEADER)
    if dtype.hasobject or dtype.itemsize not in SIZES.get(dtype.kind, ()) or min(shape, default=1) < 1:
        raise RaymarchError(f"{where}: holds {str(dtype)[:60]} {shape}, want whole numbers or floats; convert it")
    return shape, by_columns, dtype


def _chosen(path: Path, shape: tuple[int, ...], selection: Selection) -> tuple[Any, list[int], tuple[str, ...]]:
    """Index of an array of three axes, or four of which the last is channels."""
    if not 3 <= len(shape) <= 5:
        raise RaymarchError(f"{path}: has shape {shape}, want (x, y, z); reshape it")
    names = ["x", "y", "z", "channel", "time"][: len(shape)]
    index, remarks = chosen(path, shape, (0, 1, 2), selection, names=names)
    return index, [0, 1, 2], remarks


def source_npy(path: Path, selection: Selection) -> Source:
    """Source of a .npy file, of which a part is read alone."""
    with path.open("rb") as file:
        shape, by_columns, dtype = _header(file, str(path))
        offset = file.tell()
    require_size(path, offset, shape, dtype)
    index, _, remarks = _chosen(path, shape, selection)

    def read(slices: Slices) -> np.ndarray:
        return np.array(np.memmap(path, dtype, "r", offset, shape, "F" if by_columns else "C")[index(slices)])

    return Source(
        (shape[0], shape[1], shape[2]), dtype, np.eye(4), read, at_once=False, remarks=(*remarks, NOTHING)
    )  # fmt: skip


def _main(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo | None:
    """The member with the values: `values`, or the only one of three axes or more."""
    members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
    if len(members) > MOST_MEMBERS or len({one.filename for one in members}) < len(members):
        raise RaymarchError(f"{path}: has {len(members)} members, want few and each once; {CURE}")
    if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in members):
        raise RaymarchError(f"{path}: is packed as no NumPy packs it, want deflated or stored members; {CURE}")
    found = []
    for one in members:
        with archive.open(one) as stream:
            try:
                shape, _, _ = _header(io.BytesIO(stream.read(LONGEST_HEADER)), f"{path}: {one.filename}")
            except (RaymarchError, ValueError):
                if one.filename == "values.npy":
                    raise
                continue  # texts, and what is none of ours
        if one.filename == "values.npy":
            return one
        found += [one] if 3 <= len(shape) <= 5 else []
    return found[0] if len(found) == 1 else None


def source_npz(path: Path, selection: Selection) -> Source:
    """Source of a .npz file; RaymarchError for one whose values are not to be told, or not what their header says."""
    with zipfile.ZipFile(path) as archive:
        member = _main(archive, path)
        if member is None:
            names = ", ".join(sorted(text_of(name.removesuffix(".npy"))[:40] for name in archive.namelist())[:6])
            raise RaymarchError(
                f"{path}: has {names or 'no arrays'}, want just one of three axes or more, or one named values;"
                " save it by np.savez(path, values=array)"
            )
        with archive.open(member) as stream:
            head = io.BytesIO(stream.read(LONGEST_HEADER))
        shape, by_columns, dtype = _header(head, f"{path}: {member.filename}")
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if head.tell() + size != member.file_size or size > MOST_RATIO * max(member.compress_size, 1):
            raise RaymarchError(f"{path}: {member.filename} declares {size:,} bytes but holds others; {CURE}")
        fields = _fields(archive, path)
    index, _, remarks = _chosen(path, shape, selection)

    def read(slices: Slices) -> np.ndarray:
        where: Index = index(slices)
        require_file_budget(size, f"{path}: its values, of all channels and times,")
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            stream.read(head.tell())
            data = stream.read(size)
        return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")[where]

    affine = np.asarray(fields.pop("world_from_index", np.eye(4)), float).reshape(4, 4)
    said = "spacing" in fields or (affine != np.eye(4)).any() or member.filename == "values.npy"
    affine[:3, :3] *= np.asarray(fields.pop("spacing", 1.0), float)
    more = () if said else (NOTHING,)
    return Source((shape[0], shape[1], shape[2]), dtype, affine, read, remarks=remarks + more, **fields)


def _fields(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """What an archive says of its values: numbers and texts of the names of a scalar volume's fields."""
    names = archive.namelist()
    fields: dict[str, Any] = {}
    for name in ("world_from_index", "spacing", "slope", "intercept", *TEXTS):
        if f"{name}.npy" not in names:
            continue
        member = archive.getinfo(f"{name}.npy")
        if member.file_size > LARGEST_FIELD:
            raise RaymarchError(f"{path}: {name} has {member.file_size:,} bytes, want a few; {CURE}")
        with archive.open(member) as stream:
            data = io.BytesIO(stream.read(LARGEST_FIELD))
        value = np.lib.format.read_array(data, allow_pickle=False, max_header_size=LONGEST_HEADER)
        if name in TEXTS:
            fields[name] = str(value)
        else:
            fields[name] = value.astype(float) if value.ndim else float(value)
    return fields


def write_npy(volume: ScalarVolume, path: Path) -> None:
    """Array of the values (x, y, z), slope and intercept applied; where they lie stays behind, which is said."""
    if (volume.world_from_index != np.eye(4)).any():
        log.warning("a .npy holds values alone; spacing and place stay behind, which .npz keeps")
    with path.open("wb") as file:
        np.save(file, plain_values(volume), allow_pickle=False)


def write_npz(volume: ScalarVolume, path: Path) -> None:
    """Archive of the fields of a scalar volume, packed."""
    more: dict[str, Any] = {name: np.array(getattr(volume, name)) for name in TEXTS}
    more |= {"slope": volume.slope, "intercept": volume.intercept, "world_from_index": volume.world_from_index}
    with path.open("wb") as file:
        np.savez_compressed(file, values=volume.values, **more)


NPY = scalar_format("NPY", (".npy",), detect_npy, source_npy, write_npy)
NPZ = scalar_format("NPZ", (".npz",), detect_npz, source_npz, write_npz)

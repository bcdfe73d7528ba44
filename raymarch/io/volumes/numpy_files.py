"""NumPy's files: .npy, an array and nothing else; .npz, an archive of the fields of a scalar volume.

Array axes are (x, y, z) as in Python: `array[i, j, k]`. A .npz of another program may hold one array of three axes.
"""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.io.files.strict import require_file_budget
from raymarch.io.volumes.scalar_format import choose_index, plain_values, scalar_format
from raymarch.io.volumes.source import RESTORE_CURE, Index, Slices, Source, text_of
from raymarch.io.volumes.stored_values import MAX_RATIO, read_mapped, require_size
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
MAX_HEADER_BYTES = 10_000
MAX_MEMBERS = 100
PIECE_BYTES = 1 << 20  # bytes that are unpacked at a time
MAX_FIELD_BYTES = 1 << 16  # bytes of a member that is no array of values
NO_SPACING_NOTE = "says no spacing; 1 is assumed (rm.load takes spacing=)"
PLACEMENT_NAMES = (
    "origin",
    "voxel_size",
    "voxelsize",
    "resolution",
    "direction",
    "directions",
    "bounds",
    "box",
    "offset",
)
TEXT_FIELDS = ("unit", "length_unit", "world", "name")


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
            try:
                return _main(archive, path)[0] is not None
            except RaymarchError:  # an archive of arrays all the same, of which the reader tells what is wrong
                return True
    except Exception:  # zipfile and zlib raise anything for damaged files
        return False


def _header(stream: Any, path: Path, name: str = "") -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether the first axis is the fastest, and type of an array; booleans are the bytes 0 and 1.

    Raises RaymarchError for what is no number, with what makes numbers of it; `name` is its own in an archive.
    """
    where = f"{path}: {name}" if name else str(path)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise RaymarchError(f"{where}: is of version {version}, want 1 to 3; {RESTORE_CURE}")
    if version == (1, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=MAX_HEADER_BYTES)
    elif version == (2, 0):
        shape, by_columns, dtype = np.lib.format.read_array_header_2_0(stream, max_header_size=MAX_HEADER_BYTES)
    else:  # of fields whose names are not Latin-1
        raise RaymarchError(f"{where}: {_cure('holds values of several fields', path, name, '[FIELD]')}")
    if dtype == np.bool_:
        dtype = np.dtype(np.uint8)
    if min(shape, default=1) < 1:
        raise RaymarchError(f"{where}: has shape {shape}, want 1 or more along each axis; save another array")
    if dtype.names:
        told, how = f"holds values of the fields {first_names(dtype.names, 6)}", f"[{dtype.names[0]!r}]"
    elif dtype.hasobject:
        raise RaymarchError(
            f"{where}: holds objects of Python, which raymarch does not open as they may run code; if you trust the"
            f" file, {_save_call(path, name, '.tolist()', ', allow_pickle=True', 'np.array({}, float)')}"
        )
    elif dtype.kind == "c":
        raise RaymarchError(
            f"{where}: holds {dtype}, want real numbers; {_save_call(path, name, '', '', 'np.abs({})')}, or .real, "
            ".imag"
        )
    elif dtype.kind == "f" and dtype.itemsize > 8:
        told, how = f"holds {dtype}", ".astype(np.float64)"
    elif dtype.kind in "SUV":
        raise RaymarchError(
            f"{where}: holds {str(dtype)[:60]} {shape}, want whole numbers or floats; save an array of them"
        )
    elif dtype.itemsize not in TYPE_SIZES.get(dtype.kind, ()):
        told, how = f"holds {str(dtype)[:60]} {shape}", ".astype(np.float64)"
    else:
        return shape, by_columns, dtype
    raise RaymarchError(f"{where}: {_cure(told, path, name, how)}")


def _cure(told: str, path: Path, name: str, how: str) -> str:
    return f"{told}, want whole numbers or floats; {_save_call(path, name, how)}"


def _save_call(path: Path, name: str, how: str = "", more: str = "", around: str = "{}") -> str:
    """Call that saves an array of a file, after something is done to it, as another file."""
    of = f"np.load({path.name!r}{more})" + (f"[{name.removesuffix('.npy')!r}]" if name else "") + how
    return f"np.save('numbers.npy', {around.format(of)})"


def _choose_index(
    path: Path, shape: tuple[int, ...], selection: Selection, name: str = ""
) -> tuple[Any, list[int], tuple[str, ...]]:
    """Index of an array of three axes, or four of which the last is channels."""
    if not 3 <= len(shape) <= 5:
        what = "a slice is no volume, stack several by np.stack" if len(shape) == 2 else "reshape it"
        how = _save_call(path, name, ".reshape(x, y, z)")
        if not shape:
            raise RaymarchError(f"{path}: has one number, want an array (x, y, z); name another file, or save one")
        raise RaymarchError(f"{path}: has shape {shape}, want (x, y, z); {what}, or {how}")
    names = ["x", "y", "z", "channel", "time"][: len(shape)]
    if len(shape) == 4 and selection.channel is None and 1 <= shape[0] <= 4 < min(shape[1:]):
        raise RaymarchError(
            f"{path}: has shape {shape}, want (x, y, z, channel); the channels seem to be first: "
            + _save_call(path, name, around="np.moveaxis({}, 0, -1)")
        )
    index, remarks = choose_index(path, shape, (0, 1, 2), selection, names=names)
    return index, [0, 1, 2], remarks


def source_npy(path: Path, selection: Selection) -> Source:
    """Source of a .npy file, of which a part is read alone."""
    with path.open("rb") as file:
        shape, by_columns, dtype = _header(file, path)
        offset = file.tell()
    require_size(path, offset, shape, dtype)
    index, _, remarks = _choose_index(path, shape, selection)

    def read(slices: Slices) -> np.ndarray:
        return read_mapped(path, offset, shape, dtype, index(slices), "F" if by_columns else "C")

    return Source(
        (shape[0], shape[1], shape[2]), dtype, np.eye(4), read, at_once=False, remarks=(*remarks, NO_SPACING_NOTE)
    )


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Archive of a path; what zipfile says of damage by exceptions that elsewhere are faults of ours is the file's."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except NotImplementedError as error:
        raise RaymarchError(f"{path}: is no whole NPZ ({one_line(error)}); {RESTORE_CURE}") from error


def _main(archive: zipfile.ZipFile, path: Path) -> tuple[zipfile.ZipInfo | None, list[str]]:
    """The member with the values: `values`, or the only one of three axes or more; and the names of all those."""
    members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
    if len(members) > MAX_MEMBERS or len({one.filename for one in members}) < len(members):
        raise RaymarchError(f"{path}: has {len(members)} members, want few and each once; {RESTORE_CURE}")
    if any(one.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for one in members):
        raise RaymarchError(f"{path}: is packed as no NumPy packs it, want deflated or stored members; {RESTORE_CURE}")
    found, refused = [], []
    for one in members:
        with archive.open(one) as stream:
            try:
                shape, _, _ = _header(io.BytesIO(stream.read(MAX_HEADER_BYTES)), path, one.filename)
            except (RaymarchError, ValueError) as error:
                if one.filename == "values.npy":
                    raise
                refused.append(error)
                continue  # texts, and what is none of ours
        if one.filename == "values.npy":
            return one, [one.filename]
        found += [one] if 3 <= len(shape) <= 5 else []
    if not found and len(members) == len(refused) == 1 and isinstance(refused[0], RaymarchError):
        raise refused[0]
    return (found[0] if len(found) == 1 else None), [one.filename for one in found]


def source_npz(path: Path, selection: Selection) -> Source:
    """Source of a .npz file; RaymarchError for one whose values are not to be told, or not what their header says."""
    with _open_archive(path) as archive:
        member, several = _main(archive, path)
        if member is None:
            names = sorted(name.removesuffix(".npy") for name in archive.namelist())
            told = ", ".join(text_of(name)[:40] for name in names[:6])
            how = "save one by np.savez(path, values=array)"
            if names:
                how = "take one out: " + _save_call(path, (several or names)[0], "" if several else ".reshape(x, y, z)")
            raise RaymarchError(
                f"{path}: has {told or 'no arrays'}, want just one of three axes or more, or one named values; {how}"
            )
        with archive.open(member) as stream:
            head = io.BytesIO(stream.read(MAX_HEADER_BYTES))
        shape, by_columns, dtype = _header(head, path, member.filename)
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if head.tell() + size != member.file_size or size > MAX_RATIO * max(member.compress_size, 1):
            raise RaymarchError(f"{path}: {member.filename} declares {size:,} bytes but holds others; {RESTORE_CURE}")
        fields, unread = _fields(archive, path, member)
    index, _, remarks = _choose_index(path, shape, selection, member.filename)

    def read(slices: Slices) -> np.ndarray:
        where: Index = index(slices)
        require_file_budget(size, f"{path}: its values, of all channels and times,")
        values = np.empty(shape, dtype, order="F" if by_columns else "C")
        with _open_archive(path) as archive, archive.open(member) as stream:
            stream.read(head.tell())
            _unpack_into(values.reshape(-1, order="A").view(np.uint8), stream, f"{path}: {member.filename}")
        return values[where]

    said = bool({"spacing", "world_from_index"} & {*fields}) or member.filename == "values.npy"
    affine = np.asarray(fields.pop("world_from_index", np.eye(4)), float)
    steps = np.asarray(fields.pop("spacing", 1.0), float)
    if affine.shape != (4, 4) or steps.shape not in ((), (1,), (3,)):
        raise RaymarchError(
            f"{path}: has a place of {affine.shape} and a spacing of {steps.shape} numbers; {RESTORE_CURE}"
        )
    affine[:3, :3] *= steps
    more: tuple[str, ...] = () if said else (NO_SPACING_NOTE,)
    if left := [name for name in unread if name in PLACEMENT_NAMES]:
        more += (
            f"has {first_names(left)}, which raymarch does not read; give spacing, or save world_from_index (4, 4)",
        )
    return Source((shape[0], shape[1], shape[2]), dtype, affine, read, remarks=remarks + more, **fields)


def _unpack_into(flat: np.ndarray, stream: Any, where: str) -> None:
    """Bytes of an array, as they are unpacked, without another copy of all of them; its checksum is looked at."""
    for at in range(0, len(flat), PIECE_BYTES):
        piece = stream.read(min(PIECE_BYTES, len(flat) - at))
        if len(piece) < min(PIECE_BYTES, len(flat) - at):
            raise RaymarchError(f"{where} ends {len(flat) - at - len(piece):,} bytes too early; {RESTORE_CURE}")
        flat[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
    stream.read(1)  # the end, where zipfile compares the checksum


def _fields(archive: zipfile.ZipFile, path: Path, main: zipfile.ZipInfo) -> tuple[dict[str, Any], list[str]]:
    """What an archive says of its values: numbers and texts of the names of a scalar volume's fields; and the names of
    its other arrays."""
    names = archive.namelist()
    fields: dict[str, Any] = {}
    for name in ("affine", "world_from_index", "spacing", "slope", "intercept", *TEXT_FIELDS):
        if f"{name}.npy" not in names or f"{name}.npy" == main.filename:
            continue
        member = archive.getinfo(f"{name}.npy")
        if member.file_size > MAX_FIELD_BYTES:
            raise RaymarchError(f"{path}: {name} has {member.file_size:,} bytes, want a few; {RESTORE_CURE}")
        with archive.open(member) as stream:
            data = io.BytesIO(stream.read(MAX_FIELD_BYTES))
        value = np.lib.format.read_array(data, allow_pickle=False, max_header_size=MAX_HEADER_BYTES)
        if name in TEXT_FIELDS:
            fields[name] = str(value)
            continue
        if value.dtype.kind not in "iuf":
            raise RaymarchError(f"{path}: {name} is {str(value.dtype)[:60]}, want numbers; {RESTORE_CURE}")
        if name in ("slope", "intercept") and value.size != 1:
            raise RaymarchError(f"{path}: {name} is {value.size} numbers, want one; {RESTORE_CURE}")
        place = "world_from_index" if name == "affine" else name  # nibabel's word
        fields[place] = float(value.reshape(())) if value.size == 1 and place != "spacing" else value.astype(float)
    taken = {
        "affine",
        "world_from_index",
        "spacing",
        "slope",
        "intercept",
        *TEXT_FIELDS,
        main.filename.removesuffix(".npy"),
    }
    return fields, sorted({name.removesuffix(".npy") for name in names} - taken)


def write_npy(volume: ScalarVolume, path: Path) -> None:
    """Array of the values (x, y, z), slope and intercept applied; where they lie stays behind, which is said."""
    if (volume.world_from_index != np.eye(4)).any():
        log.warning("a .npy holds values alone; spacing and place stay behind, which .npz keeps")
    with path.open("w+b") as file:  # of which NumPy writes through Python, and so with the reason of a refusal
        np.save(file, plain_values(volume), allow_pickle=False)


def write_npz(volume: ScalarVolume, path: Path) -> None:
    """Archive of the fields of a scalar volume, packed."""
    more: dict[str, Any] = {name: np.array(getattr(volume, name)) for name in TEXT_FIELDS}
    more |= {"slope": volume.slope, "intercept": volume.intercept, "world_from_index": volume.world_from_index}
    with path.open("wb") as file:
        np.savez_compressed(file, values=volume.values, **more)


NPY = scalar_format("NPY", (".npy",), detect_npy, source_npy, write_npy)
NPZ = scalar_format("NPZ", (".npz",), detect_npz, source_npz, write_npz)

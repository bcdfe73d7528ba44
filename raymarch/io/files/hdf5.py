"""Safe opening of HDF5 files: whatever is strange about one is refused before its arrays are read; their digest."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from raymarch.errors import PROGRAM_FAULTS, RaymarchError, escape, one_line, program_fault
from raymarch.io.files.strict import require_file, require_file_budget

FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
FILE_KINDS = {
    "raymarch-volume": "a volume of raymarch's",
    "raymarch-scalar-volume": "a scalar volume of raymarch's",
    "raymarch-images": "an image set of raymarch convert",
    "raymarch-checkpoint": "a checkpoint of a fit",
}
MAX_RATIO = 1000  # of the bytes that a dataset declares to those that it stores
# Zeros compress about 1000 to 1; in chunks of this size the overhead keeps them under that.
MAX_CHUNK = 128 << 10
MAX_ATTRIBUTES, MAX_ATTRIBUTE = 64, 4096  # of a dataset; bytes of one
MAX_OBJECTS, MAX_TOLD = 10_000, 4  # of another program's file that are looked at, and told
# What h5py raises for damaged files; LookupError covers KeyError, RuntimeError covers RecursionError.
DAMAGE_ERRORS = (OSError, LookupError, RuntimeError, ValueError, TypeError, ArithmeticError, MemoryError)
RESTORE_CURE = "restore it from a copy or write it again"
Part = tuple[str, list[int], str]  # type, shape and SHA-256 in hexadecimal of a dataset


@contextmanager
def open_hdf5(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    names: tuple[str, ...],
    *,
    streamed: tuple[str, ...] = (),
    optional: tuple[str, ...] = (),
) -> Iterator[h5py.File]:
    """Open an HDF5 file of format `kind` that holds exactly the datasets `names` in its root, all of them harmless.

    Those that are `optional` it may hold besides.

    Harmless: stored in the file itself, reached by hard links, compressed by gzip, shuffle and fletcher32 at most,
    free of references and texts of variable length, within the memory budget, and at most 1000 times as large as
    the bytes that hold them. Those that are `streamed`, read a part at a time, do not count to the budget.

    Raises RaymarchError, also for every exception of h5py inside the block: there it means that the file is damaged. A
    KeyError and the like of other code there is a fault of raymarch's, and told as one.

    Example:
        >>> with open_hdf5("ball.h5", "raymarch-volume", 1, ("density",)) as file:  # doctest: +SKIP
        ...     shape = file["density"].shape
    """
    path = require_file(path, "an HDF5 file", RESTORE_CURE)
    if not h5py.is_hdf5(path):
        raise RaymarchError(f"{path}: is not HDF5 or its beginning is damaged; check the path or {RESTORE_CURE}")
    try:
        with h5py.File(path, "r") as file:
            _require_kind(file, path, kind, version)
            names = (*(name for name in optional if name in file), *names)
            _require_names(file, path, names)
            for name in names:
                _require_harmless(file[name], path)
            held = sum(declared_bytes(file[name]) for name in names if name not in streamed)
            require_file_budget(held, f"{path}: its datasets")
            yield file
    except RaymarchError:
        raise
    except PROGRAM_FAULTS as error:
        if not _is_said_by_h5py(error):
            raise RaymarchError(f"{path}: {program_fault(error)}") from error
        raise RaymarchError(
            f"{path}: is damaged ({one_line(error)}), want a whole {kind} file; {RESTORE_CURE}"
        ) from error
    except DAMAGE_ERRORS as error:
        raise RaymarchError(
            f"{path}: is damaged ({one_line(error)}), want a whole {kind} file; {RESTORE_CURE}"
        ) from error


def _is_said_by_h5py(error: BaseException) -> bool:
    """Whether an exception was raised within h5py, which tells of damage by KeyError and TypeError too."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__", "")).split(".")[0] == "h5py"


def attributes(item: h5py.File | h5py.Dataset) -> dict[str, np.ndarray]:
    """Attributes of a file or dataset as arrays; RaymarchError for too many, too large or of a strange type."""
    if len(item.attrs) > MAX_ATTRIBUTES:
        raise RaymarchError(f"{item.file.filename}: {item.name} has {len(item.attrs)} attributes; {RESTORE_CURE}")
    found = {}
    for name in sorted(item.attrs):
        identifier = item.attrs.get_id(name)
        kind = identifier.dtype.kind
        if kind not in "Sfiu" or identifier.get_storage_size() > MAX_ATTRIBUTE:
            raise RaymarchError(
                f"{item.file.filename}: attribute {name} of {item.name} is {identifier.dtype} of"
                f" {identifier.get_storage_size()} bytes, want a number or a short text of fixed length; {RESTORE_CURE}"
            )
        found[name] = np.asarray(item.attrs[name], identifier.dtype)
    return found


def foreign_arrays(file: h5py.File, path: Path) -> str:
    """Arrays of another program's file, largest first, and the call that takes the largest of three axes or more."""
    found: list[tuple[int, str, h5py.Dataset]] = []
    fields: list[tuple[str, h5py.Dataset]] = []
    links: list[str] = []
    seen = [0]

    def look(name: str, item: h5py.Group | h5py.Dataset) -> bool | None:
        seen[0] += 1
        if isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "biuf":
            found.append((math.prod(item.shape), name, item))
        elif isinstance(item, h5py.Dataset) and item.shape and item.dtype.names and item.ndim >= 3:
            fields.append((name, item))
        elif isinstance(item, h5py.Group):
            links.extend(_links(item))
        return True if seen[0] > MAX_OBJECTS else None

    links.extend(_links(file))
    file.visititems(look)
    found.sort(key=lambda one: -one[0])
    told = [f"{escape(name)} ({' x '.join(map(str, item.shape))} {item.dtype})" for _, name, item in found[:MAX_TOLD]]
    more = f" and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
    several = next(((name, item) for _, name, item in found if sum(n > 1 for n in item.shape) >= 3), None)
    if several is None and fields:
        name, item = fields[0]
        said = f"it has {escape(name)} of the fields {', '.join(map(str, item.dtype.names))}; take one in Python: "
        return f"{said}np.save('a.npy', h5py.File({path.name!r})[{name!r}][{item.dtype.names[0]!r}].T)"
    if several is None and links:
        return f"what it holds lies in other files, {'; '.join(links[:MAX_TOLD])}; name the one that holds the values"
    if several is None:
        return (
            f"it has no array of three axes ({', '.join(told) or 'none at all'}{more}), want a volume; check the path"
        )
    name, item = several
    kept = sorted(sorted(range(item.ndim), key=lambda axis: -item.shape[axis])[:3])
    index = ", ".join(":" if axis in kept else "0" for axis in range(item.ndim))
    call = f"np.save('a.npy', h5py.File({path.name!r})[{name!r}][{index}].T)"
    return f"it has {', '.join(told)}{more}; take one in Python: {call}, by .T from z, y, x to x, y, z"


def _links(group: h5py.Group) -> list[str]:
    """Names in a group that are in other files, and which."""
    found = []
    for name in list(group)[:MAX_OBJECTS]:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            found.append(f"{escape(name)} in {escape(str(link.filename))}")
    return found


def declared_bytes(dataset: h5py.Dataset) -> int:
    """Declared size [byte] of a dataset in memory."""
    return math.prod(dataset.shape) * dataset.dtype.itemsize


def _require_kind(file: h5py.File, path: Path, kind: str, version: int) -> None:
    """RaymarchError for a file of another kind, or of a version that is newer or none."""
    # Read by itself first: the attributes of other programs' files are theirs to choose.
    said = file.attrs.get("format")
    if (other := FILE_KINDS.get(said.decode("utf-8", "replace") if isinstance(said, bytes) else said)) and FILE_KINDS[
        kind
    ] != other:
        raise RaymarchError(f"{path}: is {other}, want {FILE_KINDS[kind]}; check the path")
    if said not in (kind, kind.encode()):
        of_volume = "volume" in kind
        cure = foreign_arrays(file, path) if of_volume else f"want {FILE_KINDS[kind]}; check the path"
        raise RaymarchError(f"{path}: is HDF5 but no {kind} file (attribute format); {cure}")
    found = attributes(file).get("format_version", np.array(0))
    if found.shape != () or found.dtype.kind not in "iu" or found < 1:
        raise RaymarchError(f"{path}: has format_version {found.tolist()}, want {version}; {RESTORE_CURE}")
    if found > version:
        raise RaymarchError(f"{path}: has format_version {int(found)}, this raymarch reads {version}; update raymarch")


def _require_names(file: h5py.File, path: Path, names: tuple[str, ...]) -> None:
    if len(file) > len(names) + MAX_ATTRIBUTES:
        raise RaymarchError(f"{path}: holds {len(file)} objects, want {', '.join(names)}; {RESTORE_CURE}")
    for name in file:
        link = file.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise RaymarchError(f"{path}: {name} is a {type(link).__name__}, want data in this file; copy the data in")
    missing, extra = sorted(set(names) - set(file)), sorted(set(file) - set(names))
    if missing or extra:
        what = f"lacks {', '.join(missing)}" if missing else f"also holds {', '.join(extra)}"
        raise RaymarchError(f"{path}: {what}; want exactly {', '.join(names)}; {RESTORE_CURE}")


def _require_harmless(dataset: h5py.Dataset, path: Path) -> None:
    where = f"{path}: {dataset.name.lstrip('/')}"
    if not isinstance(dataset, h5py.Dataset):
        raise RaymarchError(f"{where} is a {type(dataset).__name__.lower()}, want a dataset; {RESTORE_CURE}")
    if dataset.dtype.kind not in "Sfiu" or dataset.shape is None:
        raise RaymarchError(f"{where} has type {dataset.dtype}, want numbers or a text of fixed length; {RESTORE_CURE}")
    plan = dataset.id.get_create_plist()
    if plan.get_external_count():
        raise RaymarchError(f"{where} lies in external files, want data in this file; copy the data in")
    if plan.get_layout() == h5py.h5d.VIRTUAL:
        raise RaymarchError(f"{where} is a virtual dataset, want data in this file; copy the data in")
    filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
    # A filter twice would multiply the ratio of a compressed bomb by itself.
    if not set(filters) <= FILTERS or len(set(filters)) < len(filters):
        raise RaymarchError(f"{where} has filters {filters}, want gzip, shuffle and fletcher32 at most once; repack it")
    declared, stored = declared_bytes(dataset), dataset.id.get_storage_size()
    if declared > MAX_RATIO * stored:
        raise RaymarchError(
            f"{where} declares {declared} bytes but stores {stored}, want at most {MAX_RATIO} times; {RESTORE_CURE}"
        )
    if dataset.chunks and any(c > n for c, n in zip(dataset.chunks, dataset.shape, strict=True)):
        raise RaymarchError(f"{where} has chunks {dataset.chunks} larger than its shape {dataset.shape}; repack it")


def digest_of(parts: Mapping[str, Part], notes: Mapping[tuple[str, str], np.ndarray]) -> bytes:
    """SHA-256, in hexadecimal, of the type, shape and SHA-256 of every dataset, then of every attribute but itself.

    So a file whose datasets are too large to be held together has a digest too.

    Args:
        parts: of a dataset by its name.
        notes: attributes by owner, which is / or a dataset, and name.
    """
    lines = [f"dataset {name} {kind} {shape} {digest}\n" for name, (kind, shape, digest) in sorted(parts.items())]
    for (owner, name), value in sorted(notes.items()):
        digest = hashlib.sha256(value.tobytes()).hexdigest()
        lines.append(f"attribute {owner} {name} {value.dtype.str} {list(value.shape)} {digest}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest().encode()

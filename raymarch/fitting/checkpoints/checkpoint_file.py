"""Checkpoint file of a fit: its record, its datasets and the checks of both; docs/checkpoints.md describes it.

It is written and read by parts: no array is ever in memory in full, and Python alone writes to the disk."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from raymarch.errors import RaymarchError, one_line, short_value
from raymarch.io.files.atomic import replace_file
from raymarch.io.files.hdf5 import DAMAGE_ERRORS, Part, attributes, digest_of, open_hdf5
from raymarch.io.files.hdf5 import RESTORE_CURE as CURE_OF_FILES
from raymarch.io.files.strict import parse_record

DAMAGE_CURE = "take a copy of it, or begin anew without it (--overwrite, without --resume)"  # of a damaged checkpoint
DIGEST_DATASET = "digest"  # of all else: a dataset, for only at the end is it known
DIGEST_LENGTH = 64  # of its text
FORMAT = "raymarch-checkpoint"
VERSION = 2
SAMPLE_DATASETS = ("touched", "samples", "left", "gradient")  # as many as the grid has samples, or some of them
DATASETS = (
    "record", "history", *SAMPLE_DATASETS, "cubes", "errors", "level_shape", "table", "occupied", "allowed",
    "world_from_index",
    "exposures", "background", "moments", "behind", DIGEST_DATASET,
)  # fmt: skip
OPTIONAL_DATASETS = ("depth_alignment", "depth_sums")  # of a fit with depth images
MAX_RECORD_BYTES = 16 << 20  # bytes of its text
MAX_GROUPS = 50_000  # lists and mappings, of which each camera is one
MAX_STEPS = 2**31 - 1
MAX_COUNTS = {"steps": MAX_STEPS, "moments_age": MAX_STEPS, "level": 63, "drawn": 2**62}  # and what each is at most
TIME_KEYS = ("seconds", "ready", "every")
MAPPING_KEYS = {"settings": (), "grid": ("box", "shape", "precision"), "made_by": ()}  # and what each must have
VIEW_KEYS = ("names", "images", "masks", "lenses")  # texts; and its cameras are numbers
CAMERA_NUMBERS = (22, 32)  # of a camera, from pose to lens: at least, at most
MAX_NOTE_LENGTH = 1 << 20  # letters


def write_checkpoint(path: str | os.PathLike[str], record: Mapping[str, Any], streams: Mapping[str, Stream]) -> None:
    """Checkpoint written in one step; an older one stays as it was where that fails.

    Args:
        path: of the file.
        record: plain mapping of what is no array, see `check_record`.
        streams: all other datasets by name.

    Raises RaymarchError for a disk that refuses and a record over 16 MiB.
    """
    text = json.dumps(record, allow_nan=False).encode("ascii")
    if len(text) > MAX_RECORD_BYTES:
        raise RaymarchError(f"{path}: the names of the views take over {MAX_RECORD_BYTES:,} bytes; shorten them")
    notes = {"format": np.array(FORMAT.encode()), "format_version": np.array(VERSION, "<i8")}
    write_streamed(path, notes, {"record": Stream.of(np.array(text)), **streams})


@contextmanager
def open_checkpoint(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], StreamedReader]]:
    """Open checkpoint: its record and a reader of its datasets, whose `require_digest` is due at the end.

    Raises RaymarchError for a file that is none, that is damaged or cut, and for what only a hostile one has.
    """
    how = {"streamed": ("samples", "gradient"), "optional": OPTIONAL_DATASETS}
    with _checkpoint_cure(), open_hdf5(path, FORMAT, VERSION, DATASETS, **how) as file:
        if file["record"].shape != () or file["record"].dtype.kind != "S":
            raise RaymarchError(f"{path}: record is {file['record'].dtype}, want one text; {DAMAGE_CURE}")
        if file["record"].dtype.itemsize > MAX_RECORD_BYTES:
            raise RaymarchError(f"{path}: record is over {MAX_RECORD_BYTES:,} bytes long; {DAMAGE_CURE}")
        if file[DIGEST_DATASET].shape != () or file[DIGEST_DATASET].dtype.kind != "S":
            raise RaymarchError(f"{path}: digest is {file[DIGEST_DATASET].dtype}, want one text; {DAMAGE_CURE}")
        reader = StreamedReader(file, Path(path))
        yield check_record(reader.rows("record").tobytes(), path), reader


@contextmanager
def _checkpoint_cure() -> Iterator[None]:
    """Context in which what any file's reader advises is what can be done about a checkpoint."""
    try:
        yield
    except RaymarchError as error:
        for cure in (CURE_OF_FILES, "save one with raymarch"):
            if str(error).endswith(cure):
                raise type(error)(f"{str(error).removesuffix(cure)}{DAMAGE_CURE}") from error
        raise


def read_record(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Record of a checkpoint, read without its arrays, so that its digest is not checked."""
    with open_checkpoint(path) as (record, _):
        return record


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Detection: whether the file is HDF5 and says that it is a checkpoint, of whatever version and however damaged."""
    try:
        if not os.path.isfile(path):  # a pipe would wait for who writes it
            return False
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
    except DAMAGE_ERRORS:
        return False


def check_record(text: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Record of a checkpoint; RaymarchError where it lacks something or has what none has."""
    where = f"{path}: record"
    record = parse_record(text, where, MAX_GROUPS, DAMAGE_CURE)
    for name, most in MAX_COUNTS.items():
        if type(record.get(name)) is not int or not 0 <= record[name] <= most:
            raise RaymarchError(f"{where}: {name} is {short_value(record.get(name))}, want 0 to {most}; {DAMAGE_CURE}")
    for name in TIME_KEYS:
        if not _is_number(record.get(name)) or record[name] < 0:
            raise RaymarchError(f"{where}: {name} is {short_value(record.get(name))}, want 0 or more; {DAMAGE_CURE}")
    for name, parts in MAPPING_KEYS.items():
        value = record.get(name)
        if not isinstance(value, dict) or not set(parts) <= set(value):
            raise RaymarchError(f"{where}: {name} is {short_value(value)}, want a mapping; {DAMAGE_CURE}")
    if not isinstance(record.get("note"), str) or len(record["note"]) > MAX_NOTE_LENGTH:
        raise RaymarchError(f"{where}: note is {short_value(record.get('note'))}, want a text; {DAMAGE_CURE}")
    _require_views(record.get("views"), where)
    return record


def _require_views(views: object, where: str) -> None:
    """RaymarchError where there is not a checksum of each kind for every view."""
    views = views if isinstance(views, dict) else {}
    lists = [views.get(name) for name in (*VIEW_KEYS, *(["depths"] if "depths" in views else []))]
    texts = [one for one in lists if isinstance(one, list) and all(isinstance(text, str) for text in one)]
    if len(texts) < len(lists) or len(set(map(len, texts))) != 1:
        raise RaymarchError(
            f"{where}: views is {short_value(views)}, want as many checksums of each kind; {DAMAGE_CURE}"
        )
    cameras = views.get("cameras")
    if not isinstance(cameras, list) or len(cameras) != len(texts[0]) or not all(map(_is_camera, cameras)):
        raise RaymarchError(
            f"{where}: cameras is {short_value(cameras)}, want {len(texts[0])} lists of numbers; {DAMAGE_CURE}"
        )
    background = views.get("background")
    if not isinstance(background, list) or len(background) != 3 or not all(map(_is_number, background)):
        raise RaymarchError(f"{where}: background is {short_value(background)}, want three numbers; {DAMAGE_CURE}")


def _is_camera(value: object) -> bool:
    return (
        isinstance(value, list) and CAMERA_NUMBERS[0] <= len(value) <= CAMERA_NUMBERS[1] and all(map(_is_number, value))
    )


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Stream:
    """Dataset by parts: its shape, its type, and arrays that are its rows, one behind the other.

    Example:
        >>> Stream.of(np.eye(2)).shape
        (2, 2)
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    parts: Iterable[np.ndarray]

    @staticmethod
    def of(array: np.ndarray) -> Stream:
        """The dataset of an array, in one part."""
        return Stream(array.shape, array.dtype, (array,))


def write_streamed(
    path: str | os.PathLike[str], notes: Mapping[str, np.ndarray], streams: Mapping[str, Stream]
) -> None:
    """HDF5 file of datasets and root attributes `notes`, written in one step with a digest of all that is in it.

    Raises RaymarchError for a disk that refuses, after which an older file of that name is what it was; what the
    streams raise passes through.

    Example:
        >>> write_streamed("eye.h5", {"format": np.array(b"eye")}, {"eye": Stream.of(np.eye(2))})
    """
    # HDF5 crashes the process if its own writes meet a full disk: it lays out an empty file, Python fills it.
    frame, places = _lay_out(path, notes, {**streams, DIGEST_DATASET: Stream((), np.dtype(f"S{DIGEST_LENGTH}"), ())})
    with replace_file(path) as temporary, temporary.open("r+b", buffering=0) as file:
        for at, data in frame.writes:
            _write_all(file, at, memoryview(data))
        file.truncate(frame.end)
        parts = {name: _write_stream(file, places[name], stream) for name, stream in streams.items()}
        digest = digest_of(parts, {("/", name): value for name, value in notes.items()})
        _write_all(file, places[DIGEST_DATASET], memoryview(digest))


def _lay_out(
    path: str | os.PathLike[str], notes: Mapping[str, np.ndarray], streams: Mapping[str, Stream]
) -> tuple[_Frame, dict[str, int]]:
    """What HDF5 writes for the file without its data, and where the data of each dataset belong."""
    frame, places = _Frame(), {}
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_layout(h5py.h5d.CONTIGUOUS)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    try:
        with h5py.File(frame, "w", libver=("v110", "v110")) as file:
            for name, value in notes.items():
                file.attrs.create(name, value)
            for name, stream in streams.items():
                kind = h5py.h5t.py_create(stream.dtype, logical=True)
                space = h5py.h5s.create_simple(stream.shape) if stream.shape else h5py.h5s.create(h5py.h5s.SCALAR)
                places[name] = h5py.h5d.create(file.id, name.encode(), kind, space, plan).get_offset() or 0
    except (OSError, RuntimeError, MemoryError) as error:
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); free some memory") from error
    return frame, places


def _write_stream(file: BinaryIO, place: int, stream: Stream) -> Part:
    """Write a stream where it belongs; its type, shape and digest."""
    seen, written = hashlib.sha256(), 0
    for part in stream.parts:
        data = _bytes_of(np.ascontiguousarray(part, stream.dtype))
        seen.update(data)
        _write_all(file, place + written, data)
        written += len(data)
    if written != stream.dtype.itemsize * math.prod(stream.shape):
        raise RuntimeError(f"a stream of shape {stream.shape} gave {written} bytes")
    return stream.dtype.str, list(stream.shape), seen.hexdigest()


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _write_all(file: BinaryIO, at: int, data: memoryview) -> None:
    """Write all of the data: a system may take less at once."""
    file.seek(at)
    while len(data):
        data = data[file.write(data) :]


class _Frame(io.RawIOBase):
    """File in memory as HDF5 writes to it: a few hundred bytes here and there, up to terabytes apart."""

    def __init__(self) -> None:
        self.writes: list[tuple[int, bytes]] = []
        self.end = self._at = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.end}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: int | None = None) -> int:
        self.end = self._at if size is None else size
        return self.end

    def write(self, data: object) -> int:
        taken = bytes(data)  # type: ignore[call-overload]
        self.writes.append((self._at, taken))
        self._at += len(taken)
        self.end = max(self.end, self._at)
        return len(taken)

    def readinto(self, buffer: object) -> int:
        into = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        into[:] = bytes(len(into))
        for at, data in self.writes:
            low, high = max(at, self._at), min(at + len(data), self._at + len(into))
            if low < high:
                into[low - self._at : high - self._at] = data[low - at : high - at]
        self._at += len(into)
        return len(into)


class StreamedReader:
    """Datasets of an open file, read by rows in order; at the end `require_digest` says whether all is what it was.

    Args:
        file: as `open_hdf5` gives it.
        path: for messages.
    """

    def __init__(self, file: h5py.File, path: Path):
        self._file, self._path = file, path
        self._seen = {name: hashlib.sha256() for name in file if name != DIGEST_DATASET}
        self._at = dict.fromkeys(self._seen, 0)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a dataset."""
        return self._file[name].shape

    def require(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        """Shape check: RaymarchError where a dataset has another shape or type."""
        found = self._file[name]
        if found.shape != shape or found.dtype.str != dtype:
            raise RaymarchError(
                f"{self._path}: {name} is {found.dtype} {found.shape}, want {np.dtype(dtype)} {shape}; {DAMAGE_CURE}"
            )

    def rows(self, name: str, count: int | None = None) -> np.ndarray:
        """The next `count` rows of a dataset, or all of it; what it is goes into the digest."""
        dataset, at = self._file[name], self._at[name]
        read = dataset[()] if count is None else dataset[at : at + count]
        found = np.ascontiguousarray(np.asarray(read, dataset.dtype))
        self._seen[name].update(_bytes_of(found))
        self._at[name] += 0 if count is None else count
        return found

    def require_digest(self) -> None:
        """RaymarchError where what was read is not what the file's digest is of."""
        parts = {
            name: (self._file[name].dtype.str, list(self._file[name].shape), seen.hexdigest())
            for name, seen in self._seen.items()
        }
        notes = {("/", name): value for name, value in attributes(self._file).items()}
        if bytes(self._file[DIGEST_DATASET][()]) != digest_of(parts, notes):
            raise RaymarchError(
                f"{self._path}: its content is not what its digest says, so it was altered; {DAMAGE_CURE}"
            )

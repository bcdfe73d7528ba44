"""HDF5 writer of an image set: split by split, each view once, all or nothing."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path

import h5py
import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.atomic import replace_file, system_refusals
from raymarch.io.files.hdf5 import digest_of
from raymarch.io.image_sets.frames import require_few
from raymarch.io.image_sets.hdf5 import layout
from raymarch.views.views import Views

CHUNK_BYTES = 128 << 10  # bytes; as of volumes, it keeps images of one colour under what the opener refuses
COMPRESSION = {"compression": "gzip", "compression_opts": 1, "fletcher32": True}


def write_views(splits: Iterable[tuple[str, Views]], path: str | os.PathLike[str]) -> dict[str, int]:
    """Image set written to one HDF5 file in one step: if it fails, an older file of that name stays as it was.

    Args:
        splits: names with views, which are taken one after the other; a view that two have is written once.
        path: of the file.

    Returns the number of views of each split.

    Raises RaymarchError for a disk that refuses, memory that does not hold the file, and no splits; what `splits` raise
    passes through.

    Example:
        >>> views = Views([Camera.look_at((0, -4, 0), width=8, height=6)], np.zeros((1, 6, 8, 3), np.uint8))
        >>> write_views([("train", views)], "set.h5")
        {'train': 1}
    """
    # HDF5 crashes the process if its own writes meet a full disk; so it writes to memory, and Python to the disk.
    image = io.BytesIO()
    try:
        with h5py.File(image, "w", libver=("v110", "v110")) as file:
            found = _Writer(file)
            for name, views in splits:
                found.add(name, views)
            if not found.splits:
                raise RaymarchError(f"{path}: no splits to write; want one or more")
            found.finish()
    except (OSError, RuntimeError, MemoryError) as error:
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); free some memory") from error
    with replace_file(path, ".h5") as temporary, system_refusals(path):
        Path(temporary).write_bytes(image.getbuffer())
    return {name: len(split["views"]) for name, split in found.splits.items()}  # type: ignore[arg-type]


class _Writer:
    """Writer of a file that is open: what came so far, and the pixels that are in it."""

    def __init__(self, file: h5py.File) -> None:
        self.splits: dict[str, dict[str, object]] = {}
        self._channels: tuple[str, ...] = ()
        self._file = file
        self._rows: dict[str, list[np.ndarray]] = {name: [] for name in layout.TABLES}
        self._names: list[str] = []
        self._lenses: list[str] = []
        self._known: dict[bytes, int] = {}
        self._points: dict[bytes, list[int]] = {}
        self._pixels = {name: _Stream(file, name) for name in layout.PIXEL_DATASETS}
        self._depths = _Stream(file, layout.DEPTH_DATASET, "<f4")
        self._depth_sizes: list[tuple[int, int]] = []
        self._sightings: set[tuple[int, int]] = set()

    def add(self, name: str, views: Views) -> None:
        """Views of a split."""
        if self.splits and tuple(views.channels) != self._channels:
            here, before = (", ".join(one) or "red, green, blue" for one in (views.channels, self._channels))
            raise RaymarchError(f"split {name} has the channels {here}, another {before}; write them to two files")
        self._channels = tuple(views.channels)
        which = [self._view(views, i) for i in range(len(views))]
        self.splits[name] = {
            "views": which,
            "background": list(views.background),
            "source": views.source,
            "box": None if views.box is None else np.asarray(views.box, float).ravel().tolist(),
            **({} if views.origin is None else {"origin": list(views.origin)}),
            **({} if views.bounds is None else {"bounds": views.bounds.ravel().tolist()}),
            "points": None if views.points is None or not len(views.points) else self._place(views.points),
        }
        if views.sightings is not None:
            first = self.splits[name]["points"][0]  # type: ignore[index]
            self._sightings.update((which[view], first + point) for view, point in views.sightings.tolist())

    def _view(self, views: Views, i: int) -> int:
        camera, mask = views.cameras[i], views.mask(i)
        image = np.ascontiguousarray(views.image(i), "<f4" if views.channels else np.uint8)
        size = np.array([camera.width, camera.height, image.shape[2], mask is not None], "<i8")
        row = {"sizes": size, **layout.row_of(camera)}
        row = {name: np.ascontiguousarray(value, layout.TABLES[name][1]) for name, value in row.items()}
        pixels = {"images": image, "masks": np.zeros(0, np.uint8) if mask is None else mask.astype(np.uint8)}
        key = hashlib.sha256(f"{views.names[i]!r} {camera.lens.model}".encode("utf-8", "surrogatepass"))
        depth = views.depth(i)
        for value in (*row.values(), *pixels.values(), *(() if depth is None else (depth,))):
            key.update(value.tobytes())
        index = self._known.setdefault(key.digest(), len(self._names))
        if index == len(self._names):
            require_few(index + 1, Path(views.source or "views"))
            self._names.append(views.names[i])
            self._lenses.append(camera.lens.model)
            for name, value in row.items():
                self._rows[name].append(value)
            for name, value in pixels.items():
                self._pixels[name].add(value.tobytes())
            self._depth_sizes.append((0, 0) if depth is None else (depth.shape[1], depth.shape[0]))
            if depth is not None:
                self._depths.add(np.ascontiguousarray(depth, "<f4").tobytes())
        return index

    def _place(self, points: np.ndarray) -> list[int]:
        """First row and the row behind the last of these points."""
        points = np.ascontiguousarray(points, "<f8")
        first = sum(len(some) for some in self._rows["points"])
        key = hashlib.sha256(points.tobytes()).digest()
        if key not in self._points:
            self._points[key] = [first, first + len(points)]
            self._rows["points"].append(points)
        return self._points[key]

    def finish(self) -> None:
        """Tables, record, attributes and digest."""
        parts = {name: stream.finish() for name, stream in self._pixels.items()}
        record = {"names": self._names, "lenses": self._lenses, "splits": self.splits}
        arrays = {"record": np.array(json.dumps(record, allow_nan=False).encode("ascii"))}
        if arrays["record"].dtype.itemsize > layout.MAX_RECORD:
            raise RaymarchError(f"names are over {layout.MAX_RECORD:,} bytes long; split the set")
        for name, (row, kind) in layout.TABLES.items():
            rows = self._rows[name]
            array = np.concatenate(rows) if name == "points" and rows else np.array(rows, kind).reshape(-1, *row)
            arrays[name] = np.ascontiguousarray(array, kind)
        if any(width for width, _ in self._depth_sizes):
            parts[layout.DEPTH_DATASET] = self._depths.finish()
            arrays["depth_sizes"] = np.array(self._depth_sizes, "<i8")
        if self._sightings:
            arrays["sightings"] = np.array(sorted(self._sightings), "<i8")
        for name, array in arrays.items():
            chunked = (
                {"chunks": (min(len(array), 1024), *array.shape[1:]), **COMPRESSION}
                if array.size and array.ndim
                else {}
            )
            self._file.create_dataset(name, data=array, **chunked)
            parts[name] = array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()
        notes = {
            ("/", "format"): np.array(layout.FORMAT.encode()),
            ("/", "format_version"): np.array(layout.VERSION if self._channels else layout.PLAIN_VERSION, "<i8"),
        }
        if self._channels:
            notes[layout.CHANNELS_NOTE] = np.array(",".join(self._channels).encode())
        for (owner, name), value in notes.items():
            self._file[owner].attrs.create(name, value)
        self._file.attrs.create("digest", np.array(digest_of(parts, notes)))


class _Stream:
    """Dataset of bytes, or other numbers, that grows by whole chunks, and their digest."""

    def __init__(self, file: h5py.File, name: str, kind: str = "|u1") -> None:
        self._file, self._name, self._kind = file, name, np.dtype(kind)
        self._waiting, self._digest, self._size = bytearray(), hashlib.sha256(), 0

    def add(self, data: bytes) -> None:
        self._digest.update(data)
        self._waiting += data
        whole = len(self._waiting) // CHUNK_BYTES * CHUNK_BYTES
        if whole:
            self._store(whole)

    def _store(self, count: int) -> None:
        numbers = count // self._kind.itemsize
        if self._name not in self._file:
            chunks = (min(numbers, CHUNK_BYTES // self._kind.itemsize),)
            self._file.create_dataset(self._name, (0,), self._kind, maxshape=(None,), chunks=chunks, **COMPRESSION)
        dataset = self._file[self._name]
        dataset.resize((self._size + numbers,))
        dataset[self._size :] = np.frombuffer(self._waiting[:count], self._kind)
        del self._waiting[:count]
        self._size += numbers

    def finish(self) -> tuple[str, list[int], str]:
        """Type, shape and digest, once the rest is stored."""
        if self._waiting:
            self._store(len(self._waiting))
        if not self._size:
            self._file.create_dataset(self._name, data=np.zeros(0, self._kind))
        return self._kind.str, [self._size], self._digest.hexdigest()

"""Fitted volume in an HDF5 file whose samples stay there: read box by box, dense or of bricks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import RESTORE_CURE, open_hdf5
from raymarch.io.files.stamp import while_unchanged
from raymarch.io.volumes.hdf5 import schema
from raymarch.io.volumes.hdf5.provenance import provenance_of
from raymarch.volumes.bricks import BRICK_SIDE, TABLE, require_each_once
from raymarch.volumes.channels import background_of_channels
from raymarch.volumes.file_volume import FileSamples, FileVolume, Slices
from raymarch.volumes.samples import COLOUR_CHANNELS, SAMPLES
from raymarch.volumes.selection import Selection

STREAMED = ("density", "features")


def open_in_parts(path: Path, selection: Selection) -> FileVolume:
    """Volume of a file, of which nothing is read but the table of its bricks; its digest is not checked.

    Raises RaymarchError as `rm.load` does, for nested boxes, a volume in NDC and other channels than red, green and
    blue, which are marched from memory alone, and for a channel, time or level, which it has not.
    """
    with _open(path) as file, schema.naming(path):
        notes = schema.check_notes(file, path)
        channels, activation = schema.channels_in(file, path), schema.activation_of(notes, path)
        _require_plain(path, notes, channels, selection)
        background = background_of_channels(channels, file["background"][()].tolist())
        provenance = provenance_of(np.asarray(file["provenance"][()]), path)
        affine, table = np.asarray(file["world_from_index"][()]), None
        shape, kind = file["density"].shape, np.dtype(file["density"].dtype.newbyteorder("="))
        count = file["features"].shape[-1]
        if schema.TABLE in file:
            shape, table = schema.shape_of(notes, file, path), TABLE("table", file[schema.TABLE][()])
            require_each_once(table, len(file["density"]))
    readers: dict[str, Callable[[Slices], np.ndarray]] = {
        name: while_unchanged(
            path, _dense_reader(path, name) if table is None else _brick_reader(path, name, table, shape, fill)
        )
        for name, fill in (("density", activation.empty), ("features", 0.0))
    }
    samples = FileSamples(shape, kind, readers["density"], channels=count, read_features=readers["features"])
    return FileVolume(samples, affine, background, activation, provenance)


def _require_plain(path: Path, notes: schema.Notes, channels: tuple[str, ...], selection: Selection) -> None:
    for is_so, what in (
        (schema.boxes_of(notes, path) > 1, "lies in nested boxes"),
        (schema.ndc_of(notes) is not None, "lies in NDC"),
        (channels != COLOUR_CHANNELS, "has other channels than red, green and blue"),
    ):
        if is_so:
            raise RaymarchError(f"{path}: {what}, so it is marched from memory alone; leave memory out")
    given = [name for name in ("channel", "time") if getattr(selection, name) is not None]
    if selection.level:
        given.append("level")
    if given:
        raise RaymarchError(f"{path}: is a fitted volume, which has no {given[0]} to choose; leave it out")


@contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    how: dict[str, Any] = {"streamed": STREAMED, "optional": (schema.TABLE,)}
    with open_hdf5(path, schema.FORMAT, schema.VERSION, schema.DATASETS, **how) as file:
        yield file


def _checked(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    try:
        return SAMPLES(name, values)  # type: ignore[no-any-return]
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}; {RESTORE_CURE}") from error


def _dense_reader(path: Path, name: str) -> Callable[[Slices], np.ndarray]:
    def read(slices: Slices) -> np.ndarray:
        with _open(path) as file:
            values: np.ndarray = file[name][slices]
        return _checked(path, name, values)

    return read


def _brick_reader(
    path: Path, name: str, table: np.ndarray, shape: tuple[int, ...], fill: float
) -> Callable[[Slices], np.ndarray]:
    """Reader of slices of dense samples, which reads the bricks that they cross."""

    def read(slices: Slices) -> np.ndarray:
        axes = [np.arange(*one.indices(n)) for one, n in zip(slices, shape, strict=True)]
        rows = [np.unique(axis // BRICK_SIDE) for axis in axes]
        here = table[np.ix_(*rows)]
        numbers = np.sort(here[here >= 0])
        with _open(path) as file:
            rest = file[name].shape[4:]
            values = np.empty((len(numbers), BRICK_SIDE, BRICK_SIDE, BRICK_SIDE, *rest), file[name].dtype)
            for first, last, begin in _runs(numbers):
                file[name].read_direct(values, np.s_[first:last], np.s_[begin : begin + last - first])
        out = np.full((*map(len, axes), *rest), fill, values.dtype)
        for place in np.argwhere(here >= 0):
            inside = [axis // BRICK_SIDE == row[n] for axis, row, n in zip(axes, rows, place, strict=True)]
            within = np.ix_(*(axis[on] % BRICK_SIDE for axis, on in zip(axes, inside, strict=True)))
            brick = values[np.searchsorted(numbers, here[tuple(place)])]
            out[np.ix_(*inside)] = brick[within]
        return _checked(path, name, out)

    return read


def _runs(numbers: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Runs of numbers that rise by one: the first, the one behind the last, and how many come before.

    Example:
        >>> list(_runs(np.array([2, 3, 4, 9])))
        [(2, 5, 0), (9, 10, 3)]
    """
    ends = np.flatnonzero(np.diff(numbers) != 1) + 1
    for begin, end in zip([0, *ends], [*ends, len(numbers)], strict=True):
        if end > begin:
            yield int(numbers[begin]), int(numbers[end - 1]) + 1, int(begin)

"""HDF5 file of a scalar volume: read, in part if asked, and described."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import CURE, opened
from raymarch.io.volumes.hdf5 import scalar as schema
from raymarch.io.volumes.hdf5.schema import digest_of
from raymarch.io.volumes.part import require_one_place
from raymarch.io.volumes.scalar_summary import ScalarSummary
from raymarch.io.volumes.source import Source, volume_of
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection


def is_scalar(path: str | os.PathLike[str]) -> bool:
    """Whether an HDF5 file says that it is a scalar volume."""
    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (schema.FORMAT, schema.FORMAT.encode())
    except (OSError, LookupError, RuntimeError, ValueError, TypeError):
        return False


def read(path: str | os.PathLike[str], selection: Selection) -> ScalarVolume:
    """Scalar volume of a file, checked against its digest; a part of it is read without that check."""
    streamed = () if selection.is_all else ("values",)
    with _scalar_file(path, streamed) as (file, notes):
        require_one_place(selection, Path(path))
        source = _source(file, notes, path)
        try:
            selection.slices(source.shape)
        except RaymarchError as error:  # of who asks, not of the file
            raise RaymarchError(f"{path}: {error}") from error
        volume = volume_of(source, selection, Path(path))
        if selection.is_all:
            arrays = {name: np.asarray(file[name][()], file[name].dtype) for name in schema.NAMES if name != "values"}
            arrays["values"] = np.ascontiguousarray(volume.values.T, file["values"].dtype)
            if notes.pop(("/", "digest")).tolist() != digest_of(arrays, notes):
                raise RaymarchError(f"{path}: its content is not what its digest says, so it was altered; {CURE}")
        return volume


def describe(path: str | os.PathLike[str]) -> ScalarSummary:
    """Summary of a scalar volume's file, read without its values."""
    with _scalar_file(path, ("values",)) as (file, notes):
        return ScalarSummary.of_source(_source(file, notes, path), Path(path))


def _source(file: h5py.File, notes: schema.Notes, path: str | os.PathLike[str]) -> Source:
    values = file["values"]
    x, y, z = values.shape[::-1]
    affine = np.asarray(file["world_from_index"][()])
    return Source(
        (x, y, z),
        values.dtype,
        affine,
        lambda part: values[part[::-1]].T,
        at_once=False,
        **schema.about(file, notes, path),
    )


@contextmanager
def _scalar_file(
    path: str | os.PathLike[str], streamed: tuple[str, ...]
) -> Iterator[tuple[h5py.File, schema.Notes]]:  # fmt: skip
    with opened(path, schema.FORMAT, schema.VERSION, schema.NAMES, streamed=streamed) as file:
        try:
            yield file, schema.checked_notes(file, path)
        except RaymarchError as error:
            text = str(error)
            raise RaymarchError(text if text.startswith(str(path)) else f"{path}: {text}; {CURE}") from error

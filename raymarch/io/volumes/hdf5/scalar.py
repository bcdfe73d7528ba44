"""HDF5 file of a scalar volume, a kind of file of its own: values as stored, with what they mean as attributes.

The values lie (z, y, x), x the fastest, as imaging and XDMF have them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import RESTORE_CURE, attributes, open_hdf5
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.hdf5.provenance import provenance_of, provenance_text
from raymarch.io.volumes.hdf5.schema import digest_of, naming, require_place
from raymarch.io.volumes.source import Slices, Source, volume_of
from raymarch.io.volumes.summary import ScalarSummary
from raymarch.views.views import require_colour
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

FORMAT = "raymarch-scalar-volume"
VERSION = 1
DATASETS = ("values", "world_from_index", "background", "provenance")
TEXT_ATTRIBUTES = {"unit": "values", "name": "values", "length_unit": "world_from_index", "world": "world_from_index"}
Notes = dict[tuple[str, str], np.ndarray]


def arrays_of(volume: ScalarVolume, path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Datasets of a scalar volume, little-endian."""
    return {
        "values": np.ascontiguousarray(volume.values.T, volume.values.dtype.newbyteorder("<")),
        "world_from_index": np.array(volume.world_from_index, "<f8"),
        "background": np.array(require_colour(volume.background), "<f8"),
        "provenance": provenance_text(volume.provenance, path),
    }


def notes_of(volume: ScalarVolume) -> Notes:
    """Attributes by owner and name; texts that are empty are left out."""
    values: dict[tuple[str, str], Any] = {
        ("/", "format"): FORMAT,
        ("/", "format_version"): VERSION,
        ("values", "axes"): "z, y, x",
        ("values", "slope"): volume.slope,
        ("values", "intercept"): volume.intercept,
        ("provenance", "encoding"): "JSON",
    }
    values |= {(owner, name): getattr(volume, name) for name, owner in TEXT_ATTRIBUTES.items() if getattr(volume, name)}
    kinds = {int: "<i8", float: "<f8"}
    return {
        key: np.array(value.encode()) if isinstance(value, str) else np.array(value, kinds[type(value)])
        for key, value in values.items()
    }


def check_notes(file: h5py.File, path: str | os.PathLike[str]) -> Notes:
    """All attributes, once shapes, types and attributes are those of the format; else RaymarchError."""
    values = file["values"]
    sizes = TYPE_SIZES.get(values.dtype.kind, ())
    if values.ndim != 3 or min(values.shape) < 2 or values.dtype.itemsize not in sizes:
        raise RaymarchError(f"{path}: values are {values.dtype} {values.shape}, want numbers (x, y, z); {RESTORE_CURE}")
    require_place(file, path)
    notes = {(owner, name): value for owner in ("/", *DATASETS) for name, value in attributes(file[owner]).items()}
    wanted = {("values", "slope"): "f", ("values", "intercept"): "f", ("/", "digest"): "S"}
    wanted |= {(owner, name): "S" for name, owner in TEXT_ATTRIBUTES.items() if (owner, name) in notes}
    for key, kind in wanted.items():
        if key not in notes or notes[key].shape != () or notes[key].dtype.kind != kind:
            raise RaymarchError(f"{path}: {key[0]} lacks the attribute {key[1]} or it has another type; {RESTORE_CURE}")
    return notes


def describe_values(file: h5py.File, notes: Notes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the file says of its values, by the names of `ScalarVolume`'s fields."""
    texts = {
        name: notes[owner, name].tolist().decode() for name, owner in TEXT_ATTRIBUTES.items() if (owner, name) in notes
    }
    return {
        **texts,
        "slope": float(notes["values", "slope"]),
        "intercept": float(notes["values", "intercept"]),
        "background": require_colour(file["background"][()].tolist()),
        "provenance": provenance_of(np.asarray(file["provenance"][()]), path),
    }


def is_scalar(path: str | os.PathLike[str]) -> bool:
    """Whether an HDF5 file says that it is a scalar volume."""
    try:
        with h5py.File(path, "r") as file:
            return file.attrs.get("format") in (FORMAT, FORMAT.encode())
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
            arrays = {name: np.asarray(file[name][()], file[name].dtype) for name in DATASETS if name != "values"}
            arrays["values"] = np.ascontiguousarray(volume.values.T, file["values"].dtype)
            if notes.pop(("/", "digest")).tolist() != digest_of(arrays, notes):
                raise RaymarchError(
                    f"{path}: its content is not what its digest says, so it was altered; {RESTORE_CURE}"
                )
        return volume


def describe(path: str | os.PathLike[str]) -> ScalarSummary:
    """Summary of a scalar volume's file, read without its values."""
    with _scalar_file(path, ("values",)) as (file, notes):
        return ScalarSummary.of_source(_source(file, notes, path), Path(path))


def source(path: Path, selection: Selection) -> Source:
    """Source of a file, which is opened for each part that is read of it, without the check of its digest."""
    with _scalar_file(path, ("values",)) as (file, notes):
        require_one_place(selection, path)
        found = _source(file, notes, path)

    def read(slices: Slices) -> np.ndarray:
        with open_hdf5(path, FORMAT, VERSION, DATASETS, streamed=("values",)) as file:
            values: np.ndarray = file["values"][slices[::-1]].T
            return values

    return replace(found, read=read)


def _source(file: h5py.File, notes: Notes, path: str | os.PathLike[str]) -> Source:
    values = file["values"]
    x, y, z = values.shape[::-1]
    affine = np.asarray(file["world_from_index"][()])
    return Source(
        (x, y, z),
        values.dtype,
        affine,
        lambda part: values[part[::-1]].T,
        at_once=False,
        **describe_values(file, notes, path),
    )


@contextmanager
def _scalar_file(path: str | os.PathLike[str], streamed: tuple[str, ...]) -> Iterator[tuple[h5py.File, Notes]]:
    with open_hdf5(path, FORMAT, VERSION, DATASETS, streamed=streamed) as file, naming(path):
        yield file, check_notes(file, path)

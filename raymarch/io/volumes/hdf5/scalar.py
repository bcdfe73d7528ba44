"""HDF5 schema of a scalar volume, a kind of file of its own: values as stored, with what they mean as attributes.

The values lie (z, y, x), x the fastest, as imaging and XDMF have them.
"""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import CURE, attributes
from raymarch.io.volumes.hdf5_provenance import provenance_of, text_of
from raymarch.views.views import require_colour
from raymarch.volumes.scalar_volume import SIZES, ScalarVolume

FORMAT = "raymarch-scalar-volume"
VERSION = 1
NAMES = ("values", "world_from_index", "background", "provenance")
TEXTS = {"unit": "values", "name": "values", "length_unit": "world_from_index", "world": "world_from_index"}
Notes = dict[tuple[str, str], np.ndarray]


def arrays_of(volume: ScalarVolume, path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Datasets of a scalar volume, little-endian."""
    return {
        "values": np.ascontiguousarray(volume.values.T, volume.values.dtype.newbyteorder("<")),
        "world_from_index": np.array(volume.world_from_index, "<f8"),
        "background": np.array(require_colour(volume.background), "<f8"),
        "provenance": text_of(volume.provenance, path),
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
    values |= {(owner, name): getattr(volume, name) for name, owner in TEXTS.items() if getattr(volume, name)}
    kinds = {int: "<i8", float: "<f8"}
    return {
        key: np.array(value.encode()) if isinstance(value, str) else np.array(value, kinds[type(value)])
        for key, value in values.items()
    }


def checked_notes(file: h5py.File, path: str | os.PathLike[str]) -> Notes:
    """All attributes, once shapes, types and attributes are those of the format; else RaymarchError."""
    values = file["values"]
    sizes = SIZES.get(values.dtype.kind, ())
    if values.ndim != 3 or min(values.shape) < 2 or values.dtype.itemsize not in sizes:
        raise RaymarchError(f"{path}: values are {values.dtype} {values.shape}, want numbers (x, y, z); {CURE}")
    for name, want in (("world_from_index", (4, 4)), ("background", (3,))):
        if file[name].shape != want or file[name].dtype.str != "<f8":
            raise RaymarchError(f"{path}: {name} is {file[name].dtype} {file[name].shape}, want float64 {want}; {CURE}")
    if file["provenance"].shape != () or file["provenance"].dtype.kind != "S":
        raise RaymarchError(f"{path}: provenance is {file['provenance'].dtype}, want one text; {CURE}")
    notes = {(owner, name): value for owner in ("/", *NAMES) for name, value in attributes(file[owner]).items()}
    wanted = {("values", "slope"): "f", ("values", "intercept"): "f", ("/", "digest"): "S"}
    wanted |= {(owner, name): "S" for name, owner in TEXTS.items() if (owner, name) in notes}
    for key, kind in wanted.items():
        if key not in notes or notes[key].shape != () or notes[key].dtype.kind != kind:
            raise RaymarchError(f"{path}: {key[0]} lacks the attribute {key[1]} or it has another type; {CURE}")
    return notes


def about(file: h5py.File, notes: Notes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the file says of its values, by the names of `ScalarVolume`'s fields."""
    texts = {
        name: notes[owner, name].tolist().decode() for name, owner in TEXTS.items() if (owner, name) in notes
    }  # fmt: skip
    return {
        **texts,
        "slope": float(notes["values", "slope"]),
        "intercept": float(notes["values", "intercept"]),
        "background": require_colour(file["background"][()].tolist()),
        "provenance": provenance_of(np.asarray(file["provenance"][()]), path),
    }

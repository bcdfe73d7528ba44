"""HDF5 format of volume files; docs/hdf5.md describes it."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.boxes import corners_of, require_affine
from raymarch.geometry.ndc import corners_in_world, require_ndc
from raymarch.io.files.atomic import system_refusals
from raymarch.io.files.hdf5 import DAMAGE_ERRORS, MAX_CHUNK, RESTORE_CURE, declared_bytes, open_hdf5
from raymarch.io.volumes.format import Format, part_of
from raymarch.io.volumes.hdf5 import scalar, schema
from raymarch.io.volumes.hdf5.provenance import provenance_of
from raymarch.io.volumes.summary import ScalarSummary, VolumeSummary
from raymarch.volumes.channels import background_of_channels
from raymarch.volumes.samples import BOXES
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import EVERYTHING, Selection
from raymarch.volumes.volume import AnyVolume, Volume


def detect(path: str | os.PathLike[str]) -> bool:
    """Detection: whether the file is HDF5 and says that it is a volume of raymarch's, of whatever version."""
    try:
        with h5py.File(path, "r") as file:
            said = file.attrs.get("format")
            said = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
            return said in (schema.FORMAT, scalar.FORMAT)
    except DAMAGE_ERRORS:
        return False


def write(volume: AnyVolume, path: str | os.PathLike[str]) -> None:
    """HDF5 writer of a volume to `path`, which `rm.save` has moved to its place then.

    Raises RaymarchError for a disk that refuses, a type other than float32 and float64, and provenance that is not
    plain or longer than 16 MiB.
    """
    of: Any = scalar if isinstance(volume, ScalarVolume) else schema
    arrays, notes = of.arrays_of(volume, path), of.notes_of(volume)
    # HDF5 crashes the process if its own writes meet a full disk; so it writes to memory, and Python to the disk.
    image = io.BytesIO()
    try:
        # From 1.10 on HDF5 guards its own structures by checksums too.
        with h5py.File(image, "w", libver=("v110", "v110")) as file:
            for name, array in arrays.items():
                _write(file, name, array, in_bricks=volume.bricks is not None and name in schema.AXES)
            for (owner, name), value in notes.items():
                file[owner].attrs.create(name, value)
            file.attrs.create("digest", np.array(schema.digest_of(arrays, notes)))
    except (OSError, RuntimeError, MemoryError) as error:
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); free some memory") from error
    with system_refusals(path):
        Path(path).write_bytes(image.getbuffer())


def read(path: str | os.PathLike[str], *, selection: Selection = EVERYTHING) -> AnyVolume:
    """Volume of a file, checked against the digest that it carries, but for a part of a scalar volume.

    Raises RaymarchError that names the file, what is wrong and the cure: a missing, damaged, altered, too large or
    foreign file, or one that would read other files.
    """
    if scalar.is_scalar(path):
        return scalar.read(path, selection)
    return part_of(_read_volume(path), selection, Path(path))


def _read_volume(path: str | os.PathLike[str]) -> Volume:
    with _volume_file(path) as file:
        notes = schema.check_notes(file, path)
        arrays = {name: np.asarray(file[name][()], file[name].dtype) for name in schema.names_in(file)}
        if notes.pop(("/", "digest")).tolist() != schema.digest_of(arrays, notes):
            raise RaymarchError(f"{path}: its content is not what its digest says, so it was altered; {RESTORE_CURE}")
        channels = schema.channels_in(file, path)
        place = (
            arrays["world_from_index"],
            schema.activation_of(notes, path),
            background_of_channels(channels, arrays["background"].tolist()),
            provenance_of(arrays["provenance"], path),
            schema.boxes_of(notes, path),
            schema.ndc_of(notes),
            channels,
        )
        if schema.TABLE in file:
            return Volume.of_bricks(schema.bricks_of(arrays), schema.shape_of(notes, file, path), *place)
        return Volume(arrays["density"], arrays["features"], *place)


def describe(path: str | os.PathLike[str]) -> VolumeSummary | ScalarSummary:
    """Summary of a volume file, read without its arrays; so their digest is not checked, `read` does that.

    Raises RaymarchError as `read` does.
    """
    if scalar.is_scalar(path):
        return scalar.describe(path)
    with _volume_file(path) as file:
        notes = schema.check_notes(file, path)
        sparse = schema.TABLE in file
        samples = [file[name] for name in ("density", "features", schema.TABLE) if name in file]
        affine = require_affine(file["world_from_index"][()])
        channels = schema.channels_in(file, path)
        background_of_channels(channels, file["background"][()].tolist())
        boxes = BOXES("boxes", schema.boxes_of(notes, path))
        shape = schema.shape_of(notes, file, path) if sparse else samples[0].shape
        (x, y, z), ndc = shape, schema.ndc_of(notes)
        if ndc is not None:
            ndc = require_ndc(ndc, corners_of(affine, shape))
        corners = corners_in_world(affine, (x // boxes, y, z), ndc)
        return VolumeSummary(
            shape,
            int(notes["features", "degree"]),
            np.stack([corners.min(0), corners.max(0)]),
            schema.activation_of(notes, path),
            Path(path).stat().st_size,
            sum(map(declared_bytes, samples)),
            provenance_of(np.asarray(file["provenance"][()]), path),
            boxes,
            ndc is not None,
            len(samples[0]) if sparse else None,
            channels,
        )


@contextmanager
def _volume_file(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """The opened file; what a value of the package refuses about its content gets the file's name."""
    with (
        open_hdf5(path, schema.FORMAT, schema.VERSION, schema.DATASETS, optional=(schema.TABLE,)) as file,
        schema.naming(path),
    ):
        yield file


def _write(file: h5py.File, name: str, array: np.ndarray, *, in_bricks: bool) -> None:
    chunk = schema.chunk_of(array) if in_bricks else _chunk_of(array)
    if chunk is None:
        file.create_dataset(name, data=array)
        return
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if array.ndim >= 3 else {}
    file.create_dataset(name, data=array, chunks=chunk, fletcher32=True, **packed)


def _chunk_of(array: np.ndarray) -> tuple[int, ...] | None:
    if array.ndim == 0:
        return None
    edge = 16
    while (chunk := _chunk(array.shape, edge)) and math.prod(chunk) * array.itemsize > MAX_CHUNK:
        edge //= 2
    return chunk


def _chunk(shape: tuple[int, ...], edge: int) -> tuple[int, ...]:
    return tuple(min(edge, n) for n in shape[:3]) + shape[3:]


HDF5 = Format("HDF5", (".h5", ".hdf5"), detect, read, write, describe)

"""Volumes as HDF5 files; the format is described in docs/hdf5.md."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import h5py
import numpy as np

from raymarch import checks
from raymarch.arguments import checked
from raymarch.data.activation import Activation
from raymarch.data.views import require_colour
from raymarch.data.volume import VOLUME, Volume
from raymarch.errors import RaymarchError, one_line
from raymarch.geometry.pose import require_affine
from raymarch.io.files.atomic import replacing, require_writable
from raymarch.io.files.ours import require_ours
from raymarch.io.volumes import hdf5_schema as schema
from raymarch.io.volumes.hdf5_open import CURE, declared_bytes, opened

SUFFIXES = (".h5", ".hdf5")
# Zeros compress about 1000 to 1; in chunks of this size the overhead keeps them under what the opener refuses.
LARGEST_CHUNK = 128 << 10


@dataclass(frozen=True, eq=False)
class VolumeSummary:
    """What a volume file holds, without its arrays.

    Attributes:
        shape: count of samples (x, y, z).
        degree: degree of the spherical harmonics.
        box: lower and upper corner (2, 3) of the smallest upright box that holds the volume [world unit].
        activation: how raw numbers become sigma and colour.
        bytes_on_disk, bytes_in_memory: size of the file and of its arrays once loaded.
        provenance: what is known of its making.
    """

    shape: tuple[int, int, int]
    degree: int
    box: np.ndarray
    activation: Activation
    bytes_on_disk: int
    bytes_in_memory: int
    provenance: Mapping

    def record(self) -> dict:
        """The same as plain numbers, texts and lists, for printing."""
        plain = {**asdict(self), "box": self.box.tolist(), "provenance": dict(self.provenance)}
        return {**plain, "shape": list(self.shape)}


def require_target(path, overwrite: bool = False, *, size: int = 0) -> None:
    """RaymarchError where `save` could not write `size` bytes to `path`: asked before long work, not after it."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise RaymarchError(
            f"{str(path) or repr('')}: volumes are saved as HDF5; end the name in {' or '.join(SUFFIXES)}"
        )
    require_writable(path, size)
    require_ours([path], "volume", is_volume, overwrite)


def bytes_of_file(shape: tuple[int, int, int], degree: int) -> int:
    """About how large the file of a fit becomes [byte]: packed it is half of the numbers, all where nothing is empty.

    Example:
        >>> bytes_of_file((100, 100, 100), 1)
        26000000
    """
    return math.prod(shape) * (1 + 3 * (degree + 1) ** 2) * 4 // 2


def is_volume(path) -> bool:
    """Whether the file is a volume that raymarch can read."""
    try:
        describe(path)
    except RaymarchError:
        return False
    return True


@checked(volume=VOLUME, path=checks.path, overwrite=checks.flag)
def save(volume: Volume, path, overwrite: bool = False) -> None:
    """Write a volume to `path` (.h5 or .hdf5) in one step: if it fails, an older file of that name stays as it was.

    An older volume of that name is replaced, any other file only if `overwrite`.

    Raises RaymarchError for another suffix, a missing folder, a disk that refuses, a file that is no volume, a type
    other than float32 and float64, and provenance that is not plain or longer than 1 MiB.

    Example:
        >>> save(Volume.from_function(lambda p: p[..., 0], shape=(8, 8, 8)), "ramp.h5")
    """
    require_target(path, overwrite)
    arrays, notes = schema.arrays_of(volume, path), schema.notes_of(volume)
    # HDF5 crashes the process if its own writes meet a full disk; so it writes to memory, and Python to the disk.
    image = io.BytesIO()
    try:
        # From 1.10 on HDF5 guards its own structures by checksums too.
        with h5py.File(image, "w", libver=("v110", "v110")) as file:
            for name, array in arrays.items():
                _write(file, name, array)
            for (owner, name), value in notes.items():
                file[owner].attrs.create(name, value)
            file.attrs.create("digest", np.array(schema.digest_of(arrays, notes)))
    except (OSError, RuntimeError, MemoryError) as error:
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); free some memory") from error
    with replacing(path) as temporary:
        temporary.write_bytes(image.getbuffer())


@checked(path=checks.path)
def load(path) -> Volume:
    """The volume of a file, checked against the digest that it carries.

    Raises RaymarchError that names the file, what is wrong and the cure: a missing, damaged, altered, too large or
    foreign file, or one that would read other files.

    Example:
        >>> load("ramp.h5").shape  # doctest: +SKIP
        (8, 8, 8)
    """
    with _volume_file(path) as file:
        notes = schema.checked_notes(file, path)
        arrays = {name: np.asarray(file[name][()], file[name].dtype) for name in schema.NAMES}
        if notes.pop(("/", "digest")).tolist() != schema.digest_of(arrays, notes):
            raise RaymarchError(f"{path}: its content is not what its digest says, so it was altered; {CURE}")
        return Volume(
            arrays["density"],
            arrays["features"],
            arrays["world_from_index"],
            schema.activation_of(notes),
            require_colour(arrays["background"].tolist()),
            schema.provenance_of(arrays["provenance"], path),
        )


@checked(path=checks.path)
def describe(path) -> VolumeSummary:
    """What a volume file holds, read without its arrays; so their digest is not checked, `load` does that.

    Raises RaymarchError as `load` does.

    Example:
        >>> describe("ramp.h5").bytes_in_memory  # doctest: +SKIP
        8192
    """
    with _volume_file(path) as file:
        notes = schema.checked_notes(file, path)
        density, features = file["density"], file["features"]
        affine = require_affine(file["world_from_index"][()])
        require_colour(file["background"][()].tolist())
        axes = np.meshgrid(*[(0, n - 1) for n in density.shape], indexing="ij")
        corners = np.stack(axes, axis=-1).reshape(-1, 3) @ affine[:3, :3].T + affine[:3, 3]
        return VolumeSummary(
            density.shape,
            int(notes["features", "degree"]),
            np.stack([corners.min(0), corners.max(0)]),
            schema.activation_of(notes),
            Path(path).stat().st_size,
            declared_bytes(density) + declared_bytes(features),
            schema.provenance_of(np.asarray(file["provenance"][()]), path),
        )


@contextmanager
def _volume_file(path) -> Iterator[h5py.File]:
    """The opened file; what a value of the package refuses about its content gets the file's name."""
    with opened(path, schema.FORMAT, schema.VERSION, schema.NAMES) as file:
        try:
            yield file
        except RaymarchError as error:
            text = str(error)
            raise RaymarchError(text if text.startswith(str(path)) else f"{path}: {text}; {CURE}") from error


def _write(file: h5py.File, name: str, array: np.ndarray) -> None:
    if array.ndim == 0:
        file.create_dataset(name, data=array)
        return
    edge = 16
    while (chunk := _chunk(array.shape, edge)) and math.prod(chunk) * array.itemsize > LARGEST_CHUNK:
        edge //= 2
    packed = {"compression": "gzip", "compression_opts": 1, "shuffle": True} if array.ndim >= 3 else {}
    file.create_dataset(name, data=array, chunks=chunk, fletcher32=True, **packed)


def _chunk(shape: tuple[int, ...], edge: int) -> tuple[int, ...]:
    return tuple(min(edge, n) for n in shape[:3]) + shape[3:]

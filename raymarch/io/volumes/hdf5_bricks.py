"""HDF5 schema of a sparse volume's bricks: their table, and the checks of it that need no arrays."""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import CURE, LARGEST_CHUNK
from raymarch.volumes.bricks import BRICK, CUBE, Bricks, table_shape
from raymarch.volumes.samples import CHANNELS, SHAPE
from raymarch.volumes.volume import Volume

VERSION = 4  # of the format, from which on a file may hold bricks
AXES = {"density": "brick, x, y, z", "features": "brick, x, y, z, channel"}


def notes_of(volume: Volume) -> dict[tuple[str, str], Any]:
    """Attributes that a sparse volume has besides, or has otherwise, than a dense one; none of a dense one."""
    if volume.bricks is None:
        return {}
    own = {("table", "axes"): "x, y, z", ("table", "shape"): volume.shape, ("table", "edge"): BRICK}
    return {**own, **{(name, "axes"): axes for name, axes in AXES.items()}}


def chunk_of(array: np.ndarray) -> tuple[int, ...] | None:
    """Chunk of an array of bricks: as many whole ones as are small enough; None where there are none."""
    if not len(array):
        return None
    return (min(max(LARGEST_CHUNK // array[0].nbytes, 1), len(array)), *array.shape[1:])


def require_shapes(file: h5py.File, path: str | os.PathLike[str], floats: tuple[str, ...]) -> None:
    """RaymarchError unless table, density and features have the types and shapes of bricks."""
    table, density, features = (file[name] for name in ("table", "density", "features"))
    if len(table.shape) != 3 or min(table.shape) < 1 or table.dtype.str != "<i4":
        raise RaymarchError(f"{path}: table is {table.dtype} {table.shape}, want int32 (x, y, z); {CURE}")
    if density.shape[1:] != CUBE or density.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: density is {density.dtype} {density.shape}, want float32 or float64 (brick, 8, 8, 8); {CURE}"
        )
    if features.shape not in [(*density.shape, n) for n in CHANNELS] or features.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want float32 or float64 {density.shape} and one"
            f" of {CHANNELS} channels; {CURE}"
        )
    if len(density) > table.size:
        raise RaymarchError(f"{path}: density holds {len(density)} bricks, but table has {table.size} places; {CURE}")


def shape_of(
    notes: dict[tuple[str, str], np.ndarray], file: h5py.File, path: str | os.PathLike[str]
) -> tuple[int, int, int]:
    """Count of samples (x, y, z); RaymarchError for attributes that are missing or of another shape than the table."""
    for name in ("shape", "edge"):
        if ("table", name) not in notes:
            raise RaymarchError(f"{path}: table lacks the attribute {name}; {CURE}")
    if (edge := notes["table", "edge"].tolist()) != BRICK:
        raise RaymarchError(f"{path}: attribute edge of table is {edge!r}, want {BRICK}; {CURE}")
    shape: tuple[int, int, int] = SHAPE("attribute shape of table", notes["table", "shape"].tolist())
    if table_shape(shape) != file["table"].shape:
        raise RaymarchError(
            f"{path}: table has shape {file['table'].shape}, want {table_shape(shape)} for {shape} samples; {CURE}"
        )
    return shape


def bricks_of(arrays: dict[str, np.ndarray]) -> Bricks:
    """The bricks; RaymarchError for a table that is wrong and numbers that no volume has."""
    return Bricks(arrays["table"], arrays["density"], arrays["features"])

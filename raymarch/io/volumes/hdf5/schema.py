"""HDF5 schema of a volume file: its datasets and attributes, their digest, and the checks of both."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.hdf5 import MAX_CHUNK, RESTORE_CURE, attributes
from raymarch.io.volumes.hdf5.provenance import provenance_text, require_short
from raymarch.volumes.activation import COLOURS, DENSITIES, Activation
from raymarch.volumes.bricks import BRICK_SHAPE, BRICK_SIDE, Bricks, table_shape
from raymarch.volumes.channels import background_of_channels
from raymarch.volumes.samples import CHANNEL_NAMES, CHANNELS, COLOUR_CHANNELS, SHAPE
from raymarch.volumes.volume import Volume

FORMAT = "raymarch-volume"
PLAIN_VERSION, OTHER_VERSION = 1, 4  # of one dense array a quantity; of nested boxes, NDC or bricks
VERSION = 5  # of other channels than red, green and blue
DATASETS = ("density", "features", "world_from_index", "background", "provenance")
TABLE = "table"  # of bricks, which a sparse volume has besides
AXES = {"density": "brick, x, y, z", "features": "brick, x, y, z, channel"}
BASIS = "real spherical harmonics"
CHANNEL_NAMES_NOTE = ("features", "channel_names")  # with commas between; of colours there is none
FLOAT_TYPES = ("<f4", "<f8")
Notes = dict[tuple[str, str], np.ndarray]


def arrays_of(volume: Volume, path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Datasets of a volume, little-endian."""
    bricks = volume.bricks
    held = volume if bricks is None else bricks
    samples = {"density": held.density, "features": held.features}
    for name, array in samples.items():
        if array.dtype.newbyteorder("<").str not in FLOAT_TYPES:
            raise RaymarchError(f"{path}: {name} is {array.dtype}, want float32 or float64; convert it with astype")
        samples[name] = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        **({} if bricks is None else {"table": np.ascontiguousarray(bricks.table, "<i4")}),
        **samples,
        "world_from_index": np.array(volume.world_from_index, "<f8"),
        "background": np.array(background_of_channels(volume.channels, volume.background), "<f8"),
        "provenance": provenance_text(volume.provenance, path),
    }


def notes_of(volume: Volume) -> Notes:
    """Attributes by owner and name; texts have a fixed length, for those of variable length bear no checksum."""
    activation = volume.activation
    own: dict[tuple[str, str], Any] = {("density", "boxes"): volume.boxes} if volume.boxes > 1 else {}
    if volume.ndc_from_world is not None:
        own = {("world_from_index", "ndc_from_world"): volume.ndc_from_world}
    version = PLAIN_VERSION if volume.bricks is None and not own else OTHER_VERSION
    if not volume.is_colour:
        own, version = {**own, CHANNEL_NAMES_NOTE: ",".join(volume.channels)}, VERSION
    unit = "world unit" if volume.ndc_from_world is None else "unit of NDC"
    values: dict[tuple[str, str], Any] = {
        **own,
        ("/", "format"): FORMAT,
        ("/", "format_version"): version,
        ("density", "axes"): "x, y, z",
        ("density", "activation"): activation.density_rule.name,
        ("density", "shift"): float(activation.shift),
        ("density", "scale"): float(activation.scale),
        ("density", "unit"): f"sigma in 1/{unit} after the activation; scale in {unit}",
        ("features", "axes"): "x, y, z, channel",
        ("features", "activation"): activation.colour_rule.name,
        ("features", "basis"): BASIS,
        ("features", "degree"): volume.degree,
        ("features", "channels"): f"{volume.colours} k + c",
        ("world_from_index", "unit"): unit,
        ("provenance", "encoding"): "JSON",
        **brick_notes_of(volume),
    }
    dtypes = {int: "<i8", tuple: "<i8", float: "<f8", np.ndarray: "<f8"}
    return {
        key: np.array(value.encode()) if isinstance(value, str) else np.array(value, dtypes[type(value)])
        for key, value in values.items()
    }


def brick_notes_of(volume: Volume) -> dict[tuple[str, str], Any]:
    """Attributes that a sparse volume has besides, or has otherwise, than a dense one; none of a dense one."""
    if volume.bricks is None:
        return {}
    own = {("table", "axes"): "x, y, z", ("table", "shape"): volume.shape, ("table", "edge"): BRICK_SIDE}
    return {**own, **{(name, "axes"): axes for name, axes in AXES.items()}}


def digest_of(arrays: dict[str, np.ndarray], notes: Notes) -> bytes:
    """SHA-256, in hexadecimal, of every dataset, then every attribute but itself, in the order of their names."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"dataset {name} {array.dtype.str} {list(array.shape)}\n".encode())
        digest.update(array.tobytes() if array.ndim == 0 else array.data)
    for (owner, name), value in sorted(notes.items()):
        digest.update(f"attribute {owner} {name} {value.dtype.str} {list(value.shape)}\n".encode())
        digest.update(value.tobytes())
    return digest.hexdigest().encode()


def chunk_of(array: np.ndarray) -> tuple[int, ...] | None:
    """Chunk of an array of bricks: as many whole ones as are small enough; None where there are none."""
    if not len(array):
        return None
    return (min(max(MAX_CHUNK // array[0].nbytes, 1), len(array)), *array.shape[1:])


def names_in(file: h5py.File) -> list[str]:
    """Datasets of a file that was opened."""
    return [*((TABLE,) if TABLE in file else ()), *DATASETS]


def check_notes(file: h5py.File, path: str | os.PathLike[str]) -> Notes:
    """All attributes, once shapes, types and attributes are those of the format; else RaymarchError."""
    (_require_arrays if "table" not in file else require_shapes)(file, path, FLOAT_TYPES)
    names, count = names_in(file), file["features"].shape[-1]
    channels = channels_in(file, path)
    require_place(file, path, len(channels))
    require_short(file["provenance"].dtype.itemsize)
    notes = {(owner, name): value for owner in ("/", *names) for name, value in attributes(file[owner]).items()}
    degree = round((count / len(channels)) ** 0.5) - 1
    wanted: dict[tuple[str, str], object] = {
        ("features", "basis"): BASIS.encode(),
        ("features", "channels"): f"{len(channels)} k + c".encode(),
        ("features", "degree"): degree,
    }
    needed = [*wanted, *[("density", name) for name in ("activation", "shift", "scale")]]
    for owner, name in [*needed, ("features", "activation"), ("/", "digest")]:
        if (owner, name) not in notes:
            raise RaymarchError(f"{path}: {owner} lacks the attribute {name}; {RESTORE_CURE}")
        value = notes[owner, name]
        kind = "f" if name in ("shift", "scale") else "i" if name == "degree" else "S"
        if value.dtype.kind != kind:
            raise RaymarchError(
                f"{path}: attribute {name} of {owner} is {value.dtype}, want another type; {RESTORE_CURE}"
            )
        expected = wanted.get((owner, name))
        if value.shape != () or expected not in (None, value.tolist()):
            words = "one value" if expected is None else repr(expected)
            raise RaymarchError(
                f"{path}: attribute {name} of {owner} is {value.tolist()!r}, want {words}; {RESTORE_CURE}"
            )
    if ("density", "boxes") in notes and ("world_from_index", "ndc_from_world") in notes:
        raise RaymarchError(
            f"{path}: density has the attribute boxes beside ndc_from_world, want one of them; {RESTORE_CURE}"
        )
    return notes


def channels_in(file: h5py.File, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Names of the channels, unless a file says otherwise red, green and blue; RaymarchError for what are none, and for
    features that are not as many."""
    owner, name = CHANNEL_NAMES_NOTE
    note = attributes(file[owner]).get(name)
    channels: tuple[str, ...] = COLOUR_CHANNELS
    if note is not None:
        if note.shape != () or note.dtype.kind != "S":
            raise RaymarchError(f"{path}: attribute {name} of {owner} is {note.dtype}, want one text; {RESTORE_CURE}")
        try:
            channels = CHANNEL_NAMES(f"attribute {name} of {owner}", tuple(note.tolist().decode().split(",")))
        except UnicodeDecodeError as error:
            raise RaymarchError(f"{path}: attribute {name} of {owner} is no text; {RESTORE_CURE}") from error
    features, wanted = file["features"], [n // 3 * len(channels) for n in CHANNELS]
    if features.shape[-1] not in wanted:
        kind = "float32 or float64"
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want {kind} {file['density'].shape} and one of"
            f" {wanted} channels; {RESTORE_CURE}"
        )
    return channels


def require_place(file: h5py.File, path: str | os.PathLike[str], channels: int = 3) -> None:
    """RaymarchError unless place, background and provenance have the types and shapes that all volumes' have."""
    for name, want in (("world_from_index", (4, 4)), ("background", (channels,))):
        if file[name].shape != want or file[name].dtype.str != "<f8":
            raise RaymarchError(
                f"{path}: {name} is {file[name].dtype} {file[name].shape}, want float64 {want}; {RESTORE_CURE}"
            )
    if file["provenance"].shape != () or file["provenance"].dtype.kind != "S":
        raise RaymarchError(f"{path}: provenance is {file['provenance'].dtype}, want one text; {RESTORE_CURE}")


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context in which what a value of the package refuses about a file's content gets the file's name."""
    try:
        yield
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(str(path)) else f"{path}: {text}; {RESTORE_CURE}") from error


def _require_arrays(file: h5py.File, path: str | os.PathLike[str], floats: tuple[str, ...]) -> None:
    """RaymarchError unless density and features have the types and shapes of dense arrays."""
    density, features = file["density"], file["features"]
    shape = density.shape
    if len(shape) != 3 or min(shape) < 2 or density.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: density is {density.dtype} {shape}, want float32 or float64 (x, y, z) of 2 or more; "
            f"{RESTORE_CURE}"
        )
    last = features.shape[-1:]
    if len(features.shape) != 4 or features.shape != shape + last or features.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want float32 or float64 {shape} and one of"
            f" {CHANNELS} channels; {RESTORE_CURE}"
        )


def require_shapes(file: h5py.File, path: str | os.PathLike[str], floats: tuple[str, ...]) -> None:
    """RaymarchError unless table, density and features have the types and shapes of bricks."""
    table, density, features = (file[name] for name in ("table", "density", "features"))
    if len(table.shape) != 3 or min(table.shape) < 1 or table.dtype.str != "<i4":
        raise RaymarchError(f"{path}: table is {table.dtype} {table.shape}, want int32 (x, y, z); {RESTORE_CURE}")
    if density.shape[1:] != BRICK_SHAPE or density.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: density is {density.dtype} {density.shape}, want float32 or float64 (brick, 8, 8, 8); "
            f"{RESTORE_CURE}"
        )
    if features.shape[:-1] != density.shape or features.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want float32 or float64 {density.shape} and one"
            f" of {CHANNELS} channels; {RESTORE_CURE}"
        )
    if len(density) > table.size:
        raise RaymarchError(
            f"{path}: density holds {len(density)} bricks, but table has {table.size} places; {RESTORE_CURE}"
        )


def shape_of(
    notes: dict[tuple[str, str], np.ndarray], file: h5py.File, path: str | os.PathLike[str]
) -> tuple[int, int, int]:
    """Count of samples (x, y, z); RaymarchError for attributes that are missing or of another shape than the table."""
    for name in ("shape", "edge"):
        if ("table", name) not in notes:
            raise RaymarchError(f"{path}: table lacks the attribute {name}; {RESTORE_CURE}")
    if (edge := notes["table", "edge"].tolist()) != BRICK_SIDE:
        raise RaymarchError(f"{path}: attribute edge of table is {edge!r}, want {BRICK_SIDE}; {RESTORE_CURE}")
    shape: tuple[int, int, int] = SHAPE("attribute shape of table", notes["table", "shape"].tolist())
    if table_shape(shape) != file["table"].shape:
        raise RaymarchError(
            f"{path}: table has shape {file['table'].shape}, want {table_shape(shape)} for {shape} samples; "
            f"{RESTORE_CURE}"
        )
    return shape


def bricks_of(arrays: dict[str, np.ndarray]) -> Bricks:
    """The bricks; RaymarchError for a table that is wrong and numbers that no volume has."""
    return Bricks(arrays["table"], arrays["density"], arrays["features"])


def boxes_of(notes: Notes, path: str | os.PathLike[str]) -> int:
    """Count of nested boxes; RaymarchError for what is no count."""
    found = notes.get(("density", "boxes"), np.array(1))
    if found.shape != () or found.dtype.kind not in "iu":
        raise RaymarchError(
            f"{path}: attribute boxes of density is {found.tolist()!r}, want a whole number; {RESTORE_CURE}"
        )
    return int(found)


def ndc_of(notes: Notes) -> np.ndarray | None:
    """The projective `ndc_from_world`, unchecked, or None."""
    return notes.get(("world_from_index", "ndc_from_world"))


def activation_of(notes: Notes, path: str | os.PathLike[str]) -> Activation:
    """The activation; RaymarchError for a name that neither raymarch nor who reads the file knows."""
    density, colour = (notes[owner, "activation"].tolist().decode() for owner in ("density", "features"))
    shift, scale = (float(notes["density", name]) for name in ("shift", "scale"))
    try:
        return Activation(density, shift, scale, colour)
    except RaymarchError as error:
        if density in DENSITIES and colour in COLOURS:
            raise
        cure = "one of your own goes to rm.load(path, activations=[...])"
        raise RaymarchError(f"{path}: {error}; {cure}") from error

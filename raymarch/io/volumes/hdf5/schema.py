"""HDF5 schema of a volume file: its datasets and attributes, their digest, and the checks of both."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.hdf5 import CURE, LARGEST_CHUNK, attributes
from raymarch.io.files.strict import parse_json
from raymarch.views.views import require_colour
from raymarch.volumes.activation import COLOURS, DENSITIES, Activation
from raymarch.volumes.bricks import BRICK, CUBE, Bricks, table_shape
from raymarch.volumes.samples import CHANNELS, SHAPE
from raymarch.volumes.samples import CHANNELS as CHANNELS_OF
from raymarch.volumes.volume import Volume

# Provenance in an HDF5 file: what is known of a volume's making, as one text of JSON.

DEEPEST = 400
LARGEST_PROVENANCE = 1 << 24  # bytes of its text: of 20,000 views whose cameras were refined 5 MB


def text_of(provenance: Mapping, path: str | os.PathLike[str]) -> np.ndarray:
    """The text; RaymarchError for what is not plain, too deep or too long."""
    try:
        plain = _plain(provenance, "provenance")
        _require_shallow(plain, "its text")
        text = json.dumps(plain, allow_nan=False)
        require_short(len(text))
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None
    except (RecursionError, ValueError) as error:
        raise RaymarchError(f"{path}: provenance cannot be written ({one_line(error)}); simplify it") from error
    return np.array(text.encode("ascii"))


def provenance_of(text: np.ndarray, path: str | os.PathLike[str]) -> dict:
    """What a text says; RaymarchError for one that is no mapping in JSON."""
    value = parse_json(text.tolist().decode(), f"{path}: provenance")
    if not isinstance(value, dict):
        raise RaymarchError(f"{path}: provenance is a {type(value).__name__}, want a mapping; {CURE}")
    _require_shallow(value, path)
    return value


def require_short(size: int) -> None:
    """Length check: RaymarchError for a text longer than provenance may be."""
    if size > LARGEST_PROVENANCE:
        raise RaymarchError(
            f"provenance is {size:,} bytes long, want at most {LARGEST_PROVENANCE:,}; keep it elsewhere"
        )


def _require_shallow(value: object, where: object) -> None:
    """What is nested deeper than Python recurses would end in a traceback later, or in none."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RaymarchError(f"{where}: provenance is nested over {DEEPEST} levels deep; make it flatter")
        inside = [v.values() if isinstance(v, dict) else v for v in level if isinstance(v, (dict, list))]
        level = [item for items in inside for item in items]


def _plain(value: Any, where: str) -> Any:
    """The value in what JSON has; numbers that are not finite become null."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise RaymarchError(f"{where} has the key {key!r}, want texts as keys; convert it with str")
        return {key: _plain(item, f"{where}.{key}") for key, item in value.items()}
    raise RaymarchError(f"{where} is a {type(value).__name__}, want numbers, texts, lists and mappings; convert it")


# HDF5 schema of a sparse volume's bricks: their table, and the checks of it that need no arrays.

BRICKS_VERSION = 4  # of the format, from which on a file may hold bricks
AXES = {"density": "brick, x, y, z", "features": "brick, x, y, z, channel"}


def brick_notes_of(volume: Volume) -> dict[tuple[str, str], Any]:
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


FORMAT = "raymarch-volume"
SINCE = {
    ("density", "boxes"): 2,
    ("world_from_index", "ndc_from_world"): 3,
}  # a dense volume with these has this version
VERSION = BRICKS_VERSION  # of a sparse volume; of a dense one with none of the above it is 1
NAMES = ("density", "features", "world_from_index", "background", "provenance")
MORE = {"table": VERSION}  # datasets that files of one version alone hold besides
BASIS = "real spherical harmonics"
CHANNEL_ORDER = "3 k + c"
FLOATS = ("<f4", "<f8")
Notes = dict[tuple[str, str], np.ndarray]


def arrays_of(volume: Volume, path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Datasets of a volume, little-endian."""
    bricks = volume.bricks
    held = volume if bricks is None else bricks
    samples = {"density": held.density, "features": held.features}
    for name, array in samples.items():
        if array.dtype.newbyteorder("<").str not in FLOATS:
            raise RaymarchError(f"{path}: {name} is {array.dtype}, want float32 or float64; convert it with astype")
        samples[name] = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        **({} if bricks is None else {"table": np.ascontiguousarray(bricks.table, "<i4")}),
        **samples,
        "world_from_index": np.array(volume.world_from_index, "<f8"),
        "background": np.array(require_colour(volume.background), "<f8"),
        "provenance": text_of(volume.provenance, path),
    }


def notes_of(volume: Volume) -> Notes:
    """Attributes by owner and name; texts have a fixed length, for those of variable length bear no checksum."""
    activation = volume.activation
    own: dict[tuple[str, str], Any] = {("density", "boxes"): volume.boxes} if volume.boxes > 1 else {}
    if volume.ndc_from_world is not None:
        own = {("world_from_index", "ndc_from_world"): volume.ndc_from_world}
    unit = "world unit" if volume.ndc_from_world is None else "unit of NDC"
    values: dict[tuple[str, str], Any] = {
        **own,
        ("/", "format"): FORMAT,
        ("/", "format_version"): max((SINCE[key] for key in own), default=1) if volume.bricks is None else VERSION,
        ("density", "axes"): "x, y, z",
        ("density", "activation"): activation.density_rule.name,
        ("density", "shift"): float(activation.shift),
        ("density", "scale"): float(activation.scale),
        ("density", "unit"): f"sigma in 1/{unit} after the activation; scale in {unit}",
        ("features", "axes"): "x, y, z, channel",
        ("features", "activation"): activation.colour_rule.name,
        ("features", "basis"): BASIS,
        ("features", "degree"): volume.degree,
        ("features", "channels"): CHANNEL_ORDER,
        ("world_from_index", "unit"): unit,
        ("provenance", "encoding"): "JSON",
        **brick_notes_of(volume),
    }
    dtypes = {int: "<i8", tuple: "<i8", float: "<f8", np.ndarray: "<f8"}
    return {
        key: np.array(value.encode()) if isinstance(value, str) else np.array(value, dtypes[type(value)])
        for key, value in values.items()
    }


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


def names_in(file: h5py.File) -> list[str]:
    """Datasets of a file that was opened."""
    return [*(name for name in MORE if name in file), *NAMES]


def _require_arrays(file: h5py.File, path: str | os.PathLike[str], floats: tuple[str, ...]) -> None:
    """RaymarchError unless density and features have the types and shapes of dense arrays."""
    density, features = file["density"], file["features"]
    shape = density.shape
    if len(shape) != 3 or min(shape) < 2 or density.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: density is {density.dtype} {shape}, want float32 or float64 (x, y, z) of 2 or more; {CURE}"
        )
    last = features.shape[-1:]
    if features.shape != shape + last or last[0] not in CHANNELS_OF or features.dtype.str not in floats:
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want float32 or float64 {shape} and one of"
            f" {CHANNELS_OF} channels; {CURE}"
        )


def checked_notes(file: h5py.File, path: str | os.PathLike[str]) -> Notes:
    """All attributes, once shapes, types and attributes are those of the format; else RaymarchError."""
    (_require_arrays if "table" not in file else require_shapes)(file, path, FLOATS)
    names, channels = names_in(file), file["features"].shape[-1]
    for name, want in (("world_from_index", (4, 4)), ("background", (3,))):
        if file[name].shape != want or file[name].dtype.str != "<f8":
            raise RaymarchError(f"{path}: {name} is {file[name].dtype} {file[name].shape}, want float64 {want}; {CURE}")
    if file["provenance"].shape != () or file["provenance"].dtype.kind != "S":
        raise RaymarchError(f"{path}: provenance is {file['provenance'].dtype}, want one text; {CURE}")
    require_short(file["provenance"].dtype.itemsize)
    notes = {(owner, name): value for owner in ("/", *names) for name, value in attributes(file[owner]).items()}
    degree = round((channels / 3) ** 0.5) - 1
    wanted: dict[tuple[str, str], object] = {
        ("features", "basis"): BASIS.encode(),
        ("features", "channels"): CHANNEL_ORDER.encode(),
        ("features", "degree"): degree,
    }
    needed = [*wanted, *[("density", name) for name in ("activation", "shift", "scale")]]
    for owner, name in [*needed, ("features", "activation"), ("/", "digest")]:
        if (owner, name) not in notes:
            raise RaymarchError(f"{path}: {owner} lacks the attribute {name}; {CURE}")
        value = notes[owner, name]
        kind = "f" if name in ("shift", "scale") else "i" if name == "degree" else "S"
        if value.dtype.kind != kind:
            raise RaymarchError(f"{path}: attribute {name} of {owner} is {value.dtype}, want another type; {CURE}")
        expected = wanted.get((owner, name))
        if value.shape != () or expected not in (None, value.tolist()):
            words = "one value" if expected is None else repr(expected)
            raise RaymarchError(f"{path}: attribute {name} of {owner} is {value.tolist()!r}, want {words}; {CURE}")
    version = int(notes["/", "format_version"])
    for (owner, name), since in SINCE.items():
        if version != VERSION and ((owner, name) in notes) != (version == since):
            has = "has" if (owner, name) in notes else "lacks"
            raise RaymarchError(f"{path}: {owner} {has} the attribute {name} in a file of version {version}; {CURE}")
    if all(key in notes for key in SINCE):
        raise RaymarchError(f"{path}: density has the attribute boxes beside ndc_from_world, want one of them; {CURE}")
    return notes


def boxes_of(notes: Notes, path: str | os.PathLike[str]) -> int:
    """Count of nested boxes; RaymarchError for what is no count."""
    found = notes.get(("density", "boxes"), np.array(1))
    if found.shape != () or found.dtype.kind not in "iu":
        raise RaymarchError(f"{path}: attribute boxes of density is {found.tolist()!r}, want a whole number; {CURE}")
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

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

from raymarch.data.activation import COLOURS, DENSITIES, Activation
from raymarch.data.samples import MAX_DEGREE
from raymarch.data.views import require_colour
from raymarch.data.volume import Volume
from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict_json import parse_json
from raymarch.io.volumes.hdf5_open import CURE, attributes

FORMAT = "raymarch-volume"
SINCE = {("density", "boxes"): 2, ("world_from_index", "ndc_from_world"): 3}  # versions that have these, no other has
VERSION = max(SINCE.values())  # a volume with none of them is written as 1
NAMES = ("density", "features", "world_from_index", "background", "provenance")
BASIS = "real spherical harmonics"
CHANNELS = "3 k + c"
FLOATS = ("<f4", "<f8")
Notes = dict[tuple[str, str], np.ndarray]
DEEPEST = 400
LARGEST_PROVENANCE = 1 << 20  # bytes of its text


def arrays_of(volume: Volume, path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Datasets of a volume, little-endian."""
    for name, array in (("density", volume.density), ("features", volume.features)):
        if array.dtype.newbyteorder("<").str not in FLOATS:
            raise RaymarchError(f"{path}: {name} is {array.dtype}, want float32 or float64; convert it with astype")
    try:
        plain = _plain(volume.provenance, "provenance")
        _require_shallow(plain, "its text")
        provenance = json.dumps(plain, allow_nan=False)
        _require_short(len(provenance))
    except RaymarchError as error:
        raise RaymarchError(f"{path}: {error}") from None
    except (RecursionError, ValueError) as error:
        raise RaymarchError(f"{path}: provenance cannot be written ({one_line(error)}); simplify it") from error
    return {
        "density": np.ascontiguousarray(volume.density, volume.density.dtype.newbyteorder("<")),
        "features": np.ascontiguousarray(volume.features, volume.features.dtype.newbyteorder("<")),
        "world_from_index": np.array(volume.world_from_index, "<f8"),
        "background": np.array(require_colour(volume.background), "<f8"),
        "provenance": np.array(provenance.encode("ascii")),
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
        ("/", "format_version"): max((SINCE[key] for key in own), default=1),
        ("density", "axes"): "x, y, z",
        ("density", "activation"): activation.density_rule.name,
        ("density", "shift"): float(activation.shift),
        ("density", "scale"): float(activation.scale),
        ("density", "unit"): f"sigma in 1/{unit} after the activation; scale in {unit}",
        ("features", "axes"): "x, y, z, channel",
        ("features", "activation"): activation.colour_rule.name,
        ("features", "basis"): BASIS,
        ("features", "degree"): volume.degree,
        ("features", "channels"): CHANNELS,
        ("world_from_index", "unit"): unit,
        ("provenance", "encoding"): "JSON",
    }
    dtypes = {int: "<i8", float: "<f8", np.ndarray: "<f8"}
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


def checked_notes(file: h5py.File, path: str | os.PathLike[str]) -> Notes:
    """All attributes, once shapes, types and attributes are those of the format; else RaymarchError."""
    density, features = file["density"], file["features"]
    shape = density.shape
    channels = [3 * (d + 1) ** 2 for d in range(MAX_DEGREE + 1)]
    if len(shape) != 3 or min(shape) < 2 or density.dtype.str not in FLOATS:
        raise RaymarchError(
            f"{path}: density is {density.dtype} {shape}, want float32 or float64 (x, y, z) of 2 or more; {CURE}"
        )
    last = features.shape[-1:]
    if features.shape != shape + last or last[0] not in channels or features.dtype.str not in FLOATS:
        raise RaymarchError(
            f"{path}: features are {features.dtype} {features.shape}, want float32 or float64 {shape} and one of"
            f" {channels} channels; {CURE}"
        )
    for name, want in (("world_from_index", (4, 4)), ("background", (3,))):
        if file[name].shape != want or file[name].dtype.str != "<f8":
            raise RaymarchError(f"{path}: {name} is {file[name].dtype} {file[name].shape}, want float64 {want}; {CURE}")
    if file["provenance"].shape != () or file["provenance"].dtype.kind != "S":
        raise RaymarchError(f"{path}: provenance is {file['provenance'].dtype}, want one text; {CURE}")
    _require_short(file["provenance"].dtype.itemsize)
    notes = {(owner, name): value for owner in ("/", *NAMES) for name, value in attributes(file[owner]).items()}
    degree = round((last[0] / 3) ** 0.5) - 1
    wanted: dict[tuple[str, str], object] = {
        ("features", "basis"): BASIS.encode(),
        ("features", "channels"): CHANNELS.encode(),
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
        if ((owner, name) in notes) != (version == since):
            has = "has" if (owner, name) in notes else "lacks"
            raise RaymarchError(f"{path}: {owner} {has} the attribute {name} in a file of version {version}; {CURE}")
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


def provenance_of(text: np.ndarray, path: str | os.PathLike[str]) -> dict:
    value = parse_json(text.tolist().decode(), f"{path}: provenance")
    if not isinstance(value, dict):
        raise RaymarchError(f"{path}: provenance is a {type(value).__name__}, want a mapping; {CURE}")
    _require_shallow(value, path)
    return value


def _require_short(size: int) -> None:
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

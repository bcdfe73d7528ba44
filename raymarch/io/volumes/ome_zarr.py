"""OME-Zarr, chunked image pyramids of microscopy: a folder (.zarr, .ome.zarr) of version 0.4 or 0.5.

Axes are by their names, mostly (t, c, z, y, x); scale and translation are those of the level. Written is version 0.4.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import SIZES, ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError, named
from raymarch.io.files.limits import memory_budget
from raymarch.io.files.strict_json import read_json
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.axis_units import WORDS, in_one_unit, short_unit
from raymarch.io.volumes.pyramid_levels import halved
from raymarch.io.volumes.scalar_format import plain_values, require_upright, scalar_format, wanted
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import CURE
from raymarch.io.volumes.zarr_chunks import Chunks, chunks_of, codec_of, measured_store

log = logging.getLogger("raymarch")
NAMES = (".zattrs", "zarr.json")
CHUNK = 64  # samples a side
SMALLEST = 64  # samples of the longest side of the last level
NUMBERS_TO_NUMBERS = """adler32 astype bitround blosc bytes bz2 cast_value crc32 crc32c delta fixedscaleoffset
    fletcher32 gzip jenkins_lookup3 lz4 lzma packbits pcodec quantize scale_offset sharding_indexed shuffle transpose
    zfpy zlib zstd"""
CODECS = frozenset(NUMBERS_TO_NUMBERS.split())  # others, such as pickle, may run what a file says
MOST_IMAGES = 64  # that are looked for
PATH = "0"  # in which bioformats2raw puts its first image


def _attributes(folder: Path) -> dict[str, Any]:
    """Attributes of a group of either version."""
    for name in NAMES:
        file = folder / name
        if file.is_file() and not file.is_symlink():
            found = read_json(file)
            found = found.get("attributes", {}) if name == "zarr.json" and isinstance(found, dict) else found
            if isinstance(found, dict):
                return found.get("ome", found)
    return {}


def _image(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """Group with an image, and its description; that of bioformats2raw is one level below."""
    for one in (folder, folder / PATH):
        several = _attributes(one).get("multiscales") if one.is_dir() else None
        if isinstance(several, list) and several and isinstance(several[0], dict):
            return one, several[0]
    return None


def detect(path: Path) -> bool:
    """Whether a folder is a group of Zarr with an image pyramid."""
    try:
        return path.is_dir() and _image(path) is not None
    except RaymarchError:
        return False


def source(path: Path, selection: Selection) -> Source:
    """Source of an OME-Zarr: the level that is asked for, else the finest within the budget of one file."""
    with wanted("zarr", "OME-Zarr"):
        import zarr
    found = _image(path)
    if found is None:
        raise RaymarchError(f"{path}: has no multiscales in its attributes, want an OME-Zarr image; {CURE}")
    folder, image = found
    axes = [
        str(one.get("name", "")).lower() if isinstance(one, dict) else str(one) for one in image.get("axes", "tczyx")
    ]
    levels = image["datasets"]
    if sorted(set(axes) & set("xyz")) != ["x", "y", "z"] or len(axes) > 5 or not 1 <= len(levels) <= 64:
        raise RaymarchError(f"{path}: has axes {axes[:6]} and {len(levels)} levels, want x, y, z among them; {CURE}")
    chunks: dict[str, Chunks] = {}
    group = zarr.open_group(measured_store(folder, chunks), mode="r")
    arrays = [_level(path, group, str(one["path"]), len(axes)) for one in levels]
    chunks.update((array.path, chunks_of(array, f"{path}: level {array.path} has")) for array in arrays)
    level, remarks = _choose(path, arrays, axes, selection)
    array, spatial = arrays[level], [axes.index(axis) for axis in "xyz"]
    rest = Selection(channel=selection.channel, time=selection.time)
    kinds = ["time" if axis == "t" else "channel" if axis == "c" else axis for axis in axes]
    index, more = chosen(path, array.shape, sorted(spatial), rest, names=kinds)
    order = sorted(range(3), key=lambda axis: spatial[axis])  # which of x, y, z each axis of space is
    scale, shift = _place(path, image, levels[level], len(axes))
    factors, unit, doubts = in_one_unit(_units(image["axes"]))
    affine = np.diag([*(scale[axis] * factor for axis, factor in zip(spatial, factors, strict=True)), 1.0])
    affine[:3, 3] = [shift[axis] * factor for axis, factor in zip(spatial, factors, strict=True)]

    def read(slices: Slices) -> np.ndarray:
        stored = np.asarray(array[index(tuple(slices[axis] for axis in order))])
        return np.moveaxis(stored, range(3), order)

    x, y, z = (int(array.shape[axis]) for axis in spatial)
    return Source(
        (x, y, z), np.dtype(array.dtype), affine, read, at_once=False, length_unit=unit,
        name=str(image.get("name") or ""), remarks=remarks + more + doubts + _others(path, folder),
    )  # fmt: skip


def _others(path: Path, folder: Path) -> tuple[str, ...]:
    """Remark on images beside the one that is taken."""
    beside = [path / str(k) for k in range(1, MOST_IMAGES)] if folder != path else []
    there = [one.name for one in beside if one.is_dir() and detect(one)]
    if there:
        return (f"has images {named([PATH, *there], 4)}; {PATH} is taken, others are {path.name}/{there[0]} and on",)
    count = len(_attributes(folder)["multiscales"])
    return (f"has {count} images in one group; the first is taken",) if count > 1 else ()


def _units(axes: list) -> list[str]:
    """Units of x, y and z, as the file's axes say them."""
    told = {one.get("name"): str(one.get("unit") or "") for one in axes if isinstance(one, dict)}
    return [told.get(axis, "") for axis in "xyz"]


def _codecs(told: Any) -> Iterator[str]:
    """Names of the codecs of an array by its metadata, those within shards too."""
    for one in told if isinstance(told, (list, tuple)) else [told] if told else []:
        name, inner = codec_of(one)
        yield name
        yield from _codecs(inner.get("codecs"))
        yield from _codecs(inner.get("index_codecs"))


def _level(path: Path, group: Any, name: str, count: int) -> Any:
    """Array of a level, once its codecs, type and axes are such as may be read."""
    array = group[name]
    told = array.metadata.to_dict()
    if bad := sorted({c for key in ("codecs", "filters", "compressor") for c in _codecs(told.get(key))} - CODECS):
        raise RaymarchError(f"{path}: level {name} has the codec {bad[0][:40]}, want one of numbers; {CURE}")
    dtype = np.dtype(array.dtype)
    if len(array.shape) != count or dtype.itemsize not in SIZES.get(dtype.kind, ()) or min(array.shape) < 1:
        raise RaymarchError(
            f"{path}: level {name} holds {dtype} {array.shape}, want numbers along {count} axes; {CURE}"
        )
    return array


def _choose(path: Path, arrays: Sequence[Any], axes: list[str], selection: Selection) -> tuple[int, tuple[str, ...]]:
    """Number of the level that is read, and what is said of the choice."""
    if selection.level is not None:
        if selection.level >= len(arrays):
            raise RaymarchError(f"{path}: level is {selection.level}, but it has {len(arrays)}; choose one from 0")
        return selection.level, ()
    if not selection.is_all:
        return 0, ()
    spatial = [axes.index(axis) for axis in "xyz"]
    sizes = [math.prod(array.shape[axis] for axis in spatial) * np.dtype(array.dtype).itemsize for array in arrays]
    level = next((i for i, size in enumerate(sizes) if size <= memory_budget()), len(arrays) - 1)
    if level == 0:
        return 0, ()
    shape = " x ".join(str(arrays[level].shape[axis]) for axis in spatial)
    return level, (f"level {level} of {len(arrays)} is read, {shape}; finer ones are over the budget of one file",)


def _place(path: Path, image: dict, level: dict, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale and translation of a level along its axes; those of the whole image come after."""
    scale, shift = np.ones(count), np.zeros(count)
    for one in [*level.get("coordinateTransformations", []), *image.get("coordinateTransformations", [])]:
        kind = one.get("type")
        numbers = np.asarray(one.get(kind, []), float) if kind in ("scale", "translation") else np.zeros(count)
        if numbers.shape != (count,) or kind not in ("scale", "translation", "identity"):
            raise RaymarchError(f"{path}: has a transformation {str(one)[:80]}, want scale and translation; {CURE}")
        if kind == "scale":
            scale, shift = scale * numbers, shift * numbers
        elif kind == "translation":
            shift = shift + numbers
    return scale, shift


def write(volume: ScalarVolume, path: Path) -> None:
    """OME-Zarr 0.4 of a scalar volume that is upright in the world, with a pyramid of means of eight."""
    with wanted("zarr", "OME-Zarr"):
        import zarr

    require_upright(volume, path, "OME-Zarr")
    values = np.ascontiguousarray(plain_values(volume).T)
    unit = WORDS.get(short_unit(volume.length_unit), volume.length_unit)
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    levels: list[dict[str, Any]] = []
    factor = 1
    while True:
        name = str(len(levels))
        chunks = tuple(min(CHUNK, n) for n in values.shape)
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=chunks,
            chunk_key_encoding={"name": "v2", "separator": "/"},
        )
        array[...] = values
        scale = volume.spacing[::-1] * factor
        shift = volume.origin[::-1] + volume.spacing[::-1] * (factor - 1) / 2
        placed = [{"type": "scale", "scale": scale.tolist()}, {"type": "translation", "translation": shift.tolist()}]
        levels.append({"path": name, "coordinateTransformations": placed})
        if max(values.shape) <= SMALLEST or min(values.shape) < 4:
            break
        values, factor = halved(values), 2 * factor
    axes = [{"name": axis, "type": "space", **({"unit": unit} if unit else {})} for axis in "zyx"]
    images: Any = [{"version": "0.4", "name": volume.name, "axes": axes, "datasets": levels}]
    group.attrs["multiscales"] = images


OME_ZARR = scalar_format("OME-Zarr", (".ome.zarr", ".zarr"), detect, source, write, folder=True)

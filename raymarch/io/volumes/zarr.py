"""OME-Zarr, chunked image pyramids of microscopy: a folder (.zarr, .ome.zarr) of versions 0.1 to 0.5, or an array of
Zarr by itself.

Axes are by their names, mostly (t, c, z, y, x); scale and translation are those of the level. Written is version 0.4.
"""

from __future__ import annotations

import asyncio
import bz2
import gzip
import logging
import math
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names, one_line
from raymarch.io.files.strict import MAX_JSON_BYTES, memory_budget, read_json, require_file_budget
from raymarch.io.volumes.length_units import UNIT_WORDS, common_unit, short_unit
from raymarch.io.volumes.scalar_format import (
    choose_index,
    plain_values,
    require_library,
    require_upright,
    scalar_format,
)
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, library_errors
from raymarch.io.volumes.stored_values import MAX_BEYOND, READ_BLOCK, unpacked_pieces
from raymarch.system.resources import workers
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
ATTRIBUTE_FILES = (".zattrs", "zarr.json")
NODE_FILES = (".zgroup", ".zarray", *ATTRIBUTE_FILES)  # one of which any folder of Zarr has
CHUNK_SIDE = 64  # samples a side
MAX_LAST_SIDE = 64  # samples of the longest side of the last level
NUMBERS_TO_NUMBERS = """adler32 astype bitround blosc bytes bz2 cast_value crc32 crc32c delta fixedscaleoffset
    fletcher32 gzip jenkins_lookup3 lz4 lzma packbits pcodec quantize scale_offset sharding_indexed shuffle transpose
    zfpy zlib zstd"""
CODECS = frozenset(NUMBERS_TO_NUMBERS.split())  # others, such as pickle, may run what a file says
MAX_IMAGES = 64  # that are looked for
FIRST_IMAGE_PATH = "0"  # in which bioformats2raw puts its first image
DEFAULT_AXES = "tczyx"  # axes of versions 0.1 and 0.2, which name none
READ_TRANSFORMATIONS = ("scale", "translation", "identity")  # transformations that are read
ZARR_CURE = "rm.ScalarVolume(zarr.open_array(..)[...].T, affine) takes what zarr itself reads"

# Chunks as they are stored.
METADATA_FILES = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")
SHARDING_CODEC, CHECKSUM_CODEC = "sharding_indexed", "crc32c"
MAX_NUMBER_BYTES = 8  # bytes of a number as filters may have it
INDEX_ENTRY_BYTES = 16  # bytes of the index of a shard for each of its chunks
MISSING_OFFSET = 2**64 - 1  # place of a chunk that a shard lacks

# Packed chunks, whose size is found out before their codec unpacks them, which has no limit.
# what frames of Zstandard begin with, and those that it passes over
ZSTD_MAGIC, SKIPPABLE_MAGIC = 0xFD2FB528, 0x184D2A50
ZSTD_BLOCK = 1 << 17  # bytes that a block of Zstandard unpacks to at most
# zfpy and pcodec, of libraries that no extra brings, are not among these: what they unpack to is not known before.
PACKINGS = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")
Codec = tuple[str, Mapping[str, Any]]


def detect(path: Path) -> bool:
    """Whether a folder is a group or an array of Zarr."""
    return path.is_dir() and any((path / name).is_file() for name in NODE_FILES)


def source(path: Path, selection: Selection) -> Source:
    """Source of an OME-Zarr: the level that is asked for, else the finest within the budget of one file.

    An array of Zarr by itself is an image of one level that says no place.
    """
    with require_library("zarr", "OME-Zarr"):
        import zarr
    found = _image(path)
    plain = found is None and _is_array(path)
    if found is None and not plain:
        raise RaymarchError(f"{path}: {_no_image_message(path)}")
    folder, image = (path.resolve().parent, {"datasets": [{"path": path.resolve().name}]}) if found is None else found
    levels = image.get("datasets")
    if not isinstance(levels, list) or not 1 <= len(levels) <= 64 or not all(map(_names_a_path, levels)):
        raise RaymarchError(f"{path}: has no list of 1 to 64 levels in its datasets, want a path each; {RESTORE_CURE}")
    chunks: dict[str, Chunks] = {}
    store = measured_store(folder, chunks)
    with library_errors("zarr", path):
        if plain:
            arrays = [zarr.open_array(store, path=path.resolve().name, mode="r")]
        else:
            group = zarr.open_group(store, mode="r")
            arrays = [_array(path, group, one["path"]) for one in levels]
    axes, remarks = _axes(path, image, arrays[0], plain)
    arrays = [_level(path, array, one["path"], len(axes)) for array, one in zip(arrays, levels, strict=True)]
    chunks.update((array.path, chunks_of(array, f"{path}: level {array.path} has")) for array in arrays)
    level, choice = _choose(path, arrays, axes, selection)
    array, spatial = arrays[level], [axes.index(axis) for axis in "xyz"]
    rest = Selection(channel=selection.channel, time=selection.time)
    kinds = ["time" if axis == "t" else "channel" if axis == "c" else axis for axis in axes]
    index, more = choose_index(path, array.shape, sorted(spatial), rest, names=kinds)
    order = sorted(range(3), key=lambda axis: spatial[axis])  # which of x, y, z each axis of space is

    def vector(name: str) -> np.ndarray:
        if plain:
            raise RaymarchError(f"{path}: is an array by itself; {RESTORE_CURE}")
        with library_errors("zarr", path):
            one = _array(path, group, name.strip("/"))
            chunks[one.path] = chunks_of(one, f"{path}: {name} has")
            return np.asarray(one[...], float)

    scale, shift, doubts = _place(path, image, levels[level], len(axes), vector, plain)
    factors, unit, mixed = common_unit(_units(image.get("axes"), axes))
    affine = np.diag([*(scale[axis] * factor for axis, factor in zip(spatial, factors, strict=True)), 1.0])
    affine[:3, 3] = [shift[axis] * factor for axis, factor in zip(spatial, factors, strict=True)]
    dtype, name = np.dtype(array.dtype), image.get("name")

    def read(slices: Slices) -> np.ndarray:
        with library_errors("zarr", path):
            stored = np.asarray(array[index(tuple(slices[axis] for axis in order))])
        return np.moveaxis(stored.view(np.uint8) if dtype.kind == "b" else stored, range(3), order)

    x, y, z = (int(array.shape[axis]) for axis in spatial)
    return Source(
        (x, y, z),
        np.dtype(np.uint8) if dtype.kind == "b" else dtype,
        affine,
        read,
        at_once=False,
        length_unit=unit,
        name=name if isinstance(name, str) else "",
        remarks=(*remarks, *choice, *more, *doubts, *mixed, *_others(path, folder, plain)),
    )


def _image(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """Group with an image, and its description; that of bioformats2raw is one level below."""
    for one in (folder, folder / FIRST_IMAGE_PATH):
        several = _attributes(one).get("multiscales") if one.is_dir() else None
        if isinstance(several, list) and several and isinstance(several[0], dict):
            return one, several[0]
    return None


def _is_array(folder: Path) -> bool:
    """Whether a folder is an array of Zarr by itself, as dask and zarr.save write them."""
    if (folder / ".zarray").is_file():
        return True
    text = folder / "zarr.json"
    found = read_json(text) if text.is_file() and not text.is_symlink() else {}
    return isinstance(found, dict) and found.get("node_type") == "array"


def _attributes(folder: Path) -> dict[str, Any]:
    """Attributes of a group of either version."""
    for name in ATTRIBUTE_FILES:
        file = folder / name
        if file.is_file() and not file.is_symlink():
            found = read_json(file)
            found = found.get("attributes", {}) if name == "zarr.json" and isinstance(found, dict) else found
            if isinstance(found, dict):
                ome = found.get("ome", found)
                return ome if isinstance(ome, dict) else {}
    return {}


def _no_image_message(path: Path) -> str:
    """What a Zarr without an image is, and what to name in its place."""
    told = _attributes(path)
    plate, well = told.get("plate"), told.get("well")
    if isinstance(plate, dict) and isinstance(plate.get("wells"), list):
        wells = [str(one.get("path", "")) for one in plate["wells"] if isinstance(one, dict)]
        fields = _fields(path / wells[0]) if wells else []
        rest = f", one of {len(wells)} wells" if len(wells) > 1 else ""
        field = path / (wells[0] if wells else "A/1") / (fields or ["0"])[0]
        return f"is a plate of wells; name a field of it, {field}{rest}"
    if isinstance(well, dict):
        fields = _fields(path)
        return f"is a well of {len(fields)} fields; name one, {path / (fields or ['0'])[0]}"
    below = (one for _, one in zip(range(MAX_IMAGES), sorted(path.iterdir()), strict=False) if one.is_dir())
    inside = [one.name for one in below if _is_array(one) or _image(one) is not None]
    if inside:
        return f"is a Zarr group without multiscales, with {first_names(inside, 4)} in it; name one, {path / inside[0]}"
    return (
        "has no multiscales in its attributes, want an OME-Zarr image or an array of Zarr; name the folder of one, with"
        " .zattrs, .zarray or zarr.json in it"
    )


def _fields(well: Path) -> list[str]:
    """Paths of a well's fields of view, those that are there first."""
    told = _attributes(well).get("well")
    images = told.get("images") if isinstance(told, dict) else None
    names = [str(one.get("path", "")) for one in images or () if isinstance(one, dict)]
    there = [one.name for one in sorted(well.iterdir()) if one.is_dir()] if well.is_dir() else []
    return [name for name in names if name in there] or there or names


def _others(path: Path, folder: Path, plain: bool) -> tuple[str, ...]:
    """Remark on images beside the one that is taken."""
    if plain:
        return ()
    beside = [path / str(k) for k in range(1, MAX_IMAGES)] if folder != path else []
    there = [one.name for one in beside if one.is_dir() and _image(one) is not None]
    if there:
        return (
            f"has images {first_names([FIRST_IMAGE_PATH, *there], 4)}; {FIRST_IMAGE_PATH} is taken, others are "
            f"{path.name}/{there[0]} and on",
        )
    count = len(_attributes(folder)["multiscales"])
    return (f"has {count} images in one group; the first is taken",) if count > 1 else ()


def _names_a_path(level: Any) -> bool:
    return isinstance(level, dict) and isinstance(level.get("path"), str)


def _array(path: Path, group: Any, name: str) -> Any:
    """Array of a group; RaymarchError for none of that name."""
    try:
        found = group[name]
    except KeyError:
        raise RaymarchError(f"{path}: has no level {name[:60]!r}, which its attributes name; copy all of it") from None
    if not hasattr(found, "dtype"):
        raise RaymarchError(f"{path}: level {name[:60]!r} is no array; {RESTORE_CURE}")
    return found


def _axes(path: Path, image: dict[str, Any], array: Any, plain: bool) -> tuple[list[str], tuple[str, ...]]:
    """Names of an image's axes, x, y and z among them, and what was assumed."""
    count = len(array.shape)
    told = image.get("axes")
    remarks: tuple[str, ...] = ()
    if plain:
        said = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
        told = said if isinstance(said, (list, tuple)) and len(said) == count and all(said) else None
        if told is None and count == 3:
            remarks = ("names no axes, z, y, x are assumed; says no spacing, 1 is assumed",)
        elif told is None:
            remarks = (
                f"names no axes, the last of {', '.join(DEFAULT_AXES)} are assumed; says no spacing, 1 is assumed",
            )
        else:
            beside = [str(one) for one in told if _is_array(path.parent / str(one))]  # as xarray stores coordinates
            where = (
                f"has coordinates beside it, {first_names(beside)}, which are not read" if beside else "says no spacing"
            )
            remarks = (f"{where}; 1 is assumed" + (" as the spacing (rm.load takes spacing=)" if beside else ""),)
    if told is None:
        told = list(DEFAULT_AXES[-count:])
    names = [str(one.get("name", "") if isinstance(one, dict) else one).lower() for one in told] if told else []
    if names and sorted(set(names) & set("xyz")) != ["x", "y", "z"]:
        spatial = [
            k for k, one in enumerate(told) if not isinstance(one, dict) or str(one.get("type", "space")) == "space"
        ]
        if len(names) == count and len(spatial) >= 3 and not set(names) & set("xyz"):
            for k, axis in zip(spatial[-3:], "zyx", strict=True):
                names[k] = axis
            words = [str(one.get("name", "") if isinstance(one, dict) else one) for one in told]
            remarks += (f"has axes {first_names(words)}, none called x, y or z; the last three of space are z, y, x",)
    if sorted(set(names) & set("xyz")) != ["x", "y", "z"] or len(names) > 5:
        flat = "y" in names and "x" in names and "z" not in names
        cure = "is one picture, want a stack; choose an image with z" if flat else "want x, y, z among them"
        raise RaymarchError(f"{path}: has axes {names[:6]}, {cure}" + ("" if flat else f"; {ZARR_CURE}"))
    return names, remarks


def _units(told: Any, axes: Sequence[str]) -> list[str]:
    """Units of x, y and z, as the file's axes say them."""
    found = {}
    for axis, one in zip(axes, told or (), strict=False):
        found[axis] = str(one.get("unit") or "") if isinstance(one, dict) else ""
    return [found.get(axis, "") for axis in "xyz"]


def _level(path: Path, array: Any, name: str, count: int) -> Any:
    """Array of a level, once its codecs, type and axes are such as may be read."""
    told = array.metadata.to_dict()
    if bad := sorted({c for key in ("codecs", "filters", "compressor") for c in _codecs(told.get(key))} - CODECS):
        raise RaymarchError(f"{path}: level {name} has the codec {bad[0][:40]}, want one of numbers; {ZARR_CURE}")
    with library_errors("zarr", path):
        dtype = np.dtype(array.dtype)
    numeric = dtype.kind == "b" or dtype.itemsize in TYPE_SIZES.get(dtype.kind, ())
    if len(array.shape) != count or not numeric or min(array.shape) < 1:
        part = ".real" if dtype.kind == "c" else ""
        cure = ZARR_CURE.replace("[...]", f"[...]{part}")
        raise RaymarchError(
            f"{path}: level {name} holds {dtype} {array.shape}, want numbers along {count} axes; {cure}"
        )
    return array


def _codecs(told: Any) -> Iterator[str]:
    """Names of the codecs of an array by its metadata, those within shards too."""
    for one in told if isinstance(told, (list, tuple)) else [told] if told else []:
        name, inner = codec_of(one)
        yield name
        yield from _codecs(inner.get("codecs"))
        yield from _codecs(inner.get("index_codecs"))


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
    cure = "finer ones are over the budget of one file, raymarch render --memory marches them"
    return level, (f"level {level} of {len(arrays)} is read, {shape}; {cure}",)


def _place(
    path: Path, image: dict, level: dict, count: int, vector: Callable[[str], np.ndarray], plain: bool
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Scale and translation of a level along its axes, and remarks; those of the whole image come after.

    Numbers may be in the file of an array, by its path, which `vector` reads.
    """
    scale, shift, remarks = np.ones(count), np.zeros(count), []
    told = [one.get("coordinateTransformations") or [] for one in (level, image)]
    if not all(isinstance(several, list) for several in told):
        raise RaymarchError(f"{path}: has coordinateTransformations that are no list; {RESTORE_CURE}")
    for one in [*told[0], *told[1]]:
        kind = one.get("type") if isinstance(one, dict) else None
        if isinstance(one, dict) and isinstance(kind, str) and kind not in READ_TRANSFORMATIONS:
            remarks.append(f"has a transformation of type {kind[:40]}, which is not read; spacing= gives another place")
            continue
        numbers = np.zeros(count)
        if kind in ("scale", "translation"):
            given = one.get(kind)
            if given is None and isinstance(one.get("path"), str):
                given = vector(one["path"])
            try:
                numbers = np.asarray(given, float)
            except (TypeError, ValueError):
                numbers = np.zeros(0)
        if kind not in READ_TRANSFORMATIONS or numbers.shape != (count,) or not np.isfinite(numbers).all():
            raise RaymarchError(f"{path}: has a transformation {str(one)[:80]}, want {count} numbers; {RESTORE_CURE}")
        if kind == "scale":
            scale, shift = scale * numbers, shift * numbers
        elif kind == "translation":
            shift = shift + numbers
    if not scale.all():
        scale = np.where(scale == 0, 1.0, scale)
        remarks.append("has a scale of 0; 1 is assumed there")
    if not any(told) and not plain:
        remarks.append("says no scale; 1 is assumed")
    return scale, shift, tuple(remarks)


def codec_of(told: Any) -> Codec:
    """Name and configuration of a codec by the metadata of either version.

    Before 3.1 zarr leaves codecs of version 2 as objects of numcodecs in what it calls a dictionary.
    """
    if not isinstance(told, Mapping):
        told = told.get_config() if hasattr(told, "get_config") else {"name": str(told)}
    name = str(told.get("id", told.get("name", ""))).removeprefix("numcodecs.")
    return name, told.get("configuration") or told


def chunks_of(array: Any, what: str) -> Chunks:
    """Chunks of a level by its metadata, held against the budget of one file; RaymarchError opens with `what`.

    Refused is too what cannot be measured: chunks packed twice, shards that are packed, have shards, or their index at
    the beginning.
    """
    told, itemsize = array.metadata.to_dict(), np.dtype(array.dtype).itemsize
    compressor = told.get("compressor")
    codecs = [codec_of(one) for key in ("codecs", "filters") for one in told.get(key) or ()]
    codecs += [codec_of(compressor)] if compressor else []
    whole = math.prod(getattr(array, "shards", None) or array.chunks)
    inside, index = 1, None
    if any(name == SHARDING_CODEC for name, _ in codecs):
        inside = whole // math.prod(array.chunks)
        codecs, index = _shard_codecs(codecs, inside, what)
    require_file_budget(
        max(whole * itemsize, inside * INDEX_ENTRY_BYTES * (index is not None)), f"{what} chunks, or shards, that"
    )
    packings = [place for place, (name, _) in enumerate(codecs) if name in PACKINGS]
    around = codecs[packings[0] + 1 :] if packings else []
    if any(name != CHECKSUM_CODEC for name, _ in around):
        raise RaymarchError(f"{what} the codec {around[-1][0]} around {codecs[packings[0]][0]}, want one; {ZARR_CURE}")
    numbers = max(itemsize, MAX_NUMBER_BYTES)
    return Chunks(
        math.prod(array.chunks) * numbers + MAX_BEYOND,
        whole * numbers + inside * (INDEX_ENTRY_BYTES + 4) + MAX_BEYOND,
        codecs[packings[0]] if packings else None,
        4 * len(around),
        inside,
        index,
    )


def _shard_codecs(codecs: Sequence[Codec], inside: int, what: str) -> tuple[list[Codec], tuple[int, str]]:
    """Codecs of the chunks in shards, and size and type of the index of their places."""
    name, how = codecs[-1]
    inner = [codec_of(one) for one in how.get("codecs") or ()]
    of_index = [codec_of(one) for one in how.get("index_codecs") or ()]
    if name != SHARDING_CODEC or any(each == SHARDING_CODEC for each, _ in inner):
        raise RaymarchError(f"{what} shards that are packed or in shards, want those of chunks alone; {ZARR_CURE}")
    names = [each for each, _ in of_index]
    if names not in (["bytes"], ["bytes", CHECKSUM_CODEC]) or how.get("index_location", "end") != "end":
        raise RaymarchError(
            f"{what} shards with an index of {names} elsewhere, want it at the end and plain; {ZARR_CURE}"
        )
    order = ">" if of_index[0][1].get("endian") == "big" else "<"
    return inner, (inside * INDEX_ENTRY_BYTES + 4 * (len(names) - 1), f"{order}u8")


@dataclass(frozen=True)
class Chunks:
    """Chunks of one level.

    Attributes:
        most: bytes that one unpacks to at most, whatever filters make of its numbers.
        stored: bytes that a file may have.
        packing: codec that packs each, None if they are not packed; `tail` bytes of a checksum are behind it.
        inside: how many are in a file, which is a shard if that is not 1; `index` is that of their places, of so many
            bytes at its end and of this type.
    """

    most: int
    stored: int
    packing: Codec | None
    tail: int
    inside: int = 1
    index: tuple[int, str] | None = None

    def require_stored(self, file: Path) -> None:
        """RaymarchError for a file of more bytes than these chunks have, before it is read."""
        if file.is_file() and (size := file.stat().st_size) > self.stored:
            raise RaymarchError(
                f"{file}: has {size:,} bytes, want at most {self.stored:,} by its metadata; {RESTORE_CURE}"
            )

    def require(self, found: Any, file: Path, byte_range: Any) -> None:
        """RaymarchError where a chunk, or one of a shard that is read whole, unpacks to more than it may.

        Args:
            found: what zarr read, None where nothing is there.
            file: it was read from.
            byte_range: that was asked for, None for the whole file; one from the end on is a shard's index.
        """
        if self.packing is None or found is None or getattr(byte_range, "suffix", None) is not None:
            return
        data = found.to_bytes()
        for chunk in [data] if byte_range is not None or self.index is None else self._parts(data):
            if unpacked_bytes(*self.packing, chunk[: len(chunk) - self.tail], self.most) > self.most:
                raise RaymarchError(
                    f"{file}: a chunk unpacks to over {self.most:,} bytes, more than its metadata declare; "
                    f"{RESTORE_CURE}"
                )

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Chunks of a shard."""
        assert self.index is not None
        size, kind = self.index
        if len(data) >= size:  # else the index is refused
            for begin, length in np.frombuffer(data, kind, 2 * self.inside, len(data) - size).reshape(-1, 2).tolist():
                if begin != MISSING_OFFSET:
                    yield data[begin : begin + length]


def measured_store(folder: Path, levels: Mapping[str, Chunks]) -> Any:
    """Store of a folder whose chunks are measured before zarr gets them, by the `levels` that are known by then."""
    import zarr.storage

    class Measured(zarr.storage.WrapperStore):
        """Store that knows how much memory what it hands out will take: zarr and numcodecs have no limit.

        Each way in which some version of zarr reads is its own: WrapperStore leaves them to the store within. No ranges
        are merged, for what is read at once is measured as one chunk.
        """

        async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
            chunks = _chunks_in(folder / key, key, levels)
            found = await super().get(key, prototype, byte_range)
            if chunks is not None:
                await asyncio.to_thread(chunks.require, found, folder / key, byte_range)  # so that no other waits
            return found

        async def get_ranges(
            self, key: str, byte_ranges: Iterable[Any], *, prototype: Any, **_: Any
        ) -> AsyncIterator[list[tuple[int, Any]]]:
            yield list(enumerate(await asyncio.gather(*(self.get(key, prototype, each) for each in byte_ranges))))

        async def get_partial_values(self, prototype: Any, key_ranges: Any) -> list[Any]:
            return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

        async def _get_many(self, requests: Iterable[tuple[str, Any, Any]]) -> AsyncGenerator[tuple[str, Any], None]:
            for key, prototype, byte_range in requests:
                yield key, await self.get(key, prototype, byte_range)

        def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
            chunks = _chunks_in(folder / key, key, levels)
            found = self._store.get_sync(key, prototype=prototype, byte_range=byte_range)
            if chunks is not None:
                chunks.require(found, folder / key, byte_range)
            return found

        def get_ranges_sync(
            self, key: str, byte_ranges: Iterable[Any], *, prototype: Any, **_: Any
        ) -> list[tuple[int, Any]]:
            several = (self.get_sync(key, prototype=prototype, byte_range=each) for each in byte_ranges)
            return list(enumerate(several))

    return Measured(zarr.storage.LocalStore(folder, read_only=True))


def _chunks_in(file: Path, key: str, levels: Mapping[str, Chunks]) -> Chunks | None:
    """Chunks that a file has, None for a text; RaymarchError for one of more bytes than either has."""
    if key.rpartition("/")[2] in METADATA_FILES:
        if file.is_file() and file.stat().st_size > MAX_JSON_BYTES:
            raise RaymarchError(f"{file}: has over {MAX_JSON_BYTES:,} bytes, want metadata; {RESTORE_CURE}")
        return None
    chunks = next((one for path, one in levels.items() if key.startswith(f"{path}/")), None)
    if chunks is None:
        raise RaymarchError(f"{file}: is of no level; {RESTORE_CURE}")
    chunks.require_stored(file)
    return chunks


def unpacked_bytes(packing: str, how: Mapping[str, Any], data: bytes, most: int) -> int:
    """Bytes that a chunk unpacks to by one of `PACKINGS`, which is configured as `how` says; if those are over `most`,
    some number over it. Memory is not taken.

    Raises RaymarchError for a damaged chunk.

    Example:
        >>> unpacked_bytes("bz2", {}, bz2.compress(bytes(1000)), 1000)
        1000
    """
    try:
        if packing == "blosc":  # whose header says it, and is held to; a chunk that is cut is unpacked to anything
            size, _, packed = struct.unpack_from("<3I", data, 4)
            if packed > len(data):
                raise ValueError(f"has {len(data):,} of {packed:,} bytes")
            return size
        if packing == "lz4":
            return struct.unpack_from("<I", data)[0]
        total = 0
        for size in _zstd(data) if packing == "zstd" else _stream_pieces(packing, how, data):
            total += size
            if total > most:
                break
        return total
    except Exception as error:  # unpackers raise anything from zlib.error to EOFError
        raise RaymarchError(f"a packed chunk is damaged ({one_line(error)}); {RESTORE_CURE}") from error


def _stream_pieces(packing: str, how: Mapping[str, Any], data: bytes) -> Iterator[int]:
    """Bytes of one piece after the other, by the functions that the codecs of numcodecs use."""
    source: Any = BytesIO(data)
    if packing == "zlib":
        yield from map(len, unpacked_pieces(source.read, packing))
        return
    if packing == "lzma":
        import lzma  # which some builds of Python lack

        source = lzma.LZMAFile(source, format=how.get("format", lzma.FORMAT_XZ), filters=how.get("filters"))  # noqa: SIM115
    else:
        source = gzip.GzipFile(fileobj=source) if packing == "gzip" else bz2.BZ2File(source)
    while piece := source.read(READ_BLOCK):
        yield len(piece)


def _zstd(data: bytes) -> Iterator[int]:
    """Bytes of frames as their headers say; where one does not, those that its blocks have at most (RFC 8878)."""
    at = 0
    while at + 8 <= len(data):
        magic, length = struct.unpack_from("<II", data, at)
        if magic & ~0xF == SKIPPABLE_MAGIC:
            at += 8 + length
            continue
        if magic != ZSTD_MAGIC:
            return  # which the codec refuses
        said = data[at + 4]
        alone, width = said >> 5 & 1, (said >> 5 & 1, 2, 4, 8)[said >> 6]
        at += 6 - alone + (0, 1, 2, 4)[said & 3]
        if width:
            yield int.from_bytes(data[at : at + width], "little") + 256 * (width == 2)
        at, last = at + width, False
        while not last and at + 3 <= len(data):
            block = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
            at += 3 + (1 if kind == 1 else size)
            if not width:
                yield size if kind < 2 else ZSTD_BLOCK
        at += 4 * (said >> 2 & 1)


def write(volume: ScalarVolume, path: Path) -> None:
    """OME-Zarr 0.4 of a scalar volume that is upright in the world, with a pyramid of means of eight."""
    with require_library("zarr", "OME-Zarr"):
        import zarr

    require_upright(volume, path, "OME-Zarr")
    values = np.ascontiguousarray(plain_values(volume).T)
    unit = UNIT_WORDS.get(short_unit(volume.length_unit), volume.length_unit)
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    levels: list[dict[str, Any]] = []
    factor = 1
    while True:
        name = str(len(levels))
        chunks = tuple(min(CHUNK_SIDE, n) for n in values.shape)
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=chunks,
            chunk_key_encoding={"name": "v2", "separator": "/"},
        )
        _write_chunks(array, values)
        scale = volume.spacing[::-1] * factor
        shift = volume.origin[::-1] + volume.spacing[::-1] * (factor - 1) / 2
        placed = [{"type": "scale", "scale": scale.tolist()}, {"type": "translation", "translation": shift.tolist()}]
        levels.append({"path": name, "coordinateTransformations": placed})
        if max(values.shape) <= MAX_LAST_SIDE or min(values.shape) < 4:
            break
        values, factor = halve(values), 2 * factor
    axes = [{"name": axis, "type": "space", **({"unit": unit} if unit else {})} for axis in "zyx"]
    images: Any = [{"version": "0.4", "name": volume.name, "axes": axes, "datasets": levels}]
    group.attrs["multiscales"] = images


def _write_chunks(array: Any, values: np.ndarray) -> None:
    """Write of an array, a chunk a thread and a call.

    Asked for all at once, zarr goes on with the other chunks after one has failed, behind the back of who removes the
    folder, and says so for each at the end of the process.
    """
    starts = product(*(range(0, n, step) for n, step in zip(array.shape, array.chunks, strict=True)))

    def write_chunk(start: tuple[int, ...]) -> None:
        index = tuple(slice(a, a + step) for a, step in zip(start, array.chunks, strict=True))
        array[index] = values[index]

    with ThreadPoolExecutor(workers()) as pool:
        written = [pool.submit(write_chunk, start) for start in starts]
        try:
            for one in written:
                one.result()
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def halve(values: np.ndarray) -> np.ndarray:
    """Array of half as many samples an axis, means of eight; an odd last one is left out, whole numbers are rounded.

    Example:
        >>> halve(np.arange(8).reshape(2, 2, 2)).tolist()
        [[[4]]]
    """
    even = values[tuple(slice(n // 2 * 2) for n in values.shape)]
    x, y, z = (n // 2 for n in even.shape)
    mean = even.reshape(x, 2, y, 2, z, 2).mean((1, 3, 5), dtype=np.float64)
    if values.dtype.kind not in "iu":
        return mean.astype(values.dtype)
    ends = np.iinfo(values.dtype)
    whole, top = np.rint(mean), float(ends.max)
    with np.errstate(invalid="ignore"):  # the largest of 64 bits is no double: those that round to it are put back
        return np.where(whole >= top, ends.max, whole.astype(values.dtype)).astype(values.dtype)


OME_ZARR = scalar_format("OME-Zarr", (".ome.zarr", ".zarr"), detect, source, write, folder=True)

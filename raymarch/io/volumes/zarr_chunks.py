"""Chunks of a Zarr as they are stored: what they may hold by the metadata, and a store that holds them to it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.limits import require_file_budget
from raymarch.io.files.strict import LARGEST_FILE
from raymarch.io.volumes.packed_chunk import PACKINGS, unpacked_bytes
from raymarch.io.volumes.stored_values import CURE, MOST_BEYOND

TEXTS = (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json")
SHARDS, CHECKSUM = "sharding_indexed", "crc32c"
WIDEST = 8  # bytes of a number as filters may have it
ENTRY = 16  # bytes of the index of a shard for each of its chunks
BY_ZARR = "rm.ScalarVolume(zarr.open_array(..)[...].T, affine) takes what zarr itself reads"
NOWHERE = 2**64 - 1  # place of a chunk that a shard lacks
Codec = tuple[str, Mapping[str, Any]]


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
            raise RaymarchError(f"{file}: has {size:,} bytes, want at most {self.stored:,} by its metadata; {CURE}")

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
                    f"{file}: a chunk unpacks to over {self.most:,} bytes, more than its metadata declare; {CURE}"
                )

    def _parts(self, data: bytes) -> Iterator[bytes]:
        """Chunks of a shard."""
        assert self.index is not None
        size, kind = self.index
        if len(data) >= size:  # else the index is refused
            for begin, length in np.frombuffer(data, kind, 2 * self.inside, len(data) - size).reshape(-1, 2).tolist():
                if begin != NOWHERE:
                    yield data[begin : begin + length]


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
    if any(name == SHARDS for name, _ in codecs):
        inside = whole // math.prod(array.chunks)
        codecs, index = _in_shards(codecs, inside, what)
    require_file_budget(max(whole * itemsize, inside * ENTRY * (index is not None)), f"{what} chunks, or shards, that")
    packings = [place for place, (name, _) in enumerate(codecs) if name in PACKINGS]
    around = codecs[packings[0] + 1 :] if packings else []
    if any(name != CHECKSUM for name, _ in around):
        raise RaymarchError(f"{what} the codec {around[-1][0]} around {codecs[packings[0]][0]}, want one; {BY_ZARR}")
    numbers = max(itemsize, WIDEST)
    return Chunks(
        math.prod(array.chunks) * numbers + MOST_BEYOND,
        whole * numbers + inside * (ENTRY + 4) + MOST_BEYOND,
        codecs[packings[0]] if packings else None,
        4 * len(around),
        inside,
        index,
    )


def _in_shards(codecs: Sequence[Codec], inside: int, what: str) -> tuple[list[Codec], tuple[int, str]]:
    """Codecs of the chunks in shards, and size and type of the index of their places."""
    name, how = codecs[-1]
    inner = [codec_of(one) for one in how.get("codecs") or ()]
    of_index = [codec_of(one) for one in how.get("index_codecs") or ()]
    if name != SHARDS or any(each == SHARDS for each, _ in inner):
        raise RaymarchError(f"{what} shards that are packed or in shards, want those of chunks alone; {BY_ZARR}")
    names = [each for each, _ in of_index]
    if names not in (["bytes"], ["bytes", CHECKSUM]) or how.get("index_location", "end") != "end":
        raise RaymarchError(
            f"{what} shards with an index of {names} elsewhere, want it at the end and plain; {BY_ZARR}"
        )
    order = ">" if of_index[0][1].get("endian") == "big" else "<"
    return inner, (inside * ENTRY + 4 * (len(names) - 1), f"{order}u8")


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
    if key.rpartition("/")[2] in TEXTS:
        if file.is_file() and file.stat().st_size > LARGEST_FILE:
            raise RaymarchError(f"{file}: has over {LARGEST_FILE:,} bytes, want metadata; {CURE}")
        return None
    chunks = next((one for path, one in levels.items() if key.startswith(f"{path}/")), None)
    if chunks is None:
        raise RaymarchError(f"{file}: is of no level; {CURE}")
    chunks.require_stored(file)
    return chunks

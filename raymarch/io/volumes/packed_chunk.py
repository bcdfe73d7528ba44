"""Packed chunk: how many bytes it unpacks to, found out before its codec does it, which has no limit."""

from __future__ import annotations

import bz2
import gzip
import struct
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from raymarch.errors import RaymarchError, one_line
from raymarch.io.volumes.stored_values import CURE, STEP, pieces

ZSTD, SKIPPED = 0xFD2FB528, 0x184D2A50  # what frames of Zstandard begin with, and those that it passes over
BLOCK = 1 << 17  # bytes that a block of Zstandard unpacks to at most
# zfpy and pcodec, of libraries that no extra brings, are not among these: what they unpack to is not known before.
PACKINGS = ("blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd")


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
        for size in _zstd(data) if packing == "zstd" else _streamed(packing, how, data):
            total += size
            if total > most:
                break
        return total
    except Exception as error:  # unpackers raise anything from zlib.error to EOFError
        raise RaymarchError(f"a packed chunk is damaged ({one_line(error)}); {CURE}") from error


def _streamed(packing: str, how: Mapping[str, Any], data: bytes) -> Iterator[int]:
    """Bytes of one piece after the other, by the functions that the codecs of numcodecs use."""
    source: Any = BytesIO(data)
    if packing == "zlib":
        yield from map(len, pieces(source.read, packing))
        return
    if packing == "lzma":
        import lzma  # which some builds of Python lack

        source = lzma.LZMAFile(source, format=how.get("format", lzma.FORMAT_XZ), filters=how.get("filters"))  # noqa: SIM115
    else:
        source = gzip.GzipFile(fileobj=source) if packing == "gzip" else bz2.BZ2File(source)
    while piece := source.read(STEP):
        yield len(piece)


def _zstd(data: bytes) -> Iterator[int]:
    """Bytes of frames as their headers say; where one does not, those that its blocks have at most (RFC 8878)."""
    at = 0
    while at + 8 <= len(data):
        magic, length = struct.unpack_from("<II", data, at)
        if magic & ~0xF == SKIPPED:
            at += 8 + length
            continue
        if magic != ZSTD:
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
                yield size if kind < 2 else BLOCK
        at += 4 * (said >> 2 & 1)

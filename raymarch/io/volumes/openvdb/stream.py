"""Stream of an OpenVDB file: numbers, texts and packed values one behind the other, never beyond its end."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.volumes.openvdb.layout import (
    ACTIVE_ONLY,
    ALL,
    BACKGROUND,
    BLOSC,
    ONE,
    ONE_OR_BACKGROUND,
    SIGNS,
    TWO,
    ZIP,
    affine_of_map,
    metadata_value,
)
from raymarch.io.volumes.openvdb.layout import MAP_NUMBERS as MAPS
from raymarch.io.volumes.source import RESTORE_CURE

MAX_TEXT = 1 << 16  # bytes of a name
MAX_ENTRIES = 1 << 16  # of metadata
BLOSC_HEADER, BLOSC_PADDED = 16, 128  # bytes: of its header; which OpenVDB fills shorter values up to
BLOSC_CURE = 'pip install "raymarch[formats]", or pack it by zip: vdb_tool -read IN.vdb -write codec=zip OUT.vdb'


class Stream:
    """Part of a file from `at` to `end`, read forwards; RaymarchError where it ends too early."""

    def __init__(self, file: BinaryIO, at: int, end: int) -> None:
        self.file, self.end = file, end
        self.move(at)

    def move(self, at: int) -> None:
        """Go to a byte of the file."""
        if not 0 <= at <= self.end:
            raise RaymarchError(f"leads to byte {at:,} of {self.end:,}; {RESTORE_CURE}")
        self.file.seek(at)
        self.at = at

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if not 0 <= size <= self.end - self.at:
            raise RaymarchError(
                f"ends too early: at byte {self.at:,} of {self.end:,} come {size:,} more; {RESTORE_CURE}"
            )
        data = self.file.read(size)
        if len(data) != size:
            raise RaymarchError(f"became shorter while it was read; {RESTORE_CURE}")
        self.at += size
        return data

    def skip(self, size: int) -> None:
        """Leave bytes out."""
        if not 0 <= size <= self.end - self.at:
            self.take(size)
        self.move(self.at + size)

    def number(self, kind: str) -> Any:
        """The next number, by a letter of `struct`."""
        return struct.unpack("<" + kind, self.take(struct.calcsize("<" + kind)))[0]

    def numbers(self, dtype: str, count: int) -> np.ndarray:
        """The next numbers (count,)."""
        return np.frombuffer(self.take(count * np.dtype(dtype).itemsize), dtype)

    def text(self) -> str:
        """The next text."""
        size = self.number("I")
        if size > MAX_TEXT:
            raise RaymarchError(f"has a name of {size:,} bytes at byte {self.at:,}, want a short one; {RESTORE_CURE}")
        return self.take(size).decode("utf-8", "replace")

    def metadata(self) -> dict[str, Any]:
        """The next metadata, those of other types left out."""
        count = self.number("I")
        if count > MAX_ENTRIES:
            raise RaymarchError(f"has {count:,} entries of metadata at byte {self.at:,}; {RESTORE_CURE}")
        found = {}
        for _ in range(count):
            name, kind, size = self.text(), self.text(), self.number("I")
            if size > MAX_TEXT:
                self.skip(size)  # such as OpenVDB's own notes for reading leaves later
            else:
                found[name] = metadata_value(kind, self.take(size))
        return {name: value for name, value in found.items() if value is not None}

    def affine(self) -> np.ndarray:
        """The next map to the world (4, 4)."""
        kind = self.text()
        if kind not in MAPS:
            frustum = "Frustum" in kind
            cure = "resample it onto a regular grid in Houdini (VDB Resample)" if frustum else RESTORE_CURE
            raise RaymarchError(f"lies in the world by a {kind[:40]!r}, want one of {', '.join(MAPS)}; {cure}")
        return affine_of_map(kind, self.numbers("<f8", MAPS[kind]))


class Values:
    """Values of a grid's nodes, as they are packed in its stream.

    Args:
        stream: it comes from.
        flags: how values are packed.
        dtype, width: of the numbers, and how many a voxel has.
        half: whether they are stored in half precision; what stands in for inactive ones is not.
    """

    def __init__(self, stream: Stream, flags: int, dtype: np.dtype, width: int, half: bool) -> None:
        self.stream, self.flags, self.dtype, self.width = stream, flags, dtype, width
        self.stored = np.dtype("<f2") if half else dtype
        self.background = np.zeros(width, dtype)
        self.unpack: Callable[[bytes, int], bytes] = _unzip
        if flags & BLOSC:
            self.unpack = _unblosc()

    def one(self) -> np.ndarray:
        """The next value (width,) that stands alone."""
        return self.stream.numbers(self.dtype.str, self.width)

    def node(self, active: np.ndarray) -> np.ndarray | None:
        """Values (voxel, width) of the next node, by its mask of active voxels; None where all are the background."""
        how, inactive, chosen = self._inactive(len(active))
        partly = bool(self.flags & ACTIVE_ONLY) and how != ALL
        count = int(np.count_nonzero(active)) if partly else len(active)
        found = self._numbers(count)
        if count == len(active):
            return found
        if not count and how == BACKGROUND:
            return None
        out = np.empty((len(active), self.width), self.dtype)
        out[:] = inactive[0]
        if chosen is not None:
            out[chosen] = inactive[1]
        out[active] = found
        return out

    def skip(self, mask: bytes) -> None:
        """Leave the values of the next node out, by its mask."""
        voxels = 8 * len(mask)
        how, _, _ = self._inactive(voxels)
        partly = bool(self.flags & ACTIVE_ONLY) and how != ALL
        self._block(int.from_bytes(mask, "little").bit_count() if partly else voxels, skip=True)

    def _inactive(self, voxels: int) -> tuple[int, tuple[np.ndarray, np.ndarray], np.ndarray | None]:
        """How inactive values are stored, the two that there may be, and the mask of those that are the second."""
        how = self.stream.take(1)[0]
        if how > ALL:
            raise RaymarchError(f"stores values in a way {how} that there is not; {RESTORE_CURE}")
        first, second = self.background if how == BACKGROUND else -self.background, self.background
        if how in (ONE, ONE_OR_BACKGROUND, TWO):
            first = self.one()
        if how == TWO:
            second = self.one()
        chosen = None
        if how in (SIGNS, ONE_OR_BACKGROUND, TWO):
            chosen = bits(self.stream.take(voxels // 8))
        return how, (first, second), chosen

    def _numbers(self, count: int) -> np.ndarray:
        data = self._block(count)
        return np.frombuffer(data, self.stored).reshape(count, self.width).astype(self.dtype, copy=False)

    def _block(self, count: int, skip: bool = False) -> bytes:
        """Bytes of the next `count` values, unpacked."""
        size = count * self.width * self.stored.itemsize
        if not count and self.stored != self.dtype:
            return b""  # of none in half precision not even the length is stored
        packed = self.stream.number("q") if self.flags & (ZIP | BLOSC) else -size
        if packed <= 0 and -packed != size:
            raise RaymarchError(f"has {-packed:,} bytes of values where {size:,} belong; {RESTORE_CURE}")
        if skip:
            self.stream.skip(abs(packed))
            return b""
        return self.stream.take(size) if packed <= 0 else self.unpack(self.stream.take(packed), size)


def bits(mask: bytes) -> np.ndarray:
    """Mask (n,) bool of stored bits."""
    return np.unpackbits(np.frombuffer(mask, np.uint8), bitorder="little").view(bool)


def _unzip(data: bytes, size: int) -> bytes:
    """Bytes of a zlib stream, of which there must be `size`; memory for one more is all that it gets."""
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise RaymarchError(f"its packed values are damaged ({error}); {RESTORE_CURE}") from error
    if len(found) != size or not unpacker.eof:
        raise RaymarchError(f"declares {size:,} bytes of values but unpacks to others; {RESTORE_CURE}")
    return found


def _unblosc() -> Callable[[bytes, int], bytes]:
    """Function that unpacks Blosc's chunks; RaymarchError without imagecodecs."""
    try:
        from imagecodecs import blosc_decode
    except ImportError as error:
        raise RaymarchError(f"is packed by Blosc, which takes imagecodecs; {BLOSC_CURE}") from error

    def unpack(data: bytes, size: int) -> bytes:
        declared, _, packed = struct.unpack_from("<3I", data, 4) if len(data) >= BLOSC_HEADER else (0, 0, 0)
        if packed != len(data) or declared not in (size, max(size, BLOSC_PADDED)):
            raise RaymarchError(f"declares {size:,} bytes of values but has {declared:,} packed; {RESTORE_CURE}")
        try:
            found = bytes(blosc_decode(data))
        except Exception as error:  # an error of its own
            raise RaymarchError(f"its packed values are damaged ({one_line(error)}); {RESTORE_CURE}") from error
        if len(found) != declared:
            raise RaymarchError(f"declares {declared:,} bytes of values but unpacks to others; {RESTORE_CURE}")
        return found[:size]

    return unpack

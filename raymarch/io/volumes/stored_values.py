"""Values stored in a file one behind the other, raw, packed or as text: read once header and file size agree."""

from __future__ import annotations

import bz2
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.strict import require_file_budget
from raymarch.io.volumes.source import RESTORE_CURE, Index

MAPPED_BYTES = 1 << 25  # of a file that are mapped at a time
READ_BLOCK = 1 << 20  # bytes that are unpacked at a time
MAX_RATIO = 1100  # to which deflate packs zeros
MAX_WORD = 64  # letters of a number, for an array of words is as wide as the longest
MAX_BEYOND = 1 << 26  # bytes that are unpacked behind the values, for the checksum behind them
MEMBER_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh"}  # how each of several streams in one file begins


def require_size(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype) -> int:
    """Size [byte] that a header declares, once it is one that the file behind `offset` holds; else RaymarchError."""
    if any(n < 1 for n in shape):
        raise RaymarchError(f"{path}: declares {_sizes(shape)} samples, want 1 or more an axis; {RESTORE_CURE}")
    declared, there = math.prod(map(int, shape)) * dtype.itemsize, path.stat().st_size - offset
    if declared > there:
        raise RaymarchError(
            f"{path}: declares {_sizes(shape)} of {dtype}, {declared:,} bytes, but holds {max(there, 0):,}; "
            f"{RESTORE_CURE}"
        )
    return declared


def read_raw(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, index: Index) -> np.ndarray:
    """Values at an index of an array whose first axis is the fastest, not packed; the rest stays on disk."""
    require_size(path, offset, shape, dtype)
    return read_mapped(path, offset, shape, dtype, index, "F")


def read_mapped(
    path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, index: Index, order: Literal["C", "F"]
) -> np.ndarray:
    """Values at an index of an array that lies in a file as it is, by a few pages of it at a time: those that are
    mapped count as memory of the process, also where most of what is on them is not asked for."""

    def mapped() -> np.ndarray:
        return np.memmap(path, dtype, "r", offset, tuple(map(int, shape)), order)[index]

    view = mapped()
    out = np.empty_like(view, subok=False)
    if out.ndim == 0:
        return np.array(view)
    axis = int(np.argmax(np.abs(view.strides)))
    thick = max(MAPPED_BYTES // max(abs(view.strides[axis]), 1), 1)
    del view
    for first in range(0, out.shape[axis], thick):
        part = (*[slice(None)] * axis, slice(first, first + thick))
        out[part] = mapped()[part]
    return out


def require_packed(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, packing: str, skip: int = 0) -> None:
    """RaymarchError for a header that declares more values, `skip` bytes into what is packed behind `offset`, than
    that could unpack to."""
    size = math.prod(map(int, shape)) * dtype.itemsize
    there = max(path.stat().st_size - offset, 0)
    if any(n < 1 for n in shape) or (packing != "bzip2" and skip + size > MAX_RATIO * there):
        declared = f"{_sizes(shape)} of {dtype}, {size:,} bytes"
        raise RaymarchError(f"{path}: declares {declared}, but holds {there:,} packed; {RESTORE_CURE}")


def read_packed(
    path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, index: Index, packing: str, skip: int = 0
) -> np.ndarray:
    """Values at an index of an array whose first axis is the fastest, packed by "gzip", "zlib" or "bzip2".

    They begin `offset` bytes into the file and, once unpacked, `skip` bytes into what was packed. All of it is
    unpacked, whatever part is wanted: RaymarchError for more than one file may ask for.
    """
    require_packed(path, offset, shape, dtype, packing, skip)
    size = math.prod(map(int, shape)) * dtype.itemsize
    require_file_budget(skip + size, f"{path}: its values, of all channels and times, as they are packed in one piece,")
    with path.open("rb") as file:
        file.seek(offset)
        data = unpack(file.read, skip + size, packing, path, whole=True)
    return np.frombuffer(data, dtype, offset=skip).reshape(tuple(map(int, shape)), order="F")[index]


def read_end(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, packing: str) -> np.ndarray:
    """Values (.., the first axis the fastest) that are the last bytes of what was packed, whatever is before them."""
    require_packed(path, offset, shape, dtype, packing)
    size = math.prod(map(int, shape)) * dtype.itemsize
    require_file_budget(size, f"{path}: its values, of all channels and times,")
    end, count = bytearray(), 0
    with path.open("rb") as file:
        file.seek(offset)
        try:
            for piece in unpacked_pieces(file.read, packing):
                end += piece
                count += len(piece)
                if len(end) > 2 * size + READ_BLOCK:
                    del end[:-size]
                if count > size + MAX_BEYOND:
                    raise RaymarchError(
                        f"{path}: unpacks to over {count:,} bytes before {size:,} of values; {RESTORE_CURE}"
                    )
        except (zlib.error, OSError, EOFError) as error:
            raise RaymarchError(f"{path}: its packed values are damaged ({error}); {RESTORE_CURE}") from error
    if len(end) < size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(end):,}; {RESTORE_CURE}")
    return np.frombuffer(end, dtype, offset=len(end) - size).reshape(tuple(map(int, shape)), order="F")


def unpack(read: Callable[[int], bytes], size: int, packing: str, path: Path, whole: bool = False) -> bytearray:
    """The first `size` bytes of a packed stream; memory is taken as they come, so a stream that lies takes none.

    With `whole` a stream that ends, or goes on a little, must have its end, and the checksum in it.
    """
    data, beyond = bytearray(), 0
    try:
        for piece in unpacked_pieces(read, packing):
            beyond = max(len(data) + len(piece) - size, 0)
            data += piece[: size - len(data)]
            if (len(data) == size and not whole) or beyond > MAX_BEYOND:
                break
    except (zlib.error, OSError, EOFError) as error:
        if not isinstance(error, EOFError) or len(data) == size:
            raise RaymarchError(f"{path}: its packed values are damaged ({error}); {RESTORE_CURE}") from error
    if len(data) < size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(data):,}; {RESTORE_CURE}")
    return data


def unpacked_pieces(read: Callable[[int], bytes], packing: str) -> Iterator[bytes]:
    """Unpacked bytes of a stream, of all its members where it has several; EOFError for one without its end."""
    unpacker, given = _unpacker(packing), read(READ_BLOCK)
    while True:
        piece = unpacker.decompress(given, READ_BLOCK)
        if piece:
            yield piece
        if unpacker.eof:
            given = unpacker.unused_data or read(READ_BLOCK)
            if not (packing in MEMBER_MAGIC and given.startswith(MEMBER_MAGIC[packing])):
                return
            unpacker = _unpacker(packing)
            continue
        given = getattr(unpacker, "unconsumed_tail", b"")
        if not given and getattr(unpacker, "needs_input", True):
            given = read(READ_BLOCK)
            if not (given or piece):  # what is left in the window comes without input
                raise EOFError("no end")


def _unpacker(packing: str) -> Any:
    return bz2.BZ2Decompressor() if packing == "bzip2" else zlib.decompressobj(47)  # of gzip and zlib alike


def read_text(path: Path, offset: int, shape: Sequence[int], dtype: np.dtype, hexadecimal: bool = False) -> np.ndarray:
    """Values of an array whose first axis is the fastest, as words of a text, or as bytes of two letters each."""
    count = math.prod(map(int, shape))
    letters = 2 * count * dtype.itemsize if hexadecimal else 2 * count - 1
    there = path.stat().st_size - offset
    if letters > there or count < 1:
        raise RaymarchError(f"{path}: declares {count:,} values but is too short for them; {RESTORE_CURE}")
    require_file_budget(max(count * MAX_WORD, there), f"{path}: its {count:,} values as text")
    with path.open("rb") as file:
        file.seek(offset)
        words = file.read().split()
    if not hexadecimal:
        return values_of_words(words, shape, dtype, path)
    try:
        data = bytes.fromhex(b"".join(words)[:letters].decode("ascii"))
    except ValueError as error:  # UnicodeDecodeError is one
        raise RaymarchError(f"{path}: its values are no hexadecimal digits ({error}); {RESTORE_CURE}") from error
    if len(data) < letters // 2:
        raise RaymarchError(f"{path}: declares {letters:,} hexadecimal digits but has fewer; {RESTORE_CURE}")
    return np.frombuffer(data, dtype).reshape(tuple(map(int, shape)), order="F")


def values_of_words(
    words: Sequence[str] | Sequence[bytes], shape: Sequence[int], dtype: np.dtype, path: Path
) -> np.ndarray:
    """Values of a text's words, as many as an array has whose first axis is the fastest; else RaymarchError."""
    count, longest = math.prod(map(int, shape)), max(map(len, words), default=0)
    if len(words) != count or longest > MAX_WORD:
        found = f"has {len(words):,}" if len(words) != count else f"one of {longest:,} letters"
        raise RaymarchError(f"{path}: declares {count:,} values but {found}; {RESTORE_CURE}")
    return np.array(words).astype(dtype).reshape(tuple(map(int, shape)), order="F")


def skip_lines(path: Path, offset: int, lines: int) -> int:
    """Byte behind so many lines of a file from `offset` on; RaymarchError where it has fewer."""
    if not lines:
        return offset
    with path.open("rb") as file:
        file.seek(offset)
        for _ in range(lines):
            if not file.readline(READ_BLOCK).endswith(b"\n"):
                raise RaymarchError(
                    f"{path}: is to have {lines:,} lines before its values but has fewer; {RESTORE_CURE}"
                )
        return file.tell()


def values_of_files(
    files: Sequence[Path],
    read: Callable[[Path, tuple[int, ...]], np.ndarray],
    shape: Sequence[int],
    dtype: np.dtype,
    path: Path,
) -> np.ndarray:
    """Values of an array whose first axis is the fastest, of several files of which each has as many, one behind the
    other; `read(file, (count,))` reads those of one."""
    count = math.prod(map(int, shape))
    if count % len(files) or any(n < 1 for n in shape):
        raise RaymarchError(
            f"{path}: declares {_sizes(shape)} values in {len(files):,} files, want as many in each; {RESTORE_CURE}"
        )
    require_file_budget(count * dtype.itemsize, f"{path}: its values, of all files,")
    flat, each = np.empty(count, dtype), count // len(files)
    for k, file in enumerate(files):
        flat[k * each : (k + 1) * each] = read(file, (each,))
    return flat.reshape(tuple(map(int, shape)), order="F")


def _sizes(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))

"""Values of VTK's XML files: blocks packed by zlib, LZMA or LZ4, base64, or text, within the XML or appended to it."""

from __future__ import annotations

import base64
import binascii
import io
import lzma
import math
from collections.abc import Callable
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.limits import require_file_budget
from raymarch.io.volumes.scalar_format import wanted
from raymarch.io.volumes.stored_values import CURE, LONGEST_WORD, MOST_RATIO, unpacked, values_of_words

MOST_RATIOS = {"": 1, "zlib": MOST_RATIO, "lzma": 8000, "lz4": 256}  # to which zeros are packed
BLOCK = 1 << 20  # bytes that are packed at a time
Reader = Callable[[int], bytes]


def blocks_of(
    path: Path, start: int, raw: bool, packing: str, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype
) -> bytes | bytearray:
    """Bytes of appended values that begin at `start`, raw or base64, packed or not.

    `length` is the type of the numbers that say how long blocks are.
    """
    with path.open("rb") as file:
        file.seek(start)
        read: Reader = file.read if raw else Base64Reader(file, path)
        return _values(read, packing, shape, dtype, length, path, path.stat().st_size - start)


def inline_values(
    path: Path, array: Element, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype, packing: str
) -> np.ndarray:
    """Values (component, x, y, z) of a DataArray that has them as text or base64."""
    text = "".join([array.text or "", *(child.tail or "" for child in array)])  # of which a unit may come before
    if array.get("format", "ascii") == "ascii":
        words = text.encode().split()  # a byte a letter
        require_file_budget(len(words) * LONGEST_WORD, f"{path}: its {len(words):,} values as text")
        return values_of_words(words, shape, dtype, path)
    stream = io.BytesIO(text.strip().encode())
    data = _values(Base64Reader(stream, path), packing, shape, dtype, length, path, len(text))
    return np.frombuffer(data, dtype).reshape(shape, order="F")


def require_length(told: bytes | bytearray, size: int, length: np.dtype, path: Path) -> None:
    """Check of the length that a block of values opens with: RaymarchError where it is not theirs."""
    found = int(np.frombuffer(told, length)[0]) if len(told) == length.itemsize else -1
    if found != size % 2 ** (8 * length.itemsize):
        raise RaymarchError(f"{path}: has a block of {found:,} bytes where its values take {size:,}; {CURE}")


def _values(
    read: Reader, packing: str, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype, path: Path, there: int
) -> bytes | bytearray:
    """Bytes of values, as many as the shape says, of a stream of blocks."""
    size, limit = math.prod(shape) * dtype.itemsize, MOST_RATIOS[packing] * there
    if size > limit or min(shape) < 1:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but holds {there:,}; {CURE}")
    require_file_budget(size, f"{path}: its values, of all components,")
    if not packing:
        # In base64 the length and the values are one piece.
        whole = _exactly(read, length.itemsize + size, path)
        require_length(whole[: length.itemsize], size, length, path)
        return whole[length.itemsize :]
    count, block, last = np.frombuffer(_exactly(read, 3 * length.itemsize, path, ends=False), length).tolist()
    full = count - 1 if last else count
    if count > there or full * block + last != size:
        raise RaymarchError(f"{path}: has {count} blocks of {block} bytes, want {size:,} in all; {CURE}")
    sizes = np.frombuffer(_exactly(read, count * length.itemsize, path), length).tolist()
    if sum(sizes) > there:
        raise RaymarchError(f"{path}: declares {sum(sizes):,} packed bytes but holds {there:,}; {CURE}")
    data, restart = bytearray(), getattr(read, "restart", lambda: None)
    restart()
    for i, one in enumerate(sizes):
        given = _exactly(read, one, path, ends=False)
        data += _block(given, last if last and i == count - 1 else block, packing, path)
    return data


def _block(given: bytes, size: int, packing: str, path: Path) -> bytes | bytearray:
    """The bytes of one packed block, which are to be so many."""
    if packing == "zlib":
        return unpacked(io.BytesIO(given).read, size, packing, path)
    try:
        found = lzma.LZMADecompressor().decompress(given, size) if packing == "lzma" else _lz4(given, size)
    except RaymarchError:  # of imagecodecs, which is not installed
        raise
    except (lzma.LZMAError, EOFError, ValueError, RuntimeError) as error:
        raise RaymarchError(f"{path}: its packed values are damaged ({one_line(error)}); {CURE}") from error
    if len(found) != size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(found):,}; {CURE}")
    return found


def _lz4(given: bytes, size: int) -> bytes:
    """The bytes of a block of LZ4."""
    with wanted("imagecodecs", "values packed by LZ4"):
        import imagecodecs
    return bytes(imagecodecs.lz4_decode(given, out=size))


def _exactly(read: Reader, size: int, path: Path, ends: bool = True) -> bytes:
    data = read(size)
    if len(data) < size:
        raise RaymarchError(f"{path}: its values end {size - len(data):,} bytes too early; {CURE}")
    if ends and hasattr(read, "restart"):
        read.restart()
    return data


class Base64Reader:
    """Reader of bytes in base64, of which each piece (`restart`) is padded by itself."""

    def __init__(self, stream: io.BufferedIOBase, path: Path):
        self.stream, self.path, self.rest = stream, path, b""

    def __call__(self, size: int) -> bytes:
        """The next bytes."""
        groups = -(-max(size - len(self.rest), 0) // 3)
        text = self.stream.read(4 * groups)
        try:
            data = self.rest + base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise RaymarchError(f"{self.path}: its values are no base64 ({error}); {CURE}") from error
        self.rest = data[size:]
        return data[:size]

    def restart(self) -> None:
        """Begin another piece."""
        self.rest = b""

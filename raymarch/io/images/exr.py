"""OpenEXR: one channel of a file of scan lines, of which depth images come (the OpenEXR file layout, version 2).

Half, float and integer channels, not packed or by RLE, ZIPS and ZIP; tiles, deep and several parts are refused.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import require_file_budget

MAGIC = 20000630
LINES_A_BLOCK = {0: 1, 1: 1, 2: 1, 3: 16}  # by compression: none, RLE, ZIPS, ZIP
OTHER_COMPRESSIONS = {4: "PIZ", 5: "PXR24", 6: "B44", 7: "B44A", 8: "DWAA", 9: "DWAB"}
TYPES: dict[int, np.dtype] = {0: np.dtype("<u4"), 1: np.dtype("<f2"), 2: np.dtype("<f4")}
DEPTH_CHANNELS = ("Z", "depth", "Depth", "D", "depth.Z", "depth.V", "Y", "R")  # the first of them that there is
MAX_SIDE = 1 << 15
EXPORT_CURE = "write it again, with ZIP or without compression, or as a 16-bit PNG of millimetres"


def read_exr(path: Path) -> np.ndarray:
    """Values (height, width) float32 of the channel that holds depth.

    Raises RaymarchError for a file that is none, that is damaged, or of a kind that is not read.
    """
    try:
        data = path.read_bytes()
        return _channel(data, path)
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    except (struct.error, zlib.error, ValueError, IndexError, KeyError) as error:
        if isinstance(error, RaymarchError):
            raise
        raise RaymarchError(f"{path}: OpenEXR image is damaged ({one_line(error)}); export it again") from error


def _channel(data: bytes, path: Path) -> np.ndarray:
    magic, version = struct.unpack_from("<iI", data)
    if magic != MAGIC:
        raise RaymarchError(f"{path}: is no OpenEXR image; check the file")
    if version & ~0x4FF:
        raise RaymarchError(f"{path}: OpenEXR image has tiles, deep pixels or several parts; {EXPORT_CURE}")
    header, at = _header(data, 8)
    compression = header["compression"][0]
    if compression not in LINES_A_BLOCK:
        name = OTHER_COMPRESSIONS.get(compression, str(compression))
        raise RaymarchError(f"{path}: OpenEXR image is packed by {name}, which is not read; {EXPORT_CURE}")
    channels = _channels(header["channels"])
    name = next((name for name in DEPTH_CHANNELS if name in channels), next(iter(channels)) if channels else "")
    if not name or (name not in DEPTH_CHANNELS and len(channels) > 1):
        raise RaymarchError(f"{path}: OpenEXR image has the channels {', '.join(channels)}, want Z or Y; {EXPORT_CURE}")
    left, top, right, bottom = struct.unpack("<4i", header["dataWindow"])
    width, height = right - left + 1, bottom - top + 1
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise ValueError(f"its size is {width} x {height}")
    row = sum(kind.itemsize for kind in channels.values()) * width
    require_file_budget(row * height + 4 * width * height, str(path))
    before = sum(kind.itemsize for kind in list(channels.values())[: list(channels).index(name)]) * width
    lines, kind = LINES_A_BLOCK[compression], channels[name]
    out = np.zeros((height, width), np.float32)
    for offset in struct.unpack_from(f"<{-(-height // lines)}Q", data, at):
        first, size = struct.unpack_from("<ii", data, offset)
        count = min(lines, bottom + 1 - first)
        if first < top or count < 1 or size < 0 or offset + 8 + size > len(data):
            raise ValueError("a block lies outside")
        block = _unpack(data[offset + 8 : offset + 8 + size], compression, row * count)
        for k in range(count):
            out[first - top + k] = np.frombuffer(block, kind, width, k * row + before)
    return out


def _header(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    """Attributes by name, and where what follows begins."""
    found = {}
    while data[at]:
        name, at = _text(data, at)
        _, at = _text(data, at)
        (size,) = struct.unpack_from("<i", data, at)
        if size < 0:
            raise ValueError("a size is under 0")
        found[name] = data[at + 4 : at + 4 + size]
        at += 4 + size
    return found, at + 1


def _channels(data: bytes) -> dict[str, np.dtype]:
    """Types of the channels by name, in the file's order."""
    found, at = {}, 0
    while data[at]:
        name, at = _text(data, at)
        kind, _, x, y = struct.unpack_from("<iIii", data, at)
        if (x, y) != (1, 1):
            raise ValueError(f"channel {name} has fewer pixels")
        found[name] = TYPES[kind]
        at += 16
    return found


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode("latin-1"), end + 1


def _unpack(block: bytes, compression: int, size: int) -> bytes:
    """Bytes of a block's rows: packed ones are differences of bytes, those of even places first."""
    if compression == 0 or len(block) == size:
        return block
    packed = _unpack_runs(block, size) if compression == 1 else zlib.decompressobj().decompress(block, size)
    if len(packed) != size:
        raise ValueError(f"a block has {len(packed)} bytes in place of {size}")
    steps = np.frombuffer(packed, np.uint8).astype(np.int64)
    steps[1:] -= 128
    whole = (np.cumsum(steps) & 255).astype(np.uint8)
    out, half = np.empty(size, np.uint8), (size + 1) // 2
    out[0::2], out[1::2] = whole[:half], whole[half:]
    return out.tobytes()


def _unpack_runs(block: bytes, size: int) -> bytes:
    out, at = bytearray(), 0
    while at < len(block) and len(out) <= size:
        count = struct.unpack_from("b", block, at)[0]
        if count < 0:
            out += block[at + 1 : at + 1 - count]
            at += 1 - count
        else:
            out += block[at + 1 : at + 2] * (count + 1)
            at += 2
    return bytes(out)

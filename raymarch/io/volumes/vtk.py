"""VTI, image data of VTK and ParaView: XML with values behind it, packed by zlib, LZMA or LZ4 or not, or within it.

Array axes are (x, y, z), the first the fastest; the world has no names, Origin, Spacing and Direction place the array.
"""

from __future__ import annotations

import base64
import binascii
import io
import lzma
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import finite_numbers, parse_xml, require_file_budget
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.scalar_format import require_library, require_no_shear, scalar_format, single_values
from raymarch.io.volumes.source import RESTORE_CURE, Index, Slices, Source
from raymarch.io.volumes.stored_values import MAX_RATIO, MAX_WORD, read_raw, unpack, values_of_words
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection

MAX_HEADER = 32 << 20  # bytes
APPENDED_MARK = b"<AppendedData"
TYPES = {
    "Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4", "UInt32": "u4", "Int64": "i8",
    "UInt64": "u8", "Float32": "f4", "Float64": "f8",
}  # fmt: skip
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
COMPRESSORS = {"vtkZLibDataCompressor": "zlib", "vtkLZMADataCompressor": "lzma", "vtkLZ4DataCompressor": "lz4"}
MAX_RATIOS = {"": 1, "zlib": MAX_RATIO, "lzma": 8000, "lz4": 256}  # to which zeros are packed
BLOCK_BYTES = 1 << 20  # bytes that are packed at a time
MAX_PIECES = 1 << 12
GHOST_ARRAY, UNIT_KEY = "vtkGhostType", "UNITS_LABEL"
Read = Callable[[int], bytes]


@dataclass(frozen=True)
class Layout:
    """How the values of a file are written.

    Attributes:
        path: of the file.
        start, raw: the byte where values behind the XML begin, and whether they are bytes rather than base64.
        packing: "zlib", "lzma", "lz4", or "" for none.
        dtype, length: types of the values, and of the numbers that say how long blocks are.
    """

    path: Path
    start: int
    raw: bool
    packing: str
    dtype: np.dtype
    length: np.dtype


def detect(path: Path) -> bool:
    """Whether a file begins as VTK's image data does."""
    with path.open("rb") as file:
        head = file.read(1024)
    return b"<VTKFile" in head and b'"ImageData"' in head


def source(path: Path, selection: Selection) -> Source:
    """Source of a VTI file; RaymarchError for packings that are not known and extents that disagree."""
    root, start, raw = _parse(path)
    image = root.find("ImageData")
    pieces = [] if image is None else image.findall("Piece")
    if image is None or root.get("type") != "ImageData" or not 1 <= len(pieces) <= MAX_PIECES:
        raise RaymarchError(f"{path}: has {len(pieces)} pieces of image data, want 1 to {MAX_PIECES}; {RESTORE_CURE}")
    extents = [_extent(piece, path) for piece in pieces]
    low, high = np.min([one[::2] for one in extents], axis=0), np.max([one[1::2] for one in extents], axis=0)
    if len(pieces) > 1 and image.get("WholeExtent"):
        whole = [int(x) for x in finite_numbers(image.get("WholeExtent", ""), 6, f"{path}: WholeExtent")]
        if whole[::2] != low.tolist() or whole[1::2] != high.tolist():
            raise RaymarchError(f"{path}: has pieces that are not its whole extent; merge them in ParaView")
    chosen = [_array(path, piece, selection) for piece in pieces]
    array, cells, component, remarks = chosen[0]
    kinds = {(one[0].get("Name"), one[0].get("type"), one[1], one[2]) for one in chosen}
    if len(kinds) > 1:
        raise RaymarchError(f"{path}: has pieces of several arrays; merge them in ParaView")
    order = ">" if root.get("byte_order") == "BigEndian" else "<"
    dtype = np.dtype(order + TYPES[array.get("type", "")])
    packing = root.get("compressor")
    if packing and packing not in COMPRESSORS:
        raise RaymarchError(f"{path}: is packed by {packing[:60]}, want zlib, LZMA or LZ4; save it so in ParaView")
    length = np.dtype(order + TYPES.get(root.get("header_type", "UInt32"), "u4"))
    layout = Layout(path, start, raw, COMPRESSORS.get(packing or "", ""), dtype, length)
    shape = _shape(low, high, cells)
    one = len(pieces) == 1

    def read(slices: Slices) -> np.ndarray:
        if one:
            return _values(layout, array, _shape(low, high, cells), component, slices)
        require_file_budget(math.prod(shape) * dtype.itemsize, f"{path}: its values, of all pieces,")
        values = np.zeros(shape, dtype, order="F")
        seen = np.zeros(shape, bool, order="F")
        for extent, (mine, *_) in zip(extents, chosen, strict=True):
            size = _shape(np.array(extent[::2]), np.array(extent[1::2]), cells)
            place = tuple(slice(int(a), int(a) + n) for a, n in zip(extent[::2] - low, size, strict=True))
            values[place] = _values(layout, mine, size, component, (slice(None),) * 3)
            seen[place] = True
        if not seen.all():
            raise RaymarchError(
                f"{path}: has pieces that leave out {int((~seen).sum()):,} samples; merge them in ParaView"
            )
        return values[slices]

    return Source(
        shape,
        dtype,
        _affine_of(image, low, cells, path),
        read,
        at_once=not (raw and packing is None and one),
        unit=_unit(array),
        name=array.get("Name", ""),
        remarks=remarks,
    )


def _parse(path: Path) -> tuple[Element, int, bool]:
    """The XML, where values behind it begin, 0 where there are none, and whether these are raw."""
    with path.open("rb") as file:
        head = file.read(MAX_HEADER)
    cut = head.find(APPENDED_MARK)
    if cut < 0:
        if path.stat().st_size > MAX_HEADER:
            raise RaymarchError(f"{path}: has over {MAX_HEADER:,} bytes of XML; save it with its data appended")
        return parse_xml(head, path), 0, False
    start = head.find(b"_", head.find(b">", cut))
    if start < 0:
        raise RaymarchError(f"{path}: has no appended data where it says so; {RESTORE_CURE}")
    raw = b"raw" in head[cut:start]
    return parse_xml(head[:cut] + b"</VTKFile>", path), start + 1, raw


def _extent(piece: Element, path: Path) -> np.ndarray:
    """First and last index of a piece along x, y and z."""
    return np.array([int(x) for x in finite_numbers(piece.get("Extent", ""), 6, f"{path}: Extent")], object)


def _shape(low: np.ndarray, high: np.ndarray, cells: bool) -> tuple[int, int, int]:
    """Count of values between two indices."""
    x, y, z = (int(b) - int(a) + (0 if cells else 1) for a, b in zip(low, high, strict=True))
    return x, y, z


def _array(path: Path, piece: Element, selection: Selection) -> tuple[Element, bool, int, tuple[str, ...]]:
    """The array that is read, whether its values are of cells, which component, and what is to be said."""
    found: list[tuple[Element, bool, int]] = []
    named: list[int] = []
    others: list[str] = []
    ghosts: tuple[str, ...] = ()
    for tag, cells in (("PointData", False), ("CellData", True)):
        data = piece.find(tag)
        for array in () if data is None else (one for one in data if one.tag in ("DataArray", "Array")):
            if array.get("Name") == GHOST_ARRAY:
                hides = array.get("RangeMax", "1").strip() != "0"
                ghosts = ("hides some of its values (vtkGhostType), which is not read",) if hides else ()
                continue
            if array.get("type") not in TYPES:
                others.append(f"{array.get('Name', '')[:20]} of {array.get('type', 'no type')[:20]}")
                continue
            width = int(finite_numbers(array.get("NumberOfComponents") or "1", 1, f"{path}: NumberOfComponents")[0])
            if not 1 <= width <= 64:
                raise RaymarchError(f"{path}: has {width} components a value, want 1 to 64; {RESTORE_CURE}")
            if data is not None and array.get("Name") == data.get("Scalars") and width == 1:
                named.append(len(found))
            found += [(array, cells, component) for component in range(width)]
    place = selection.channel
    if place is None and len(found) > 1 and len(named) == 1:
        place = named[0]
    require_one_place(replace(selection, channel=None if len(found) > 1 else place), path)
    if not found and others:
        raise RaymarchError(
            f"{path}: holds {', '.join(others[:4])}, want one of {', '.join(TYPES)}; convert it in ParaView"
        )
    if not found or (place or 0) >= len(found):
        asked = f", and no channel {place}; choose one from 0 to {len(found) - 1}" if found else f"; {RESTORE_CURE}"
        raise RaymarchError(f"{path}: has {len(found)} arrays of values{asked}")
    if place is None and len(found) > 1:
        names = [f"{i} {array.get('Name', '')[:20]}[{component}]" for i, (array, _, component) in enumerate(found[:6])]
        raise RaymarchError(
            f"{path}: has {len(found)} channels ({', '.join(names)}); choose one by channel=0"
            " (--channel 0 in the shell)"
        )
    array, cells, component = found[place or 0]
    remarks = ("values of cells; taken as samples at their centres",) if cells else ()
    return array, cells, component, remarks + ghosts


def _unit(array: Element) -> str:
    """Unit of values, as VTK writes it where one is set."""
    keys = array.findall("InformationKey")
    return next(((key.text or "").strip() for key in keys if key.get("name") == UNIT_KEY), "")


def _affine_of(image: Element, low: np.ndarray, cells: bool, path: Path) -> np.ndarray:
    """Affine by Origin, Spacing and Direction, at the first sample."""
    texts = {"Origin": "0 0 0", "Spacing": "1 1 1", "Direction": "1 0 0 0 1 0 0 0 1"}
    origin, spacing, turn = (
        np.array(finite_numbers(image.get(key, text), len(text.split()), f"{path}: {key}"))
        for key, text in texts.items()
    )
    affine = np.eye(4)
    affine[:3, :3] = turn.reshape(3, 3) * spacing
    affine[:3, 3] = origin + affine[:3, :3] @ (np.asarray(low, float) + (0.5 if cells else 0.0))
    return affine


def _values(layout: Layout, array: Element, shape: tuple[int, int, int], component: int, slices: Slices) -> np.ndarray:
    """Values of one array at slices along x, y and z."""
    path, dtype, length, start = layout.path, layout.dtype, layout.length, layout.start
    width = int(finite_numbers(array.get("NumberOfComponents") or "1", 1, f"{path}: NumberOfComponents")[0])
    stored = (width, *shape)
    where: Index = (component, *slices)
    if array.get("format") != "appended":
        return inline_values(path, array, stored, dtype, length, layout.packing)[where]
    at = int(finite_numbers(array.get("offset", ""), 1, f"{path}: offset")[0])
    if at < 0:
        raise RaymarchError(f"{path}: has an offset of {at}, want 0 or more; {RESTORE_CURE}")
    if layout.raw and not layout.packing:
        with path.open("rb") as file:
            file.seek(start + at)
            require_length(file.read(length.itemsize), math.prod(stored) * dtype.itemsize, length, path)
        return read_raw(path, start + at + length.itemsize, stored, dtype, where)
    data = blocks_of(path, start + at, layout.raw, layout.packing, stored, dtype, length)
    return np.frombuffer(data, dtype).reshape(stored, order="F")[where]


def inline_values(
    path: Path, array: Element, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype, packing: str
) -> np.ndarray:
    """Values (component, x, y, z) of a DataArray that has them as text or base64."""
    text = "".join([array.text or "", *(child.tail or "" for child in array)])  # of which a unit may come before
    if array.get("format", "ascii") == "ascii":
        words = text.encode().split()  # a byte a letter
        require_file_budget(len(words) * MAX_WORD, f"{path}: its {len(words):,} values as text")
        return values_of_words(words, shape, dtype, path)
    stream = io.BytesIO(text.strip().encode())
    data = _unpacked_values(Base64Reader(stream, path), packing, shape, dtype, length, path, len(text))
    return np.frombuffer(data, dtype).reshape(shape, order="F")


def blocks_of(
    path: Path, start: int, raw: bool, packing: str, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype
) -> bytes | bytearray:
    """Bytes of appended values that begin at `start`, raw or base64, packed or not.

    `length` is the type of the numbers that say how long blocks are.
    """
    with path.open("rb") as file:
        file.seek(start)
        read: Read = file.read if raw else Base64Reader(file, path)
        return _unpacked_values(read, packing, shape, dtype, length, path, path.stat().st_size - start)


def _unpacked_values(
    read: Read, packing: str, shape: tuple[int, ...], dtype: np.dtype, length: np.dtype, path: Path, there: int
) -> bytes | bytearray:
    """Bytes of values, as many as the shape says, of a stream of blocks."""
    size, limit = math.prod(shape) * dtype.itemsize, MAX_RATIOS[packing] * there
    if size > limit or min(shape) < 1:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but holds {there:,}; {RESTORE_CURE}")
    require_file_budget(size, f"{path}: its values, of all components,")
    if not packing:
        # In base64 the length and the values are one piece.
        whole = _read_exactly(read, length.itemsize + size, path)
        require_length(whole[: length.itemsize], size, length, path)
        return whole[length.itemsize :]
    count, block, last = np.frombuffer(_read_exactly(read, 3 * length.itemsize, path, ends=False), length).tolist()
    full = count - 1 if last else count
    if count > there or full * block + last != size:
        raise RaymarchError(f"{path}: has {count} blocks of {block} bytes, want {size:,} in all; {RESTORE_CURE}")
    sizes = np.frombuffer(_read_exactly(read, count * length.itemsize, path), length).tolist()
    if sum(sizes) > there:
        raise RaymarchError(f"{path}: declares {sum(sizes):,} packed bytes but holds {there:,}; {RESTORE_CURE}")
    data, restart = bytearray(), getattr(read, "restart", lambda: None)
    restart()
    for i, one in enumerate(sizes):
        given = _read_exactly(read, one, path, ends=False)
        data += _block(given, last if last and i == count - 1 else block, packing, path)
    return data


def _block(given: bytes, size: int, packing: str, path: Path) -> bytes | bytearray:
    """The bytes of one packed block, which are to be so many."""
    if packing == "zlib":
        return unpack(io.BytesIO(given).read, size, packing, path)
    try:
        found = lzma.LZMADecompressor().decompress(given, size) if packing == "lzma" else _lz4(given, size)
    except RaymarchError:  # of imagecodecs, which is not installed
        raise
    except (lzma.LZMAError, EOFError, ValueError, RuntimeError) as error:
        raise RaymarchError(f"{path}: its packed values are damaged ({one_line(error)}); {RESTORE_CURE}") from error
    if len(found) != size:
        raise RaymarchError(f"{path}: declares {size:,} bytes of values but unpacks to {len(found):,}; {RESTORE_CURE}")
    return found


def _lz4(given: bytes, size: int) -> bytes:
    """The bytes of a block of LZ4."""
    with require_library("imagecodecs", "values packed by LZ4"):
        import imagecodecs
    return bytes(imagecodecs.lz4_decode(given, out=size))


def require_length(told: bytes | bytearray, size: int, length: np.dtype, path: Path) -> None:
    """Check of the length that a block of values opens with: RaymarchError where it is not theirs."""
    found = int(np.frombuffer(told, length)[0]) if len(told) == length.itemsize else -1
    if found != size % 2 ** (8 * length.itemsize):
        raise RaymarchError(f"{path}: has a block of {found:,} bytes where its values take {size:,}; {RESTORE_CURE}")


def _read_exactly(read: Read, size: int, path: Path, ends: bool = True) -> bytes:
    data = read(size)
    if len(data) < size:
        raise RaymarchError(f"{path}: its values end {size - len(data):,} bytes too early; {RESTORE_CURE}")
    if ends and hasattr(read, "restart"):
        read.restart()
    return data


class Base64Reader:
    """Read of bytes in base64, of which each piece (`restart`) is padded by itself."""

    def __init__(self, stream: io.BufferedIOBase, path: Path):
        self.stream, self.path, self.rest = stream, path, b""

    def __call__(self, size: int) -> bytes:
        """The next bytes."""
        groups = -(-max(size - len(self.rest), 0) // 3)
        text = self.stream.read(4 * groups)
        try:
            data = self.rest + base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise RaymarchError(f"{self.path}: its values are no base64 ({error}); {RESTORE_CURE}") from error
        self.rest = data[size:]
        return data[:size]

    def restart(self) -> None:
        """Begin another piece."""
        self.rest = b""


def write(volume: ScalarVolume, path: Path) -> None:
    """VTI of a scalar volume: values appended raw, packed by zlib in blocks; RaymarchError for one that is sheared."""
    require_no_shear(volume, path, "VTI")
    values = single_values(volume)
    values = np.asarray(values, values.dtype.newbyteorder("<"))
    flat = values.ravel(order="F").view(np.uint8).data
    packed = [zlib.compress(flat[at : at + BLOCK_BYTES], 4) for at in range(0, len(flat), BLOCK_BYTES)]
    sizes = np.array([len(packed), BLOCK_BYTES, len(flat) % BLOCK_BYTES, *map(len, packed)], "<u8")
    extent = " ".join(f"0 {n - 1}" for n in volume.shape)
    name = quoteattr(volume.name or "values")

    def words(array: Any) -> str:
        return " ".join(repr(float(x)) for x in np.ravel(array))

    unit = f'<InformationKey name="{UNIT_KEY}" location="vtkDataArray">{escape(volume.unit)}</InformationKey>'
    unit = unit if volume.unit else ""
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<VTKFile type="ImageData" version="1.0" byte_order="LittleEndian" header_type="UInt64"'
        f' compressor="vtkZLibDataCompressor">\n  <ImageData WholeExtent="{extent}" Origin="{words(volume.origin)}"'
        f' Spacing="{words(volume.spacing)}" Direction="{words(volume.directions)}">\n    <Piece Extent="{extent}">\n'
        f'      <PointData Scalars={name}>\n        <DataArray type="{TYPE_NAMES[values.dtype.str[1:]]}" Name={name}'
        f' format="appended" offset="0">{unit}</DataArray>\n      </PointData>\n    </Piece>\n  </ImageData>\n'
        '  <AppendedData encoding="raw">\n   _'
    )
    with path.open("wb") as file:
        file.write(text.encode() + sizes.tobytes())
        for block in packed:
            file.write(block)
        file.write(b"\n  </AppendedData>\n</VTKFile>\n")


VTI = scalar_format("VTI", (".vti",), detect, source, write, loses=("length_unit", "world"))

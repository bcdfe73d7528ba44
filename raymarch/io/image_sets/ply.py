"""Point clouds of PLY files: the places of vertices, text or binary."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.strict import require_file

NUMBER_TYPES = {
    **{name: code for code, names in {"i1": "char int8", "u1": "uchar uint8"}.items() for name in names.split()},
    **{name: code for code, names in {"i2": "short int16", "u2": "ushort uint16"}.items() for name in names.split()},
    **{name: code for code, names in {"i4": "int int32", "u4": "uint uint32"}.items() for name in names.split()},
    **{name: code for code, names in {"f4": "float float32", "f8": "double float64"}.items() for name in names.split()},
}
BYTE_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
MAX_HEADER, MAX_LINE = 1 << 16, 1 << 16  # bytes
MAX_POINTS = 2_000_000  # of more, every so many-th is taken
POSITION_PROPERTIES = ("x", "y", "z")
EXPORT_CURE = "export it again"


class Element(NamedTuple):
    """Element of a PLY file: its name, its number of rows, and the kind of each property by name, "" of a list."""

    name: str
    rows: int
    properties: dict[str, str]


def read_ply_points(path: Path) -> np.ndarray:
    """Vertices (point, 3) f64 of a PLY file; of more than 2,000,000 every so many-th.

    Raises RaymarchError for what is no PLY, has no vertices with x, y, z, ends too early or has numbers not finite.

    Example:
        >>> text = "ply\\nformat ascii 1.0\\nelement vertex 1\\n" + "".join(f"property float {a}\\n" for a in "xyz")
        >>> _ = Path("one.ply").write_text(text + "end_header\\n1 2 3\\n")
        >>> read_ply_points(Path("one.ply")).tolist()
        [[1.0, 2.0, 3.0]]
    """
    require_file(path, "a PLY point cloud")
    try:
        with path.open("rb") as file:
            order, before, vertex = _header(path, file)
            places = (_binary if order else _text)(path, file, order, before, vertex)
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    if not np.isfinite(places).all():
        raise RaymarchError(f"{path}: vertex has a number that is not finite, want finite ones; {EXPORT_CURE}")
    return places


def _header(path: Path, file: BinaryIO) -> tuple[str, list[Element], Element]:
    """Byte order ("" of text), the elements before the vertices, the vertices; the file then stands behind it."""
    order, elements = None, list[Element]()
    lines = _header_lines(path, file)
    if next(lines, "") != "ply":
        raise RaymarchError(f"{path}: is no PLY file, want one; {EXPORT_CURE}")
    for line in lines:
        match line.split():
            case ["format", str(kind), "1.0"] if kind in BYTE_ORDERS:
                order = BYTE_ORDERS[kind]
            case ["element", name, count] if count.isdecimal() and len(count) < 16:
                elements.append(Element(name, int(count), {}))
            case ["property", kind, name] if kind in NUMBER_TYPES and elements and name not in elements[-1].properties:
                elements[-1].properties[name] = NUMBER_TYPES[kind]
            case ["property", "list", _, _, name] if elements:
                elements[-1].properties[name] = ""
            case ["comment" | "obj_info", *_] | []:
                pass
            case _:
                raise RaymarchError(f"{path}: header has {line[:60]!r}, want what PLY has there; {EXPORT_CURE}")
    at = next((i for i, one in enumerate(elements) if one.name == "vertex"), None)
    if order is None or at is None or not elements[at].rows:
        raise RaymarchError(f"{path}: has no format or no vertices, want points; {EXPORT_CURE}")
    vertex = elements[at]
    if any(not vertex.properties.get(axis) for axis in POSITION_PROPERTIES) or "" in vertex.properties.values():
        raise RaymarchError(
            f"{path}: vertex has {', '.join(vertex.properties)[:60]}, want numbers x, y, z; {EXPORT_CURE}"
        )
    if any("" in one.properties.values() for one in elements[:at]):
        raise RaymarchError(f"{path}: has lists before its vertices, want vertices first; {EXPORT_CURE}")
    return order, elements[:at], vertex


def _header_lines(path: Path, file: BinaryIO) -> Iterator[str]:
    while file.tell() < MAX_HEADER and (line := file.readline(1024)):
        text = line.decode("ascii", "replace").strip()
        if text == "end_header":
            return
        yield text
        if file.tell() < 8 and text != "ply":
            return
    raise RaymarchError(f"{path}: header does not end, want end_header; {EXPORT_CURE}")


def _skip_rows(path: Path, count: int) -> NoReturn:
    raise RaymarchError(f"{path}: ends before its {count:,} vertices do; was it cut off?")


def _binary(path: Path, file: BinaryIO, order: str, before: list[Element], vertex: Element) -> np.ndarray:
    def kind(element: Element) -> np.dtype:
        return np.dtype([(f"{i}", order + code) for i, code in enumerate(element.properties.values())])

    offset = file.tell() + sum(one.rows * kind(one).itemsize for one in before)
    if offset + vertex.rows * kind(vertex).itemsize > path.stat().st_size:
        _skip_rows(path, vertex.rows)
    rows = np.memmap(path, kind(vertex), "r", offset, (vertex.rows,))[:: math.ceil(vertex.rows / MAX_POINTS)]
    columns = [list(vertex.properties).index(axis) for axis in POSITION_PROPERTIES]
    with np.errstate(invalid="ignore"):
        return np.stack([np.asarray(rows[f"{i}"], np.float64) for i in columns], axis=-1)


def _text(path: Path, file: BinaryIO, order: str, before: list[Element], vertex: Element) -> np.ndarray:
    if 2 * vertex.rows * len(vertex.properties) > path.stat().st_size + 1:  # a digit and a space each
        _skip_rows(path, vertex.rows)
    every, columns = (
        math.ceil(vertex.rows / MAX_POINTS),
        [list(vertex.properties).index(axis) for axis in POSITION_PROPERTIES],
    )
    places, skipped = [], sum(one.rows for one in before)
    for i in range(-skipped, vertex.rows):
        line = file.readline(MAX_LINE)
        if not line:
            _skip_rows(path, vertex.rows)
        if i < 0 or i % every:
            continue
        words = line.split()
        try:
            places.append([float(words[column]) for column in columns])
        except (ValueError, IndexError):
            said = line[:60].decode("ascii", "replace").strip()
            raise RaymarchError(f"{path}: vertex {i} is {said!r}, want numbers; {EXPORT_CURE}") from None
    return np.array(places)

"""TIFF stacks of microscopes: ImageJ's and plain ones (.tif, .tiff), OME-TIFF (.ome.tif), and folders of slices.

Pages are z, rows y (downwards) and columns x; the world has no names and its unit is the file's. A file is walked page
by page first, so that one that is cut off is told; then the stack among its pages is chosen, and placed.
"""

from __future__ import annotations

import logging
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.strict import parse_xml, require_file_budget
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.length_units import common_unit, short_unit, unit_factor
from raymarch.io.volumes.scalar_format import require_library, require_upright, scalar_format, single_values
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, library_errors
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MAX_RATIO = 2000  # to which LZW and deflate pack what is empty
MAX_CHANNELS = 4  # channels without a z that are taken for channels
MIN_MAJORITY = 4  # times as many pages as others a stack has that is taken for the file's
DEPTH_AXES, TIME_AXIS = "ZIQ", "T"
GREY_PHOTOMETRIC = "minisblack"  # said, as rows of 3 or 4 columns are taken for colours else
FRAME_UNIT = "reference frame"  # unit of lengths that have none
IMAGEJ_TYPES = ("uint8", "uint16", "float32")  # all that ImageJ's files may hold

# Pages by their tags.
MAX_PAGES, MAX_TAGS = 1 << 20, 4096
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
WHOLE_TYPES = {1: "B", 3: "H", 4: "I", 16: "Q"}  # of tags that are whole numbers
TAG_NAMES = {254: "subfile", 256: "width", 257: "length", 258: "bits", 277: "samples", 339: "number"}
SIDE_PAGE_BITS = 1 | 4  # bits of the subfile's kind: a reduced copy of another page, a mask of one

# Spacing, origin and units, by OME's XML, ImageJ's notes, a microscope's metadata or the resolution of a page.
UNIT_MILLIMETRES = {2: 25.4, 3: 10.0}  # mm of a unit of resolution: an inch, a centimetre
RESOLUTION_UNITS = {2: "inch", 3: "cm"}
PIXEL_UNITS = ("", "pixel", "pixels", "reference frame", "voxel", "null")
SCREEN_RESOLUTION = 72  # pixels an inch that ImageJ takes for none said
LINEAR_CALIBRATION, NO_CALIBRATION = 0, (20, 21)  # functions of ImageJ's calibration: a straight line; none
GREY_UNITS = ("gray value", "grey value", "")  # units of values that are none
MAX_DISAGREEMENT = 0.01  # of a spacing
MICROSCOPES = {
    "andor": "Andor", "avs": "Argos", "bif": "Ventana", "bit": "BIT", "eer": "EER", "fei": "FEI",
    "fluoview": "FluoView",
    "indica": "Indica", "jpx": "JPX", "mdgel": "MD Gel", "mediacy": "Media Cybernetics", "metaseries": "MetaSeries",
    "ndpi": "Hamamatsu NDPI", "ndtiff": "NDTiff", "nih": "NIH Image", "nuvu": "Nuvu", "philips": "Philips",
    "pilatus": "Pilatus", "qpi": "PerkinElmer QPI", "scn": "Leica SCN", "sem": "Zeiss SEM", "sis": "Olympus SIS",
    "streak": "Hamamatsu", "svs": "Aperio SVS", "tvips": "TVIPS", "vista": "ISS Vista", "astrotiff": "AstroTIFF",
}  # fmt: skip
TURNED_ORIENTATIONS = range(2, 9)


def detect(path: Path) -> bool:
    """Whether a file begins as a TIFF does, and is no DICOM whose preamble looks so, as GE writes them."""
    with path.open("rb") as file:
        head = file.read(132)
    return head[:4] in MAGIC and (head[128:] != b"DICM" or path.suffix.lower() in (".tif", ".tiff"))


def source(path: Path, selection: Selection) -> Source:
    """Source of a TIFF: its stack, or the one of several that is chosen.

    RaymarchError for a page of another size among those of the stack, and for colours unless a channel is chosen.
    """
    with require_library("tifffile", "TIFF"):
        import tifffile
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    asked, pages = selection, pages_of(path)
    with library_errors("tifffile", path):
        file = tifffile.TiffFile(path)
    with file:
        with library_errors("tifffile", path):
            _require_beside(path, file.ome_metadata or "")
            series = list(file.series)
        stack, image, remarks, selection = _stack(path, file, series, pages, selection)
        finest, stack = stack, _level(path, stack, selection.level)
        dtype, axes, shape = np.dtype(stack.dtype), _axes(stack), tuple(int(n) for n in stack.shape)
        if dtype.kind != "b" and dtype.itemsize not in TYPE_SIZES.get(dtype.kind, ()):
            raise RaymarchError(
                f"{path}: holds {dtype}, want whole numbers or floats; rm.ScalarVolume takes one made of"
                " tifffile.imread(..).T, such as its .real or numpy.abs of it"
            )
        fixed, depth, said = _choose_places(path, axes, shape, selection)
        remarks += said
        placed = read_placement(file, finest, fixed, image)
        factors = [finest.shape[_axes(finest).index(axis)] / shape[axes.index(axis)] for axis in ("X", "Y", depth)]
    declared = math.prod(shape) * dtype.itemsize
    if declared > MAX_RATIO * path.stat().st_size:
        raise RaymarchError(f"{path}: declares {declared:,} bytes but holds {path.stat().st_size:,}; {RESTORE_CURE}")
    count = {axis: shape[axes.index(axis)] for axis in "XY"}

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        with library_errors("tifffile", path), tifffile.TiffFile(path) as file:
            again = _stack(path, file, list(file.series), pages, asked)[0]
            plane = _planes(_level(path, again, asked.level), fixed, depth, page_by_page=not asked.level)
            found = np.stack([plane(k)[y, x] for k in range(shape[axes.index(depth)])[z]]).T
        return found.view(np.uint8) if dtype.kind == "b" else found

    kind = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    return Source(
        (count["X"], count["Y"], shape[axes.index(depth)]),
        kind,
        placed.affine @ np.diag([*factors, 1.0]),
        read,
        at_once=False,
        slope=placed.slope,
        intercept=placed.intercept,
        unit=placed.unit,
        length_unit=placed.length_unit,
        remarks=(*remarks, *placed.remarks),
    )


@dataclass(frozen=True, eq=False)
class Stack:
    """Pages of one kind in a file whose others are not; what is asked of it tifffile's series have too."""

    parent: Any
    pages: Sequence[Any]
    axes: str
    shape: tuple[int, ...]
    dtype: np.dtype
    dataoffset: int | None = None

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def asarray(self) -> np.ndarray:
        return np.stack([page.asarray() for page in self.pages])


def _stack(
    path: Path, file: Any, series: Sequence[Any], pages: Sequence[Page], selection: Selection
) -> tuple[Any, int, tuple[str, ...], Selection]:
    """The stack of a file, the number of its image, what is left out, and what remains to be chosen in it."""
    kept = [k for k, one in enumerate(series) if not _is_aside(one)] or list(range(len(series)))
    left = [series[k] for k in range(len(series)) if k not in kept]
    stacks = [k for k in kept if _depth(series[k]) > 1]
    remarks: tuple[str, ...] = ()
    if left:
        sizes = ", ".join(sorted({" x ".join(map(str, one.shape)) for one in left})[:4])
        remarks = (f"has reduced pictures or masks of its pages ({sizes}), which are left out",)
    if len(kept) == 1 or len(stacks) == 1:
        at = kept[0] if len(kept) == 1 else stacks[0]
        if not _is_described(file):
            odd = _most_common_stack(path, file, series[at], pages)
            if odd is not None:
                return odd[0], 0, (*remarks, *odd[1]), selection
        if len(kept) > 1:
            sizes = ", ".join(" x ".join(map(str, series[k].shape)) for k in kept if k != at)
            remarks += (f"has pictures beside its stack ({sizes}), which are left out",)
        return series[at], at, remarks, selection
    if not _is_described(file) and (odd := _most_common_stack(path, file, None, pages)) is not None:
        return odd[0], 0, (*remarks, *odd[1]), selection
    several = stacks or kept
    words = ", ".join(" x ".join(map(str, series[k].shape)) for k in several[:4])
    chosen, with_channels = selection.channel, any(set(series[k].axes) & set("CS") for k in several)
    if not stacks or with_channels or chosen is None or chosen >= len(several):
        cure = f"choose one by channel=0 to channel={len(several) - 1}"
        if not stacks or with_channels:
            one = max(several, key=lambda k: (_depth(series[k]), math.prod(series[k].shape)))
            cure = f"save it by itself, {_imwrite('one.tif', f'tifffile.imread({path.name!r}, series={one})')}"
        raise RaymarchError(f"{path}: holds {len(several)} stacks ({words}), want one; {cure}")
    at = several[chosen]
    return series[at], at, remarks, Selection(time=selection.time, level=selection.level)


def _is_described(file: Any) -> bool:
    """Whether a text in the file says which pages are a stack."""
    return bool(
        file.is_ome or file.is_imagej or file.is_lsm or file.is_stk or file.is_micromanager or file.is_scanimage
    )


def _is_aside(series: Any) -> bool:
    """Whether a series' pages say that they are reduced pictures or masks."""
    return Page(subfile=int(getattr(series.keyframe, "subfiletype", 0) or 0)).is_aside


def _depth(series: Any) -> int:
    """Count of a series' pictures."""
    return math.prod(n for axis, n in zip(series.axes, series.shape, strict=True) if axis not in "YXS")


def _most_common_stack(
    path: Path, file: Any, series: Any, pages: Sequence[Page]
) -> tuple[Stack, tuple[str, ...]] | None:
    """Stack of the pages of the kind that most have, and a remark on the others; None where all are alike.

    RaymarchError for a page of another kind between them, which may be one of the stack.
    """
    own = [k for k, page in enumerate(pages) if not page.is_aside]
    kinds = Counter(pages[k].kind for k in own)
    if len(kinds) < 2:
        return None
    (usual, count), (_, next_most) = kinds.most_common(2)
    if count < 2 or count <= next_most or (next_most > 1 and MIN_MAJORITY * next_most > count):
        return None
    stack = [k for k in own if pages[k].kind == usual]
    others = [k for k in own if pages[k].kind != usual]
    inside = [k for k in others if stack[0] < k < stack[-1]]
    if inside:
        at = inside[0]
        said = f"is {pages[at].words}, the other {count} are {pages[stack[0]].words}"
        leave = [k for k in range(len(pages)) if k not in stack]
        read = f"tifffile.imread({path.name!r}, key=k) for k in range({len(pages)}) if k not in {leave}"
        raise RaymarchError(
            f"{path}: page {at + 1} of {len(pages)} {said}; write those anew,"
            f" {_imwrite('new.tif', f'numpy.stack([{read}])')}"
        )
    words = ", ".join(f"page {k + 1}, {pages[k].words}" for k in others[:3])
    remark = f"has {len(others)} of {len(pages)} pages of another size or kind ({words}), which are left out"
    if series is not None and series.axes[:-2] and _depth(series) == count and len(series.pages) == count:
        return None if series.shape[-2:] != (pages[stack[0]].length, pages[stack[0]].width) else (series, (remark,))
    with library_errors("tifffile", path):
        file.pages.useframes = False
        found = [file.pages[k] for k in stack]
        first = found[0]
        if any(page.shape != first.shape or page.dtype != first.dtype for page in found):
            raise RaymarchError(f"{path}: has pages of several kinds; {RESTORE_CURE}")
    return Stack(file, found, f"Q{first.axes}", (count, *first.shape), np.dtype(first.dtype)), (remark,)


def _imwrite(name: str, pages: str) -> str:
    """Line of Python that writes grey pages: without its last words three or four would be taken for colours."""
    return f'tifffile.imwrite("{name}", {pages}, photometric="minisblack")'


def _level(path: Path, stack: Any, level: int | None) -> Any:
    """A level of a stack's pyramid, the finest if none is asked for."""
    levels = getattr(stack, "levels", None) or [stack]
    if level is not None and level >= len(levels):
        if len(levels) == 1:
            require_one_place(Selection(level=level), path)
        raise RaymarchError(f"{path}: level is {level}, but it has {len(levels)}; choose one from 0")
    return levels[level or 0]


def _axes(series: Any) -> str:
    """A letter for each axis: of several axes that nobody named the last is Q, and those before it are a, b, c, ..."""
    axes = str(series.axes)
    spare = iter("abcdefghijklmnopqrstuvwxyz")
    return "".join(next(spare) if axis in axes[k + 1 :] else axis for k, axis in enumerate(axes))


def _choose_places(
    path: Path, axes: str, shape: tuple[int, ...], selection: Selection
) -> tuple[dict[str, int], str, tuple[str, ...]]:
    """Places along axes that are not of space, which axis is z, and what was assumed.

    RaymarchError where one must be chosen.
    """
    if "X" not in axes or "Y" not in axes:
        raise RaymarchError(f"{path}: has axes {axes[:20]}, want pages of rows and columns; {RESTORE_CURE}")
    others = [axis for axis in axes if axis not in "XY"]
    depth = next((axis for axis in "Z" + DEPTH_AXES if axis in others), None)
    remarks: tuple[str, ...] = ()
    counts = {axis: shape[axes.index(axis)] for axis in others}
    if depth is None and counts.get("T", 1) > 1:
        depth = "T"  # a stack whose pages nobody named
        remarks = (f"names its {counts['T']} pages points in time; they are taken as slices along z",)
    if depth is None and counts.get("C", 1) > MAX_CHANNELS:
        depth = "C"  # as tifffile writes a stack for ImageJ whose axes nobody named
        remarks = (f"names its {counts['C']} pages channels; they are taken as slices along z",)
    if depth is None and counts.get("C", 1) > 1:
        again = f"tifffile.imread({path.name!r}), imagej=True, metadata={{'axes': 'ZYX'}}"
        raise RaymarchError(
            f"{path}: is one picture of {counts['C']} channels, want a stack along z; if its pages are slices, say"
            f' so in Python: tifffile.imwrite("stack.tif", {again})'
        )
    if depth is None:
        raise RaymarchError(
            f"{path}: is one picture ({axes}), want a stack of 2 or more; name the folder of its slices"
        )
    fixed: dict[str, int] = {}
    asked: dict[str, Any] = {"channel": selection.channel, "time": selection.time}
    for axis in others:
        if axis == depth:
            continue
        option = "time" if axis in TIME_AXIS else "channel"
        count = shape[axes.index(axis)]
        if option not in asked and count > 1:
            sizes = " x ".join(map(str, shape))
            where = ", ".join("0" if one in others and one != depth else ":" for one in axes)
            raise RaymarchError(
                f"{path}: has {sizes} numbers along {len(shape)} axes, of which {option} chooses one; take one volume"
                f" in Python: {_imwrite('one.tif', f'tifffile.imread({path.name!r})[{where}]')}"
            )
        place = asked.pop(option, None)
        if place is None and count > 1:
            what = f"{count} colours" if axis == "S" else f"{count} {option}s"
            raise RaymarchError(f"{path}: has {what}, want one volume; choose one by {option}=0")
        if place is not None and place >= count:
            raise RaymarchError(f"{path}: {option} is {place}, but it has {count}; choose one from 0 to {count - 1}")
        fixed[axis] = place or 0
    require_one_place(Selection(**asked), path)
    return fixed, depth, remarks


def _require_beside(path: Path, ome: str) -> None:
    """RaymarchError where an OME-TIFF has planes in files that do not lie beside it, or are missing."""
    own = re.search(r"<(?:\w+:)?OME\b[^<>]*?\bUUID\s*=\s*[\"']([^\"']*)", ome)
    for about, uuid in re.findall(r"<(?:\w+:)?UUID\b([^<>]*)>([^<]*)<", ome):
        named = re.search(r"FileName\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", about)
        name = unescape((named[1] or named[2] or "") if named else "")
        if (uuid.strip() == own[1].strip()) if own else name.lower() == path.name.lower():
            continue
        other = path.parent / name
        if Path(name).name != name or not other.is_file() or other.resolve().parent != path.parent.resolve():
            raise RaymarchError(f"{path}: has planes in {name[:60]!r}, want a file beside it; copy the whole set there")


def _planes(series: Any, fixed: dict[str, int], depth: str, page_by_page: bool = True) -> Callable[[int], np.ndarray]:
    """Rows and columns of a z: of the page that holds it, where each page is one plane, else of the whole stack."""
    axes, shape = _axes(series), series.shape
    outer = [axis for axis in axes if axis not in "YXS" or axes.index(axis) < axes.index("Y")]
    inner = [axis for axis in axes if axis not in outer]
    counts = [shape[axes.index(axis)] for axis in outer]

    def of_page(k: int) -> np.ndarray:
        place = [k if axis == depth else fixed[axis] for axis in outer]
        page = series.pages[int(np.ravel_multi_index(place, counts))].asarray()
        page = page.reshape([shape[axes.index(axis)] for axis in inner])
        return page[tuple(fixed.get(axis, slice(None)) for axis in inner)]

    if page_by_page and len(series.pages) == math.prod(counts):
        return of_page
    whole = _whole(series) if page_by_page else series.asarray()  # of a coarser level, whose pages are not listed
    return lambda k: whole[tuple({**fixed, depth: k}.get(axis, slice(None)) for axis in axes)]


def _whole(series: Any) -> np.ndarray:
    """Stack whose planes are not a page each: on the disk, where it lies in one piece, as ImageJ's over 4 GB do."""
    file = series.parent
    if series.dataoffset is not None:
        dtype = np.dtype(series.dtype).newbyteorder(file.byteorder)
        return np.memmap(file.filehandle.path, dtype, "r", series.dataoffset, series.shape)
    require_file_budget(series.nbytes, f"{file.filehandle.path}: its planes, which are not a page each,")
    return series.asarray()


class Page(NamedTuple):
    """What a page is by its tags, each the first number of one: 0 for a tag that is not there."""

    subfile: int = 0
    width: int = 0
    length: int = 0
    bits: int = 1
    samples: int = 1
    number: int = 1  # the sample format: unsigned, signed, float

    @property
    def is_aside(self) -> bool:
        """Whether it says that it is a reduced picture or a mask of another."""
        return bool(self.subfile & SIDE_PAGE_BITS)

    @property
    def kind(self) -> tuple[int, ...]:
        """What is alike in all slices of a stack."""
        return self[1:]

    @property
    def words(self) -> str:
        """Its size for a message."""
        colours = f" of {self.samples} colours" if self.samples > 1 else ""
        return f"{self.width} x {self.length}{colours}, {self.bits} bits"


def pages_of(path: Path) -> list[Page]:
    """Pages of a TIFF in their order; RaymarchError where they or their tags lead beyond its end, or in a circle."""
    size = path.stat().st_size
    seen: dict[int, Page] = {}
    with path.open("rb") as file:
        head = file.read(16)
        order = "<" if head[:2] == b"II" else ">"
        big = struct.unpack_from(f"{order}H", head, 2)[0] == 43 if len(head) == 16 else False
        # Of a page: how many tags, one tag (number, type, count, value or where it is), where the next page is.
        counts, tags, nexts, inline = ("Q", "HHQQ", "Q", 8) if big else ("H", "HHII", "I", 4)
        wide, entry, far = (struct.calcsize(order + one) for one in (counts, tags, nexts))
        at = struct.unpack_from(order + nexts, head, 8 if big else 4)[0] if len(head) == 16 else size
        while at:
            if at in seen or len(seen) >= MAX_PAGES:
                raise RaymarchError(f"{path}: has pages that lead round in a circle; {RESTORE_CURE}")
            file.seek(at)
            said = file.read(wide)
            count = struct.unpack(order + counts, said)[0] if len(said) == wide else 0
            body = file.read(entry * min(count, MAX_TAGS) + far)
            if not 1 <= count <= MAX_TAGS or len(body) < entry * count + far:
                raise RaymarchError(f"{path}: ends before its page {len(seen) + 1}, want a whole TIFF; {RESTORE_CURE}")
            told: dict[str, int] = {}
            for i in range(count):
                tag, kind, number, where = struct.unpack_from(order + tags, body, i * entry)
                length = TYPE_BYTES.get(kind, 0) * number
                if length > inline and where + length > size:
                    raise RaymarchError(f"{path}: ends before the tags of its page {len(seen) + 1}; {RESTORE_CURE}")
                if tag in TAG_NAMES and kind in WHOLE_TYPES and number:
                    value = body[(i + 1) * entry - inline : (i + 1) * entry]
                    if length > inline:
                        file.seek(where)
                        value = file.read(TYPE_BYTES[kind])
                    told[TAG_NAMES[tag]] = int(struct.unpack_from(order + WHOLE_TYPES[kind], value)[0])
            seen[at] = Page(**told)
            at = struct.unpack_from(order + nexts, body, entry * count)[0]
    return list(seen.values())


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a stack lies and what its numbers are.

    Attributes:
        affine: (4, 4), from column, row and page to the world.
        length_unit: of the world, "" where nobody says.
        remarks: what was assumed, and what is said and not read.
        slope, intercept, unit: of the values.
    """

    affine: np.ndarray
    length_unit: str = ""
    remarks: tuple[str, ...] = ()
    slope: float = 1.0
    intercept: float = 0.0
    unit: str = ""


def read_placement(file: Any, stack: Any, fixed: Mapping[str, int] | None = None, image: int = 0) -> Placement:
    """Place and units of a stack in a tifffile.TiffFile.

    Args:
        stack: its pages, shape and axes.
        fixed: places along the axes that are not of space, by their letters.
        image: number of its image among OME's.
    """
    found = None
    if file.is_ome and file.ome_metadata:
        found = _ome_placement(file.ome_metadata, fixed or {}, image)
    elif file.is_imagej and file.imagej_metadata is not None:
        found = _imagej_placement(file.imagej_metadata, stack)
    found = found or _program_placement(file, stack) or _page_placement(stack)
    return replace(found, remarks=(*found.remarks, *_unread_remarks(file, stack)))


def _ome_placement(text: str, fixed: Mapping[str, int], number: int) -> Placement | None:
    """By an image's physical sizes and the positions of its planes, those of the channel and time that are chosen."""
    root = parse_xml(text.encode(), "OME-XML")
    images = [node for node in root.iter() if node.tag.rpartition("}")[2] == "Pixels"]
    if not images:
        return None
    pixels = images[number if number < len(images) else 0]
    sizes = [_positive(pixels.get(f"PhysicalSize{axis}")) for axis in "XYZ"]
    factors, unit, remarks = common_unit([pixels.get(f"PhysicalSize{axis}Unit", "µm") for axis in "XYZ"])
    planes = [node for node in pixels if node.tag.rpartition("}")[2] == "Plane"]
    own = [one for one in planes if all(_natural(one.get(f"The{axis}")) == fixed.get(axis, 0) for axis in "CT")]
    own = sorted(own or planes, key=lambda one: _natural(one.get("TheZ")))
    start = [_position(own[0], axis, unit) if own else 0.0 for axis in "XYZ"]
    heights = [_position(one, "Z", unit) for one in own if one.get("PositionZ") is not None]
    step = (heights[-1] - heights[0]) / (len(heights) - 1) if len(heights) == len(own) > 1 else 0.0
    if step < 0:
        remarks += ("has planes whose PositionZ falls, which is not applied; z rises with the pages",)
    if step and sizes[2] is None:
        sizes[2] = abs(step) / factors[2]
        remarks += (f"says no PhysicalSizeZ; its planes are {abs(step):.6g} apart by PositionZ, which is taken",)
    elif step and sizes[2] is not None and abs(abs(step) - sizes[2] * factors[2]) > MAX_DISAGREEMENT * abs(step):
        said = f"{sizes[2] * factors[2]:.6g} by PhysicalSizeZ, which is taken, and {abs(step):.6g} by PositionZ"
        remarks += (f"has planes {said}",)
    missing = [axis.lower() for axis, size in zip("XYZ", sizes, strict=True) if size is None]
    if missing:
        remarks += (f"says no spacing along {', '.join(missing)}; 1 is assumed",)
    steps = [1.0 if size is None else size * factor for size, factor in zip(sizes, factors, strict=True)]
    return Placement(_affine(steps, start), _unit(unit), remarks)


def _imagej_placement(notes: Mapping[str, Any], stack: Any) -> Placement:
    """By ImageJ's notes of depth, units and calibration, and the resolution of a page."""
    page = stack.pages[0]
    x, y = _resolution(page)
    kind = _natural(page.tags["ResolutionUnit"].value) if "ResolutionUnit" in page.tags else 1
    if kind == 2 and math.isclose(x * SCREEN_RESOLUTION, 1.0):
        x, y, kind = 1.0, 1.0, 1  # as ImageJ does
    steps = [x, y, abs(_float(str(notes.get("spacing")).replace(",", ".")))]
    missing = [axis for axis, step in zip("xyz", steps, strict=True) if not step > 0]
    steps = [step if step > 0 else 1.0 for step in steps]
    remarks: tuple[str, ...] = (f"says no spacing along {', '.join(missing)}; 1 is assumed",) if missing else ()
    unit = _unit(str(notes.get("unit", RESOLUTION_UNITS.get(kind, ""))))
    units = [unit, *(_unit(str(notes[f"{axis}unit"])) if f"{axis}unit" in notes else unit for axis in "yz")]
    factors, unit, doubts = common_unit(units)
    steps = [step * factor for step, factor in zip(steps, factors, strict=True)]
    origin = [_float(notes.get(f"{axis}origin", 0)) for axis in "xyz"]
    start = [-o * step if math.isfinite(o) else 0.0 for o, step in zip(origin, steps, strict=True)]
    slope, intercept, named, more = _calibration(notes, str(stack.dtype))
    return Placement(_affine(steps, start), unit, remarks + doubts + more, slope, intercept, named)


def _calibration(notes: Mapping[str, Any], dtype: str) -> tuple[float, float, str, tuple[str, ...]]:
    """Slope, intercept and unit of the values by ImageJ's calibration, and a remark on one that is no straight line."""
    function = _float(notes.get("cf", NO_CALIBRATION[0]))
    unit = str(notes.get("vunit", ""))
    unit = "" if unit.strip().lower() in GREY_UNITS else unit
    if function in NO_CALIBRATION or math.isnan(function):
        return 1.0, 0.0, unit, ()
    intercept, slope = _float(notes.get("c0")), _float(notes.get("c1"))
    if function != LINEAR_CALIBRATION or math.isnan(intercept) or math.isnan(slope) or slope == 0:
        said = f"calibrates its values by ImageJ's function {function:g}, which is not applied; they are as stored"
        return 1.0, 0.0, "", (said,)
    if "float" in dtype:
        return 1.0, 0.0, unit, ("has a calibration of floats, which ImageJ does not apply; values are as stored",)
    return slope, intercept, unit, ()


def _program_placement(file: Any, stack: Any) -> Placement | None:
    """By the metadata of the program that wrote it: Zeiss' LSM, MetaMorph's STK, MicroManager, ScanImage, GeoTIFF."""
    if file.is_lsm:
        told = _mapping(file.lsm_metadata)
        return _step_placement([_float(told.get(f"VoxelSize{axis}")) * 1e6 for axis in "XYZ"], "um")
    if file.is_stk:
        told = _mapping(file.stk_metadata)
        depth = np.atleast_1d(np.asarray(told.get("ZDistance", []), float))
        z = float(depth[0]) if depth.size else math.nan
        x, y = (_float(told.get(f"{axis}Calibration")) for axis in "XY")
        return _step_placement([x, y, z], _unit(str(told.get("CalibrationUnits", ""))))
    if file.is_micromanager:
        told = _mapping(_mapping(file.micromanager_metadata).get("Summary"))
        tag = stack.pages[0].tags.get("MicroManagerMetadata")
        own = _mapping(tag.value if tag is not None else None)
        x = _positive(own.get("PixelSizeUm")) or _float(told.get("PixelSize_um"))
        return _step_placement([x, x, abs(_float(told.get("z-step_um")))], "um")
    if file.is_scanimage:
        found, told = _page_placement(stack), _mapping(_mapping(file.scanimage_metadata).get("FrameData"))
        z = abs(_float(told.get("SI.hStackManager.stackZStepSize")))
        if z > 0 and found.length_unit == "mm":
            x, y = found.affine[0, 0], found.affine[1, 1]
            return Placement(_affine([x, y, z / 1000], [0, 0, 0]), "mm")
    if file.is_geotiff:
        scale = np.atleast_1d(np.asarray(_mapping(file.geotiff_metadata).get("ModelPixelScale", []), float))
        if scale.size == 3 and (scale[:2] > 0).all():
            x, y, z = scale.tolist()
            found = _step_placement([x, y, z or math.nan], "")
            return replace(
                found,
                remarks=(*found.remarks, "has a place on a map (GeoTIFF), of which the pixels' size alone is read"),
            )
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _step_placement(steps: Sequence[float], unit: str) -> Placement:
    """Place of a stack whose steps are as a program says, 1 where it does not."""
    missing = [axis for axis, step in zip("xyz", steps, strict=True) if not step > 0]
    remarks = (f"says no spacing along {', '.join(missing)}; 1 is assumed",) if missing else ()
    return Placement(_affine([step if step > 0 else 1.0 for step in steps], [0, 0, 0]), unit, remarks)


def _page_placement(stack: Any) -> Placement:
    """By the resolution of a page, in mm where it has a unit; its depth nobody says."""
    page = stack.pages[0]
    x, y = _resolution(page)
    tag = page.tags.get("ResolutionUnit")
    unit = 1 if tag is None else _natural(tag.value)
    if unit not in UNIT_MILLIMETRES or not (x > 0 and y > 0):
        return Placement(np.eye(4), "", ("says no spacing; 1 is assumed",))
    mm = UNIT_MILLIMETRES[unit]
    said = ("says no spacing along z; that along x is assumed",)
    return Placement(_affine([x * mm, y * mm, x * mm], [0, 0, 0]), "mm", said)


def _resolution(page: Any) -> tuple[float, float]:
    """Size of a pixel along x and y, in units of the file; NaN where it says none."""
    found = []
    for name in ("XResolution", "YResolution"):
        tag = page.tags.get(name)
        value = tag.value if tag is not None else (0, 1)
        count, per = value if isinstance(value, tuple) and len(value) == 2 else (_float(value), 1)
        found.append(per / count if count > 0 and per > 0 else math.nan)
    return found[0], found[1]


def _unread_remarks(file: Any, stack: Any) -> tuple[str, ...]:
    """Remarks on what a page and its file say of values and places that is not read."""
    page, told = stack.pages[0], []
    if page.photometric == 0:
        told.append("says that 0 is white (MinIsWhite), which is not applied; values are as stored")
    elif page.photometric == 3 and not file.is_imagej:
        told.append("has a colour map, which is not applied; values are its indices, as stored")
    turn = page.tags.get("Orientation")
    if turn is not None and _natural(turn.value) in TURNED_ORIENTATIONS:
        told.append(f"says orientation {_natural(turn.value)}, which is not applied; rows and columns are as stored")
    nodata = page.tags.get("GDAL_NODATA")
    if nodata is not None:
        told.append(f"says that {str(nodata.value)[:20].strip()} stands for no data; such values are kept as stored")
    others = sorted(MICROSCOPES[flag] for flag in set(file.flags) & set(MICROSCOPES))
    if others and not (file.is_ome or file.is_imagej):
        told.append(f"has metadata of {', '.join(others)}, of which nothing is read; rm.load takes spacing=")
    return tuple(told)


def _affine(steps: Sequence[float], start: Sequence[float]) -> np.ndarray:
    affine = np.diag([*steps, 1.0])
    affine[:3, 3] = start
    return affine


def _unit(unit: str) -> str:
    return "" if unit.strip().lower() in PIXEL_UNITS else short_unit(unit)


def _position(plane: Any, axis: str, unit: str) -> float:
    """Position of a plane along an axis, in the stack's unit; by the standard's default in a frame of no known unit."""
    number = _float(plane.get(f"Position{axis}", 0))
    return 0.0 if math.isnan(number) else number * unit_factor(plane.get(f"Position{axis}Unit", ""), unit)


def _positive(text: object) -> float | None:
    """A length that is one, else None."""
    number = _float(text)
    return number if number > 0 else None


def _natural(text: object) -> int:
    number = _float(text)
    return int(number) if number >= 0 else 0


def _float(text: object) -> float:
    """A finite number, NaN for what is none."""
    try:
        number = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def write(volume: ScalarVolume, path: Path) -> None:
    """TIFF of a scalar volume that is upright in the world: OME-TIFF by name or type of number, else ImageJ's."""
    with require_library("tifffile", "TIFF"):
        import tifffile

    require_upright(volume, path, "TIFF")
    values = _to_32_bits(single_values(volume), path)
    name = path.name.lower()
    (x, y, z), start = volume.spacing.tolist(), volume.origin.tolist()
    pages = np.ascontiguousarray(values.T, values.dtype.newbyteorder("="))
    if str(pages.dtype) in IMAGEJ_TYPES and not name.endswith((".ome.tif", ".ome.tiff")):
        origin = {f"{axis}origin": -s / step for axis, s, step in zip("xyz", start, (x, y, z), strict=True)}
        said: dict[str, Any] = {"axes": "ZYX", "spacing": z, "unit": volume.length_unit or "pixel", **origin}
        tifffile.imwrite(
            path, pages, photometric=GREY_PHOTOMETRIC, imagej=True, resolution=(1 / x, 1 / y), metadata=said
        )
        return
    said = {"axes": "ZYX", "Name": volume.name} if volume.name else {"axes": "ZYX"}
    for axis, step in zip("XYZ", (x, y, z), strict=True):
        said |= {f"PhysicalSize{axis}": step, f"PhysicalSize{axis}Unit": (unit := volume.length_unit or FRAME_UNIT)}
    said["Plane"] = {f"Position{axis}Unit": [unit] * len(pages) for axis in "XYZ"}
    for axis, s in zip("XYZ", start, strict=True):
        said["Plane"][f"Position{axis}"] = [s + (k * z if axis == "Z" else 0.0) for k in range(len(pages))]
    tifffile.imwrite(path, pages, photometric=GREY_PHOTOMETRIC, ome=True, metadata=said)


def _to_32_bits(values: np.ndarray, path: Path) -> np.ndarray:
    """Whole numbers of 64 bits in 32, as OME knows no longer ones; RaymarchError where they do not fit."""
    if values.dtype.kind == "f" or values.dtype.itemsize < 8:
        return values
    kind = np.uint32 if values.dtype.kind == "u" or values.min() >= 0 else np.int32
    if not (np.iinfo(kind).min <= values.min() and values.max() <= np.iinfo(kind).max):
        raise RaymarchError(
            f"{path}: values are {values.dtype} beyond 32 bits, which TIFF cannot hold; save it as .nrrd"
        )
    return values.astype(kind)


TIFF = scalar_format("TIFF", (".tif", ".tiff"), detect, source, write)

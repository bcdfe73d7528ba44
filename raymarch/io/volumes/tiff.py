"""TIFF stacks of microscopes: ImageJ's and plain ones (.tif, .tiff), OME-TIFF (.ome.tif), and folders of slices.

Pages are z, rows y (downwards) and columns x; the world has no names and its unit is the file's.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.limits import require_file_budget
from raymarch.io.volumes.part import require_one_place
from raymarch.io.volumes.scalar_format import require_upright, scalar_format, single_values, wanted
from raymarch.io.volumes.source import Slices, Source, read_by
from raymarch.io.volumes.stored_values import CURE
from raymarch.io.volumes.tiff_pages import Page, pages_of
from raymarch.io.volumes.tiff_place import placed_by
from raymarch.volumes.scalar_volume import SIZES, ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
MARKS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MOST_RATIO = 2000  # to which LZW and deflate pack what is empty
MOST_COLOURS = 4  # channels without a z that are taken for channels
FEW = 4  # times as many pages as others a stack has that is taken for the file's
DEPTHS, TIMES = "ZIQ", "T"
GREY = "minisblack"  # said, as rows of 3 or 4 columns are taken for colours else
FRAME = "reference frame"  # unit of lengths that have none
IMAGEJ = ("uint8", "uint16", "float32")  # all that ImageJ's files may hold


def detect(path: Path) -> bool:
    """Whether a file begins as a TIFF does, and is no DICOM whose preamble looks so, as GE writes them."""
    with path.open("rb") as file:
        head = file.read(132)
    return head[:4] in MARKS and (head[128:] != b"DICM" or path.suffix.lower() in (".tif", ".tiff"))


def source(path: Path, selection: Selection) -> Source:
    """Source of a TIFF: its stack, or the one of several that is chosen.

    RaymarchError for a page of another size among those of the stack, and for colours unless a channel is chosen.
    """
    with wanted("tifffile", "TIFF"):
        import tifffile
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    asked, pages = selection, pages_of(path)
    with read_by("tifffile", path):
        file = tifffile.TiffFile(path)
    with file:
        with read_by("tifffile", path):
            _require_beside(path, file.ome_metadata or "")
            series = list(file.series)
        stack, image, remarks, selection = _stack(path, file, series, pages, selection)
        finest, stack = stack, _level(path, stack, selection.level)
        dtype, axes, shape = np.dtype(stack.dtype), _axes(stack), tuple(int(n) for n in stack.shape)
        if dtype.kind != "b" and dtype.itemsize not in SIZES.get(dtype.kind, ()):
            raise RaymarchError(
                f"{path}: holds {dtype}, want whole numbers or floats; rm.ScalarVolume takes one made of"
                " tifffile.imread(..).T, such as its .real or numpy.abs of it"
            )
        fixed, depth, said = _chosen(path, axes, shape, selection)
        remarks += said
        placed = placed_by(file, finest, fixed, image)
        times = [finest.shape[_axes(finest).index(axis)] / shape[axes.index(axis)] for axis in ("X", "Y", depth)]
    declared = math.prod(shape) * dtype.itemsize
    if declared > MOST_RATIO * path.stat().st_size:
        raise RaymarchError(f"{path}: declares {declared:,} bytes but holds {path.stat().st_size:,}; {CURE}")
    count = {axis: shape[axes.index(axis)] for axis in "XY"}

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        with read_by("tifffile", path), tifffile.TiffFile(path) as file:
            again = _stack(path, file, list(file.series), pages, asked)[0]
            plane = _planes(_level(path, again, asked.level), fixed, depth, page_by_page=not asked.level)
            found = np.stack([plane(k)[y, x] for k in range(shape[axes.index(depth)])[z]]).T
        return found.view(np.uint8) if dtype.kind == "b" else found

    kind = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    return Source(
        (count["X"], count["Y"], shape[axes.index(depth)]), kind, placed.affine @ np.diag([*times, 1.0]), read,
        at_once=False,
        slope=placed.slope, intercept=placed.intercept, unit=placed.unit, length_unit=placed.length_unit,
        remarks=(*remarks, *placed.remarks),
    )  # fmt: skip


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
            odd = _odd(path, file, series[at], pages)
            if odd is not None:
                return odd[0], 0, (*remarks, *odd[1]), selection
        if len(kept) > 1:
            sizes = ", ".join(" x ".join(map(str, series[k].shape)) for k in kept if k != at)
            remarks += (f"has pictures beside its stack ({sizes}), which are left out",)
        return series[at], at, remarks, selection
    if not _is_described(file) and (odd := _odd(path, file, None, pages)) is not None:
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


def _level(path: Path, stack: Any, level: int | None) -> Any:
    """A level of a stack's pyramid, the finest if none is asked for."""
    levels = getattr(stack, "levels", None) or [stack]
    if level is not None and level >= len(levels):
        if len(levels) == 1:
            require_one_place(Selection(level=level), path)
        raise RaymarchError(f"{path}: level is {level}, but it has {len(levels)}; choose one from 0")
    return levels[level or 0]


def _imwrite(name: str, pages: str) -> str:
    """Line of Python that writes grey pages: without its last words three or four would be taken for colours."""
    return f'tifffile.imwrite("{name}", {pages}, photometric="minisblack")'


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


def _odd(path: Path, file: Any, series: Any, pages: Sequence[Page]) -> tuple[Stack, tuple[str, ...]] | None:
    """Stack of the pages of the kind that most have, and a remark on the others; None where all are alike.

    RaymarchError for a page of another kind between them, which may be one of the stack.
    """
    own = [k for k, page in enumerate(pages) if not page.is_aside]
    kinds = Counter(pages[k].kind for k in own)
    if len(kinds) < 2:
        return None
    (usual, count), (_, next_most) = kinds.most_common(2)
    if count < 2 or count <= next_most or (next_most > 1 and FEW * next_most > count):
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
    with read_by("tifffile", path):
        file.pages.useframes = False
        found = [file.pages[k] for k in stack]
        first = found[0]
        if any(page.shape != first.shape or page.dtype != first.dtype for page in found):
            raise RaymarchError(f"{path}: has pages of several kinds; {CURE}")
    return Stack(file, found, f"Q{first.axes}", (count, *first.shape), np.dtype(first.dtype)), (remark,)


def _axes(series: Any) -> str:
    """A letter for each axis: of several axes that nobody named the last is Q, and those before it are a, b, c, ..."""
    axes = str(series.axes)
    spare = iter("abcdefghijklmnopqrstuvwxyz")
    return "".join(next(spare) if axis in axes[k + 1 :] else axis for k, axis in enumerate(axes))


def _chosen(
    path: Path, axes: str, shape: tuple[int, ...], selection: Selection
) -> tuple[dict[str, int], str, tuple[str, ...]]:
    """Places along axes that are not of space, which axis is z, and what was assumed.

    RaymarchError where one must be chosen.
    """
    if "X" not in axes or "Y" not in axes:
        raise RaymarchError(f"{path}: has axes {axes[:20]}, want pages of rows and columns; {CURE}")
    others = [axis for axis in axes if axis not in "XY"]
    depth = next((axis for axis in "Z" + DEPTHS if axis in others), None)
    remarks: tuple[str, ...] = ()
    counts = {axis: shape[axes.index(axis)] for axis in others}
    if depth is None and counts.get("T", 1) > 1:
        depth = "T"  # a stack whose pages nobody named
        remarks = (f"names its {counts['T']} pages points in time; they are taken as slices along z",)
    if depth is None and counts.get("C", 1) > MOST_COLOURS:
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
        option = "time" if axis in TIMES else "channel"
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


def write(volume: ScalarVolume, path: Path) -> None:
    """TIFF of a scalar volume that is upright in the world: OME-TIFF by name or type of number, else ImageJ's."""
    with wanted("tifffile", "TIFF"):
        import tifffile

    require_upright(volume, path, "TIFF")
    values = _of_32_bits(single_values(volume), path)
    name = path.name.lower()
    (x, y, z), start = volume.spacing.tolist(), volume.origin.tolist()
    pages = np.ascontiguousarray(values.T, values.dtype.newbyteorder("="))
    if str(pages.dtype) in IMAGEJ and not name.endswith((".ome.tif", ".ome.tiff")):
        origin = {f"{axis}origin": -s / step for axis, s, step in zip("xyz", start, (x, y, z), strict=True)}
        said: dict[str, Any] = {"axes": "ZYX", "spacing": z, "unit": volume.length_unit or "pixel", **origin}
        tifffile.imwrite(path, pages, photometric=GREY, imagej=True, resolution=(1 / x, 1 / y), metadata=said)
        return
    said = {"axes": "ZYX", "Name": volume.name} if volume.name else {"axes": "ZYX"}
    for axis, step in zip("XYZ", (x, y, z), strict=True):
        said |= {f"PhysicalSize{axis}": step, f"PhysicalSize{axis}Unit": (unit := volume.length_unit or FRAME)}
    said["Plane"] = {f"Position{axis}Unit": [unit] * len(pages) for axis in "XYZ"}
    for axis, s in zip("XYZ", start, strict=True):
        said["Plane"][f"Position{axis}"] = [s + (k * z if axis == "Z" else 0.0) for k in range(len(pages))]
    tifffile.imwrite(path, pages, photometric=GREY, ome=True, metadata=said)


def _of_32_bits(values: np.ndarray, path: Path) -> np.ndarray:
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

"""TIFF stacks of microscopes: ImageJ's and plain ones (.tif, .tiff), OME-TIFF (.ome.tif), and folders of slices.

Pages are z, rows y (downwards) and columns x; the world has no names and its unit is the file's.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import SIZES, ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError
from raymarch.io.files.limits import require_file_budget
from raymarch.io.volumes.part import require_one_place
from raymarch.io.volumes.scalar_format import require_upright, scalar_format, single_values, wanted
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import CURE
from raymarch.io.volumes.tiff_pages import require_whole
from raymarch.io.volumes.tiff_place import placed_by

log = logging.getLogger("raymarch")
MARKS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
MOST_RATIO = 2000  # to which LZW and deflate pack what is empty
DEPTHS, TIMES = "ZIQ", "T"
GREY = "minisblack"  # said, as rows of 3 or 4 columns are taken for colours else
FRAME = "reference frame"  # unit of lengths that have none
IMAGEJ = ("uint8", "uint16", "float32")  # all that ImageJ's files may hold


def detect(path: Path) -> bool:
    """Whether a file begins as a TIFF does."""
    with path.open("rb") as file:
        return file.read(4) in MARKS


def source(path: Path, selection: Selection) -> Source:
    """Source of a TIFF; RaymarchError for stacks of several sizes, and for colours unless a channel is chosen."""
    with wanted("tifffile", "TIFF"):
        import tifffile
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)
    require_whole(path)
    with tifffile.TiffFile(path) as file:
        _require_beside(path, file.ome_metadata or "")
        series = file.series
        sizes = {one.shape for one in series}
        if len(series) != 1:
            words = ", ".join(" x ".join(map(str, shape)) for shape in sorted(sizes)[:4])
            raise RaymarchError(f"{path}: holds {len(series)} stacks ({words}), want one; save it by itself")
        stack, dtype = series[0], np.dtype(series[0].dtype)
        axes, shape = stack.axes, tuple(int(n) for n in stack.shape)
        require_one_place(Selection(level=selection.level), path)
        if dtype.itemsize not in SIZES.get(dtype.kind, ()):
            raise RaymarchError(f"{path}: holds {dtype}, want whole numbers or floats; convert it")
        affine, unit, remarks = placed_by(file, stack)
    declared = math.prod(shape) * dtype.itemsize
    if declared > MOST_RATIO * path.stat().st_size:
        raise RaymarchError(f"{path}: declares {declared:,} bytes but holds {path.stat().st_size:,}; {CURE}")
    fixed, depth = _chosen(path, axes, shape, selection)
    count = {axis: shape[axes.index(axis)] for axis in "XY"}

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        with tifffile.TiffFile(path) as file:
            plane = _planes(file.series[0], fixed, depth)
            return np.stack([plane(k)[y, x] for k in range(shape[axes.index(depth)])[z]]).T

    return Source(
        (count["X"], count["Y"], shape[axes.index(depth)]), dtype, affine, read, at_once=False, length_unit=unit,
        remarks=remarks,
    )  # fmt: skip


def _chosen(path: Path, axes: str, shape: tuple[int, ...], selection: Selection) -> tuple[dict[str, int], str]:
    """Places along axes that are not of space, and which axis is z; RaymarchError where one must be chosen."""
    if "X" not in axes or "Y" not in axes:
        raise RaymarchError(f"{path}: has axes {axes[:20]}, want pages of rows and columns; {CURE}")
    others = [axis for axis in axes if axis not in "XY"]
    depth = next((axis for axis in "Z" + DEPTHS if axis in others), None)
    if depth is None and "T" in others and "C" not in others:
        depth = "T"  # a stack whose pages nobody named
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
        place, count = asked.pop(option, None), shape[axes.index(axis)]
        if place is None and count > 1:
            what = f"{count} colours" if axis == "S" else f"{count} {option}s"
            raise RaymarchError(f"{path}: has {what}, want one volume; choose one by {option}=0")
        if place is not None and place >= count:
            raise RaymarchError(f"{path}: {option} is {place}, but it has {count}; choose one from 0 to {count - 1}")
        fixed[axis] = place or 0
    require_one_place(Selection(**asked), path)
    return fixed, depth


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


def _planes(series: Any, fixed: dict[str, int], depth: str) -> Callable[[int], np.ndarray]:
    """Rows and columns of a z: of the page that holds it, where each page is one plane, else of the whole stack."""
    axes, shape = series.axes, series.shape
    outer = [axis for axis in axes if axis not in "YXS" or axes.index(axis) < axes.index("Y")]
    inner = [axis for axis in axes if axis not in outer]
    counts = [shape[axes.index(axis)] for axis in outer]

    def of_page(k: int) -> np.ndarray:
        place = [k if axis == depth else fixed[axis] for axis in outer]
        page = series.pages[int(np.ravel_multi_index(place, counts))].asarray()
        page = page.reshape([shape[axes.index(axis)] for axis in inner])
        return page[tuple(fixed.get(axis, slice(None)) for axis in inner)]

    if len(series.pages) == math.prod(counts):
        return of_page
    whole = _whole(series)
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

"""What a TIFF says of its stack beside the numbers: spacing, origin and units by OME's XML, ImageJ's notes, the
metadata of a microscope's program or the resolution of a page; and what of that is not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raymarch.io.files.strict_xml import parse_xml
from raymarch.io.volumes.axis_units import in_one_unit, short_unit, times

INCHES = {2: 25.4, 3: 10.0}  # mm of a unit of resolution: an inch, a centimetre
OF_RESOLUTION = {2: "inch", 3: "cm"}
PLAIN = ("", "pixel", "pixels", "reference frame", "voxel", "null")
SCREEN = 72  # pixels an inch that ImageJ takes for none said
LINE, NONE = 0, (20, 21)  # functions of ImageJ's calibration: a straight line; none
GREYS = ("gray value", "grey value", "")  # units of values that are none
DISAGREE = 0.01  # of a spacing
MICROSCOPES = {
    "andor": "Andor", "avs": "Argos", "bif": "Ventana", "bit": "BIT", "eer": "EER", "fei": "FEI",
    "fluoview": "FluoView",
    "indica": "Indica", "jpx": "JPX", "mdgel": "MD Gel", "mediacy": "Media Cybernetics", "metaseries": "MetaSeries",
    "ndpi": "Hamamatsu NDPI", "ndtiff": "NDTiff", "nih": "NIH Image", "nuvu": "Nuvu", "philips": "Philips",
    "pilatus": "Pilatus", "qpi": "PerkinElmer QPI", "scn": "Leica SCN", "sem": "Zeiss SEM", "sis": "Olympus SIS",
    "streak": "Hamamatsu", "svs": "Aperio SVS", "tvips": "TVIPS", "vista": "ISS Vista", "astrotiff": "AstroTIFF",
}  # fmt: skip
ORIENTATIONS = range(2, 9)


@dataclass(frozen=True, eq=False)
class Placed:
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


def placed_by(file: Any, stack: Any, fixed: Mapping[str, int] | None = None, image: int = 0) -> Placed:
    """Place and units of a stack in a tifffile.TiffFile.

    Args:
        stack: its pages, shape and axes.
        fixed: places along the axes that are not of space, by their letters.
        image: number of its image among OME's.
    """
    found = None
    if file.is_ome and file.ome_metadata:
        found = _by_ome(file.ome_metadata, fixed or {}, image)
    elif file.is_imagej and file.imagej_metadata is not None:
        found = _by_imagej(file.imagej_metadata, stack)
    found = found or _by_program(file, stack) or _by_page(stack)
    return replace(found, remarks=(*found.remarks, *_unread(file, stack)))


def _by_ome(text: str, fixed: Mapping[str, int], number: int) -> Placed | None:
    """By an image's physical sizes and the positions of its planes, those of the channel and time that are chosen."""
    root = parse_xml(text.encode(), "OME-XML")
    images = [node for node in root.iter() if node.tag.rpartition("}")[2] == "Pixels"]
    if not images:
        return None
    pixels = images[number if number < len(images) else 0]
    sizes = [_positive(pixels.get(f"PhysicalSize{axis}")) for axis in "XYZ"]
    factors, unit, remarks = in_one_unit([pixels.get(f"PhysicalSize{axis}Unit", "µm") for axis in "XYZ"])
    planes = [node for node in pixels if node.tag.rpartition("}")[2] == "Plane"]
    own = [one for one in planes if all(_whole(one.get(f"The{axis}")) == fixed.get(axis, 0) for axis in "CT")]
    own = sorted(own or planes, key=lambda one: _whole(one.get("TheZ")))
    start = [_position(own[0], axis, unit) if own else 0.0 for axis in "XYZ"]
    heights = [_position(one, "Z", unit) for one in own if one.get("PositionZ") is not None]
    step = (heights[-1] - heights[0]) / (len(heights) - 1) if len(heights) == len(own) > 1 else 0.0
    if step < 0:
        remarks += ("has planes whose PositionZ falls, which is not applied; z rises with the pages",)
    if step and sizes[2] is None:
        sizes[2] = abs(step) / factors[2]
        remarks += (f"says no PhysicalSizeZ; its planes are {abs(step):.6g} apart by PositionZ, which is taken",)
    elif step and sizes[2] is not None and abs(abs(step) - sizes[2] * factors[2]) > DISAGREE * abs(step):
        said = f"{sizes[2] * factors[2]:.6g} by PhysicalSizeZ, which is taken, and {abs(step):.6g} by PositionZ"
        remarks += (f"has planes {said}",)
    missing = [axis.lower() for axis, size in zip("XYZ", sizes, strict=True) if size is None]
    if missing:
        remarks += (f"says no spacing along {', '.join(missing)}; 1 is assumed",)
    steps = [1.0 if size is None else size * factor for size, factor in zip(sizes, factors, strict=True)]
    return Placed(_affine(steps, start), _unit(unit), remarks)


def _positive(text: object) -> float | None:
    """A length that is one, else None."""
    number = _float(text)
    return number if number > 0 else None


def _float(text: object) -> float:
    """A finite number, NaN for what is none."""
    try:
        number = float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _whole(text: object) -> int:
    number = _float(text)
    return int(number) if number >= 0 else 0


def _position(plane: Any, axis: str, unit: str) -> float:
    """Position of a plane along an axis, in the stack's unit; by the standard's default in a frame of no known unit."""
    number = _float(plane.get(f"Position{axis}", 0))
    return 0.0 if math.isnan(number) else number * times(plane.get(f"Position{axis}Unit", ""), unit)


def _by_imagej(notes: Mapping[str, Any], stack: Any) -> Placed:
    """By ImageJ's notes of depth, units and calibration, and the resolution of a page."""
    page = stack.pages[0]
    x, y = _resolution(page)
    kind = _whole(page.tags["ResolutionUnit"].value) if "ResolutionUnit" in page.tags else 1
    if kind == 2 and math.isclose(x * SCREEN, 1.0):
        x, y, kind = 1.0, 1.0, 1  # as ImageJ does
    steps = [x, y, abs(_float(str(notes.get("spacing")).replace(",", ".")))]
    missing = [axis for axis, step in zip("xyz", steps, strict=True) if not step > 0]
    steps = [step if step > 0 else 1.0 for step in steps]
    remarks: tuple[str, ...] = (f"says no spacing along {', '.join(missing)}; 1 is assumed",) if missing else ()
    unit = _unit(str(notes.get("unit", OF_RESOLUTION.get(kind, ""))))
    units = [unit, *(_unit(str(notes[f"{axis}unit"])) if f"{axis}unit" in notes else unit for axis in "yz")]
    factors, unit, doubts = in_one_unit(units)
    steps = [step * factor for step, factor in zip(steps, factors, strict=True)]
    origin = [_float(notes.get(f"{axis}origin", 0)) for axis in "xyz"]
    start = [-o * step if math.isfinite(o) else 0.0 for o, step in zip(origin, steps, strict=True)]
    slope, intercept, named, more = _calibration(notes, str(stack.dtype))
    return Placed(_affine(steps, start), unit, remarks + doubts + more, slope, intercept, named)


def _calibration(notes: Mapping[str, Any], dtype: str) -> tuple[float, float, str, tuple[str, ...]]:
    """Slope, intercept and unit of the values by ImageJ's calibration, and a remark on one that is no straight line."""
    function = _float(notes.get("cf", NONE[0]))
    unit = str(notes.get("vunit", ""))
    unit = "" if unit.strip().lower() in GREYS else unit
    if function in NONE or math.isnan(function):
        return 1.0, 0.0, unit, ()
    intercept, slope = _float(notes.get("c0")), _float(notes.get("c1"))
    if function != LINE or math.isnan(intercept) or math.isnan(slope) or slope == 0:
        said = f"calibrates its values by ImageJ's function {function:g}, which is not applied; they are as stored"
        return 1.0, 0.0, "", (said,)
    if "float" in dtype:
        return 1.0, 0.0, unit, ("has a calibration of floats, which ImageJ does not apply; values are as stored",)
    return slope, intercept, unit, ()


def _by_program(file: Any, stack: Any) -> Placed | None:
    """By the metadata of the program that wrote it: Zeiss' LSM, MetaMorph's STK, MicroManager, ScanImage, GeoTIFF."""
    if file.is_lsm:
        told = _mapping(file.lsm_metadata)
        return _of_steps([_float(told.get(f"VoxelSize{axis}")) * 1e6 for axis in "XYZ"], "um")
    if file.is_stk:
        told = _mapping(file.stk_metadata)
        depth = np.atleast_1d(np.asarray(told.get("ZDistance", []), float))
        z = float(depth[0]) if depth.size else math.nan
        x, y = (_float(told.get(f"{axis}Calibration")) for axis in "XY")
        return _of_steps([x, y, z], _unit(str(told.get("CalibrationUnits", ""))))
    if file.is_micromanager:
        told = _mapping(_mapping(file.micromanager_metadata).get("Summary"))
        tag = stack.pages[0].tags.get("MicroManagerMetadata")
        own = _mapping(tag.value if tag is not None else None)
        x = _positive(own.get("PixelSizeUm")) or _float(told.get("PixelSize_um"))
        return _of_steps([x, x, abs(_float(told.get("z-step_um")))], "um")
    if file.is_scanimage:
        found, told = _by_page(stack), _mapping(_mapping(file.scanimage_metadata).get("FrameData"))
        z = abs(_float(told.get("SI.hStackManager.stackZStepSize")))
        if z > 0 and found.length_unit == "mm":
            x, y = found.affine[0, 0], found.affine[1, 1]
            return Placed(_affine([x, y, z / 1000], [0, 0, 0]), "mm")
    if file.is_geotiff:
        scale = np.atleast_1d(np.asarray(_mapping(file.geotiff_metadata).get("ModelPixelScale", []), float))
        if scale.size == 3 and (scale[:2] > 0).all():
            x, y, z = scale.tolist()
            found = _of_steps([x, y, z or math.nan], "")
            return replace(found, remarks=(*found.remarks, "has a place on a map (GeoTIFF), of which the pixels' size"
                                           " alone is read"))  # fmt: skip
    return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _of_steps(steps: Sequence[float], unit: str) -> Placed:
    """Place of a stack whose steps are as a program says, 1 where it does not."""
    missing = [axis for axis, step in zip("xyz", steps, strict=True) if not step > 0]
    remarks = (f"says no spacing along {', '.join(missing)}; 1 is assumed",) if missing else ()
    return Placed(_affine([step if step > 0 else 1.0 for step in steps], [0, 0, 0]), unit, remarks)


def _by_page(stack: Any) -> Placed:
    """By the resolution of a page, in mm where it has a unit; its depth nobody says."""
    page = stack.pages[0]
    x, y = _resolution(page)
    tag = page.tags.get("ResolutionUnit")
    unit = 1 if tag is None else _whole(tag.value)
    if unit not in INCHES or not (x > 0 and y > 0):
        return Placed(np.eye(4), "", ("says no spacing; 1 is assumed",))
    mm = INCHES[unit]
    said = ("says no spacing along z; that along x is assumed",)
    return Placed(_affine([x * mm, y * mm, x * mm], [0, 0, 0]), "mm", said)


def _unread(file: Any, stack: Any) -> tuple[str, ...]:
    """Remarks on what a page and its file say of values and places that is not read."""
    page, told = stack.pages[0], []
    if page.photometric == 0:
        told.append("says that 0 is white (MinIsWhite), which is not applied; values are as stored")
    elif page.photometric == 3 and not file.is_imagej:
        told.append("has a colour map, which is not applied; values are its indices, as stored")
    turn = page.tags.get("Orientation")
    if turn is not None and _whole(turn.value) in ORIENTATIONS:
        told.append(f"says orientation {_whole(turn.value)}, which is not applied; rows and columns are as stored")
    nodata = page.tags.get("GDAL_NODATA")
    if nodata is not None:
        told.append(f"says that {str(nodata.value)[:20].strip()} stands for no data; such values are kept as stored")
    others = sorted(MICROSCOPES[flag] for flag in set(file.flags) & set(MICROSCOPES))
    if others and not (file.is_ome or file.is_imagej):
        told.append(f"has metadata of {', '.join(others)}, of which nothing is read; rm.load takes spacing=")
    return tuple(told)


def _resolution(page: Any) -> tuple[float, float]:
    """Size of a pixel along x and y, in units of the file; NaN where it says none."""
    found = []
    for name in ("XResolution", "YResolution"):
        tag = page.tags.get(name)
        value = tag.value if tag is not None else (0, 1)
        count, per = value if isinstance(value, tuple) and len(value) == 2 else (_float(value), 1)
        found.append(per / count if count > 0 and per > 0 else math.nan)
    return found[0], found[1]


def _affine(steps: Sequence[float], start: Sequence[float]) -> np.ndarray:
    affine = np.diag([*steps, 1.0])
    affine[:3, 3] = start
    return affine


def _unit(unit: str) -> str:
    return "" if unit.strip().lower() in PLAIN else short_unit(unit)

"""Spacing and origin of TIFF stacks: by OME's XML, ImageJ's notes, or the resolution of a page."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from raymarch.io.files.strict_xml import parse_xml
from raymarch.io.volumes.axis_units import in_one_unit, short_unit, times

INCHES = {2: 25.4, 3: 10.0}  # mm of a unit of resolution: an inch, a centimetre
PLAIN = ("", "pixel", "pixels", "reference frame", "voxel")

Placed = tuple[np.ndarray, str, tuple[str, ...]]  # affine, unit of length, remarks


def placed_by(file: Any, series: Any) -> Placed:
    """Affine, unit of length and remarks of a stack in a tifffile.TiffFile."""
    if file.is_ome and file.ome_metadata:
        found = _by_ome(file.ome_metadata)
    elif file.is_imagej and file.imagej_metadata is not None:
        found = _by_imagej(file.imagej_metadata, series)
    else:
        found = None
    return _by_page(series) if found is None else found


def _by_ome(text: str) -> Placed | None:
    """By the first image's physical sizes and its first plane's position."""
    root = parse_xml(text.encode(), "OME-XML")
    pixels = next((node for node in root.iter() if node.tag.rpartition("}")[2] == "Pixels"), None)
    if pixels is None:
        return None
    sizes = [pixels.get(f"PhysicalSize{axis}") for axis in "XYZ"]
    factors, unit, remarks = in_one_unit([pixels.get(f"PhysicalSize{axis}Unit", "µm") for axis in "XYZ"])
    plane = next((node for node in pixels if node.tag.rpartition("}")[2] == "Plane"), None)
    start = [0.0 if plane is None else _position(plane, axis, unit) for axis in "XYZ"]
    missing = [axis.lower() for axis, size in zip("XYZ", sizes, strict=True) if size is None]
    if missing:
        remarks += (f"says no spacing along {', '.join(missing)}; 1 is assumed",)
    steps = [1.0 if size is None else float(size) * factor for size, factor in zip(sizes, factors, strict=True)]
    return _affine(steps, start), _unit(unit), remarks


def _position(plane: Any, axis: str, unit: str) -> float:
    """Position of a plane along an axis, in the stack's unit; by the standard's default in a frame of no known unit."""
    return float(plane.get(f"Position{axis}", 0)) * times(plane.get(f"Position{axis}Unit", ""), unit)


def _by_imagej(notes: dict, series: Any) -> Placed:
    """By ImageJ's notes of depth and unit, and the resolution of a page."""
    x, y = _resolution(series.pages[0])
    z = float(notes.get("spacing", 0)) or math.nan
    steps = [x, y, z]
    missing = [axis for axis, step in zip("xyz", steps, strict=True) if not step > 0]
    steps = [step if step > 0 else 1.0 for step in steps]
    start = [-float(notes.get(f"{axis}origin", 0)) * step for axis, step in zip("xyz", steps, strict=True)]
    remarks = (f"says no spacing along {', '.join(missing)}; 1 is assumed",) if missing else ()
    return _affine(steps, start), _unit(str(notes.get("unit", ""))), remarks


def _by_page(series: Any) -> Placed:
    """By the resolution of a page, in mm where it has a unit; its depth nobody says."""
    page = series.pages[0]
    x, y = _resolution(page)
    tag = page.tags.get("ResolutionUnit")
    unit = 1 if tag is None else int(tag.value)
    if unit not in INCHES or not (x > 0 and y > 0):
        return np.eye(4), "", ("says no spacing; 1 is assumed",)
    mm = INCHES[unit]
    return _affine([x * mm, y * mm, x * mm], [0, 0, 0]), "mm", ("says no spacing along z; that along x is assumed",)


def _resolution(page: Any) -> tuple[float, float]:
    """Size of a pixel along x and y, in units of the file; NaN where it says none."""
    found = []
    for name in ("XResolution", "YResolution"):
        tag = page.tags.get(name)
        count, per = tag.value if tag is not None else (0, 1)
        found.append(per / count if count > 0 and per > 0 else math.nan)
    return found[0], found[1]


def _affine(steps: list[float], start: list[float]) -> np.ndarray:
    affine = np.diag([*steps, 1.0])
    affine[:3, 3] = start
    return affine


def _unit(unit: str) -> str:
    return "" if unit in PLAIN else short_unit(unit)

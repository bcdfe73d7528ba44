"""Place of a DICOM slice, be it a file, a frame of one or a plane of a dose grid, and what its numbers are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.volumes.source import RESTORE_CURE, text_of

SHARED_GROUPS, PER_FRAME_GROUPS = "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"
REAL_WORLD_MAPPING = "RealWorldValueMappingSequence"
PHILIPS_SLOPE, PHILIPS_INTERCEPT = 0x2005100E, 0x2005100D  # private: what the numbers are on Philips' own scale
FRAME_TAGS = [
    "GridFrameOffsetVector", "DoseGridScaling", "DoseUnits", "Units", "PixelPaddingValue", "PhotometricInterpretation",
    "ModalityLUTSequence", PHILIPS_SLOPE, PHILIPS_INTERCEPT, REAL_WORLD_MAPPING, SHARED_GROUPS, PER_FRAME_GROUPS,
]  # fmt: skip
DOSE_UNITS = {"GY": "Gy"}  # a dose's unit as it is written
EMPTY_UNITS = ("US", "", "UNSPECIFIED", "NORMALIZED", "NONE")  # units that say nothing
NIFTI_CURE = "convert it to NIfTI by dcm2niix"
CONVERT_CURE = "convert the series with gdcmconv --raw"
MAX_CUT = 0.02  # of unit vectors that are written with two figures
NUMBER_ROUNDING = 1e-6  # of a number that is written out
# the first tells
TIME_TAGS = ["TemporalPositionIdentifier", "TemporalPositionIndex", "InstanceNumber", "AcquisitionTime"]
FUNCTIONAL_GROUPS = {  # of an enhanced file, where a file of one slice has the tags themselves
    "ImagePositionPatient": "PlanePositionSequence",
    "ImageOrientationPatient": "PlaneOrientationSequence",
    "PixelSpacing": "PixelMeasuresSequence",
    "RescaleSlope": "PixelValueTransformationSequence",
    "RescaleIntercept": "PixelValueTransformationSequence",
    "RescaleType": "PixelValueTransformationSequence",
    "TemporalPositionIndex": "FrameContentSequence",
}


@dataclass(frozen=True, eq=False)
class FramePlace:
    """Where a slice lies and how its numbers are scaled, as of `Slice`."""

    position: np.ndarray
    along: np.ndarray
    spacing: np.ndarray
    spacing_assumed: bool
    slope: float
    intercept: float
    unit: str
    when: tuple[float, ...]  # point in time, number in the series, time of day; 0 where it is not said
    real: tuple[str, ...] = ()  # what its numbers are in the real world by mappings that are not the rescaling
    unread: tuple[str, ...] = ()  # what is said of its numbers and not applied


def place_of(tags: Any, path: Path, whole: Any = None) -> FramePlace:
    """Place of a slice by its own tags; of a frame those of its groups, and `whole` is the file's."""
    position = tags.get("ImagePositionPatient")
    if position is None:
        raise RaymarchError(f"{path}: lacks ImagePositionPatient, want slices that say where they lie; {NIFTI_CURE}")
    slope = _numbers([tags.get("RescaleSlope", 1) or 1], [1])[0]
    intercept = _numbers([tags.get("RescaleIntercept", 0) or 0], [0])[0]
    along = np.array(_numbers(tags.get("ImageOrientationPatient"), [1, 0, 0, 0, 1, 0])).reshape(2, 3)
    lengths = np.linalg.norm(along, axis=1, keepdims=True)
    if not np.allclose(lengths, 1, atol=MAX_CUT) or abs(along[0] @ along[1]) > MAX_CUT:
        raise RaymarchError(f"{path}: lies along {along.tolist()}, want unit vectors at right angles; {NIFTI_CURE}")
    spacing = np.array(_numbers(tags.get("PixelSpacing") or tags.get("ImagerPixelSpacing") or [1, 1], [1, 1]))
    if not (spacing > 0).all():
        raise RaymarchError(f"{path}: has PixelSpacing {spacing.tolist()}, want positive numbers; {NIFTI_CURE}")
    return FramePlace(
        np.array(_numbers(position, [0, 0, 0])),
        along / lengths,
        spacing,
        not (tags.get("PixelSpacing") or tags.get("ImagerPixelSpacing")),
        slope,
        intercept,
        _unit(tags, tags if whole is None else whole),
        tuple(_number(tags, whole, tag) for tag in TIME_TAGS),
        _real(tags.get(REAL_WORLD_MAPPING) or (whole or {}).get(REAL_WORLD_MAPPING) or (), slope, intercept),
        _unread_tags(tags if whole is None else whole, tags),
    )


def _unread_tags(whole: Any, tags: Any) -> tuple[str, ...]:
    """What a file says of its numbers that is not applied."""
    told = []
    if whole.get("PhotometricInterpretation") == "MONOCHROME1":
        told.append("says that low values are shown white (MONOCHROME1); values are as stored and rescaled")
    if (padding := whole.get("PixelPaddingValue")) is not None:
        told.append(f"says that {padding} stands for no measurement (PixelPaddingValue); such values are kept")
    if whole.get("ModalityLUTSequence"):
        told.append("maps its numbers by a table (ModalityLUTSequence), which is not applied; values are as stored")
    scale = _private(whole, PHILIPS_SLOPE)
    if scale not in (None, 1.0) and scale != 0:
        said = f"stored - ({_private(whole, PHILIPS_INTERCEPT) or 0:g})) / {scale:g}".replace("stored", "(stored", 1)
        told.append(f"has Philips' own scale, {said}, which is not applied; values are as RescaleSlope says")
    return tuple(told)


def _private(tags: Any, tag: int) -> float | None:
    """A private tag's number, None where it is none; without its dictionary it may come as bytes."""
    element = tags.get(tag)
    value = getattr(element, "value", element)
    try:
        if isinstance(value, bytes):
            value = np.frombuffer(value, "<f4" if len(value) == 4 else "<f8")[0]
        return float(value)
    except (TypeError, ValueError, IndexError):
        return None


def frames_of(data: Any, path: Path) -> list[FramePlace]:
    """Places of the frames of a file; RaymarchError where it does not say them."""
    count, offsets = int(data.get("NumberOfFrames", 1) or 1), data.get("GridFrameOffsetVector")
    frames = data.get(PER_FRAME_GROUPS) or []
    if len(frames) == count:
        shared = (data.get(SHARED_GROUPS) or [{}])[0]
        return [place_of(_tags_of(frame, shared), path, data) for frame in frames]
    if offsets is not None and count > 1 and len(offsets) == count:
        return _dose(data, path, _numbers(offsets, [0.0] * count))
    by_hand = f"rm.ScalarVolume takes pydicom.dcmread({path.name!r}).pixel_array.T and an affine"
    raise RaymarchError(
        f"{path}: has {count} frames and the places of {len(frames)}, want one each; where its frames are slices,"
        f" {by_hand}"
    )


def _tags_of(frame: Any, shared: Any) -> dict[str, Any]:
    """Tags of a frame as a slice has them: its own, or what all share."""
    found = {}
    for tag, group in FUNCTIONAL_GROUPS.items():
        for groups in (frame, shared):
            items = groups.get(group)
            if items and items[0].get(tag) is not None:
                found[tag] = items[0].get(tag)
                break
    found[REAL_WORLD_MAPPING] = frame.get(REAL_WORLD_MAPPING) or shared.get(REAL_WORLD_MAPPING)
    return found


def _dose(data: Any, path: Path, offsets: Sequence[float]) -> list[FramePlace]:
    """Frames of a grid of doses, whose distances along the normal from the first are given."""
    first = place_of(data, path)
    normal = np.cross(*first.along)
    scaling = _numbers([data.get("DoseGridScaling", 1) or 1], [1])[0]
    begin = offsets[0] if np.isclose(offsets[0], first.position @ normal) else 0.0  # or they are heights themselves
    ways = [(x - begin) * normal for x in offsets]
    return [replace(first, position=first.position + way, slope=scaling * first.slope) for way in ways]


def _numbers(value: Any, default: list[float]) -> list[float]:
    try:
        value = value.split("\\") if isinstance(value, str) else value
        numbers = default if value is None else [float(str(x).replace(",", ".")) for x in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != len(default) or not np.isfinite(numbers).all():
        said = str(value)[:60]
        raise RaymarchError(
            f"has {said} of its place or scale, where {len(default)} numbers are wanted; {RESTORE_CURE}"
        )
    return numbers


def _number(tags: Any, whole: Any, tag: str) -> float:
    """A number that orders slices, of a frame's groups or its file; 0 where there is none that is one."""
    try:
        told = tags.get(tag)
        number = float((whole.get(tag) if told is None and whole is not None else told) or 0)
    except (TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) else 0.0


def _real(mappings: Sequence[Any], slope: float, intercept: float) -> tuple[str, ...]:
    """What mappings to the real world make of stored numbers, in words, but for one that is the rescaling itself."""
    told = []
    for one in mappings:
        own = tuple(_number(one, None, f"RealWorldValue{name}") for name in ("Slope", "Intercept"))
        units = one.get("MeasurementUnitsCodeSequence") or [{}]
        unit = text_of(units[0].get("CodeMeaning", "") or units[0].get("CodeValue", "") or "")
        if one.get("RealWorldValueSlope") is None:
            told.append(f"by a table {unit}".rstrip())
        elif not (_alike(own[0], slope, 0.0) and _alike(own[1], intercept, abs(slope))):
            told.append(f"{own[0]:g} x stored {own[1]:+g} {unit}".rstrip())
    return tuple(told)


def _alike(number: float, other: float, step: float) -> bool:
    """Whether numbers are one but for what a tag of 16 characters cuts off; `step` is what a stored number is worth."""
    return math.isclose(number, other, rel_tol=NUMBER_ROUNDING, abs_tol=NUMBER_ROUNDING * step)


def _unit(tags: Any, whole: Any) -> str:
    """Unit of the values: of the rescaling, of a dose, or of PET; Hounsfield's where CT says none."""
    said = str(tags.get("RescaleType", "") or "")
    if said.upper() not in EMPTY_UNITS:
        return said
    dose, pet = str(whole.get("DoseUnits", "") or ""), str(whole.get("Units", "") or "")
    if dose:
        return DOSE_UNITS.get(dose.upper(), dose.lower())
    if pet and pet.upper() not in EMPTY_UNITS and whole.get("Modality") in ("PT", "NM"):
        return pet
    return "HU" if whole.get("Modality") == "CT" else ""

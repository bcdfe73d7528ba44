"""DICOM series, of scanners: a folder of slices, one file each, or one file of frames, sorted by where they lie.

Array axes are (column, row, slice); the world is LPS in millimetres. Values are rescaled as the slices say.
"""

from __future__ import annotations

import filecmp
import math
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, named
from raymarch.io.volumes.dicom.writing import write_series
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.scalar_format import scalar_format, wanted
from raymarch.io.volumes.source import CURE, Slices, Source, read_by, text_of
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection

# Places of DICOM slices: that of a file, those of the frames of an enhanced file, and those of a dose grid.

SHARED, PER_FRAME = "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"
REAL_WORLD = "RealWorldValueMappingSequence"
PHILIPS_SLOPE, PHILIPS_INTERCEPT = 0x2005100E, 0x2005100D  # private: what the numbers are on Philips' own scale
FRAMES = [
    "GridFrameOffsetVector", "DoseGridScaling", "DoseUnits", "Units", "PixelPaddingValue", "PhotometricInterpretation",
    "ModalityLUTSequence", PHILIPS_SLOPE, PHILIPS_INTERCEPT, REAL_WORLD, SHARED, PER_FRAME,
]  # fmt: skip  # tags
GRAY = {"GY": "Gy"}  # a dose's unit as it is written
PLAIN = ("US", "", "UNSPECIFIED", "NORMALIZED", "NONE")  # units that say nothing
TO_NIFTI = "convert it to NIfTI by dcm2niix"
CUT = 0.02  # of unit vectors that are written with two figures
NUMBER_ROUNDING = 1e-6  # of a number that is written out
WHEN = ["TemporalPositionIdentifier", "TemporalPositionIndex", "InstanceNumber", "AcquisitionTime"]  # the first tells
GROUPS = {  # of an enhanced file, where a file of one slice has the tags themselves
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
        raise RaymarchError(f"{path}: lacks ImagePositionPatient, want slices that say where they lie; {TO_NIFTI}")
    slope = _numbers([tags.get("RescaleSlope", 1) or 1], [1])[0]
    intercept = _numbers([tags.get("RescaleIntercept", 0) or 0], [0])[0]
    along = np.array(_numbers(tags.get("ImageOrientationPatient"), [1, 0, 0, 0, 1, 0])).reshape(2, 3)
    lengths = np.linalg.norm(along, axis=1, keepdims=True)
    if not np.allclose(lengths, 1, atol=CUT) or abs(along[0] @ along[1]) > CUT:
        raise RaymarchError(f"{path}: lies along {along.tolist()}, want unit vectors at right angles; {TO_NIFTI}")
    spacing = np.array(_numbers(tags.get("PixelSpacing") or tags.get("ImagerPixelSpacing") or [1, 1], [1, 1]))
    if not (spacing > 0).all():
        raise RaymarchError(f"{path}: has PixelSpacing {spacing.tolist()}, want positive numbers; {TO_NIFTI}")
    return FramePlace(
        np.array(_numbers(position, [0, 0, 0])), along / lengths, spacing,
        not (tags.get("PixelSpacing") or tags.get("ImagerPixelSpacing")), slope, intercept,
        _unit(tags, tags if whole is None else whole), tuple(_number(tags, whole, tag) for tag in WHEN),
        _real(tags.get(REAL_WORLD) or (whole or {}).get(REAL_WORLD) or (), slope, intercept),
        _unread(tags if whole is None else whole, tags),
    )  # fmt: skip


def _unread(whole: Any, tags: Any) -> tuple[str, ...]:
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
    frames = data.get(PER_FRAME) or []
    if len(frames) == count:
        shared = (data.get(SHARED) or [{}])[0]
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
    for tag, group in GROUPS.items():
        for groups in (frame, shared):
            items = groups.get(group)
            if items and items[0].get(tag) is not None:
                found[tag] = items[0].get(tag)
                break
    found[REAL_WORLD] = frame.get(REAL_WORLD) or shared.get(REAL_WORLD)
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
        raise RaymarchError(f"has {said} of its place or scale, where {len(default)} numbers are wanted; {CURE}")
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
    if said.upper() not in PLAIN:
        return said
    dose, pet = str(whole.get("DoseUnits", "") or ""), str(whole.get("Units", "") or "")
    if dose:
        return GRAY.get(dose.upper(), dose.lower())
    if pet and pet.upper() not in PLAIN and whole.get("Modality") in ("PT", "NM"):
        return pet
    return "HU" if whole.get("Modality") == "CT" else ""


# Transfer syntaxes of DICOM: how pixels are packed, and what must be installed to unpack them.

CONVERT = "convert the series with gdcmconv --raw"
DEFLATED = "1.2.840.10008.1.2.1.99"


def require_not_deflated(path: Path) -> None:
    """RaymarchError for a file all of which is packed, tags too: pydicom would unpack it whatever its size."""
    from pydicom.filereader import read_file_meta_info

    if str(read_file_meta_info(path).get("TransferSyntaxUID", "")) == DEFLATED:
        raise RaymarchError(f"{path}: is deflated, tags and all, want tags that are plain; {CONVERT}")


def require_decoder(path: Path) -> None:
    """RaymarchError, with the plugin, for a file packed in a way that pydicom and its plugins here do not unpack."""
    import pydicom
    from pydicom.pixels import get_decoder

    meta = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=["Rows"]).file_meta
    syntax = meta.get("TransferSyntaxUID")
    if syntax is None or not syntax.is_compressed:
        return
    packed = f"{path}: is packed as {syntax.name[:60]}"
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise RaymarchError(f"{packed}, which pydicom does not unpack; {CONVERT}") from None
    if not decoder.is_available:
        plugin = "pylibjpeg-openjpeg" if "2000" in syntax.name else "pylibjpeg-libjpeg"
        raise RaymarchError(f"{packed}, which takes a plugin of pydicom; pip install pylibjpeg {plugin}, or {CONVERT}")


# Slices of a DICOM series, a file each or frames of one: which belong together, their order, and whether one is
# missing.

TAGS: list[Any] = [
    "SOPClassUID", "SOPInstanceUID", "ImageType", "SeriesNumber",
    "SeriesInstanceUID", "SeriesDescription", "Rows", "Columns", "BitsAllocated", "PixelRepresentation",
    "SamplesPerPixel", "NumberOfFrames", "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing",
    "RescaleSlope", "RescaleIntercept", "RescaleType", "Modality", "ImagerPixelSpacing", *WHEN, *FRAMES,
]  # fmt: skip
EVEN = 0.01  # of a spacing, by which slices may be off even steps
FEW = 4  # times as many slices as others of its series a stack has that is taken for it
TURNED = 1e-3  # of unit vectors, up to which slices lie alike: they are written with four figures or more
LOCALIZERS = ("LOCALIZER", "SCOUT", "TOPOGRAM", "SCANOGRAM")  # in ImageType
SAME = 1e-3  # of the widest step, or of a millimetre, up to which slices lie at one place
PLACELESS = "an image without a place (ImagePositionPatient)"
BY_HAND = "rm.ScalarVolume takes numpy.stack([pydicom.dcmread(file).pixel_array.T for file in ..], 2) and an affine"
UNEVEN = "find missing files, or resample it to even slices, as dcm2niix does"
PLACE_ROUNDING = 1e-9  # of a place, to which its text is written


@dataclass(frozen=True, eq=False)
class Slice:
    """Slice of a series, without its pixels."""

    path: Path
    series: str
    instance: str
    kinds: tuple[str, ...]  # of its ImageType
    number: float  # of its series
    name: str
    rows: int
    columns: int
    bits: int
    signed: bool
    position: np.ndarray  # (3,) of the first pixel [mm]
    along: np.ndarray  # (2, 3) unit vectors along a row, so of rising columns, and along a column
    spacing: np.ndarray  # (2,) from row to row and from column to column [mm]
    spacing_assumed: bool  # as the file says none
    slope: float
    intercept: float
    unit: str
    when: tuple[float, ...]  # what tells slices of one place apart, as of `FramePlace`
    real: tuple[str, ...] = ()  # as of `FramePlace`
    unread: tuple[str, ...] = ()  # as of `FramePlace`
    frame: int | None = None  # of a file of several, from 0
    is_float: bool = False

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return self.path.name if self.frame is None else f"frame {self.frame + 1}"

    @property
    def shape(self) -> tuple[int, int, bool]:
        """What must be alike in all slices, as their directions and spacing must; types of whole numbers may differ."""
        return self.rows, self.columns, self.is_float

    @property
    def dtype(self) -> np.dtype:
        """Type of its stored numbers."""
        return np.dtype(f"{'f' if self.is_float else 'i' if self.signed else 'u'}{max(self.bits // 8, 1)}")

    @property
    def words(self) -> str:
        """Its size and direction for a message."""
        return f"{self.columns} x {self.rows}, {'across ' + _side(np.cross(*self.along))}"

    def is_like(self, other: Slice) -> bool:
        """Whether it may be a slice of the same volume."""
        alike = self.shape == other.shape and np.abs(self.along - other.along).max() <= TURNED
        return bool(alike and np.allclose(self.spacing, other.spacing, rtol=1e-3))

    @property
    def turn(self) -> tuple[tuple[float, ...], list[str | int], int]:
        """What sorts the slices of one place by time; where their tags are alike the numbers in their names do."""
        parts = re.split(r"([0-9]+)", self.path.name)
        return self.when, [int(part) if k % 2 else part for k, part in enumerate(parts)], self.frame or 0

    @property
    def height(self) -> float:
        """Distance of the slice along its normal [mm]."""
        return float(np.cross(*self.along) @ self.position)


def slices_of(folder: Path, files: Sequence[Path], selection: Selection) -> tuple[list[Slice], tuple[str, ...]]:
    """Slices of a folder's one series in the order of where they lie, and what beside them is left out.

    `channel` chooses among several series, and stacks of several sizes or directions in one; `time` among several
    slices at each place. Left out are files without pixels, localizers, colours and single images beside a stack.
    """
    slices: list[Slice] = []
    asides: dict[str, list[str]] = {}
    for file in files:
        found = _slices(file)
        if isinstance(found, str):
            asides.setdefault(found, []).append(file.name)
        else:
            slices += found
    if not slices:
        if asides:
            kind, names = max(asides.items(), key=lambda one: len(one[1]))
            cure = BY_HAND if kind == PLACELESS else "name the folder of a series of slices"
            raise RaymarchError(f"{folder}: has no slices of a volume, but {kind} ({named(names, 3)}); {cure}")
        raise RaymarchError(f"{folder}: has no DICOM files, want the slices of a series; check the path")
    localizers = [one for one in slices if set(one.kinds) & set(LOCALIZERS)]
    if len(localizers) < len(slices):
        slices = [one for one in slices if one not in localizers]
        if localizers:
            asides["a localizer"] = sorted({one.path.name for one in localizers})
    slices = _without_copies(slices, asides)
    series: dict[str, list[Slice]] = {}
    for one in sorted(slices, key=lambda one: (one.number, one.series)):
        series.setdefault(one.series, []).append(one)
    stacks = [stack for several in series.values() for stack in _stacks(several, asides, len(series) > 1)]
    if len(stacks) > 1 and any(len(stack) > 1 for stack in stacks):
        for stack in stacks:
            if len(stack) == 1:
                asides.setdefault("a single image of another kind or series", []).append(stack[0].path.name)
        stacks = [stack for stack in stacks if len(stack) > 1]
    channel = selection.channel
    if (channel is None and len(stacks) > 1) or (channel or 0) >= len(stacks):
        names = [f"{k}: {_name(stack[0])!r}, {len(stack)} of {stack[0].words}" for k, stack in enumerate(stacks[:4])]
        what = "series" if len(series) > 1 or len(stacks) == 1 else "stacks in one series"
        rest = "; ..." if len(stacks) > 4 else ""
        raise RaymarchError(
            f"{folder}: holds {len(stacks)} {what} ({'; '.join(names)}{rest}); choose one by channel=0 (--channel 0) to"
            f" channel={len(stacks) - 1}"
        )
    found = sorted(stacks[channel or 0], key=lambda one: one.height)
    remarks = tuple(
        f"{named(names, 3)} {'is' if len(names) == 1 else 'are'} left out, being {kind}"
        for kind, names in asides.items()
    )
    return _at_one_time(folder, found, selection.time), remarks


def _name(one: Slice) -> str:
    return one.name or one.series[-12:]


def _side(normal: np.ndarray) -> str:
    """Axis of the body that slices with this normal go along most."""
    return ("left and right", "front and back", "head and feet")[int(np.abs(normal).argmax())]


def _without_copies(slices: Sequence[Slice], asides: dict[str, list[str]]) -> list[Slice]:
    """Slices of which each is there once: the same bytes in two files are one slice, whatever the files are called.

    Identities alone do not tell: programs that take names out of files may give all of them one.
    """
    seen: dict[tuple[str, int | None, bytes], Slice] = {}
    kept = []
    for one in slices:
        before = seen.setdefault((one.instance, one.frame, one.position.tobytes()), one)
        if before is not one and one.instance and filecmp.cmp(before.path, one.path, shallow=False):
            names = asides.setdefault("a copy of another", [])
            if one.path.name not in names:
                names.append(one.path.name)
        else:
            kept.append(one)
    return kept


def _stacks(slices: Sequence[Slice], asides: dict[str, list[str]], with_others: bool) -> list[list[Slice]]:
    """Slices of one series by size, direction and spacing; a few beside many are left out, and named."""
    groups: list[list[Slice]] = []
    for one in slices:
        group = next((group for group in groups if group[0].is_like(one)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    most = max(groups, key=len)
    kept = [group for group in groups if group is most or FEW * len(group) > len(most) > 1]
    for group in groups:
        if not any(group is other for other in kept) and len(most) > 1:
            names = sorted({one.path.name if one.frame is None else one.label for one in group})
            asides.setdefault(f"of another size, direction or spacing than the other {len(most)}", []).extend(names)
    return kept if len(most) > 1 or with_others else groups


def _at_one_time(folder: Path, slices: list[Slice], time: int | None) -> list[Slice]:
    """One slice a place; RaymarchError where there are several of which none is chosen, or not as many everywhere."""
    places: list[list[Slice]] = []
    heights = [one.height for one in slices]
    widest = float(np.diff(heights).max(initial=0.0))
    near = max(min(SAME, SAME * widest), PLACE_ROUNDING * max(map(abs, heights)))
    for one in slices:
        if places and abs(one.height - places[-1][0].height) <= near:
            places[-1].append(one)
        else:
            places.append([one])
    usual, _ = Counter(len(several) for several in places).most_common(1)[0]
    odd = next((several for several in places if len(several) != usual), None)
    if odd is not None:
        said = (
            f"{named([one.label for one in odd], 3)} lie{'s' * (len(odd) == 1)} at one place, where others have {usual}"
        )
        cure = "take out one of them" if len(odd) > usual else "find the other"
        raise RaymarchError(f"{folder}: has slices that are doubled or missing: {said}; {cure}")
    count = usual
    if (time is None and count > 1) or (time or 0) >= count:
        raise RaymarchError(f"{folder}: has {count} points in time; choose one by time=0 to time={count - 1}")
    return [sorted(several, key=lambda one: one.turn)[time or 0] for several in places]


def placed(slices: Sequence[Slice], folder: Path, left: Sequence[str] = ()) -> np.ndarray:
    """Affine (4, 4) of a series in LPS; RaymarchError for one slice, missing ones and uneven steps, which says what was
    left out, as that may be what is missing."""
    beside = f" ({'; '.join(left)})" if left else ""
    if len(slices) < 2:
        raise RaymarchError(
            f"{folder}: has {len(slices)} slice{beside}, want 2 or more; name the folder of all of them"
        )
    heights = np.array([one.height for one in slices])
    steps = np.diff(heights)
    usual = float(np.median(steps))
    off = np.abs(steps - usual) > EVEN * usual
    if off.any():
        at = int(off.argmax())
        where = f"between {slices[at].label} and {slices[at + 1].label}"
        missing = round(float(steps[at]) / usual) - 1
        if missing >= 1 and abs(steps[at] - (missing + 1) * usual) <= 2 * EVEN * usual:
            raise RaymarchError(
                f"{folder}: lacks {missing} slice{'s' * (missing > 1)} {where}{beside}; find the missing files, or take"
                " out all on one side of the gap"
            )
        steps_in_words = f"{steps[at]:.4g} mm {where}, {usual:.4g} mm elsewhere"
        raise RaymarchError(f"{folder}: has uneven spacing, {steps_in_words}{beside}; {UNEVEN}")
    first = slices[0]
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1] = first.along[0] * first.spacing[1], first.along[1] * first.spacing[0]
    affine[:3, 2] = (slices[-1].position - first.position) / (len(slices) - 1)
    affine[:3, 3] = first.position
    return affine


def _slices(path: Path) -> list[Slice] | str:
    """Slice of a file, or those of its frames; of a file that is no slice of a volume what it is."""
    import pydicom

    require_not_deflated(path)
    with read_by("pydicom", path):
        data = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=TAGS)
        lacking = [tag for tag in ("Rows", "Columns", "BitsAllocated") if data.get(tag) is None]
        if len(lacking) == 3:
            kind = data.file_meta.get("MediaStorageSOPClassUID") or data.get("SOPClassUID")
            if kind and "Image Storage" in pydicom.uid.UID(kind).name:
                raise RaymarchError(
                    f"{path}: is an image that ends before its size and pixels; copy it again, or take it out"
                )
            modality = text_of(data.get("Modality", "") or "")
            return f"without pixels ({modality})" if modality else "without pixels"
        if _whole(data, "SamplesPerPixel", 1) != 1:
            return "a picture of colours, such as a report"
        bits = _whole(data, "BitsAllocated", 0)
        if lacking or bits not in (1, 8, 16, 32):
            said = f"lacks {', '.join(lacking)}" if lacking else f"has {bits} bits a pixel"
            raise RaymarchError(f"{path}: {said}, want slices of 1, 8, 16 or 32 bits; take it out of the folder")
        if "MOSAIC" in map(str, data.get("ImageType") or ()):
            raise RaymarchError(f"{path}: is a mosaic of the slices of a volume, as Siemens writes them; {TO_NIFTI}")
        count = _whole(data, "NumberOfFrames", 1)
        several = count > 1 or "PerFrameFunctionalGroupsSequence" in data
        if not several and data.get("ImagePositionPatient") is None:
            return PLACELESS
        kinds = data.get("ImageType") or ()
        number = data.get("SeriesNumber")
        alike: dict[str, Any] = {
            "path": path, "series": str(data.get("SeriesInstanceUID", "")),
            "instance": str(data.get("SOPInstanceUID", "")),
            "kinds": tuple(str(kind).upper() for kind in ([kinds] if isinstance(kinds, str) else kinds)),
            "number": float(number) if isinstance(number, (int, float)) else 0.0,
            "name": text_of(data.get("SeriesDescription", "") or ""), "rows": _whole(data, "Rows", 0),
            "columns": _whole(data, "Columns", 0), "bits": bits, "signed": _whole(data, "PixelRepresentation", 0) == 1,
            "is_float": bits == 32 and data.get("PixelRepresentation") is None,  # FloatPixelData
        }  # fmt: skip
        places = frames_of(data, path) if several else [place_of(data, path)]
    return [Slice(**alike, frame=k if several else None, **vars(place)) for k, place in enumerate(places)]


def _whole(data: Any, tag: str, default: int) -> int:
    """A tag's whole number, the default where it says none."""
    value = data.get(tag)
    if value is None or value == "":
        return default
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise RaymarchError(f"has {tag} {str(value)[:40]!r}, want a whole number; {CURE}") from None


MARK = b"DICM"
HEAD = 512  # bytes in which a file says its class
DIRECTORY = b"\x02\0\x02\0UI" + struct.pack("<H", 20) + b"1.2.840.10008.1.3.10"  # class of a media directory
ENDS_EARLY = ("cannot reshape", "is less than the expected", "less than expected")  # words of pydicom
LOOKED_AT = 64  # files of a folder


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(128)
        return file.read(4) == MARK


def _is_slice(path: Path) -> bool:
    """Whether a file may be a slice: DICOM, and not the index of a disk, whatever that is called."""
    if not path.is_file() or path.name.startswith("._") or not _is_dicom(path):
        return False
    with path.open("rb") as file:
        return DIRECTORY not in file.read(HEAD)


def detect(path: Path) -> bool:
    """Whether a file, or one of a folder's, is DICOM."""
    if not path.is_dir():
        return _is_dicom(path) and path.suffix.lower() not in (".tif", ".tiff")  # which its preamble may be the head of
    files = (file for _, file in zip(range(LOOKED_AT), sorted(path.iterdir()), strict=False))
    return any(_is_slice(file) for file in files)


def source(path: Path, selection: Selection) -> Source:
    """Source of a series; RaymarchError for missing slices, uneven spacing, colours and several series."""
    with wanted("pydicom", "DICOM"):
        import pydicom.pixels
    require_one_place(Selection(level=selection.level), path)
    files = [path] if path.is_file() else [file for file in sorted(path.iterdir()) if _is_slice(file)]
    found, left = slices_of(path, files, selection)
    if path.is_file() and found[0].frame is None:
        raise RaymarchError(f"{path}: is one slice of a DICOM series; name the folder of all of them")
    first = found[0]
    affine = placed(found, path, left)
    scales = {(one.slope, one.intercept) for one in found}
    same = len(scales) == 1
    kinds = Counter(one.dtype for one in found)
    dtype = np.result_type(*kinds) if same else np.dtype(np.float32)  # one that holds the numbers of all
    usual, _ = kinds.most_common(1)[0]
    odd = [one.label for one in found if one.dtype != usual]

    def read(slices: Slices) -> np.ndarray:
        x, y, z = slices
        return np.stack([_pixels(pydicom, one, same, dtype)[y, x] for one in found[z]]).T

    slope, intercept = scales.pop() if same else (1.0, 0.0)
    real = list(dict.fromkeys(words for one in found for words in one.real))
    remarks = {
        f"maps its numbers to the real world ({named(real, 2)}), which is not applied; values are as RescaleSlope and"
        " RescaleIntercept say": bool(real),
        "slices have several slopes; their values are floats": not same,
        f"{len(odd)} of {len(found)} slices ({named(odd, 3)}) are stored as another type than {usual}": bool(odd),
        "says no PixelSpacing; 1 mm is assumed along x and y": first.spacing_assumed,
    }
    unread = tuple(dict.fromkeys(words for one in found for words in one.unread))
    shape = (first.columns, first.rows, len(found))
    return Source(
        shape, dtype, affine, read, False, slope, intercept, unit=first.unit, length_unit="mm", world="LPS",
        name=first.name, remarks=(*left, *unread, *(said for said, holds in remarks.items() if holds)),
    )  # fmt: skip


def _pixels(pydicom: Any, one: Slice, same: bool, dtype: np.dtype) -> np.ndarray:
    """Rows and columns of a slice, as stored or, where slopes differ, rescaled."""
    require_decoder(one.path)
    try:
        pixels = pydicom.pixels.pixel_array(one.path, index=one.frame or 0)
    except Exception as error:  # pydicom raises anything for what it cannot decode
        said = " ".join(str(error).split())[:160]
        if any(word in said for word in ENDS_EARLY):
            raise RaymarchError(f"{one.path}: ends before its pixels do ({said}); copy it again") from error
        raise RaymarchError(
            f"{one.path}: cannot be decoded ({said}); convert the series with gdcmconv --raw"
        ) from error
    if pixels.dtype.kind not in "iuf" or (pixels.dtype.kind == "f") != one.is_float:
        raise RaymarchError(f"{one.path}: holds {pixels.dtype} pixels, want whole numbers; {TO_NIFTI}")
    if pixels.shape != (one.rows, one.columns):
        raise RaymarchError(f"{one.path}: holds {pixels.shape} pixels, want {one.rows} x {one.columns}; {CURE}")
    return pixels.astype(dtype, copy=False) if same else (pixels * one.slope + one.intercept).astype(dtype)


def write(volume: ScalarVolume, path: Path) -> None:
    """Series of secondary captures of a scalar volume: a file a slice, of 16 bits."""
    with wanted("pydicom", "DICOM"):
        import pydicom  # noqa: F401
    write_series(volume, path)


DICOM = scalar_format("DICOM", (".dicom",), detect, source, write, folder=True)

"""Series of DICOM slices, a file each or frames of one: which belong together, their order, what is missing."""

from __future__ import annotations

import filecmp
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.io.volumes.dicom.slice_place import CONVERT_CURE, FRAME_TAGS, NIFTI_CURE, TIME_TAGS, frames_of, place_of
from raymarch.io.volumes.source import RESTORE_CURE, library_errors, text_of
from raymarch.volumes.selection import Selection

DEFLATED = "1.2.840.10008.1.2.1.99"
TAGS: list[Any] = [
    "SOPClassUID", "SOPInstanceUID", "ImageType", "SeriesNumber",
    "SeriesInstanceUID", "SeriesDescription", "Rows", "Columns", "BitsAllocated", "PixelRepresentation",
    "SamplesPerPixel", "NumberOfFrames", "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing",
    "RescaleSlope", "RescaleIntercept", "RescaleType", "Modality", "ImagerPixelSpacing", *TIME_TAGS, *FRAME_TAGS,
]  # fmt: skip
MAX_UNEVEN = 0.01  # of a spacing, by which slices may be off even steps
MIN_MAJORITY = 4  # times as many slices as others of its series a stack has that is taken for it
MAX_TURNED = 1e-3  # of unit vectors, up to which slices lie alike: they are written with four figures or more
LOCALIZERS = ("LOCALIZER", "SCOUT", "TOPOGRAM", "SCANOGRAM")  # in ImageType
MAX_APART = 1e-3  # of the widest step, or of a millimetre, up to which slices lie at one place
NO_POSITION = "an image without a place (ImagePositionPatient)"
BY_HAND_CURE = (
    "rm.ScalarVolume takes numpy.stack([pydicom.dcmread(file).pixel_array.T for file in ..], 2) and an affine"
)
UNEVEN_CURE = "find missing files, or resample it to even slices, as dcm2niix does"
POSITION_ROUNDING = 1e-9  # of a place, to which its text is written


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
        alike = self.shape == other.shape and np.abs(self.along - other.along).max() <= MAX_TURNED
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
            cure = BY_HAND_CURE if kind == NO_POSITION else "name the folder of a series of slices"
            raise RaymarchError(f"{folder}: has no slices of a volume, but {kind} ({first_names(names, 3)}); {cure}")
        raise RaymarchError(f"{folder}: has no DICOM files, want the slices of a series; check the path")
    localizers = [one for one in slices if set(one.kinds) & set(LOCALIZERS)]
    if len(localizers) < len(slices):
        slices = [one for one in slices if one not in localizers]
        if localizers:
            asides["a localizer"] = sorted({one.path.name for one in localizers})
    slices = _drop_copies(slices, asides)
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
        f"{first_names(names, 3)} {'is' if len(names) == 1 else 'are'} left out, being {kind}"
        for kind, names in asides.items()
    )
    return _slices_at_time(folder, found, selection.time), remarks


def _slices(path: Path) -> list[Slice] | str:
    """Slice of a file, or those of its frames; of a file that is no slice of a volume what it is."""
    import pydicom

    require_not_deflated(path)
    with library_errors("pydicom", path):
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
            raise RaymarchError(f"{path}: is a mosaic of the slices of a volume, as Siemens writes them; {NIFTI_CURE}")
        count = _whole(data, "NumberOfFrames", 1)
        several = count > 1 or "PerFrameFunctionalGroupsSequence" in data
        if not several and data.get("ImagePositionPatient") is None:
            return NO_POSITION
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
        raise RaymarchError(f"has {tag} {str(value)[:40]!r}, want a whole number; {RESTORE_CURE}") from None


def require_not_deflated(path: Path) -> None:
    """RaymarchError for a file all of which is packed, tags too: pydicom would unpack it whatever its size."""
    from pydicom.filereader import read_file_meta_info

    if str(read_file_meta_info(path).get("TransferSyntaxUID", "")) == DEFLATED:
        raise RaymarchError(f"{path}: is deflated, tags and all, want tags that are plain; {CONVERT_CURE}")


def _name(one: Slice) -> str:
    return one.name or one.series[-12:]


def _side(normal: np.ndarray) -> str:
    """Axis of the body that slices with this normal go along most."""
    return ("left and right", "front and back", "head and feet")[int(np.abs(normal).argmax())]


def _drop_copies(slices: Sequence[Slice], asides: dict[str, list[str]]) -> list[Slice]:
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
    kept = [group for group in groups if group is most or MIN_MAJORITY * len(group) > len(most) > 1]
    for group in groups:
        if not any(group is other for other in kept) and len(most) > 1:
            names = sorted({one.path.name if one.frame is None else one.label for one in group})
            asides.setdefault(f"of another size, direction or spacing than the other {len(most)}", []).extend(names)
    return kept if len(most) > 1 or with_others else groups


def _slices_at_time(folder: Path, slices: list[Slice], time: int | None) -> list[Slice]:
    """One slice a place; RaymarchError where there are several of which none is chosen, or not as many everywhere."""
    places: list[list[Slice]] = []
    heights = [one.height for one in slices]
    widest = float(np.diff(heights).max(initial=0.0))
    near = max(min(MAX_APART, MAX_APART * widest), POSITION_ROUNDING * max(map(abs, heights)))
    for one in slices:
        if places and abs(one.height - places[-1][0].height) <= near:
            places[-1].append(one)
        else:
            places.append([one])
    usual, _ = Counter(len(several) for several in places).most_common(1)[0]
    odd = next((several for several in places if len(several) != usual), None)
    if odd is not None:
        said = (
            f"{first_names([one.label for one in odd], 3)} lie{'s' * (len(odd) == 1)} at one place, where "
            f"others have {usual}"
        )
        cure = "take out one of them" if len(odd) > usual else "find the other"
        raise RaymarchError(f"{folder}: has slices that are doubled or missing: {said}; {cure}")
    count = usual
    if (time is None and count > 1) or (time or 0) >= count:
        raise RaymarchError(f"{folder}: has {count} points in time; choose one by time=0 to time={count - 1}")
    return [sorted(several, key=lambda one: one.turn)[time or 0] for several in places]


def series_affine(slices: Sequence[Slice], folder: Path, left: Sequence[str] = ()) -> np.ndarray:
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
    off = np.abs(steps - usual) > MAX_UNEVEN * usual
    if off.any():
        at = int(off.argmax())
        where = f"between {slices[at].label} and {slices[at + 1].label}"
        missing = round(float(steps[at]) / usual) - 1
        if missing >= 1 and abs(steps[at] - (missing + 1) * usual) <= 2 * MAX_UNEVEN * usual:
            raise RaymarchError(
                f"{folder}: lacks {missing} slice{'s' * (missing > 1)} {where}{beside}; find the missing files, or take"
                " out all on one side of the gap"
            )
        steps_in_words = f"{steps[at]:.4g} mm {where}, {usual:.4g} mm elsewhere"
        raise RaymarchError(f"{folder}: has uneven spacing, {steps_in_words}{beside}; {UNEVEN_CURE}")
    first = slices[0]
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1] = first.along[0] * first.spacing[1], first.along[1] * first.spacing[0]
    affine[:3, 2] = (slices[-1].position - first.position) / (len(slices) - 1)
    affine[:3, 3] = first.position
    return affine

"""Slices of a DICOM series, a file each or frames of one: which belong together, their order, and whether one is
missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError, named
from raymarch.io.volumes.dicom_decoders import require_not_deflated
from raymarch.io.volumes.dicom_frames import FRAMES, WHEN, frames_of, place_of
from raymarch.io.volumes.source import text_of

TAGS = [
    "SeriesInstanceUID", "SeriesDescription", "Rows", "Columns", "BitsAllocated", "PixelRepresentation",
    "SamplesPerPixel", "NumberOfFrames", "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing",
    "RescaleSlope", "RescaleIntercept", "RescaleType", "Modality", *WHEN, *FRAMES,
]  # fmt: skip
EVEN = 0.01  # of a spacing, by which slices may be off even steps
SAME = 1e-3  # of the widest step, or of a millimetre, up to which slices lie at one place
ROUNDING = 1e-9  # of a place, to which its text is written


@dataclass(frozen=True, eq=False)
class Slice:
    """Slice of a series, without its pixels."""

    path: Path
    series: str
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
    frame: int | None = None  # of a file of several, from 0

    @property
    def label(self) -> str:
        """What it is called in messages."""
        return self.path.name if self.frame is None else f"frame {self.frame + 1}"

    @property
    def shape(self) -> tuple[int, int, int, bool]:
        """What must be alike in all slices."""
        return self.rows, self.columns, self.bits, self.signed

    @property
    def turn(self) -> tuple[tuple[float, ...], list[str | int], int]:
        """What sorts the slices of one place by time; where their tags are alike the numbers in their names do."""
        parts = re.split(r"([0-9]+)", self.path.name)
        return self.when, [int(part) if k % 2 else part for k, part in enumerate(parts)], self.frame or 0

    @property
    def height(self) -> float:
        """Distance of the slice along its normal [mm]."""
        return float(np.cross(*self.along) @ self.position)


def slices_of(folder: Path, files: Sequence[Path], selection: Selection) -> list[Slice]:
    """Slices of a folder's one series in the order of where they lie.

    `channel` chooses among several series, `time` among several slices at each place.
    """
    slices = [one for file in files for one in _slices(file)]
    if not slices:
        raise RaymarchError(f"{folder}: has no DICOM files, want the slices of a series; check the path")
    series = sorted({one.series for one in slices})
    channel = selection.channel
    if (channel is None and len(series) > 1) or (channel or 0) >= len(series):
        names = [next(one.name for one in slices if one.series == each) or each[-12:] for each in series]
        raise RaymarchError(f"{folder}: holds {len(series)} series ({named(names, 4)}); choose one by channel=0")
    found = sorted((one for one in slices if one.series == series[channel or 0]), key=lambda one: one.height)
    for one in found:
        if one.shape != found[0].shape or np.abs(one.along - found[0].along).max() > 1e-4:
            raise RaymarchError(
                f"{one.path}: {one.label} has another size or direction than {found[0].label}; take it out"
            )
    return _at_one_time(folder, found, selection.time)


def _at_one_time(folder: Path, slices: list[Slice], time: int | None) -> list[Slice]:
    """One slice a place; RaymarchError where there are several of which none is chosen, or not as many everywhere."""
    places: list[list[Slice]] = []
    heights = [one.height for one in slices]
    widest = float(np.diff(heights).max(initial=0.0))
    near = max(min(SAME, SAME * widest), ROUNDING * max(map(abs, heights)))
    for one in slices:
        if places and abs(one.height - places[-1][0].height) <= near:
            places[-1].append(one)
        else:
            places.append([one])
    counts = {len(several) for several in places}
    if len(counts) > 1:
        raise RaymarchError(f"{folder}: has {sorted(counts)} slices at a place, want as many at each; find the others")
    count = counts.pop()
    if (time is None and count > 1) or (time or 0) >= count:
        raise RaymarchError(f"{folder}: has {count} points in time; choose one by time=0 to time={count - 1}")
    return [sorted(several, key=lambda one: one.turn)[time or 0] for several in places]


def placed(slices: Sequence[Slice], folder: Path) -> np.ndarray:
    """Affine (4, 4) of a series in LPS; RaymarchError for one slice, missing ones and uneven steps."""
    if len(slices) < 2:
        raise RaymarchError(f"{folder}: has {len(slices)} slice, want 2 or more; name the folder of all of them")
    heights = np.array([one.height for one in slices])
    steps = np.diff(heights)
    usual = float(np.median(steps))
    off = np.abs(steps - usual) > EVEN * usual
    if off.any():
        at = int(off.argmax())
        where = f"between {slices[at].label} and {slices[at + 1].label}"
        missing = round(float(steps[at]) / usual) - 1
        if missing >= 1 and abs(steps[at] - (missing + 1) * usual) <= 2 * EVEN * usual:
            raise RaymarchError(f"{folder}: lacks {missing} slice{'s' * (missing > 1)} {where}; find the missing files")
        steps_in_words = f"{steps[at]:.4g} mm {where}, {usual:.4g} mm elsewhere"
        raise RaymarchError(f"{folder}: has uneven spacing, {steps_in_words}; resample it to even slices")
    first = slices[0]
    affine = np.eye(4)
    affine[:3, 0], affine[:3, 1] = first.along[0] * first.spacing[1], first.along[1] * first.spacing[0]
    affine[:3, 2] = (slices[-1].position - first.position) / (len(slices) - 1)
    affine[:3, 3] = first.position
    return affine


def _slices(path: Path) -> list[Slice]:
    """Slice of a file, or those of its frames."""
    import pydicom

    require_not_deflated(path)
    data = pydicom.dcmread(path, stop_before_pixels=True, specific_tags=TAGS)
    if int(data.get("SamplesPerPixel", 1)) != 1:
        raise RaymarchError(f"{path}: has colours, want one number a pixel; choose another series")
    lacking = [tag for tag in ("Rows", "Columns", "BitsAllocated") if data.get(tag) is None]
    bits = int(data.get("BitsAllocated") or 0)
    if lacking or bits not in (8, 16, 32):
        said = f"lacks {', '.join(lacking)}" if lacking else f"has {bits} bits a pixel"
        raise RaymarchError(f"{path}: {said}, want slices of 8, 16 or 32 bits; take it out of the folder")
    several = int(data.get("NumberOfFrames", 1) or 1) > 1 or "PerFrameFunctionalGroupsSequence" in data
    alike: dict[str, Any] = {
        "path": path, "series": str(data.get("SeriesInstanceUID", "")),
        "name": text_of(data.get("SeriesDescription", "") or ""), "rows": int(data.Rows), "columns": int(data.Columns),
        "bits": bits, "signed": int(data.get("PixelRepresentation", 0)) == 1,
    }  # fmt: skip
    places = frames_of(data, path) if several else [place_of(data, path)]
    return [Slice(**alike, frame=k if several else None, **vars(place)) for k, place in enumerate(places)]

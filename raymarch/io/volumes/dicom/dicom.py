"""DICOM series, of scanners: a folder of slices, one file each, or one file of frames, sorted by where they lie.

Array axes are (column, row, slice); the world is LPS in millimetres. Values are rescaled as the slices say.
"""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError, first_names
from raymarch.io.volumes.dicom.series import Slice, series_affine, slices_of
from raymarch.io.volumes.dicom.slice_place import CONVERT_CURE, NIFTI_CURE
from raymarch.io.volumes.dicom.writing import write_series
from raymarch.io.volumes.format import require_one_place
from raymarch.io.volumes.scalar_format import require_library, scalar_format
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection

MAGIC = b"DICM"
HEAD_BYTES = 512  # bytes in which a file says its class
DIRECTORY_CLASS = b"\x02\0\x02\0UI" + struct.pack("<H", 20) + b"1.2.840.10008.1.3.10"  # class of a media directory
TRUNCATED_WORDS = ("cannot reshape", "is less than the expected", "less than expected")  # words of pydicom
MAX_LOOKED_AT = 64  # files of a folder by which it is known


def detect(path: Path) -> bool:
    """Whether a file, or one of a folder's, is DICOM."""
    if not path.is_dir():
        return _is_dicom(path) and path.suffix.lower() not in (".tif", ".tiff")  # which its preamble may be the head of
    files = (file for _, file in zip(range(MAX_LOOKED_AT), sorted(path.iterdir()), strict=False))
    return any(_is_slice(file) for file in files)


def _is_dicom(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(128)
        return file.read(4) == MAGIC


def _is_slice(path: Path) -> bool:
    """Whether a file may be a slice: DICOM, and not the index of a disk, whatever that is called."""
    if not path.is_file() or path.name.startswith("._") or not _is_dicom(path):
        return False
    with path.open("rb") as file:
        return DIRECTORY_CLASS not in file.read(HEAD_BYTES)


def source(path: Path, selection: Selection) -> Source:
    """Source of a series; RaymarchError for missing slices, uneven spacing, colours and several series."""
    with require_library("pydicom", "DICOM"):
        import pydicom.pixels
    require_one_place(Selection(level=selection.level), path)
    files = [path] if path.is_file() else [file for file in sorted(path.iterdir()) if _is_slice(file)]
    found, left = slices_of(path, files, selection)
    if path.is_file() and found[0].frame is None:
        raise RaymarchError(f"{path}: is one slice of a DICOM series; name the folder of all of them")
    first = found[0]
    affine = series_affine(found, path, left)
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
        f"maps its numbers to the real world ({first_names(real, 2)}), which is not applied; values are as "
        "RescaleSlope and"
        " RescaleIntercept say": bool(real),
        "slices have several slopes; their values are floats": not same,
        f"{len(odd)} of {len(found)} slices ({first_names(odd, 3)}) are stored as another type than {usual}": bool(odd),
        "says no PixelSpacing; 1 mm is assumed along x and y": first.spacing_assumed,
    }
    unread = tuple(dict.fromkeys(words for one in found for words in one.unread))
    shape = (first.columns, first.rows, len(found))
    return Source(
        shape,
        dtype,
        affine,
        read,
        False,
        slope,
        intercept,
        unit=first.unit,
        length_unit="mm",
        world="LPS",
        name=first.name,
        remarks=(*left, *unread, *(said for said, holds in remarks.items() if holds)),
    )


def _pixels(pydicom: Any, one: Slice, same: bool, dtype: np.dtype) -> np.ndarray:
    """Rows and columns of a slice, as stored or, where slopes differ, rescaled."""
    require_decoder(one.path)
    try:
        pixels = pydicom.pixels.pixel_array(one.path, index=one.frame or 0)
    except Exception as error:  # pydicom raises anything for what it cannot decode
        said = " ".join(str(error).split())[:160]
        if any(word in said for word in TRUNCATED_WORDS):
            raise RaymarchError(f"{one.path}: ends before its pixels do ({said}); copy it again") from error
        raise RaymarchError(
            f"{one.path}: cannot be decoded ({said}); convert the series with gdcmconv --raw"
        ) from error
    if pixels.dtype.kind not in "iuf" or (pixels.dtype.kind == "f") != one.is_float:
        raise RaymarchError(f"{one.path}: holds {pixels.dtype} pixels, want whole numbers; {NIFTI_CURE}")
    if pixels.shape != (one.rows, one.columns):
        raise RaymarchError(f"{one.path}: holds {pixels.shape} pixels, want {one.rows} x {one.columns}; {RESTORE_CURE}")
    return pixels.astype(dtype, copy=False) if same else (pixels * one.slope + one.intercept).astype(dtype)


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
        raise RaymarchError(f"{packed}, which pydicom does not unpack; {CONVERT_CURE}") from None
    if not decoder.is_available:
        plugin = "pylibjpeg-openjpeg" if "2000" in syntax.name else "pylibjpeg-libjpeg"
        raise RaymarchError(
            f"{packed}, which takes a plugin of pydicom; pip install pylibjpeg {plugin}, or {CONVERT_CURE}"
        )


def write(volume: ScalarVolume, path: Path) -> None:
    """Series of secondary captures of a scalar volume: a file a slice, of 16 bits."""
    with require_library("pydicom", "DICOM"):
        import pydicom  # noqa: F401
    write_series(volume, path)


DICOM = scalar_format("DICOM", (".dicom",), detect, source, write, folder=True)

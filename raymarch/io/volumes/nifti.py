"""NIfTI, of neuroimaging: .nii, or .nii.gz packed by gzip.

Array axes are (x, y, z), the first the fastest; the world is RAS by the sform or else the qform.
"""

from __future__ import annotations

import gzip
import io
import logging
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import SIZES, ScalarVolume
from raymarch.data.selection import Selection
from raymarch.data.world_axes import world_from_world
from raymarch.errors import RaymarchError
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.axis_units import short_unit
from raymarch.io.volumes.scalar_format import scalar_format, sheared_by, tell_rounding, wanted
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import CURE, read_packed, read_raw, require_packed, require_size, unpacked

log = logging.getLogger("raymarch")
WORLD = "RAS"
HEADERS = {348: (344, (b"n+1\0", b"ni1\0")), 540: (4, (b"n+2\0", b"ni2\0"))}  # by length: where its magic is
GZIP = b"\x1f\x8b"
UNITS = {"mm": "mm", "meter": "m", "micron": "um"}
NAMES = {short: name for name, short in UNITS.items()}
KINDS = ("x", "y", "z", "time", "channel", "channel", "channel")
FARTHEST = 2**62  # byte of a file
STEP = 0.01  # of a step of the stored values: what single precision may move one by
NIFTI1_SIDE = 32767  # samples an axis, beyond which NIfTI-1's 16 bits do not reach


def detect(path: Path) -> bool:
    """Whether a file begins as a NIfTI does, packed or not."""
    try:
        head = _head(path)
    except RaymarchError:
        return False
    return any(head[at : at + 4] in magics for at, magics in HEADERS.values())


def _head(path: Path, size: int = 352) -> bytes:
    """The first bytes, unpacked; fewer of a file that is not packed and shorter."""
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        return bytes(unpacked(file.read, size, "gzip", path)) if start == GZIP else file.read(size)


def _header(path: Path) -> tuple[Any, bool]:
    """Header by nibabel, and whether the file is packed."""
    with wanted("nibabel", "NIfTI"):
        import nibabel
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    data = _head(path)
    if data[4:8] in HEADERS[540][1]:
        return nibabel.Nifti2Header.from_fileobj(io.BytesIO(_head(path, 540)), check=False), packed
    if data[344:348] in HEADERS[348][1]:
        return nibabel.Nifti1Header.from_fileobj(io.BytesIO(data), check=False), packed
    raise RaymarchError(f"{path}: has no magic of NIfTI, want a whole one; {CURE}")


def source(path: Path, selection: Selection) -> Source:
    """Source of a NIfTI file; RaymarchError for colours, complex numbers and values in another file."""
    header, packed = _header(path)
    if bytes(header["magic"].tobytes()[:3]) in (b"ni1", b"ni2"):
        raise RaymarchError(f"{path}: has its values in another file (.img), want one file; convert it to .nii.gz")
    dtype = header.get_data_dtype()
    if dtype.fields is not None or dtype.itemsize not in SIZES.get(dtype.kind, ()):
        kind = "colours" if dtype.fields is not None else str(dtype)
        raise RaymarchError(f"{path}: holds {kind}, want whole numbers or floats of up to 64 bits; convert it")
    sizes = tuple(int(n) for n in header.get_data_shape())
    while len(sizes) > 3 and sizes[-1] == 1:
        sizes = sizes[:-1]
    first = float(header["vox_offset"])  # NIfTI-1's is a float
    least = int(header["sizeof_hdr"]) + 4  # with the mark of extensions
    if not least <= first < FARTHEST or len(sizes) < 3:
        raise RaymarchError(
            f"{path}: has {len(sizes)} axes and values from byte {first:.0f} on, want x, y, z from {least} or more;"
            f" {CURE}"
        )
    offset = int(first)
    index, remarks = chosen(path, sizes, (0, 1, 2), selection, names=KINDS)
    steps = header["pixdim"]  # which nibabel mends so as it loads
    unsaid = [axis for axis, step in zip("xyz", steps[1:4], strict=True) if step == 0]
    steps[:4] = [-1 if steps[0] == -1 else 1, *(abs(step) or 1 for step in steps[1:4])]
    affine = np.asarray(header.get_best_affine(), float)
    remarks += _doubts(header, unsaid)
    slope, intercept = _scaled(header)

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if packed:
            return read_packed(path, 0, sizes, dtype, where, "gzip", skip=offset)
        return read_raw(path, offset, sizes, dtype, where)

    def holds() -> None:
        if packed:
            require_packed(path, 0, sizes, dtype, "gzip", skip=offset)
        else:
            require_size(path, offset, sizes, dtype)

    name = bytes(header["descrip"].tobytes()).split(b"\0")[0].decode("latin-1")
    units = UNITS.get(header.get_xyzt_units()[0], "")
    return Source(
        (sizes[0], sizes[1], sizes[2]), dtype, affine, read, packed, slope, intercept,
        length_unit=units, world=WORLD, name=name, remarks=remarks, holds=holds,
    )  # fmt: skip


def _scaled(header: Any) -> tuple[float, float]:
    """Slope and intercept; a slope of 0 or NaN says that there is none."""
    slope, intercept = float(header["scl_slope"]), float(header["scl_inter"])
    if slope == 0 or not np.isfinite(slope):
        return 1.0, 0.0
    return slope, intercept if np.isfinite(intercept) else 0.0


def _doubts(header: Any, unsaid: list[str]) -> tuple[str, ...]:
    placed = int(header["sform_code"]) > 0
    remarks = [f"says no spacing along {', '.join(unsaid)}; 1 is assumed"] if unsaid and not placed else []
    if int(header["sform_code"]) == 0 and int(header["qform_code"]) == 0:
        remarks.append(
            "says no orientation (sform and qform codes are 0); x is taken as from right to left, as nibabel does"
        )
    if header.get_xyzt_units()[0] not in UNITS:
        remarks.append("says no unit of length; 1 world unit is 1 of the file's")
    return tuple(remarks)


def _stored(volume: ScalarVolume) -> tuple[np.ndarray, float, float]:
    """Values as they are written, with slope and intercept: as stored, unless single precision, which these two have in
    the header, would move a value by a share of a step."""
    slope, intercept = volume.slope, volume.intercept
    kept = [float(np.float32(x)) for x in (slope, intercept)]
    if kept == [slope, intercept]:
        return volume.values, slope, intercept
    low, high = float(volume.values.min()), float(volume.values.max())
    off = max(abs((kept[0] - slope) * x + kept[1] - intercept) for x in (low, high))
    step = 1.0 if volume.values.dtype.kind in "iu" else float(np.finfo(volume.values.dtype).eps) * max(-low, high)
    if off <= STEP * abs(slope) * step and kept[0] != 0:
        return volume.values, slope, intercept
    log.warning(
        "NIfTI keeps slope and intercept in single precision, by which values would be off by up to %.2g; they are"
        " written as they come out, in floats",
        off,
    )  # fmt: skip
    return volume.numbers(), 1.0, 0.0


def write(volume: ScalarVolume, path: Path) -> None:
    """NIfTI of a scalar volume as it is stored, with slope, intercept and an affine in RAS; NIfTI-2 of long axes."""
    with wanted("nibabel", "NIfTI"):
        import nibabel

    stored, slope, intercept = _stored(volume)
    if stored.dtype == np.float16:
        stored = stored.astype(np.float32)
    stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    header = (nibabel.Nifti2Header if max(volume.shape) > NIFTI1_SIDE else nibabel.Nifti1Header)()
    header.set_data_dtype(stored.dtype)
    header.set_data_shape(volume.shape)
    affine = world_from_world(volume.world, WORLD) @ volume.world_from_index
    code = "scanner" if volume.world else "aligned"
    header.set_zooms(volume.spacing)
    header.set_sform(affine, code)
    if sheared_by(volume) < 1e-6:
        header.set_qform(affine, code)
    header.set_slope_inter(slope, intercept)
    tell_rounding(volume, "NIfTI", np.asarray(header.get_best_affine(), float), affine)
    if (unit := short_unit(volume.length_unit)) in NAMES:
        header.set_xyzt_units(NAMES[unit])
    elif volume.length_unit:
        log.warning("NIfTI has no unit %r; the numbers stay as they are", volume.length_unit)
    header["descrip"] = volume.name.encode("ascii", "replace")[:79]
    begin = 352 if header.sizeof_hdr == 348 else 544
    header["vox_offset"] = begin
    with path.open("wb") as raw:
        packed = path.name.lower().endswith(".gz")
        stream: Any = gzip.GzipFile("", "wb", 4, raw, mtime=0) if packed else raw
        stream.write(header.binaryblock + bytes(begin - header.sizeof_hdr))
        for part in range(volume.shape[2]):
            stream.write(stored[:, :, part].tobytes(order="F"))
        if packed:
            stream.close()


NIFTI = scalar_format("NIfTI", (".nii", ".nii.gz"), detect, source, write)

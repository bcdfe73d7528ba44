"""NIfTI, of neuroimaging: .nii, or .nii.gz packed by gzip; read are pairs of .hdr and .img too, and Analyze 7.5.

Array axes are (x, y, z), the first the fastest; the world is RAS by the sform or else the qform.
"""

from __future__ import annotations

import logging
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.volumes.length_units import short_unit
from raymarch.io.volumes.scalar_format import choose_index, require_library, scalar_format, shear_of, tell_rounding
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, decode_text, encode_text
from raymarch.io.volumes.stored_values import read_packed, read_raw, require_packed, require_size, unpack
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection
from raymarch.volumes.world_axes import world_from_world

log = logging.getLogger("raymarch")
WORLD = "RAS"
HEADERS = {348: (344, (b"n+1\0", b"ni1\0")), 540: (4, (b"n+2\0", b"ni2\0"))}  # by length: where its magic is
MAX_HEADER_BYTES = max(HEADERS)
PACKINGS = {b"\x1f\x8b": "gzip", b"BZ": "bzip2"}
TYPES = {
    2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4", 1024: "i8", 1280: "u8",
}  # fmt: skip
COMPONENTS = {128: ("u1", 3), 2304: ("u1", 4), 32: ("f4", 2), 1792: ("f8", 2)}  # RGB, RGBA, complex of two sizes
UNREAD_TYPES = {1536: "float128", 2048: "complex256"}
UNITS = {1: "m", 2: "mm", 3: "um"}  # by the lowest three bits of xyzt_units
UNIT_NAMES = {"mm": "mm", "m": "meter", "um": "micron"}  # as nibabel calls them
CIFTI_INTENTS = range(3000, 3100)  # intents of brain models in NIfTI-2
CIFTI_CURE = (
    "is CIFTI, values of a list of places, want a volume; in Python, of those that lie in one:"
    " i = nibabel.load({0!r}); m = i.header.get_axis(1); v = np.zeros(m.volume_shape);"
    " v[tuple(m.voxel[m.volume_mask].T)] = i.get_fdata()[0, m.volume_mask];"
    " nibabel.save(nibabel.Nifti1Image(v, m.affine), 'a.nii.gz')"
)
AXIS_KINDS = ("x", "y", "z", "time", "channel", "channel", "channel")
MAX_OFFSET = 2**62  # byte of a file
MAX_VALUE_ROUNDING = 0.01  # of a step of the stored values: what single precision may move one by
MAX_NIFTI1_SIDE = 32767  # samples an axis, beyond which NIfTI-1's 16 bits do not reach


class Files(NamedTuple):
    """Files of a volume: one, or the header and the values each in its own."""

    header: Path
    values: Path

    @property
    def pair(self) -> bool:
        """Whether they are two."""
        return self.header != self.values


def detect(path: Path) -> bool:
    """Whether a file, or the header beside it, begins as a NIfTI or an Analyze 7.5 does, packed or not."""
    try:
        named = path.name.lower().endswith((".hdr", ".hdr.gz", ".hdr.bz2"))
        head = _head(path if named else _files(path).header)
    except RaymarchError:
        return False
    return _magic(head) is not None or _is_analyze(head)


def _files(path: Path) -> Files:
    """Header and values of a path that names either; RaymarchError where one of a pair is missing."""
    lower = path.name.lower()
    ends = {end: lower.endswith((end, f"{end}.gz", f"{end}.bz2")) for end in (".hdr", ".img")}
    if not any(ends.values()):
        return Files(path, path)
    if ends[".hdr"] and _magic(_head(path)) in (b"n+1\0", b"n+2\0"):  # all in one file, whatever it is called
        return Files(path, path)
    stem = path.name[: lower.rindex(".hdr" if ends[".hdr"] else ".img")]
    other = ".img" if ends[".hdr"] else ".hdr"
    names = [stem + end + packed for end in (other, other.upper()) for packed in ("", ".gz", ".bz2")]
    beside = next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)
    if beside is None or beside.is_symlink():
        whose = "values" if ends[".hdr"] else "header"
        raise RaymarchError(f"{path}: has its {whose} in {names[0]}, which is no file there; put it beside")
    return Files(path, beside) if ends[".hdr"] else Files(beside, path)


def _packing(path: Path) -> str:
    """How a file is packed, "" for not."""
    with path.open("rb") as file:
        return PACKINGS.get(file.read(2), "")


def _head(path: Path, size: int = MAX_HEADER_BYTES) -> bytes:
    """The first bytes, unpacked; fewer of a shorter file."""
    packing = _packing(path)
    with path.open("rb") as file:
        if not packing:
            return file.read(size)
        try:
            return bytes(unpack(file.read, size, packing, path))
        except RaymarchError:
            file.seek(0)
            return bytes(unpack(file.read, min(HEADERS), packing, path))  # of a pair, a header and no more


def _magic(head: bytes) -> bytes | None:
    """Mark of NIfTI in a header, or None."""
    return next((head[at : at + 4] for at, magics in HEADERS.values() if head[at : at + 4] in magics), None)


def _is_analyze(head: bytes) -> bool:
    """Whether a header is of Analyze 7.5, which has no mark: by its length and count of dimensions, in either order."""
    if len(head) < min(HEADERS):
        return False
    for order in "<>":
        size, count = np.frombuffer(head, f"{order}i4", 1)[0], np.frombuffer(head, f"{order}i2", 1, 40)[0]
        if size == min(HEADERS) and 1 <= count <= 7:
            return True
    return False


def _header(path: Path) -> Any:
    """Header by nibabel, which gets the whole of it and nothing of its extensions."""
    with require_library("nibabel", "NIfTI"):
        import nibabel
    head = _head(path)
    magic = _magic(head)
    if magic is None and not _is_analyze(head):
        raise RaymarchError(f"{path}: has no magic of NIfTI, want a whole one; {RESTORE_CURE}")
    kinds: dict[Any, Any] = {
        b"n+2\0": nibabel.Nifti2Header,
        b"ni2\0": nibabel.Nifti2Header,
        None: nibabel.Spm99AnalyzeHeader,
    }
    kind = kinds.get(magic, nibabel.Nifti1Header)
    size = kind.template_dtype.itemsize
    if len(head) < size:
        raise RaymarchError(f"{path}: has {len(head)} bytes of a header of {size}; {RESTORE_CURE}")
    return kind(head[:size], check=False)


def source(path: Path, selection: Selection) -> Source:
    """Source of a NIfTI file or pair; RaymarchError for numbers of more than 64 bits and of one."""
    files = _files(path)
    header = _header(files.header)
    is_nifti = "magic" in header.keys()  # noqa: SIM118, of a structured array
    kind, parts = _kind(path, int(header["datatype"]))
    dtype = np.dtype(kind).newbyteorder(header.endianness)
    count = int(header["dim"][0])
    sizes = tuple(int(n) for n in header["dim"][1 : 1 + min(max(count, 0), 7)])
    while len(sizes) > 3 and sizes[-1] == 1:
        sizes = sizes[:-1]
    first = float(header["vox_offset"])  # NIfTI-1's is a float
    first = abs(first) if files.pair and not is_nifti else first  # of Analyze it may say that there are gaps
    least = 0 if files.pair else int(header.template_dtype.itemsize) + 4  # with the mark of extensions
    if len(sizes) == 2:
        raise RaymarchError(
            f"{path}: has {sizes[0]} x {sizes[1]} values, want x, y and z; a slice is no volume: stack several by"
            " np.stack"
        )
    if not least <= first < MAX_OFFSET or len(sizes) < 3:
        raise RaymarchError(
            f"{path}: has {len(sizes)} axes and values from byte {first:.0f} on, want x, y, z from {least} or more;"
            f" {RESTORE_CURE}"
        )
    if is_nifti and int(header["intent_code"]) in CIFTI_INTENTS and sizes[:4] == (1, 1, 1, 1):
        raise RaymarchError(f"{path}: {CIFTI_CURE.format(path.name)}")
    offset, packing, shape = int(first), _packing(files.values), (parts, *sizes) if parts else sizes
    begin = 1 if parts else 0
    index, remarks = choose_index(
        path, shape, range(begin, begin + 3), selection, names=(("colour channel",) if parts else ()) + AXIS_KINDS
    )
    affine, doubts = _affine_of(header) if is_nifti else _placed_by_analyze(header)
    slope, intercept = (1.0, 0.0) if parts and kind == "u1" else _scaling(header)

    def read(slices: Slices) -> np.ndarray:
        where = index(slices)
        if packing:
            return read_packed(files.values, 0, shape, dtype, where, packing, skip=offset)
        return read_raw(files.values, offset, shape, dtype, where)

    def holds() -> None:
        if packing:
            require_packed(files.values, 0, shape, dtype, packing, skip=offset)
        else:
            require_size(files.values, offset, shape, dtype)

    units = UNITS.get(int(header["xyzt_units"]) & 7, "") if is_nifti else ""
    return Source(
        (sizes[0], sizes[1], sizes[2]),
        dtype,
        affine,
        read,
        bool(packing),
        slope,
        intercept,
        length_unit=units,
        world=WORLD,
        name=decode_text(bytes(header["descrip"].tobytes())),
        remarks=remarks + doubts,
        holds=holds,
    )


def _kind(path: Path, code: int) -> tuple[str, int]:
    """Type of the numbers of a code of NIfTI, and how many of them make a value of several; 0 for one."""
    if code in TYPES:
        return TYPES[code], 0
    if code in COMPONENTS:
        return COMPONENTS[code]
    if code in UNREAD_TYPES:
        raise RaymarchError(
            f"{path}: holds {UNREAD_TYPES[code]}, want numbers of up to 64 bits; save it as float64 there"
        )
    what = "single bits (datatype 1)" if code == 1 else f"values of datatype {code}, which NIfTI does not know"
    raise RaymarchError(f"{path}: holds {what}, want whole numbers or floats; save it as uint8 or float32 there")


def _scaling(header: Any) -> tuple[float, float]:
    """Slope and intercept; a slope of 0 or NaN says that there is none, and Analyze's are of SPM."""
    told = set(header.keys())
    slope = float(header["scl_slope"])
    intercept = float(header["scl_inter"]) if "scl_inter" in told else 0.0
    if slope == 0 or not np.isfinite(slope):
        return 1.0, 0.0
    return slope, intercept if np.isfinite(intercept) else 0.0


def _affine_of(header: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Affine by the sform, else the qform, else the spacing alone, and what of it is in doubt."""
    steps = header["pixdim"]  # which nibabel mends so as it loads
    unsaid = [axis for axis, step in zip("xyz", steps[1:4], strict=True) if step == 0]
    steps[:4] = [-1 if steps[0] == -1 else 1, *(abs(step) or 1 for step in steps[1:4])]
    remarks: list[str] = []
    by_sform, by_qform = (int(header[f"{one}_code"]) > 0 for one in ("sform", "qform"))
    sform = np.asarray(header.get_sform(), float)
    if by_sform and not (np.isfinite(sform).all() and abs(np.linalg.det(sform[:3, :3])) > 0):
        remarks.append(
            "has an sform that is no place of a grid; its qform is taken"
            if by_qform
            else "has an sform that is no place of a grid; its spacing alone is taken"
        )
        by_sform, header["sform_code"] = False, 0
    affine = np.asarray(header.get_best_affine(), float)
    if by_sform:
        remarks += _disagreement(header, sform, by_qform, unsaid)
    elif unsaid:
        remarks.append(f"says no spacing along {', '.join(unsaid)}; 1 is assumed")
    if not by_sform and not by_qform:
        remarks.append(
            "says no orientation (sform and qform codes are 0); x is taken as from right to left, as nibabel does"
        )
    if int(header["xyzt_units"]) & 7 not in UNITS:
        remarks.append("says no unit of length; 1 world unit is 1 of the file's")
    return affine, tuple(remarks)


def _disagreement(header: Any, sform: np.ndarray, by_qform: bool, unsaid: list[str]) -> list[str]:
    """What the sform says otherwise than the qform, or else than the spacing: by over half a step."""
    lengths, steps = np.linalg.norm(sform[:3, :3], axis=0), np.asarray(header["pixdim"][1:4], float)
    corner = np.array([*(np.asarray(header["dim"][1:4], float) - 1), 1.0])
    if by_qform:
        try:
            qform = np.asarray(header.get_qform(), float)
        except Exception:  # quaternions that are none, of a qform that is not taken
            return ["has a qform that is none; its sform is taken"]
        off = max(np.abs((sform - qform) @ at)[:3].max() for at in (np.eye(4)[3], corner))
        if np.isfinite(off) and off > 0.5 * lengths.min():
            return [f"has an sform and a qform that are up to {off:.3g} apart; the sform is taken, as by nibabel"]
    elif (
        not unsaid
        and np.isfinite(steps).all()
        and (np.abs(steps - lengths) * np.maximum(corner[:3], 1) > 0.5 * lengths).any()
    ):
        told = " x ".join(f"{x:.4g}" for x in steps)
        return [f"says a spacing of {told} (pixdim), and another by its sform, which is taken"]
    return []


def _placed_by_analyze(header: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """Affine as nibabel has it: x from right to left, about SPM's origin or else the middle."""
    steps = header["pixdim"]
    unsaid = [axis for axis, step in zip("xyz", steps[1:4], strict=True) if not abs(step) > 0]
    steps[1:4] = [abs(step) if abs(step) > 0 else 1 for step in steps[1:4]]
    said = "is Analyze 7.5, which says no sides; x is taken as from right to left, as nibabel does"
    remarks = (said, "says no unit of length; 1 world unit is 1 of the file's")
    more = (f"says no spacing along {', '.join(unsaid)}; 1 is assumed",) if unsaid else ()
    return np.asarray(header.get_best_affine(), float), remarks + more


def _stored_values(volume: ScalarVolume) -> tuple[np.ndarray, float, float]:
    """Values as they are written, with slope and intercept: as stored, unless single precision, which these two have in
    the header, would move a value by a share of a step."""
    slope, intercept = volume.slope, volume.intercept
    kept = [float(np.float32(x)) for x in (slope, intercept)]
    if kept == [slope, intercept]:
        return volume.values, slope, intercept
    low, high = float(volume.values.min()), float(volume.values.max())
    off = max(abs((kept[0] - slope) * x + kept[1] - intercept) for x in (low, high))
    step = 1.0 if volume.values.dtype.kind in "iu" else float(np.finfo(volume.values.dtype).eps) * max(-low, high)
    if off <= MAX_VALUE_ROUNDING * abs(slope) * step and kept[0] != 0:
        return volume.values, slope, intercept
    log.warning(
        "NIfTI keeps slope and intercept in single precision, by which values would be off by up to %.2g; they are"
        " written as they come out, in floats",
        off,
    )
    return volume.numbers(), 1.0, 0.0


def write(volume: ScalarVolume, path: Path) -> None:
    """NIfTI of a scalar volume as it is stored, with slope, intercept and an affine in RAS; NIfTI-2 of long axes."""
    with require_library("nibabel", "NIfTI"):
        import nibabel

    stored, slope, intercept = _stored_values(volume)
    if stored.dtype == np.float16:
        stored = stored.astype(np.float32)
    stored = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    header = (nibabel.Nifti2Header if max(volume.shape) > MAX_NIFTI1_SIDE else nibabel.Nifti1Header)()
    header.set_data_dtype(stored.dtype)
    header.set_data_shape(volume.shape)
    affine = world_from_world(volume.world, WORLD) @ volume.world_from_index
    code = "scanner" if volume.world else "aligned"
    header.set_zooms(volume.spacing)
    header.set_sform(affine, code)
    if shear_of(volume) < 1e-6:
        header.set_qform(affine, code)
    header.set_slope_inter(slope, intercept)
    tell_rounding(volume, "NIfTI", np.asarray(header.get_best_affine(), float), affine)
    if (unit := short_unit(volume.length_unit)) in UNIT_NAMES:
        header.set_xyzt_units(UNIT_NAMES[unit])
    elif volume.length_unit:
        log.warning("NIfTI has no unit %r; the numbers stay as they are", volume.length_unit)
    header["descrip"] = encode_text(volume.name, 79)
    begin = 352 if header.sizeof_hdr == 348 else 544
    header["vox_offset"] = begin
    # Not gzip.GzipFile: where the disk is full it writes once more as it is thrown away, and prints that it cannot.
    packer = zlib.compressobj(4, zlib.DEFLATED, 31) if path.name.lower().endswith(".gz") else None
    with path.open("wb") as file:
        head = header.binaryblock + bytes(begin - header.sizeof_hdr)
        for k in range(-1, volume.shape[2]):
            part = head if k < 0 else stored[:, :, k].tobytes(order="F")
            file.write(packer.compress(part) if packer else part)
        if packer:
            file.write(packer.flush())


NIFTI = scalar_format("NIfTI", (".nii", ".nii.gz"), detect, source, write, loses=("unit",))

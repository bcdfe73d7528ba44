"""MRC and CCP4 maps, of electron microscopy: .mrc, .map, and packed by gzip as EMDB has them all: .map.gz.

The file has columns fastest, then rows, then sections; mapc, mapr, maps say which of x, y, z each is. The world is in
angstrom.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.volumes.length_units import short_unit, unit_factor
from raymarch.io.volumes.scalar_format import (
    choose_index,
    narrow_values,
    plain_values,
    require_library,
    require_upright,
    scalar_format,
    tell_rounding,
)
from raymarch.io.volumes.source import RESTORE_CURE, Slices, Source, decode_text, encode_text, text_of
from raymarch.io.volumes.stored_values import read_packed, read_raw, require_packed, require_size, unpack
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import Selection

log = logging.getLogger("raymarch")
TYPES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
HEADER_BYTES = 1024  # bytes
SKEW_AT = 96  # byte of CCP4's flag of a skew matrix
FIRST_STACK_GROUP = 401  # the first space group of a stack of volumes
PACKINGS = {b"\x1f\x8b": "gzip", b"BZ": "bzip2"}
INVERTED, TILT_AT = 4, 184  # IMOD's flag of the sign of its origin; byte of its tilt angles
IMOD_AT, IMOD = 152, 1146047817  # byte of its stamp, after which come its flags: bit 0 is that bytes have a sign
UNIT, KNOWN_UNITS = "angstrom", ("angstrom", "nm", "um")  # of others the numbers stay as they are
SAVED_TYPES = {"i1": "i1", "u1": "i2", "i2": "i2", "u2": "u2", "f2": "f2", "f4": "f4"}


def detect(path: Path) -> bool:
    """Whether a file, packed or not, has the map's mark in its header."""
    try:
        head, _ = _head(path, 212)
    except RaymarchError:
        return False
    return head[208:212] in (b"MAP ", b"MAP\0")


def _head(path: Path, size: int) -> tuple[bytes, str]:
    """The first bytes, unpacked, fewer of a shorter file that is not packed; and how it is packed, "" for not."""
    with path.open("rb") as file:
        packing = PACKINGS.get(file.read(2), "")
        file.seek(0)
        return (bytes(unpack(file.read, size, packing, path)) if packing else file.read(size)), packing


def source(path: Path, selection: Selection) -> Source:
    """Source of an MRC file; RaymarchError for complex numbers, those of 4 bits, and axes that are none."""
    with require_library("mrcfile", "MRC"):
        import mrcfile.dtypes
    head, packing = _head(path, HEADER_BYTES)
    if len(head) < HEADER_BYTES:
        raise RaymarchError(f"{path}: is shorter than a header of {HEADER_BYTES} bytes; {RESTORE_CURE}")
    if packing and head[208:212] not in (b"MAP ", b"MAP\0"):
        tool = "gunzip" if packing == "gzip" else "bunzip2"
        said = "is packed, and what is in it has no mark of a map at byte 208"
        raise RaymarchError(f"{path}: {said}; unpack it and look what it is: {tool} -k {path.name}")
    order = _order(head)
    header = np.frombuffer(head, mrcfile.dtypes.HEADER_DTYPE.newbyteorder(order))[0]
    mode = int(header["mode"])
    if mode not in TYPES:
        raise RaymarchError(f"{path}: {_unread_mode(mode, path.name)}")
    kind = "u1" if mode == 0 and _unsigned(head, order, float(header["dmin"]), float(header["dmax"])) else TYPES[mode]
    dtype = np.dtype(kind).newbyteorder(order)
    sizes = tuple(int(header[key]) for key in ("nx", "ny", "nz"))
    axes = [int(header[key]) - 1 for key in ("mapc", "mapr", "maps")]
    axes = [0, 1, 2] if axes == [-1, -1, -1] else axes
    if sorted(axes) != [0, 1, 2] or int(header["nsymbt"]) < 0:
        raise RaymarchError(
            f"{path}: has axes {[axis + 1 for axis in axes]}, want 1, 2 and 3 in some order; {RESTORE_CURE}"
        )
    stored = sizes
    if int(header["ispg"]) >= FIRST_STACK_GROUP:
        each = int(header["mz"])
        if each < 1 or sizes[2] % each:
            raise RaymarchError(f"{path}: is a stack of volumes of {each} sections, but has {sizes[2]}; {RESTORE_CURE}")
        stored, sizes = (*sizes[:2], each, sizes[2] // each), (*sizes[:2], each)
    index, _ = choose_index(path, stored, (0, 1, 2), selection)
    offset = HEADER_BYTES + int(header["nsymbt"])
    affine, remarks = _affine_of(header, sizes, axes)
    remarks += _unread_fields(header, head, order)

    def read(slices: Slices) -> np.ndarray:
        where = index(tuple(slices[axis] for axis in axes))
        if packing:
            return np.moveaxis(read_packed(path, 0, stored, dtype, where, packing, skip=offset), range(3), axes)
        return np.moveaxis(read_raw(path, offset, stored, dtype, where), range(3), axes)

    def holds() -> None:
        if packing:
            require_packed(path, 0, stored, dtype, packing, skip=offset)
        else:
            require_size(path, offset, stored, dtype)

    shape = [0, 0, 0]
    for axis, count in zip(axes, sizes, strict=True):
        shape[axis] = count
    labels = [decode_text(bytes(label)).strip() for label in header["label"][:1]]
    return Source(
        (shape[0], shape[1], shape[2]),
        dtype,
        affine,
        read,
        at_once=bool(packing),
        length_unit=UNIT,
        name=labels[0] if int(header["nlabl"]) > 0 else "",
        remarks=remarks,
        holds=holds,
    )


def _unread_mode(mode: int, name: str) -> str:
    """What is to be said of a mode whose values are no real numbers of whole bytes."""
    if mode in (3, 4):
        told = f"holds complex numbers (mode {mode}), want real ones"
        return f"{told}; np.save('a.npy', np.abs(mrcfile.read({name!r}).T)) takes their absolute values"
    if mode == 101:
        return "holds numbers of 4 bits (mode 101), want 8 or more; convert it by IMOD: newstack -mode 0 IN OUT"
    return f"has mode {mode}, want one of {', '.join(map(str, TYPES))}; {RESTORE_CURE}"


def _unread_fields(header: Any, head: bytes, order: Any) -> tuple[str, ...]:
    """What a header says of values and places that is not applied."""
    remarks = []
    origin = [float(header["origin"][axis]) for axis in "xyz"]
    if np.frombuffer(head, f"{order}i4", 1, IMOD_AT)[0] == IMOD:
        flags = int(np.frombuffer(head, f"{order}i4", 1, IMOD_AT + 4)[0])
        if any(origin) and not flags & INVERTED:
            remarks.append("is of IMOD, which may have turned the sign of its origin; it is taken as it stands")
        tilt = np.frombuffer(head, f"{order}f4", 3, TILT_AT)
        if np.isfinite(tilt).all() and tilt.any():
            remarks.append(
                f"says that it is tilted by {', '.join(f'{x:g}' for x in tilt)} degrees, which is not applied"
            )
    start = [int(header[key]) for key in ("nxstart", "nystart", "nzstart")]
    if any(origin) and any(start):
        remarks.append(f"says an origin and a first index ({', '.join(map(str, start))}); its origin is taken alone")
    kind = bytes(header["exttyp"])
    if int(np.frombuffer(head, f"{order}i4", 1, SKEW_AT)[0]) == 1 and not kind.isalnum():
        remarks.append("says that its axes are skewed (LSKFLG), which is not applied")
    if int(header["nsymbt"]) > 0 and kind.rstrip(b"\0 ") not in (b"", b"CCP4", b"MRCO"):
        remarks.append(f"has an extended header ({text_of(decode_text(kind))}), which is not read")
    return tuple(remarks)


def _order(head: bytes) -> Any:
    """Order of a header's bytes, "<" or ">": that which makes a mode that there is, for machine stamps are often wrong;
    where both do, as of 8 bits, whose mode is 0, that which makes the smaller sizes."""
    modes = [one for one in "<>" if int(np.frombuffer(head, f"{one}i4", 1, 12)[0]) in range(128)]
    return min(modes or "<", key=lambda one: int(np.abs(np.frombuffer(head, f"{one}i4", 3)).max()))


def _unsigned(head: bytes, order: Any, least: float, most: float) -> bool:
    """Whether bytes have no sign, as those of IMOD from before 2014: by its flag, else by the range that is said."""
    stamp, flags = np.frombuffer(head, f"{order}i4", 2, IMOD_AT)
    return not flags & 1 if stamp == IMOD else 127 < most <= 255 and least >= 0


def _affine_of(header: Any, sizes: tuple[int, ...], axes: list[int]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Affine by the unit cell and its angles; its origin, or where that is 0 the first sample's index."""
    cell = np.array([float(header["cella"][axis]) for axis in "xyz"])
    counts = np.array([int(header[key]) for key in ("mx", "my", "mz")])
    said = bool((cell > 0).all() and (counts > 0).all())
    steps = cell / counts if said else np.ones(3)
    affine = np.eye(4)
    affine[:3, :3] = _cell(*(float(header["cellb"][axis]) for axis in ("alpha", "beta", "gamma"))) * steps
    origin = np.array([float(header["origin"][axis]) for axis in "xyz"])
    start = np.zeros(3)
    start[axes] = [int(header[key]) for key in ("nxstart", "nystart", "nzstart")]
    affine[:3, 3] = origin if origin.any() else affine[:3, :3] @ start
    remarks = [] if said else ["says no spacing; 1 is assumed"]
    if int(header["ispg"]) == 0 and sizes[2] > 1:
        remarks.append("says that it is a stack of images (space group 0); taken as a volume")
    return affine, tuple(remarks)


def _cell(alpha: float, beta: float, gamma: float) -> np.ndarray:
    """Unit vectors of a crystal's axes, one a column, by the angles between them [degree]: x along the first."""
    if not all(0 < angle < 180 for angle in (alpha, beta, gamma)) or (alpha, beta, gamma) == (90, 90, 90):
        return np.eye(3)
    a, b, c = np.cos(np.radians([alpha, beta, gamma]))
    s = np.sin(np.radians(gamma))
    y = (a - b * c) / s
    return np.array([[1, c, b], [0, s, y], [0, 0, np.sqrt(max(1 - b * b - y * y, 1e-12))]])


def write(volume: ScalarVolume, path: Path) -> None:
    """MRC of a scalar volume, upright in the world; lengths in angstrom where their unit is known."""
    with require_library("mrcfile", "MRC"):
        import mrcfile

    require_upright(volume, path, "MRC")
    values = plain_values(volume)
    kind = SAVED_TYPES.get(f"{values.dtype.kind}{values.dtype.itemsize}", "f4")
    if kind == "f4":
        values = narrow_values(volume, values, kind, "MRC")
    known = short_unit(volume.length_unit) in KNOWN_UNITS
    scale = unit_factor(volume.length_unit, UNIT) if known else 1.0
    if not known:
        log.warning("MRC is in angstrom; the world's unit is taken as one")
    packing = "gzip" if path.name.lower().endswith(".gz") else None
    file = mrcfile.new(path, np.ascontiguousarray(values.T, kind), compression=packing, overwrite=True)
    streams = [getattr(file, name, None) for name in ("_iostream", "_fileobj")]
    try:
        file.set_volume()
        file.voxel_size = tuple(float(x) for x in volume.spacing * scale)
        for axis, x in zip("xyz", volume.origin * scale, strict=True):
            file.header["origin"][axis] = x
        kept = np.eye(4)
        kept[:3] = _affine_of(file.header, volume.shape, [0, 1, 2])[0][:3] / scale
        tell_rounding(volume, "MRC", kept, volume.world_from_index)
        if volume.name:
            file.header["label"][:] = b""
            file.header["label"][0], file.header["nlabl"] = encode_text(volume.name, 80), 1
        file.close()
    finally:
        for stream in streams:
            with suppress(OSError, ValueError, AttributeError):  # of a full disk, on which mrcfile leaves its file open
                stream.close()  # type: ignore[union-attr]


SUFFIXES = (".mrc", ".map", ".ccp4", ".mrc.gz", ".map.gz", ".ccp4.gz")
MRC = scalar_format("MRC", SUFFIXES, detect, source, write, loses=("unit", "world"))

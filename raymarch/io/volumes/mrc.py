"""MRC and CCP4 maps, of electron microscopy: .mrc, .map.

The file has columns fastest, then rows, then sections; mapc, mapr, maps say which of x, y, z each is. The world is in
angstrom.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.data.scalar_volume import ScalarVolume
from raymarch.data.selection import Selection
from raymarch.errors import RaymarchError
from raymarch.io.volumes.axes import chosen
from raymarch.io.volumes.axis_units import short_unit, times
from raymarch.io.volumes.scalar_format import (
    narrowed,
    plain_values,
    require_upright,
    scalar_format,
    tell_rounding,
    wanted,
)
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import CURE, read_raw, require_size

log = logging.getLogger("raymarch")
TYPES = {0: "i1", 1: "i2", 2: "f4", 6: "u2", 12: "f2"}
HEADER = 1024  # bytes
IMOD_AT, IMOD = 152, 1146047817  # byte of its stamp, after which come its flags: bit 0 is that bytes have a sign
UNIT, KNOWN = "angstrom", ("angstrom", "nm", "um")  # of others the numbers stay as they are
SAVED = {"i1": "i1", "u1": "i2", "i2": "i2", "u2": "u2", "f2": "f2", "f4": "f4"}


def detect(path: Path) -> bool:
    """Whether a file has the map's mark in its header."""
    with path.open("rb") as file:
        file.seek(208)
        return file.read(4) in (b"MAP ", b"MAP\0")


def source(path: Path, selection: Selection) -> Source:
    """Source of an MRC file; RaymarchError for complex numbers, stacks of volumes and axes that are none."""
    with wanted("mrcfile", "MRC"):
        import mrcfile.dtypes
    if path.stat().st_size < HEADER:
        raise RaymarchError(f"{path}: is shorter than a header of {HEADER} bytes; {CURE}")
    with path.open("rb") as file:
        head = file.read(HEADER)
    order = _order(head)
    header = np.frombuffer(head, mrcfile.dtypes.HEADER_DTYPE.newbyteorder(order))[0]
    mode = int(header["mode"])
    if mode not in TYPES:
        raise RaymarchError(f"{path}: has mode {mode}, want one of {', '.join(map(str, TYPES))}; convert it to floats")
    if int(header["ispg"]) >= 401:
        raise RaymarchError(f"{path}: is a stack of volumes, want one; take one out with mrcfile")
    kind = "u1" if mode == 0 and _unsigned(head, order, float(header["dmin"]), float(header["dmax"])) else TYPES[mode]
    dtype = np.dtype(kind).newbyteorder(order)
    sizes = tuple(int(header[key]) for key in ("nx", "ny", "nz"))
    axes = [int(header[key]) - 1 for key in ("mapc", "mapr", "maps")]
    axes = [0, 1, 2] if axes == [-1, -1, -1] else axes
    if sorted(axes) != [0, 1, 2] or int(header["nsymbt"]) < 0:
        raise RaymarchError(f"{path}: has axes {[axis + 1 for axis in axes]}, want 1, 2 and 3 in some order; {CURE}")
    index, _ = chosen(path, sizes, (0, 1, 2), selection)
    offset = HEADER + int(header["nsymbt"])
    affine, remarks = _placed(header, sizes, axes)

    def read(slices: Slices) -> np.ndarray:
        stored = read_raw(path, offset, sizes, dtype, index(tuple(slices[axis] for axis in axes)))
        return np.moveaxis(stored, range(3), axes)

    shape = [0, 0, 0]
    for axis, count in zip(axes, sizes, strict=True):
        shape[axis] = count
    labels = [bytes(label).decode("latin-1").strip("\0 ") for label in header["label"][:1]]
    return Source(
        (shape[0], shape[1], shape[2]), dtype, affine, read, at_once=False, length_unit=UNIT,
        name=labels[0] if int(header["nlabl"]) > 0 else "", remarks=remarks,
        holds=lambda: require_size(path, offset, sizes, dtype),
    )  # fmt: skip


def _order(head: bytes) -> Any:
    """Order of a header's bytes, "<" or ">": that which makes a mode that there is, for machine stamps are often wrong;
    where both do, as of 8 bits, whose mode is 0, that which makes the smaller sizes."""
    modes = [one for one in "<>" if int(np.frombuffer(head, f"{one}i4", 1, 12)[0]) in range(128)]
    return min(modes or "<", key=lambda one: int(np.abs(np.frombuffer(head, f"{one}i4", 3)).max()))


def _unsigned(head: bytes, order: Any, least: float, most: float) -> bool:
    """Whether bytes have no sign, as those of IMOD from before 2014: by its flag, else by the range that is said."""
    stamp, flags = np.frombuffer(head, f"{order}i4", 2, IMOD_AT)
    return not flags & 1 if stamp == IMOD else 127 < most <= 255 and least >= 0


def _placed(header: Any, sizes: tuple[int, ...], axes: list[int]) -> tuple[np.ndarray, tuple[str, ...]]:
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
    if int(header["ispg"]) == 0:
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
    with wanted("mrcfile", "MRC"):
        import mrcfile

    require_upright(volume, path, "MRC")
    values = plain_values(volume)
    kind = SAVED.get(f"{values.dtype.kind}{values.dtype.itemsize}", "f4")
    if kind == "f4":
        values = narrowed(volume, values, kind, "MRC")
    known = short_unit(volume.length_unit) in KNOWN
    scale = times(volume.length_unit, UNIT) if known else 1.0
    if not known:
        log.warning("MRC is in angstrom; the world's unit is taken as one")
    with mrcfile.new(path, np.ascontiguousarray(values.T, kind), overwrite=True) as file:
        file.set_volume()
        file.voxel_size = tuple(float(x) for x in volume.spacing * scale)
        for axis, x in zip("xyz", volume.origin * scale, strict=True):
            file.header["origin"][axis] = x
        kept = np.eye(4)
        kept[:3] = _placed(file.header, volume.shape, [0, 1, 2])[0][:3] / scale
        tell_rounding(volume, "MRC", kept, volume.world_from_index)
        if volume.name:
            file.header["label"][:] = b""
            file.header["label"][0], file.header["nlabl"] = volume.name.encode("ascii", "replace")[:80], 1


MRC = scalar_format("MRC", (".mrc", ".map", ".ccp4"), detect, source, write)

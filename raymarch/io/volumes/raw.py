"""Raw values without a header, of which the caller says shape and type: `rm.load(path, shape=..., dtype=...)`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, whole
from raymarch.errors import RaymarchError
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.scalar_format import choose_index, plain_values, scalar_format
from raymarch.io.volumes.source import Slices, Source
from raymarch.io.volumes.stored_values import read_raw, require_size
from raymarch.volumes.samples import SPACING
from raymarch.volumes.scalar_volume import TYPE_SIZES, ScalarVolume
from raymarch.volumes.selection import Selection


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(whole(1, 1 << 31).read(n) for n in value)
    if not 3 <= len(shape) <= 4:
        raise ValueError
    return shape


def _kind(value: Any) -> np.dtype:
    if not isinstance(value, (str, np.dtype, type)):
        raise TypeError
    dtype = np.dtype(value)
    dtype = np.dtype(np.uint8) if dtype == np.bool_ else dtype
    if dtype.itemsize not in TYPE_SIZES.get(dtype.kind, ()):
        raise ValueError
    return dtype


RAW_TYPES = ("uint8", "uint16", "float32", "float64")  # by size, of which one is named that a file has the bytes of
RAW_SHAPE = Check("three whole numbers x, y, z, or four with the channels before them", _shape)
RAW_TYPE = Check("a type of number such as uint8, <i2 or >f4", _kind)


def raw_format(
    shape: Sequence[int], dtype: object, spacing: float | Sequence[float] = 1.0, offset: int | None = None
) -> Format:
    """Format of a file of raw values, x the fastest, `shape` samples (x, y, z) or (channel, x, y, z).

    Args:
        shape: count of samples.
        dtype: as stored; little-endian unless it says otherwise, such as ">i2".
        spacing: from sample to sample [world unit], one number or three.
        offset: bytes before the values; by default what the file has more than them must be nothing.
    """
    sizes, kind, steps = RAW_SHAPE("shape", shape), RAW_TYPE("dtype", dtype), SPACING("spacing", spacing)
    kind = kind.newbyteorder("<") if kind.byteorder == "=" else kind
    affine = np.diag([*np.broadcast_to(steps, 3), 1.0])
    first = len(sizes) - 3

    def source(path: Path, selection: Selection) -> Source:
        begin = 0 if offset is None else offset
        size, there = math.prod(sizes) * kind.itemsize, path.stat().st_size
        fits = [one for one in RAW_TYPES if np.dtype(one).itemsize * math.prod(sizes) == there - begin]
        more = f" ({' or '.join(fits)} would fit)" if fits else ""
        if there < begin + size or (offset is None and there != size):
            behind = f" behind the first {begin:,}" if begin else ""
            header = ", or say by offset how many bytes come before them" if there > begin + size else ""
            raise RaymarchError(
                f"{path}: has {max(there - begin, 0):,} bytes{behind} but {' x '.join(map(str, sizes))} of {kind} are"
                f" {size:,}; correct shape or dtype{more}{header}"
            )
        require_size(path, begin, sizes, kind)
        index, remarks = choose_index(path, sizes, range(first, first + 3), selection)

        def read(slices: Slices) -> np.ndarray:
            return read_raw(path, begin, sizes, kind, index(slices))

        x, y, z = sizes[first:]
        return Source((x, y, z), kind, affine, read, at_once=False, remarks=remarks)

    def write(volume: ScalarVolume, path: Path) -> None:
        plain_values(volume).astype(kind, casting="safe").ravel(order="F").tofile(path)

    return scalar_format("raw", (".raw", ".bin", ".img", ".dat"), Path.is_file, source, write)

"""Volume files that are read part by part: opened once, and nothing of their values read until it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import RaymarchError
from raymarch.io.files.stamp import while_unchanged
from raymarch.io.volumes import metaimage, mrc, nifti, nrrd, numpy_files, tiff, vtk, zarr
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.format_choice import format_of
from raymarch.io.volumes.hdf5 import fitted_parts as fitted
from raymarch.io.volumes.hdf5 import scalar
from raymarch.io.volumes.hdf5.volume import HDF5
from raymarch.io.volumes.scalar_format import explain_damage
from raymarch.io.volumes.source import Slices, Source, fill_missing, log, require_shape, text_of
from raymarch.io.volumes.volume_file import FORMATS
from raymarch.volumes.file_volume import FileSamples, FileVolume
from raymarch.volumes.selection import Selection

# Formats that may hold values a part of which is read by itself, and how their headers are read.
SOURCES: dict[str, Callable[[Path, Selection], Source]] = {
    zarr.OME_ZARR.name: zarr.source,
    numpy_files.NPY.name: numpy_files.source_npy,
    nrrd.NRRD.name: nrrd.source,
    nifti.NIFTI.name: nifti.source,
    metaimage.METAIMAGE.name: metaimage.source,
    mrc.MRC.name: mrc.source,
    tiff.TIFF.name: tiff.source,
    vtk.VTI.name: vtk.source,
}
IN_PARTS = ".zarr, .h5, .npy, and unpacked .nrrd, .nii, .mha, .mrc, .tif and .vti"


def open_in_parts(
    path: str | os.PathLike[str],
    *,
    format: Format | None = None,
    channel: int | None = None,
    time: int | None = None,
    level: int | None = None,
    remarks: bool = True,
) -> FileVolume:
    """Volume of a file whose values stay there; of a pyramid its finest level if none is given. What is odd about the
    file is logged, unless `remarks` is False, as for a worker of a process that did so.

    Raises RaymarchError for files whose values are packed in one piece, for fitted volumes in nested boxes, in NDC, and
    of other channels than red, green and blue, and as `rm.load` does; as parts are read, for values that are no
    numbers, and for a file that is another by then or gone.
    """
    file = Path(path)
    kind = format_of(file, FORMATS if format is None else [format])
    selection = Selection(channel=channel, time=time, level=level if level is not None else 0)
    if kind is HDF5:
        if not scalar.is_scalar(file):
            return fitted.open_in_parts(file, selection)
        return _volume_of(scalar.source(file, selection), file, kind.name, remarks)
    if kind.name not in SOURCES:
        raise RaymarchError(
            f"{path}: {kind.name} is not read in parts, want {IN_PARTS}; raymarch convert makes one of them, where"
            " there is memory for all of it"
        )
    with explain_damage(file, kind.name):
        source = SOURCES[kind.name](file, selection)
        require_shape(source.shape, file)
        source.holds()
    if source.at_once:
        raise RaymarchError(
            f"{path}: its values are packed in one piece, want {IN_PARTS}; raymarch convert makes one of them, where"
            " there is memory for all of it"
        )
    return _volume_of(source, file, kind.name, remarks)


def _volume_of(source: Source, path: Path, name: str, remarks: bool) -> FileVolume:
    for remark in source.remarks if remarks else ():
        log.warning("%s: %s", path, remark)

    def read(slices: Slices) -> np.ndarray:
        with explain_damage(path, name):
            values = np.asarray(source.read(slices))
            return fill_missing(values, None, path, source.slope, source.intercept)

    kind = source.dtype.newbyteorder("=")
    samples = FileSamples(source.shape, kind, while_unchanged(path, read), source.slope, source.intercept)
    unit, length_unit, title = (text_of(text) for text in (source.unit, source.length_unit, source.name))
    text: dict[str, Any] = {"unit": unit, "length_unit": length_unit, "world": source.world, "name": title}
    return FileVolume(samples, source.world_from_index, source.background, **text)

"""Volume files of any format: saved, loaded, described and converted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments import checks
from raymarch.arguments.checks import one_of, optional
from raymarch.arguments.declared import checked
from raymarch.arguments.extensions import call_detect, choice_of_records
from raymarch.errors import RaymarchError
from raymarch.io.files.authorship import require_other
from raymarch.io.files.strict import require_file
from raymarch.io.volumes import format_choice, xdmf
from raymarch.io.volumes.dicom.dicom import DICOM
from raymarch.io.volumes.format import Format, read_volume, require_options, summary_of, with_spacing, write_volume
from raymarch.io.volumes.format_choice import format_of
from raymarch.io.volumes.hdf5.scalar import is_scalar
from raymarch.io.volumes.hdf5.volume import HDF5
from raymarch.io.volumes.metaimage import METAIMAGE
from raymarch.io.volumes.mrc import MRC
from raymarch.io.volumes.nifti import NIFTI
from raymarch.io.volumes.nrrd import NRRD
from raymarch.io.volumes.numpy_files import NPY, NPZ
from raymarch.io.volumes.openvdb.openvdb import OPENVDB
from raymarch.io.volumes.openvdb.writer import COMPRESSIONS
from raymarch.io.volumes.picture_slices import SLICES
from raymarch.io.volumes.raw import RAW_SHAPE, RAW_TYPE, raw_format
from raymarch.io.volumes.scalar_format import scalar_of
from raymarch.io.volumes.source import spacing_given
from raymarch.io.volumes.summary import ScalarSummary, VolumeSummary
from raymarch.io.volumes.tiff import TIFF
from raymarch.io.volumes.vtk import VTI
from raymarch.io.volumes.xdmf import XDMF
from raymarch.io.volumes.zarr import OME_ZARR
from raymarch.volumes.activation import OWN_ACTIVATIONS, ColourActivation, DensityActivation, known_by_name
from raymarch.volumes.samples import SPACING
from raymarch.volumes.scalar_volume import ANY_VOLUME
from raymarch.volumes.selection import CROP, INDEX, NAN, STRIDE, Selection
from raymarch.volumes.volume import AnyVolume

# A new format is a module beside this one, and a name here.
FORMATS = [HDF5, NRRD, NIFTI, METAIMAGE, MRC, VTI, TIFF, NPY, NPZ, OME_ZARR, OPENVDB, DICOM, SLICES, XDMF]
FIT_FORMATS = [HDF5]  # a fitted volume as it is: the others get its sigma alone

FORMAT = optional(choice_of_records(Format, FORMATS, "rm.Format"))


@checked(
    volume=ANY_VOLUME,
    path=checks.path,
    overwrite=checks.flag,
    format=FORMAT,
    half=checks.flag,
    compression=optional(one_of(*COMPRESSIONS)),
)
def save(
    volume: AnyVolume,
    path: str | os.PathLike[str],
    overwrite: bool = False,
    *,
    format: Format | str | None = None,
    half: bool = False,
    compression: str | None = None,
) -> None:
    """Volume written to a file in one step: if it fails, an older file of that name stays as it was; of the two of XDMF
    each by itself, the values first.

    Args:
        volume: a Volume or a ScalarVolume. Only HDF5 keeps a Volume as it is; OpenVDB gets its sigma and a colour a
            sample, other formats its sigma on its grid.
        path: whose suffix says the format: .h5, .hdf5, .nrrd and others of docs/volumes.md.
        overwrite: whether a file may be replaced that is no volume; an older volume always is.
        format: an `rm.Format` of your own, or one of raymarch's by name, whose suffix the path must have.
        half: whether OpenVDB gets numbers of half precision.
        compression: "zip" or "none", how OpenVDB packs them; zip by default.

    Raises RaymarchError for another suffix, a missing folder, a disk that refuses, a file that is no volume, an option
    that the format does not take, and for what the format cannot hold: HDF5 takes float32 and float64, and plain
    provenance of at most 16 MiB.

    Example:
        >>> save(Volume.from_function(lambda p: p[..., 0], shape=(8, 8, 8)), "ramp.h5")
    """
    found = format_choice.require_target(path, _among(format), overwrite)
    how = _options(half, compression)
    require_options(found, path, how, FORMATS)
    if found is XDMF:
        values = xdmf.values_of_new(Path(path), overwrite)
        scalar = scalar_of(volume, values)
        xdmf.require_regular(scalar, Path(path))
        save(scalar, values, overwrite)
        xdmf.write_beside(path, values)
        return
    write_volume(found, volume, path, **how)


@checked(
    path=checks.path,
    format=FORMAT,
    activations=OWN_ACTIVATIONS,
    crop=optional(CROP),
    stride=STRIDE,
    channel=optional(INDEX),
    time=optional(INDEX),
    level=optional(INDEX),
    nan=optional(NAN),
    spacing=optional(SPACING),
    shape=optional(RAW_SHAPE),
    dtype=optional(RAW_TYPE),
    offset=optional(INDEX),
)
def load(
    path: str | os.PathLike[str],
    *,
    format: Format | str | None = None,
    activations: Sequence[DensityActivation | ColourActivation] = (),
    crop: Sequence[Sequence[int]] | None = None,
    stride: int | Sequence[int] = 1,
    channel: int | None = None,
    time: int | None = None,
    level: int | None = None,
    nan: float | str | None = None,
    spacing: float | Sequence[float] | None = None,
    shape: Sequence[int] | None = None,
    dtype: str | np.dtype | type | None = None,
    offset: int | None = None,
) -> AnyVolume:
    """Volume of a file, in HDF5 checked against the digest that it carries: an `rm.Volume`, or an `rm.ScalarVolume`.

    Args:
        path: of the file, or of the folder where the format is one of folders.
        format: an `rm.Format` of your own, or one of raymarch's by name; found out from the file if not given.
        activations: of your own, which the file knows by name only.
        crop: ((x0, x1), (y0, y1), (z0, z1)) indices of the samples that are read, x1 not among them.
        stride: every so many samples along each axis of the array, or three such numbers.
        channel, time, level: which of several channels, points in time and levels of a pyramid, from 0.
        nan: what takes the place of values that are NaN or infinite: "empty", the least value, or a number.
        spacing: from sample to sample along each axis of the array [world unit], in place of what the file says.
        shape, dtype, offset: of a file of raw values without a header, x the fastest: samples (x, y, z) or
            (channel, x, y, z), type of number, little-endian unless it says ">i2", and bytes before them.

    A file over the budget of docs/hdf5.md is refused unless crop or stride ask for a part under it; of files
    that are not packed in one piece that part alone is read.

    Raises RaymarchError that names the file, what is wrong and the cure: a missing, damaged, altered, too large or
    foreign file, or one that would read other files.

    Example:
        >>> load("ramp.h5").shape  # doctest: +SKIP
        (8, 8, 8)
    """
    path = Path(path)
    selection = Selection(crop, stride, channel, time, level, nan)
    if (shape is None) != (dtype is None) or (offset is not None and shape is None):
        raise RaymarchError(f"{path}: raw values need shape and dtype, both; offset goes with them")
    if shape is not None and dtype is not None:
        format = raw_format(shape, dtype, offset=offset)
    with known_by_name(activations), spacing_given(spacing is not None):
        return with_spacing(read_volume(format_of(path, _among(format)), path, selection), spacing, selection, path)


@checked(path=checks.path, format=FORMAT, channel=optional(INDEX), time=optional(INDEX), level=optional(INDEX))
def describe(
    path: str | os.PathLike[str],
    *,
    format: Format | str | None = None,
    channel: int | None = None,
    time: int | None = None,
    level: int | None = None,
) -> VolumeSummary | ScalarSummary:
    """Summary of a volume file; in HDF5 read without its arrays, so their digest is not checked, `load` does that.

    Args:
        path: of the file.
        format, channel, time, level: as of `load`.

    Raises RaymarchError as `load` does.

    Example:
        >>> describe("ramp.h5").bytes_in_memory  # doctest: +SKIP
        8192
    """
    path = Path(path)
    return summary_of(format_of(path, _among(format)), path, Selection(channel=channel, time=time, level=level))


def is_volume(path: str | os.PathLike[str]) -> bool:
    """Whether a file or folder is a volume by its content, or by the suffix of a format that holds nothing else."""
    path = Path(path)
    is_folder = os.path.isdir(path)
    kinds = [one for one in FORMATS if one.folder or not is_folder]
    if named_as_volume(path, kinds):
        return True
    if os.path.exists(path) and not is_folder:
        require_file(path, "a volume file, or an image set")
    return os.path.exists(path) and any(call_detect(one, path) for one in kinds)


def named_as_volume(path: str | os.PathLike[str], formats: Sequence[Format] = FORMATS) -> bool:
    """Whether the suffix of a path is that of a format that holds volumes alone, as HDF5 does not."""
    return any(one.suffix_of(path) for one in formats if not one.ours)


def require_target(
    path: str | os.PathLike[str], overwrite: bool = False, *, size: int = 0, whole: bool = False, values: bool = True
) -> Format:
    """Format that `save` would take, checked before long work: RaymarchError where `save` could not write `size` bytes
    to `path`, or, if the volume is to be kept `whole`, its format leaves some of a fit behind. `values`: those of an
    XDMF are written too."""
    found = format_choice.require_target(path, FIT_FORMATS if whole else FORMATS, overwrite, size=size)
    if found is XDMF and values:
        format_choice.require_target(xdmf.values_of_new(Path(path), overwrite), FIT_FORMATS, overwrite)
    return found


def bytes_of_file(samples: int, degree: int, colours: int = 3) -> int:
    """Estimated file size of a fit of so many samples [byte]: packed it is half of the numbers, all where nothing is
    empty.

    Example:
        >>> bytes_of_file(1_000_000, 1)
        26000000
    """
    return samples * (1 + colours * (degree + 1) ** 2) * 4 // 2


def convert_volume(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    half: bool = False,
    compression: str | None = None,
    **how: Any,
) -> AnyVolume:
    """Volume of a file, or what `how` asks for of it, written to another; the volume.

    Args:
        source: file or folder of any volume format.
        target: whose suffix says the format. XDMF beside an HDF5 file of a scalar volume is about that file itself.
        overwrite, half, compression: as of `save`.
        how: format, crop, stride, channel, time, level, nan, spacing, shape, dtype and offset as of `load`.

    Raises RaymarchError for what `load` and `save` raise, and where target and source are one file.
    """
    source, target = Path(source), Path(target)
    require_other(target, source)
    is_xdmf = target.suffix.lower() in xdmf.SET_SUFFIXES
    near = is_xdmf and not how and source.resolve().parent == target.resolve().parent
    beside = near and source.is_file() and is_scalar(source)
    if is_xdmf and not beside:
        require_other(target.with_suffix(".h5"), source)
    found = require_target(target, overwrite, values=not beside)
    require_options(found, target, _options(half, compression), FORMATS)
    volume = load(source, **how)
    if beside:
        xdmf.write_beside(target, source)
    else:
        save(volume, target, overwrite, half=half, compression=compression)
    return volume


def _options(half: bool, compression: str | None) -> dict[str, Any]:
    """Options of writing that are given."""
    return {**({"half": half} if half else {}), **({"compression": compression} if compression else {})}


def _among(format: Format | str | None) -> Sequence[Format]:
    """The formats that may be meant; the rule of `format` has made a record of a name."""
    return FORMATS if format is None else [format]  # type: ignore[list-item]

"""Conversion of a volume file to another format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from raymarch.io.files.ours import require_other
from raymarch.io.volumes import xdmf
from raymarch.io.volumes.hdf5_scalar_file import is_scalar
from raymarch.io.volumes.volume_file import load, require_target, save
from raymarch.volumes.volume import AnyVolume


def convert_volume(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = False, **how: Any
) -> AnyVolume:
    """Volume of a file, or what `how` asks for of it, written to another; the volume.

    Args:
        source: file or folder of any volume format.
        target: whose suffix says the format. XDMF beside an HDF5 file of a scalar volume is about that file itself.
        overwrite: as of `save`.
        how: format, crop, stride, channel, time, level, nan, spacing, shape, dtype and offset as of `load`.

    Raises RaymarchError for what `load` and `save` raise, and where target and source are one file.
    """
    source, target = Path(source), Path(target)
    require_other(target, source)
    is_xdmf = target.suffix.lower() in xdmf.SUFFIXES
    near = is_xdmf and not how and source.resolve().parent == target.resolve().parent
    beside = near and source.is_file() and is_scalar(source)
    if is_xdmf and not beside:
        require_other(target.with_suffix(".h5"), source)
    require_target(target, overwrite, values=not beside)
    volume = load(source, **how)
    if beside:
        xdmf.write_beside(target, source)
    else:
        save(volume, target, overwrite)
    return volume

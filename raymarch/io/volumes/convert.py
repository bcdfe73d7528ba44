"""Conversion of a volume file to another format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from raymarch.data.volume import AnyVolume
from raymarch.io.files.ours import require_other
from raymarch.io.volumes import xdmf
from raymarch.io.volumes.hdf5_scalar_file import is_scalar
from raymarch.io.volumes.volume_file import load, require_target, save


def convert_volume(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = False, **how: Any
) -> AnyVolume:
    """Volume of a file, or what `how` asks for of it, written to another; the volume.

    Args:
        source: file or folder of any volume format.
        target: whose suffix says the format. XDMF beside an HDF5 file of a scalar volume is about that file itself.
        overwrite: as of `save`.
        how: crop, stride, channel, time, level, nan, spacing, shape, dtype and offset as of `load`.

    Raises RaymarchError for what `load` and `save` raise, and where target and source are one file.
    """
    source, target = Path(source), Path(target)
    require_other(target, source)
    require_target(target, overwrite)
    volume = load(source, **how)
    beside = target.suffix.lower() in xdmf.SUFFIXES and not how
    if beside and source.is_file() and is_scalar(source) and source.resolve().parent == target.resolve().parent:
        xdmf.write_beside(target, source)
    else:
        if target.suffix.lower() in xdmf.SUFFIXES:
            require_other(target.with_suffix(".h5"), source)
        save(volume, target, overwrite)
    return volume

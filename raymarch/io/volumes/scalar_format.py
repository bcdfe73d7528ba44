"""Formats of scalar volumes: one function for the header, one to write; the rest is the same for all."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from raymarch.data.scalar_volume import ScalarVolume
from raymarch.data.selection import ALL, Selection
from raymarch.data.volume import AnyVolume
from raymarch.errors import FAULTS_OF_OURS, RaymarchError, fault_of_ours, one_line
from raymarch.io.files.atomic import refused
from raymarch.io.volumes.format import Format
from raymarch.io.volumes.part import require_one_grid
from raymarch.io.volumes.scalar_summary import ScalarSummary
from raymarch.io.volumes.source import Source, require_shape, volume_of

log = logging.getLogger("raymarch")
CURE = "export it again"
LOST = {
    "unit": "unit of values ({})", "length_unit": "unit of length ({})", "world": "names of the world's sides ({})",
    "name": "name ({})",
}  # fmt: skip
PART = "read a part of it by crop or stride (rm.load(.., stride=2), raymarch convert --stride 2)"


def scalar_format(
    name: str,
    suffixes: tuple[str, ...],
    detect: Callable[[Path], bool],
    source: Callable[[Path, Selection], Source],
    write: Callable[[ScalarVolume, Path], object],
    *,
    folder: bool = False,
    loses: tuple[str, ...] = (),
) -> Format:
    """Format whose files hold scalar volumes.

    Args:
        name, suffixes, detect, folder: as of `Format`.
        source: `source(path, selection)`, what the header says; of the selection it needs channel, time and level.
        write: `write(volume, path)`, of a ScalarVolume; of a fit it gets sigma on the grid.
        loses: names of `LOST`, fields that the format cannot hold, which is said of a volume that has them.
    """

    def read(path: Path, *, selection: Selection = ALL) -> ScalarVolume:
        with damage_told(path, name):
            return volume_of(source(path, selection), selection, path)

    def describe(path: Path, *, selection: Selection = ALL) -> ScalarSummary:
        with damage_told(path, name):
            found = source(path, selection)
            require_shape(found.shape, path)
            found.holds()
            return ScalarSummary.of_source(found, path)

    def write_scalar(volume: AnyVolume, path: Path) -> None:
        with _path_named(path), refused(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scalar = scalar_of(volume, path)
            if left := [LOST[field].format(getattr(scalar, field)) for field in loses if getattr(scalar, field)]:
                log.warning("%s holds no %s, which stays behind", name, " and no ".join(left))
            write(scalar, path)

    return Format(name, suffixes, detect, read, write_scalar, describe, folder=folder, ours=False)


@contextmanager
def damage_told(path: Path, name: str) -> Iterator[None]:
    """Context in which whatever a format's library raises becomes one line, and what it warns of is not shown.

    What a library says of damage, in exceptions of its own or OSError, ValueError, EOFError and the like, is the
    file's. `FAULTS_OF_OURS` are told as what they are, and no memory as that.
    """
    try:
        with _path_named(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except RaymarchError:
        raise
    except MemoryError as error:
        raise RaymarchError(f"{path}: there is no memory for its values; {PART}") from error
    except Exception as error:
        if "imagecodecs" in str(error):  # by which tifffile unpacks what it does not itself
            said = f"{path}: is packed in a way that takes imagecodecs, which is not installed"
            raise RaymarchError(f'{said}; pip install "raymarch[formats]", or save it unpacked') from error
        if isinstance(error, FAULTS_OF_OURS):
            raise RaymarchError(f"{path}: {fault_of_ours(error)}") from error
        raise RaymarchError(f"{path}: is no whole {name} ({one_line(error)[:300]}); {CURE}") from error


@contextmanager
def _path_named(path: Path) -> Iterator[None]:
    """Context in which errors of ours open with the path."""
    try:
        yield
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(str(path)) else f"{path}: {text}") from error


@contextmanager
def wanted(library: str, name: str) -> Iterator[None]:
    """Context for the import of an optional library; RaymarchError, with the extra, where it is missing."""
    try:
        yield
    except ImportError as error:
        raise RaymarchError(
            f'{library} is not installed, which raymarch needs for {name}; pip install "raymarch[formats]"'
        ) from error


def scalar_of(volume: AnyVolume, path: Path) -> ScalarVolume:
    """Scalar volume of any: of a fit its sigma on the grid, which is said.

    Raises RaymarchError for nested boxes and for a volume in NDC, which are no grid of one spacing in the world.
    """
    if isinstance(volume, ScalarVolume):
        return volume
    require_one_grid(volume, path)
    log.warning("the file gets sigma of the volume on its grid; colours and activations stay behind")
    return ScalarVolume(
        volume.sigma().astype(np.float32),
        volume.world_from_index,
        unit="1/world unit",
        name="sigma",
        background=volume.background,
    )


def plain_values(volume: ScalarVolume) -> np.ndarray:
    """Values (x, y, z) for formats without a slope: as stored where that is 1 and 0, whole where they are, else floats.

    Example:
        >>> plain_values(ScalarVolume(np.full((2, 2, 2), 1000, np.uint16), intercept=-1024)).dtype
        dtype('int16')
    """
    if (volume.slope, volume.intercept) == (1.0, 0.0):
        return volume.values
    whole = volume.values.dtype.kind in "iu" and volume.slope.is_integer() and volume.intercept.is_integer()
    if not whole or max(map(abs, volume.range)) >= 2**53:
        return volume.numbers()
    low, high = (int(end) for end in volume.range)
    kinds = [np.dtype(f"{sign}{size}") for size in (1, 2, 4, 8) for sign in "ui"]
    kinds = [one for one in kinds if one.itemsize >= volume.values.dtype.itemsize]
    kind = next(one for one in kinds if np.iinfo(one).min <= low and high <= np.iinfo(one).max)
    return (volume.values.astype(np.int64) * int(volume.slope) + int(volume.intercept)).astype(kind)


def single_values(volume: ScalarVolume) -> np.ndarray:
    """Values of `plain_values` for formats that know no half precision: those as float32."""
    values = plain_values(volume)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def sheared_by(volume: ScalarVolume) -> float:
    """Shear of a volume's axes: the greatest cosine between two of them."""
    return float(np.abs(volume.directions.T @ volume.directions - np.eye(3)).max())


def require_no_shear(volume: ScalarVolume, path: Path, name: str) -> None:
    """RaymarchError where the axes of a volume are not at right angles, which a format cannot say."""
    off = sheared_by(volume)
    if off > 1e-6:
        raise RaymarchError(
            f"{path}: the volume is sheared (its axes are {off:.2g} off right angles), which {name} cannot hold; save"
            " it as .nrrd or .h5"
        )


def require_upright(volume: ScalarVolume, path: Path, name: str) -> None:
    """RaymarchError where the axes of a volume are not those of the world, which a format cannot say."""
    if float(np.abs(volume.directions - np.eye(3)).max()) > 1e-6:
        said = "the volume is turned, mirrored or sheared in the world"
        raise RaymarchError(f"{path}: {said}, which {name} cannot hold; save it as .nrrd or .h5")

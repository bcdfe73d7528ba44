"""Formats of scalar volumes: one function for the header, one to write; the rest is the same for all.

The rest: errors in one line, the choice along axes that are not of space, and what is lost where a format holds less.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.errors import PROGRAM_FAULTS, RaymarchError, distinct_figures, one_line, program_fault
from raymarch.io.files.atomic import system_refusals
from raymarch.io.volumes.format import Format, require_one_grid, require_one_place
from raymarch.io.volumes.source import Index, Slices, Source, require_shape, volume_of
from raymarch.io.volumes.summary import ScalarSummary
from raymarch.volumes.channels import WHITE
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import EVERYTHING, Selection
from raymarch.volumes.volume import AnyVolume

log = logging.getLogger("raymarch")
MAX_SINGLE_ROUNDING = 1e-4  # of the range of a fit's sigma: what single precision may round it by
MAX_UNTOLD_SHIFT = 1e-2  # of a voxel: what a sample may move by in a file without a word
EXPORT_CURE = "export it again"
LOSS_WORDS = {
    "unit": "unit of values ({})", "length_unit": "unit of length ({})", "world": "names of the world's sides ({})",
    "name": "name ({})",
}  # fmt: skip
# Words in the names of axes that are no points in time; and how a place along an axis is chosen in the shell.
COLOUR_CURE = (
    "rgb", "rgba", "hsv", "xyz", "color", "colour", "vector", "point", "normal", "complex", "channel", "list", "matrix",
    "gradient", "quaternion",
)  # fmt: skip
OPTION_NAMES = {"channel": "--channel", "time": "--time-point"}
PART_CURE = "read a part of it by crop or stride (rm.load(.., stride=2), raymarch convert --stride 2)"


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
        loses: names of `LOSS_WORDS`, fields that the format cannot hold, which is said of a volume that has them.
    """

    def read(path: Path, *, selection: Selection = EVERYTHING) -> ScalarVolume:
        with explain_damage(path, name):
            return volume_of(source(path, selection), selection, path)

    def describe(path: Path, *, selection: Selection = EVERYTHING) -> ScalarSummary:
        with explain_damage(path, name):
            found = source(path, selection)
            require_shape(found.shape, path)
            found.holds()
            return ScalarSummary.of_source(found, path)

    def write_scalar(volume: AnyVolume, path: Path) -> None:
        with name_path(path), system_refusals(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scalar = scalar_of(volume, path)
            if left := [LOSS_WORDS[field].format(getattr(scalar, field)) for field in loses if getattr(scalar, field)]:
                log.warning("%s holds no %s, which stays behind", name, " and no ".join(left))
            write(scalar, path)

    return Format(name, suffixes, detect, read, write_scalar, describe, folder=folder, ours=False)


@contextmanager
def explain_damage(path: Path, name: str) -> Iterator[None]:
    """Context in which whatever a format's library raises becomes one line, and what it warns of is not shown.

    What a library says of damage, in exceptions of its own or OSError, ValueError, EOFError and the like, is the
    file's. `PROGRAM_FAULTS` are told as what they are, and no memory as that.
    """
    try:
        with name_path(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except RaymarchError:
        raise
    except MemoryError as error:
        raise RaymarchError(f"{path}: there is no memory for its values; {PART_CURE}") from error
    except Exception as error:
        if "imagecodecs" in str(error):  # by which tifffile unpacks what it does not itself
            said = f"{path}: is packed in a way that takes imagecodecs, which is not installed"
            raise RaymarchError(f'{said}; pip install "raymarch[formats]", or save it unpacked') from error
        if isinstance(error, PROGRAM_FAULTS):
            raise RaymarchError(f"{path}: {program_fault(error)}") from error
        raise RaymarchError(f"{path}: is no whole {name} ({one_line(error)[:300]}); {EXPORT_CURE}") from error


@contextmanager
def name_path(path: Path) -> Iterator[None]:
    """Context in which errors of ours open with the path."""
    try:
        yield
    except RaymarchError as error:
        text = str(error)
        raise RaymarchError(text if text.startswith(str(path)) else f"{path}: {text}") from error


@contextmanager
def require_library(library: str, name: str) -> Iterator[None]:
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
    sigma = volume.sigma()
    single = sigma.astype(np.float32)
    apart = MAX_SINGLE_ROUNDING * float(np.ptp(sigma))
    return ScalarVolume(
        single if float(np.abs(single - sigma).max()) <= apart else sigma,
        volume.world_from_index,
        unit="1/world unit",
        name="sigma",
        background=volume.background if volume.is_colour else WHITE,  # type: ignore[arg-type]  # three, of a colour
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


def shear_of(volume: ScalarVolume) -> float:
    """Shear of a volume's axes: the greatest cosine between two of them."""
    return float(np.abs(volume.directions.T @ volume.directions - np.eye(3)).max())


def require_no_shear(volume: ScalarVolume, path: Path, name: str) -> None:
    """RaymarchError where the axes of a volume are not at right angles, which a format cannot say."""
    off = shear_of(volume)
    if off > 1e-6:
        raise RaymarchError(
            f"{path}: the volume is sheared (its axes are {off:.2g} off right angles), which {name} cannot hold; save"
            " it as .nrrd or .h5"
        )


def tell_rounding(volume: ScalarVolume, name: str, kept: np.ndarray, world_from_index: np.ndarray) -> None:
    """Warning where the affine that a format keeps is so far from the volume's that samples move: by how much."""
    top = np.array(volume.shape) - 1.0
    ends = np.stack(np.meshgrid(*np.stack([0 * top, top], 1), indexing="ij"), -1).reshape(-1, 3)
    moved = float(np.abs(ends @ (kept - world_from_index)[:3, :3].T + (kept - world_from_index)[:3, 3]).max())
    voxel = float(np.linalg.norm(world_from_index[:3, :3], axis=0).min())
    if moved > MAX_UNTOLD_SHIFT * voxel:
        log.warning(
            "%s keeps places in single precision: samples move by up to %.2g, %.2g of a voxel; save it as .nrrd, .mha"
            " or .h5, which have doubles, or move its origin nearer to 0",
            name,
            moved,
            moved / voxel,
        )


def narrow_values(volume: ScalarVolume, values: np.ndarray, kind: str, name: str) -> np.ndarray:
    """Values as a narrower type of floats that a format has, with a warning of what that rounds, and by how much.

    Raises RaymarchError where that would leave nothing of what tells the values apart.
    """
    with np.errstate(over="ignore", under="ignore"):
        cast = values.astype(kind)
    off = max(float(np.abs(a.astype(float) - b.astype(float)).max()) for a, b in zip(cast, values, strict=True))
    if off == 0:
        return cast
    low, high = volume.range
    if low != high and float(cast.min()) == float(cast.max()):
        least, most = distinct_figures(low, high)
        raise RaymarchError(f"values are from {least} to {most}, all alike in {name}'s {cast.dtype}; save it as .nrrd")
    log.warning("%s has no %s: %s rounds values by up to %.2g; .nrrd keeps them", name, values.dtype, cast.dtype, off)
    return cast


def require_upright(volume: ScalarVolume, path: Path, name: str) -> None:
    """RaymarchError where the axes of a volume are not those of the world, which a format cannot say."""
    if float(np.abs(volume.directions - np.eye(3)).max()) > 1e-6:
        said = "the volume is turned, mirrored or sheared in the world"
        raise RaymarchError(f"{path}: {said}, which {name} cannot hold; save it as .nrrd or .h5")


def choose_index(
    path: Path,
    shape: Sequence[int],
    spatial: Sequence[int],
    selection: Selection,
    names: Sequence[object] | None = None,
) -> tuple[Callable[[Slices], Index], tuple[str, ...]]:
    """Index of a file's array for slices along x, y and z, and what of the choice is to be said.

    Args:
        path, shape: of the file and its array.
        spatial: axes that are x, y and z, rising.
        selection: of which `channel` and `time` say which place along the other axes.
        names: kinds of the axes, by which channels are told from points in time.

    Raises RaymarchError for an axis of several places of which none is chosen, and for one that is not there.
    """
    fixed: dict[int, int] = {}
    others = [axis for axis in range(len(shape)) if axis not in spatial]
    asked: dict[str, Any] = {"channel": selection.channel, "time": selection.time}
    for axis in others:
        option = _option(axis, spatial, None if names is None else str(names[axis]))
        count = int(shape[axis])
        if option not in asked and count > 1:
            where = ", ".join(":" if one in spatial else "0" for one in range(len(shape)))
            raise RaymarchError(
                f"{path}: has {' x '.join(map(str, shape))} numbers along {len(shape)} axes, of which {option} chooses"
                f" one; take one volume in Python, as array[{where}], and np.save that"
            )
        place = asked.pop(option, None)
        if place is None and count > 1:
            what = "channels" if option == "channel" else "points in time"
            raise RaymarchError(
                f"{path}: has {count:,} {what} along axis {axis}, want one volume; choose one by {option}=0"
                f" ({OPTION_NAMES[option]} 0 in the shell)"
            )
        if place is not None and place >= count:
            raise RaymarchError(f"{path}: {option} is {place}, but it has {count:,}; choose one from 0 to {count - 1}")
        fixed[axis] = place or 0
    require_one_place(Selection(**asked), path)
    require_one_place(Selection(level=selection.level), path)

    def index(slices: Slices) -> Index:
        of_space = iter(slices)
        return tuple(fixed[axis] if axis in fixed else next(of_space) for axis in range(len(shape)))

    return index, ()


def _option(axis: int, spatial: Sequence[int], name: str | None) -> str:
    """Whether an axis is one of channels or of time: by its name, else channels come before those of space."""
    if name and any(word in name.lower() for word in COLOUR_CURE):
        return "channel"
    if name and "time" in name.lower():
        return "time"
    return "channel" if axis < spatial[0] else "time"

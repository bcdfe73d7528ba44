"""Format of volume files: the record of one, what is read and written by it, and what is asked of any volume."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from raymarch.arguments.checks import Check, flag, optional
from raymarch.arguments.declared import checked_field
from raymarch.arguments.extensions import NAME, call_callback, callback_rule, hold_parts, record_label
from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import replace_file, replace_folder
from raymarch.io.volumes.summary import ScalarSummary, VolumeSummary, bytes_of
from raymarch.volumes.scalar_volume import ScalarVolume
from raymarch.volumes.selection import EVERYTHING, Selection
from raymarch.volumes.volume import AnyVolume, Volume

SUFFIX = re.compile(r"(\.[A-Za-z0-9_+-]{1,16}){1,3}")
SUFFIXES = "one or more suffixes such as .h5"


def _suffixes(value: Any) -> tuple[str, ...]:
    several = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(one, str) and SUFFIX.fullmatch(one) for one in several):
        raise ValueError
    return tuple(one.lower() for one in several)


@dataclass(frozen=True)
class Format:
    """Format of volume files: pass one to `rm.save`, `rm.load` and `rm.describe` as `format=`.

    Attributes:
        name: what it is called in messages, and by `format=` where it is one of raymarch's own.
        suffixes: how names of its files end, such as (".h5", ".hdf5"), in letters of either case; none of a folder
            that is known by its content, and not saved.
        detect: `detect(path)`, whether a file has the format, found out from its content.
        read: `read(path)`, its volume, an `rm.Volume` or an `rm.ScalarVolume`; where it takes `selection=` besides, it
            gets the `rm.Selection` of a large file that is asked for, else that is cut out of what it gives.
        write: `write(volume, path)` writes one; the path is that of an empty file of the same suffix, which takes its
            place once all is written, so that a failure leaves the older file as it was. Where it takes `half=` or
            `compression=` besides, it gets what `rm.save` is asked for of them.
        describe: `describe(path)`, an `rm.VolumeSummary` or `rm.ScalarSummary` without reading the arrays, of what
            `selection=` says if it takes that; if not given the volume is read.
        folder: whether a volume is a folder of files.
        ours: whether files of the format are raymarch's own, which `rm.save` replaces unasked.

    Paths come as pathlib.Path. Whatever a function raises becomes a RaymarchError that names the format and the
    function, and so does what is no volume.

    Raises RaymarchError for a part that is missing or no function.

    Example:
        >>> def write(volume, path):
        ...     np.savez(path, sigma=volume.sigma())
        >>> def read(path):
        ...     return Volume.from_array(np.load(path)["sigma"])
        >>> npz = Format("sigma", ".npz", lambda path: path.read_bytes()[:2] == b"PK", read, write)
        >>> save(Volume.from_array(np.ones((4, 5, 6))), "ones.npz", format=npz)
        >>> load("ones.npz", format=npz).shape
        (4, 5, 6)
    """

    name: str = checked_field(NAME, None)
    suffixes: Sequence[str] = checked_field(Check(SUFFIXES, _suffixes), None)
    detect: Callable[[Path], bool] = checked_field(callback_rule("detect(path)", "True or False"), None)
    read: Callable[..., AnyVolume] = checked_field(callback_rule("read(path)", "an rm.Volume"), None)
    write: Callable[[Any, Path], object] = checked_field(callback_rule("write(volume, path)", "nothing"), None)
    describe: Callable[..., VolumeSummary | ScalarSummary] | None = checked_field(
        optional(callback_rule("describe(path)", "an rm.VolumeSummary")), None
    )
    folder: bool = checked_field(flag, False)
    ours: bool = checked_field(flag, True)

    def __post_init__(self) -> None:
        if self.folder is False and isinstance(self.suffixes, (tuple, list)) and not self.suffixes:
            raise RaymarchError(f"{record_label(self)}: suffixes is (), want {SUFFIXES}; give one, or say folder=True")
        hold_parts(self)

    def suffix_of(self, path: str | os.PathLike[str]) -> str:
        """Suffix of the format that the path ends in; "" if it is none of them."""
        name = Path(path).name.lower()
        return next((one for one in self.suffixes if name.endswith(one) and name != one), "")


def read_volume(format: Format, path: Path, selection: Selection = EVERYTHING) -> AnyVolume:
    """Volume of a file, or what is selected of it; RaymarchError where it cannot be read."""
    asked = (
        {"selection": selection} if selection != EVERYTHING and "selection" in signature(format.read).parameters else {}
    )
    volume: Any = call_callback(format, "read", path, path, kind=(Volume, ScalarVolume), wanted="an rm.Volume", **asked)
    return volume if asked else part_of(volume, selection, path)


def summary_of(format: Format, path: Path, selection: Selection = EVERYTHING) -> VolumeSummary | ScalarSummary:
    """Summary of a file, of a channel, time and level of it; RaymarchError where it cannot be read."""
    if format.describe is None:
        volume = read_volume(format, path, selection)
        kind: Any = ScalarSummary if isinstance(volume, ScalarVolume) else VolumeSummary
        return kind.of(volume, bytes_of(path))
    kinds = (VolumeSummary, ScalarSummary)
    takes = "selection" in signature(format.describe).parameters
    if not takes:
        require_one_place(selection, path)
    asked = {"selection": selection} if takes else {}
    found: Any = call_callback(format, "describe", path, path, kind=kinds, wanted="an rm.VolumeSummary", **asked)
    return found


def write_volume(format: Format, volume: AnyVolume, path: str | os.PathLike[str], **how: Any) -> None:
    """Atomic write of a volume: if the format's `write` fails, an older file stays as it was, and nothing is left.

    Args:
        how: options that the format's `write` takes, as `require_options` checks.

    Raises RaymarchError, in which the path has its own name, not that of the temporary file.
    """
    place = replace_folder(path) if format.folder else replace_file(path, format.suffix_of(path))
    with place as temporary, _remove_siblings(temporary), _name_errors(temporary, path):
        call_callback(format, "write", temporary, volume, temporary, kind=object, wanted="nothing", **how)
        if not format.folder and (not temporary.is_file() or temporary.stat().st_size == 0):
            raise RaymarchError(
                f"{record_label(format)}: write of {path} wrote nothing; write to the path that it gets"
            )


def require_options(
    format: Format, path: str | os.PathLike[str], options: Mapping[str, Any], formats: Sequence[Format]
) -> None:
    """RaymarchError for options of writing that a format does not take; it names the formats that do."""
    for name in options:
        if name not in signature(format.write).parameters:
            taking = [one for one in formats if name in signature(one.write).parameters]
            words = ", ".join(f"{one.name} ({', '.join(one.suffixes)})" for one in taking)
            raise RaymarchError(
                f"{path}: {name} is given, which {format.name} does not take, but {words}; leave it out"
            )


@contextmanager
def _name_errors(temporary: Path, path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors that name the temporary file name the path that it is to become."""
    try:
        yield
    except RaymarchError as error:
        raise RaymarchError(str(error).replace(str(temporary), str(path))) from (error.__cause__ or error)


@contextmanager
def _remove_siblings(temporary: Path) -> Iterator[None]:
    """Files that a writer made beside the temporary one, under its name with more behind it, are removed."""
    try:
        yield
    finally:
        for other in temporary.parent.glob(f"{temporary.name}?*"):
            with suppress(OSError):
                other.unlink()


def part_of(volume: AnyVolume, selection: Selection, path: Path) -> AnyVolume:
    """Crop and stride of a volume, of bricks in dense arrays.

    RaymarchError for a channel, time or level, for nested boxes and NDC, and where there is no memory for the arrays.
    """
    require_one_place(selection, path)
    if selection.is_all:
        return volume
    if isinstance(volume, ScalarVolume):
        return volume.part(selection)
    require_one_grid(volume, path)
    index = [np.arange(n)[one] for n, one in zip(volume.shape, selection.slices(volume.shape), strict=True)]
    place = volume.world_from_index @ selection.index_from_part(volume.shape)
    return replace(volume, samples=volume.samples.part(index, volume.activation.empty), world_from_index=place)


def require_one_place(selection: Selection, path: Path) -> None:
    """RaymarchError where a selection chooses another channel, time or level than the first, of which there is one."""
    for name in ("channel", "time", "level"):
        if getattr(selection, name):
            raise RaymarchError(f"{path}: {name} is {getattr(selection, name)}, but there is only one; leave it out")


def require_one_grid(volume: AnyVolume, path: Path) -> None:
    """RaymarchError for a volume of nested boxes or in NDC, which are no grid of one spacing in the world."""
    if volume.boxes > 1 or volume.ndc_from_world is not None:
        kind, more = f"of {volume.boxes} nested boxes", ", or take the innermost, volume.nested(0)"
        if volume.ndc_from_world is not None:
            kind, more = "in NDC", ""
        raise RaymarchError(f"{path}: the volume is {kind}, want one grid in the world; leave it whole, as .h5{more}")


def with_spacing(
    volume: AnyVolume, spacing: float | Sequence[float] | None, selection: Selection, path: Path
) -> AnyVolume:
    """Volume with another spacing of its file's samples, of which a stride leaves out some; its origin stays."""
    if spacing is None:
        return volume
    require_one_grid(volume, path)
    steps = np.broadcast_to(np.asarray(spacing, float), 3) * np.asarray(selection.stride)
    affine = volume.world_from_index.copy()
    edges = np.linalg.norm(affine[:3, :3], axis=0)
    if selection.crop is not None:
        first = [start for start, _ in selection.crop] / np.asarray(selection.stride)
        affine[:3, 3] += affine[:3, :3] @ (first * (steps / edges - 1))
    affine[:3, :3] *= steps / edges
    return replace(volume, world_from_index=affine)

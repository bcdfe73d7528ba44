"""Saving the volume of a fit: less never takes the place of more, and nothing is lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.fitting.report import cut_short
from raymarch.io.volumes.volume_file import describe, save
from raymarch.volumes.volume import Volume


@dataclass(frozen=True)
class SavedVolume:
    """Place of a saved volume, and why it is not where it was wanted; "" if it is."""

    path: Path
    why: str = ""


def save_volume(volume: Volume, path: str | os.PathLike[str], overwrite: bool = False) -> SavedVolume:
    """Volume of a fit saved to `path`, or beside it where it was cut short and `path` is a finished one.

    Where it cannot be written there, it goes to the working folder, the temporary one or the home, under a name that
    is free. An older one that was cut short is replaced.

    Raises RaymarchError where none of them takes it.

    Example:
        >>> ball = Volume.from_function(lambda p: p[..., 0], shape=(4, 4, 4))
        >>> save_volume(ball, "ball.h5").path.name
        'ball.h5'
    """
    wanted = Path(path)
    place, why = wanted, ""
    if cut_short(volume.provenance.get("ended")) and _is_finished(wanted):
        place = next(p for p in _numbered_paths(wanted, ".interrupted") if not _is_something(p) or _is_cut_short(p))
        why = f"{wanted} is finished and stays as it was; this one, cut short, is {place}"
    try:
        save(volume, place, overwrite and place == wanted)
        return SavedVolume(place, why)
    except RaymarchError as error:
        for folder in (Path.cwd, _private_folder, Path.home):
            if second := _saved_in(folder, volume, wanted):
                return SavedVolume(second, f"{error}; it is saved as {second}, move it from there")
        raise


def _saved_in(folder: Callable[[], Path], volume: Volume, wanted: Path) -> Path | None:
    """Where it was saved in the folder, under a name as wanted that was free; None if it could not be."""
    try:
        path = next(p for p in _numbered_paths(folder() / wanted.name) if not _is_something(p))
        save(volume, path)
        return path
    except (RaymarchError, OSError, RuntimeError):  # RuntimeError: there is no home
        return None


def _private_folder() -> Path:
    """A new folder: in the one for temporary files others could have laid links under the volume's name."""
    return Path(tempfile.mkdtemp(prefix="raymarch-"))


def _numbered_paths(path: Path, extra: str = "") -> Iterator[Path]:
    """`ball.h5` as ball.h5, ball-2.h5, ball-3.h5 and so on, with something extra before the suffix."""
    for i in range(1, 1000):
        yield path.with_name(f"{path.stem}{extra}{f'-{i}' if i > 1 else ''}{path.suffix}")


def _is_something(path: Path) -> bool:
    return os.path.lexists(path)


def _is_finished(path: Path) -> bool:
    """Whether it is a volume that was not cut short; one that no fit made is."""
    return _fit_ending(path) is not None and not _is_cut_short(path)


def _is_cut_short(path: Path) -> bool:
    return cut_short(_fit_ending(path))


def _fit_ending(path: Path) -> object:
    """How the fit of a volume file ended, as it says itself; "" where it does not, None where it is no volume."""
    try:
        return describe(path).provenance.get("ended") or ""
    except RaymarchError:
        return None

"""Overwrite protection: only files that raymarch wrote are written over unasked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from raymarch.errors import RaymarchError, first_names
from raymarch.io.files.strict import read_json

MAX_PARENT_FOLDERS = 4  # folders, from an image's own upwards, in which an image set that lists it is looked for
SYSTEM_FILES = re.compile(r"\.DS_Store|\._.*|Thumbs\.db|desktop\.ini", re.IGNORECASE)  # laid by macOS and Windows


def require_ours(paths: Iterable, what: str, is_ours: Callable[[Path], bool], overwrite: bool = False) -> None:
    """Overwrite check: RaymarchError where one of `paths` is a file that would be lost, unless `overwrite`.

    Lost would be what raymarch did not write, as `is_ours` tells of a file, and every image that an image set lists,
    whoever made it. Files without content are nobody's. `what` is what is about to be written: "picture", "volume".

    Example:
        >>> require_ours(["new.png"], "picture", lambda path: False)
    """
    if overwrite:
        return
    lost = [(path, why) for path in map(Path, paths) if (why := _loss(path, what, is_ours))]
    if lost:
        (path, why), others = lost[0], len(lost) - 1
        more = f", and so would {others} more" if others else ""
        raise RaymarchError(
            f"{path}: {why} and would be lost{more}; choose another {'folder' if others else 'name'}, or --overwrite"
            " (overwrite=True in Python)"
        )


def require_other(target: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
    """Check of an output: RaymarchError where it is the file that is read, even by another name."""
    same = False
    with suppress(OSError, ValueError):
        same = os.path.samefile(target, source)
    if same:
        raise RaymarchError(f"{target}: is what is read, and would be lost; choose another name")


def sizes_in(folder: str | os.PathLike[str]) -> dict[str, int]:
    """Bytes of each file below a folder, by its path within; links are not followed. {} where there is no folder."""
    found = {}
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*files, *folders)):
            if path.is_symlink() or not path.is_dir():
                found[path.relative_to(folder).as_posix()] = path.lstat().st_size
    return found


def require_only(folder: str | os.PathLike[str], ours: Mapping[str, int | None]) -> None:
    """Overwrite check of a folder that is replaced as a whole: RaymarchError where it holds more than our files, as
    they were written: paths within it and their bytes, None for any. What systems lay in a folder is nobody's."""
    sizes = {
        path: size for path, size in sizes_in(folder).items() if not SYSTEM_FILES.fullmatch(path.rpartition("/")[2])
    }
    others = sorted(path for path, size in sizes.items() if ours.get(path, -1) not in (None, size))
    if others:
        words = first_names(others, most=3)
        raise RaymarchError(
            f"{folder}: is there already and would be lost, {words} in it; choose another name by --out"
        )


def _loss(path: Path, what: str, is_ours: Callable[[Path], bool]) -> str:
    """Why the file may not be replaced, or nothing."""
    try:
        if not path.is_file() or path.stat().st_size == 0:
            return ""
        if not is_ours(path):
            return f"is no {what} of raymarch's"
        if document := _set_of(path):
            return f"is an image of the set {document}"
    except OSError:  # what cannot be looked at is not known to be ours
        return f"cannot be told to be a {what} of raymarch's"
    return ""


def is_of_a_set(path: Path) -> bool:
    """Whether an image set lists a file as an image, or it cannot be told."""
    try:
        return _set_of(path) is not None
    except OSError:
        return True


def _set_of(path: Path) -> Path | None:
    """The file of the image set that lists a file as an image; None where there is none."""
    documents = _transforms_about(path)
    return next((one for one in documents if path.resolve() in _images(one, one.stat().st_mtime_ns)), None)


def _transforms_about(path: Path) -> Iterator[Path]:
    """The files that may list an image: of its folder and those above it, by its name and by where links lead."""
    above = {
        folder for file in (Path(os.path.abspath(path)), path.resolve()) for folder in file.parents[:MAX_PARENT_FOLDERS]
    }
    for folder in sorted(above):
        yield from sorted(folder.glob("transforms*.json"))


@lru_cache(maxsize=16)
def _images(document: Path, changed: int) -> frozenset[Path]:
    """The PNG images that a transforms file lists, as it was when last changed; none where it is not one."""
    found = set()
    with suppress(RaymarchError, LookupError, TypeError):
        for frame in read_json(document, comments=True)["frames"]:
            with suppress(LookupError, TypeError, ValueError, OSError, RuntimeError):
                path = document.parent / frame["file_path"]
                found |= {path.resolve(), path.with_name(path.name + ".png").resolve()}
    return frozenset(found)

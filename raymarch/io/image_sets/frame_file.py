"""File of a frame's image: found in the set's own folder however its path is spelt, and named as no other."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import unquote

from raymarch.errors import RaymarchError, first_names, one_line, short_value
from raymarch.io.images.header import OTHER_SUFFIXES, SUFFIXES

MASK_ARRAYS = (".npy", ".npz", ".h5")  # suffixes that other programs give to masks
IS_THERE_HINT = " is there"
RENAME_CURE = "rename the files to the names that are listed, whatever their format, or correct the list"
UNENCODABLE = (
    f"cannot be a file's name where the system's encoding is {sys.getfilesystemencoding()}; set the environment"
    " variable PYTHONUTF8=1 or LC_ALL=C.UTF-8"
)


def frame_file(
    folder: Path,
    root: Path,
    text: object,
    where: str,
    follow_links: bool = False,
    *,
    key: str = "file_path",
    image: bool = True,
) -> Path:
    """File that a path in a set leads to; of an image without suffix .png, or what is there of other formats.

    A name that differs in capitals, in Unicode's spelling, by %20 for a space or by slashes alone is found; of an
    absolute path of another machine the end that is in the folder.

    It must lie in the folder, which is `root` once links are followed: a data set of strangers shall not read other
    files. With `follow_links` a link in it may lead out; a path with `..` may not even then.

    Raises RaymarchError, opened by `where` and what the set calls the path, for one that leads elsewhere or is none.
    """
    if not isinstance(text, str) or not text or "\0" in text:
        raise RaymarchError(f"{where}: {key} is {short_value(text)}, want the path of a file; export it again")
    if "://" in text:
        raise RaymarchError(f"{where}: {key} {short_value(text)} is a URL, want a file in {folder}; download it there")
    absolute = PurePosixPath(text).is_absolute() or bool(PureWindowsPath(text).anchor)
    try:
        path = _find_inner(folder, text, image) if absolute else _find_file(folder, text, image)
        if path is None:
            raise RaymarchError(
                f"{where}: {key} {short_value(text)} is absolute, want one relative to {folder}, nor is its end a "
                "file there;"
                " copy the file into it, and shorten the path"
            )
        inside = path.resolve().is_relative_to(root)
    except RaymarchError:
        raise
    except UnicodeEncodeError as error:
        raise RaymarchError(f"{where}: {key} {short_value(text)} {UNENCODABLE}") from error
    except (OSError, RuntimeError, ValueError) as error:
        raise RaymarchError(f"{where}: {key} {short_value(text)} is no path ({one_line(error)}); correct it") from error
    upwards = ".." in PureWindowsPath(text).parts  # which takes both kinds of slash
    if not inside and upwards:
        raise RaymarchError(f"{where}: {key} {short_value(text)} leads out of {folder}; copy the file into it")
    if not inside and not follow_links:
        raise RaymarchError(
            f"{where}: {key} {short_value(text)} leads out of {folder} by a link; copy the file into it,"
            " or follow_links=True, --follow-links if you trust the set"
        )
    return path


def find_by_tail(folder: Path, text: str) -> Path | None:
    """Image in a folder by the longest end of a path of another machine that is there; None where no end is, or where
    the path is not absolute.

    Example:
        >>> Path("IMG_1.JPG").touch()
        >>> find_by_tail(Path("."), "C:\\\\photos\\\\IMG_1.JPG").name
        'IMG_1.JPG'
    """
    absolute = PurePosixPath(text).is_absolute() or bool(PureWindowsPath(text).anchor)
    return _find_inner(folder, text, True) if absolute else None


def _find_inner(folder: Path, text: str, image: bool) -> Path | None:
    """File in a folder by the longest end of a path of another machine that is there; None where no end is."""
    parts = PureWindowsPath(text).parts[1:]  # which takes both kinds of slash
    for i in range(len(parts)):
        if ".." not in parts[i:] and (path := _find_file(folder, "/".join(parts[i:]), image)).is_file():
            return path
    return None


def _find_file(folder: Path, text: str, image: bool) -> Path:
    """File of a path in a folder, however it is spelt: see `find_suffix` and `find_by_spelling`."""
    path = folder / text
    if path.is_file() and not image:
        return path
    ways = [text, text.replace("\\", "/")] if "\\" in text else [text]  # the latter written on Windows
    ways += [way.strip() for way in ways if way != way.strip()]
    ways += [unquote(way) for way in ways if "%" in way]
    first = None
    for way in ways:
        path = folder / way
        if image and path.name not in ("", "..") and not (path.suffix.lower() in SUFFIXES and path.exists()):
            path = find_suffix(path)
        if path.exists() or path.is_symlink():
            return path
        first = path if first is None or way == text.replace("\\", "/") else first
    assert first is not None
    alike = (find_by_spelling(folder, folder / way) for way in ways if ".." not in PureWindowsPath(way).parts)
    return next((path for path in alike if path is not None), first)


def find_suffix(path: Path) -> Path:
    """The path with the suffix, or with the letters of the suffix, of the image that is there; .png where none is.

    A picture of a format that is not read stands back for one of its name that is: that is how it is converted.
    """
    known, other = path.suffix.lower() in SUFFIXES, path.suffix.lower() in (*OTHER_SUFFIXES, *MASK_ARRAYS)
    stem, suffixes = (path.stem, [path.suffix.lower()]) if known else (path.name, list(SUFFIXES))
    stems = [stem, path.stem] if other else [stem]
    some = (path.with_name(s + spelt) for s in stems for suffix in suffixes for spelt in (suffix, suffix.upper()))
    found = next((file for file in some if file.exists()), None)
    if found is not None:
        return found
    return path if known or path.is_file() or other else path.with_name(stem + SUFFIXES[0])


def find_by_spelling(folder: Path, path: Path) -> Path | None:
    """The one file in a folder whose path differs in capitals or in Unicode's spelling alone, as disks of other systems
    take it for the same; None where there is none, or more than one.

    Example:
        >>> Path("IMG_1.JPG").touch()
        >>> find_by_spelling(Path("."), Path("img_1.jpg")).name
        'IMG_1.JPG'
    """
    found = folder
    for part in path.relative_to(folder).parts:
        if not (found / part).exists():
            some = [name for name in _entries(str(found), found.stat().st_mtime_ns) if _alike(name) == _alike(part)]
            if len(some) != 1:
                return None
            part = some[0]
        found = found / part
    return found if found.is_file() else None


@lru_cache(64)
def _entries(folder: str, _: int) -> tuple[str, ...]:
    """Names in a folder, which stay while it does not change."""
    try:
        return tuple(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return ()


def _alike(name: str) -> str:
    """One text for all that a disk may take for the same name."""
    return unicodedata.normalize("NFC", name).casefold()


def missing_hint(file: Path) -> str:
    """What is there in place of a missing image, as far as it may be a reason."""
    if file.is_dir():
        return f"; {file.name} is a folder"
    if file.is_symlink():
        return f"; {file.name} is a link to a file that is not there"
    if file.exists():
        return f"; {file.name} is no file"
    if not file.parent.is_dir():
        return f"; there is no folder {file.parent}"
    wanted = {_alike(file.stem), _alike(file.name), _alike(Path(file.stem).stem)}
    try:
        others = sorted(other.name for other in file.parent.iterdir() if _alike(other.stem) in wanted)
    except OSError:
        return ""
    other = [name for name in others if Path(name).suffix.lower() in OTHER_SUFFIXES]
    if other:
        return f"; {first_names(other, 3)} is there, of a format that is not read: convert it to PNG beside it"
    return f"; {first_names(others, 3)}{IS_THERE_HINT}" if others else ""


def unique_names(files: Sequence[Path], folder: Path) -> list[str]:
    """Unique file names, no two the same on any disk: where letter case or Unicode's spellings are one.

    The files' stems, or their paths within the folder where that tells more of them apart; a number where nothing does.

    Example:
        >>> unique_names([Path("set/train/r_0.png"), Path("set/train/r_0.webp")], Path("set"))
        ['r_0', 'r_0_2']
    """
    inner = [path.relative_to(folder).with_suffix("") for path in files]
    ways = [[path.name for path in inner], ["_".join(path.parts) for path in inner]]
    ways = [["".join(c if c.isprintable() else "_" for c in name) for name in names] for names in ways]
    names = max(ways, key=lambda names: len({_alike(name) for name in names}))  # the first of equals
    taken, given = {_alike(name) for name in names}, set[str]()
    out = []
    for name in names:
        unique, count = name, 1
        while _alike(unique) in (given if count == 1 else taken | given):
            count += 1
            unique = f"{name}_{count}"
        given.add(_alike(unique))
        out.append(unique)
    return out

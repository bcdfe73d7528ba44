"""Image file of a frame: found in the set's own folder, and named as no other."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath

from raymarch.errors import RaymarchError, named, one_line, short
from raymarch.io.image_sets.bad_frames import damaged
from raymarch.io.images.header import SUFFIXES

log = logging.getLogger("raymarch")


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

    It must lie in the folder, which is `root` once links are followed: a data set of strangers shall not read other
    files. With `follow_links` a link in it may lead out; an absolute path or one with `..` may not even then.

    Raises RaymarchError, opened by `where` and what the set calls the path, for one that leads elsewhere or is none.
    """
    if not isinstance(text, str) or not text or "\0" in text:
        raise RaymarchError(f"{where}: {key} is {short(text)}, want the path of a file; export it again")
    if "://" in text:
        raise RaymarchError(f"{where}: {key} {short(text)} is a URL, want a file in {folder}; download it there")
    if PurePosixPath(text).is_absolute() or PureWindowsPath(text).anchor:
        raise RaymarchError(f"{where}: {key} {short(text)} is absolute, want one relative to {folder}; shorten it")
    try:
        path = folder / text
        if "\\" in text and not path.exists():  # written on Windows
            path = folder / text.replace("\\", "/")
        if image and path.name != ".." and not (path.suffix.lower() in SUFFIXES and path.exists()):
            path = with_suffix(path)
        inside = path.resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError) as error:
        raise RaymarchError(f"{where}: {key} {short(text)} is no path ({one_line(error)}); correct it") from error
    upwards = ".." in PureWindowsPath(text).parts  # which takes both kinds of slash
    if not inside and upwards:
        raise RaymarchError(f"{where}: {key} {short(text)} leads out of {folder}; copy the file into it")
    if not inside and not follow_links:
        raise RaymarchError(
            f"{where}: {key} {short(text)} leads out of {folder} by a link; copy the file into it,"
            " or follow_links=True, --follow-links if you trust the set"
        )
    return path


def with_suffix(path: Path) -> Path:
    """The path with the suffix, or with the letters of the suffix, of the image that is there; .png where none is."""
    known = path.suffix.lower() in SUFFIXES
    stem, suffixes = (path.stem, [path.suffix.lower()]) if known else (path.name, list(SUFFIXES))
    some = (path.with_name(stem + spelt) for suffix in suffixes for spelt in (suffix, suffix.upper()))
    return next((file for file in some if file.exists()), path if known else path.with_name(stem + SUFFIXES[0]))


def present(files: Sequence[Path], source: Path) -> list[int]:
    """Indices of the images that exist; the log says which do not.

    Raises RaymarchError where none exists or one cannot be looked at.
    """
    there: list[int] = []
    missing: list[Path] = []
    for i, file in enumerate(files):
        try:
            is_file = file.is_file()
        except OSError as error:
            raise RaymarchError(
                f"{source}: {file.name} cannot be looked at ({one_line(error)}); check the path and its permissions"
            ) from error
        if is_file and damaged(file):
            continue
        if is_file:
            there.append(i)
        else:
            missing.append(file)
    if files and not (there or missing):
        raise RaymarchError(f"{source}: none of its images can be read; export them again")
    if missing:
        some = named([_seen_from(source.parent, file) for file in missing]) + _instead(missing[0])
        if not there:
            raise RaymarchError(f"{source}: all {len(missing)} images are missing ({some}); put them there")
        message = "%s: %d of %d images are missing, going on without them (%s)"
        log.warning(message, source, len(missing), len(files), some)
    return there


def _seen_from(folder: Path, file: Path) -> str:
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else file.name


def say_doubled(files: Sequence[Path], source: Path) -> None:
    """Warning about images that are listed more than once."""
    listed: dict[Path, list[int]] = {}
    for i, file in enumerate(files):
        listed.setdefault(file, []).append(i)
    again = [f"{file.name} in {named([str(i) for i in which])}" for file, which in listed.items() if len(which) > 1]
    if again:
        log.warning("%s: some frames list the same image (%s)", source, named(again))


def _instead(file: Path) -> str:
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
    return f"; {named(others, 3)} is there" if others else ""


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


def _alike(name: str) -> str:
    """One text for all that a disk may take for the same name."""
    return unicodedata.normalize("NFC", name).casefold()

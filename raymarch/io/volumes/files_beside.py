"""Files beside a header that hold its values: in the same folder or one below it, never elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from raymarch.errors import RaymarchError

MAX_FILES = 1 << 16
NUMBERED_NAME = re.compile(r"%(0?)(\d{0,2})([diu])")  # as printf has it, once in a name


def file_beside(path: Path, name: str, length: int, local: str = "") -> tuple[Path, int]:
    """The file with a header's values and where they begin in it.

    Args:
        path: of the header.
        name: of the file as the header says it; where that leads elsewhere, a file of its last part beside the header
            is taken, as after the two were copied.
        length: of the header [byte]: where values begin that are in the same file.
        local: the name, in letters of either case, that means the header's own file.

    Raises RaymarchError for one that is not there.
    """
    name = name.removeprefix("./")
    if local and name.upper() == local:
        return path, length
    last = re.split(r"[/\\]", name)[-1]
    if "\0" in name or "\n" in name or last in ("", ".", ".."):
        raise RaymarchError(f"{path}: its values are in {name[:80]!r}, want a file beside it; name it in the header")
    for one in (name, last):
        data = path.parent / one
        if data.is_file() and not data.is_symlink() and data.resolve().is_relative_to(path.parent.resolve()):
            return data, 0
    raise RaymarchError(f"{path}: its values are in {name[:80]!r}, want {last[:80]} beside it; move it there")


def files_beside(path: Path, names: Sequence[str]) -> list[Path]:
    """Files of several names beside a header; RaymarchError for one that is not there, and for none."""
    if not 1 <= len(names) <= MAX_FILES:
        raise RaymarchError(f"{path}: names {len(names):,} files of its values, want 1 to {MAX_FILES:,}; correct it")
    return [file_beside(path, name, 0)[0] for name in names]


def files_of_pattern(path: Path, text: str) -> list[str]:
    """Names that a pattern as `slice%03d.raw 1 20 1` stands for; none where the text is no pattern.

    Raises RaymarchError for numbers that are none, and for too many files.
    """
    match = NUMBERED_NAME.search(text)
    if match is None:
        return []
    words = text[match.end() :].split()
    first = next((k for k in range(len(words)) if _is_whole(words[k]) and k > 0), 1)
    end = " ".join(words[:first]) if words and not _is_whole(words[0]) else ""
    numbers = words[first if end else 0 :]
    # What is behind the number in the name may be nothing, as in "slice%03d 1 20 1".
    if not 2 <= len(numbers) <= 4 or not all(map(_is_whole, numbers)):
        raise RaymarchError(f"{path}: has the pattern {text[:80]!r}, want NAME%03d.raw FIRST LAST STEP; correct it")
    low, high, step = (*map(int, numbers[:3]), 1)[:3]
    count = (high - low) // step + 1 if step else 0
    if not 1 <= count <= MAX_FILES:
        raise RaymarchError(f"{path}: stands for {count:,} files by {text[:80]!r}, want 1 to {MAX_FILES:,}; correct it")
    zero, width, _ = match.groups()
    fill = "0" if zero else ""
    return [f"{text[: match.start()]}{n:{fill}{width}}{end}" for n in range(low, low + step * count, step)]


def _is_whole(word: str) -> bool:
    return re.fullmatch(r"[+-]?\d{1,9}", word) is not None

"""Names in a folder: those that are visible, and their order by the numbers in them, view 9 before view 10."""

from __future__ import annotations

import re
from pathlib import Path

DIGITS = re.compile(r"(\d{1,18})")


def natural_key(name: str) -> list[int | str]:
    """Natural sort key of a name: what is between its numbers as text, and these by what they are.

    Example:
        >>> sorted(["r_10", "r_9", "r_9²"], key=natural_key)
        ['r_9', 'r_9²', 'r_10']
    """
    return [int(part) if i % 2 else part for i, part in enumerate(DIGITS.split(name))]


def visible_files(folder: Path, pattern: str) -> list[Path]:
    """Files of a pattern, sorted by name, without hidden ones: macOS lays `._0.txt` beside `0.txt` on foreign disks.

    Example:
        >>> Path("0.txt").touch(), Path("._0.txt").touch()
        (None, None)
        >>> [file.name for file in visible_files(Path("."), "*.txt")]
        ['0.txt']
    """
    return sorted(file for file in folder.glob(pattern) if not file.name.startswith("."))

"""Visible files of a set's folder, by a pattern."""

from __future__ import annotations

from pathlib import Path


def visible_files(folder: Path, pattern: str) -> list[Path]:
    """Files of a pattern, sorted by name, without hidden ones: macOS lays `._0.txt` beside `0.txt` on foreign disks.

    Example:
        >>> Path("0.txt").touch(), Path("._0.txt").touch()
        (None, None)
        >>> [file.name for file in visible_files(Path("."), "*.txt")]
        ['0.txt']
    """
    return sorted(file for file in folder.glob(pattern) if not file.name.startswith("."))

"""Limits of what is read: the memory budget of one file, and the check of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from raymarch.errors import RaymarchError, one_line


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        return 1 << 62


MEMORY_BUDGET = min(16 << 30, _physical_memory())
"""The most bytes that one file may ask for; checked against what its header declares, before anything is read."""


def require_memory(wanted: int, what: str) -> None:
    """Raise RaymarchError if `wanted` bytes for `what` are over `MEMORY_BUDGET`.

    Example:
        >>> require_memory(8 * 400**2, "lego: its images")
    """
    if wanted > MEMORY_BUDGET:
        raise RaymarchError(
            f"{what} declare {wanted} bytes, over the budget of {MEMORY_BUDGET} bytes;"
            " make them smaller or raise raymarch.io.files.limits.MEMORY_BUDGET"
        )


def require_folder(path) -> Path:
    """The path of an existing folder; else RaymarchError that tells a missing one from a file.

    Example:
        >>> require_folder(".")
        PosixPath('.')
    """
    folder = Path(path)
    try:
        if folder.is_dir():
            return folder
        if folder.exists():
            raise RaymarchError(f"{folder}: is a file, want the folder that holds it; try {folder.parent}")
    except OSError as error:
        raise RaymarchError(f"{folder}: cannot be looked at ({one_line(error)}); check the path") from error
    raise RaymarchError(f"{folder}: no such folder, want an existing one; check the path")

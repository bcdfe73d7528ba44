"""Stamp of a file: what tells, without its content being read, that it is no longer the file that it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from raymarch.errors import RaymarchError

A = TypeVar("A")
R = TypeVar("R")


def stamp_of(path: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Bytes of a file and when it was written [nanoseconds]; None of a folder, whose files these would be.

    Raises OSError for one that is not there.

    Example:
        >>> stamp_of(".") is None
        True
    """
    if os.path.isdir(path):
        return None
    told = os.stat(path)
    return told.st_size, told.st_mtime_ns


def while_unchanged(path: str | os.PathLike[str], read: Callable[[A], R]) -> Callable[[A], R]:
    """A function that reads from a file, and raises RaymarchError once the file is another than now, or gone."""
    stamp = stamp_of(path)

    def read_unchanged(what: A) -> R:
        if not os.path.exists(path) or stamp_of(path) != stamp:
            raise RaymarchError(
                f"{path}: was changed while it was read; leave it as it is until all is rendered, and begin anew"
            )
        return read(what)

    return read_unchanged

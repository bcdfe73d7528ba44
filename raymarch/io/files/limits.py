"""Limits of what is read: the memory budget of one file, and the checks of a file and a folder."""

from __future__ import annotations

import math
import os
from pathlib import Path

from raymarch.errors import RaymarchError, one_line
from raymarch.system.resources import total_bytes

MEMORY_BUDGET = 16 << 30  # bytes that one file may ask for

VARIABLE = "RAYMARCH_FILE_GB"
"""Variable of the environment that sets another budget, in units of 1e9 bytes."""


def memory_budget() -> int:
    """Memory budget of one file [byte]: what the environment's RAYMARCH_FILE_GB says, else `MEMORY_BUDGET`, or the
    memory there is, if less. It is checked against what a file's header declares, before anything is read.

    Raises RaymarchError where the variable is no positive number.
    """
    text = os.environ.get(VARIABLE)
    if text is None:
        return min(MEMORY_BUDGET, total_bytes())
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = math.nan
    if not 0 < gigabytes < 1e9:
        raise RaymarchError(f"{VARIABLE} is {text[:60]!r}, want a positive number of gigabytes; correct or unset it")
    return int(gigabytes * 1e9)


def require_file_budget(wanted: int, what: str) -> None:
    """Budget check: RaymarchError if `wanted` bytes for `what` are over the budget of one file.

    Example:
        >>> require_file_budget(8 * 400**2, "lego: its images")
    """
    budget = memory_budget()
    if wanted > budget:
        raise RaymarchError(
            f"{what} declare {wanted} bytes, over the budget of {budget} bytes; make them smaller, or set the"
            f" environment variable {VARIABLE} to {math.ceil(wanted / 1e8) / 10:g} (gigabytes) or more"
        )


def require_file(path: str | os.PathLike[str], wanted: str, cure: str = "check the path") -> Path:
    """Path of an existing file that may be read and is not empty; else RaymarchError that tells what is there.

    Args:
        path: of the file.
        wanted: what it should be, "an HDF5 file" say.
        cure: what to do about an empty one.

    Example:
        >>> require_file("none.h5", "a volume file")
        Traceback (most recent call last):
        raymarch.errors.RaymarchError: none.h5: no such file, want a volume file; check the path
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise RaymarchError(f"{path}: is a folder, want {wanted}; name the file in it")
        if not path.exists():
            raise RaymarchError(f"{path}: no such file, want {wanted}; check the path")
        if not path.is_file():
            raise RaymarchError(f"{path}: is a device or pipe, want {wanted}; copy it to a file first")
        if path.stat().st_size == 0:
            raise RaymarchError(f"{path}: is empty, want {wanted}; {cure}")
        with path.open("rb"):
            pass
    except OSError as error:
        raise RaymarchError(f"{path}: cannot be read ({one_line(error)}); check its permissions") from error
    return path


def require_folder(path: str | os.PathLike[str]) -> Path:
    """Path of an existing folder; else RaymarchError that tells a missing one from a file.

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

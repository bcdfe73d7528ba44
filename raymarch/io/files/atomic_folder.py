"""Atomic replacement of a folder: written under another name, which it gives up once it is whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.files.atomic import refused, require_no_interrupt, require_writable
from raymarch.io.files.temporary import temporary_folder_in


def require_new_folder(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write check: RaymarchError where a folder could not be made at `path`, or one there would be lost.

    Example:
        >>> require_new_folder("new.zarr")
    """
    path = Path(path)
    with refused(path):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise RaymarchError(f"{path}: is a file or a link, want a new folder; choose another name")
        if path.is_dir() and any(path.iterdir()) and not overwrite:
            raise RaymarchError(f"{path}: is there already and would be lost; choose another name, or --overwrite")
    require_writable(path.parent / (path.name + ".new"))


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Replacement of a folder: a temporary one beside `path`, which takes its place if the block succeeds.

    An older folder is moved aside first, and back if that fails; it is removed at the end.

    Example:
        >>> with replacing_folder("new") as temporary:
        ...     _ = (temporary / "notes.txt").write_text("all or nothing")
    """
    target = Path(path)
    with refused(path), temporary_folder_in(target.resolve().parent) as temporary:
        made, aside = temporary / target.name, temporary / "old"
        made.mkdir()
        yield made
        require_no_interrupt()
        try:
            if target.is_dir():
                os.replace(target, aside)
            os.replace(made, target)
        except BaseException:  # Ctrl-C between the two too
            if aside.is_dir() and not target.exists():
                os.replace(aside, target)
            raise
        shutil.rmtree(aside, ignore_errors=True)

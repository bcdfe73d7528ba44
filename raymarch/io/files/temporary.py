"""Temporary files and folders beside their targets, and the removal of those that killed processes left."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from raymarch.system.interrupt import hold_interrupts

try:
    import fcntl
except ImportError:  # Windows has no such locks; there nothing is swept
    fcntl = None  # type: ignore[assignment]

TEMPORARY_NAME = re.compile(r"\.raymarch-([0-9a-f]{8}-)?[0-9a-f]{16}\.tmp(\.[\w.+-]+)?")
DAY_SECONDS = 86_400.0  # seconds
LOCK_SUFFIX = ".lock"
ANONYMOUS_PREFIX = ".raymarch-"  # how names of files begin of which their age alone tells that they are dead


def _prefix() -> str:
    """How names of this machine's files begin: on a shared disk the locks of another may not be seen."""
    return f"{ANONYMOUS_PREFIX}{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"


@contextlib.contextmanager
def temporary_path(folder: Path, suffix: str = "") -> Iterator[Path]:
    """Temporary file: the path of a new empty one in `folder`; it is removed at the end if it still has that name.

    The name ends in `suffix`, which writers of some formats add where it is missing.

    As long as its process lives it is locked, which `remove_stale` respects; where a lock keeps its writer out too its
    name tells no machine, and `remove_stale` waits a day. Raises OSError where the system refuses.

    Example:
        >>> with temporary_path(Path(".")) as temporary:
        ...     _ = temporary.write_text("soon gone")
    """
    path, held = None, None
    try:
        with hold_interrupts():  # between its birth and the name that is removed
            path, held = _new_file(folder, suffix)
        yield path
    finally:
        with hold_interrupts():
            if path is not None:
                with contextlib.suppress(OSError):  # gone already after a success; shall not hide the first failure
                    path.unlink()
            if held is not None:
                os.close(held)


def _new_file(folder: Path, suffix: str) -> tuple[Path, int | None]:
    """A new empty file and the descriptor that holds its lock; None where it cannot be held."""
    begins = _prefix()
    while True:
        path = folder / f"{begins}{secrets.token_hex(8)}.tmp{suffix}"
        # Not tempfile: its files are for the owner only, whatever the umask says.
        held = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if fcntl is None or begins == ANONYMOUS_PREFIX:
            os.close(held)  # on Windows an open file cannot be renamed
            return path, None
        with contextlib.suppress(OSError):  # a disk without locks, on which `remove_stale` gets none either
            # Shared, for HDF5 locks what it reads: it may open the file as soon as that has its name.
            fcntl.flock(held, fcntl.LOCK_SH)
        if os.fstat(held).st_nlink:  # else swept between its birth and its lock
            if suffix == LOCK_SUFFIX or not _is_kept_out(path):
                return path, held
            begins = ANONYMOUS_PREFIX
        os.close(held)
        if begins == ANONYMOUS_PREFIX:
            with contextlib.suppress(OSError):
                path.unlink()


def _is_kept_out(path: Path) -> bool:
    """Whether a lock keeps out who opens its file once more to write, as SMB does, by which Windows shares disks."""
    try:
        for content in (b"0", b""):  # and nothing, so that it is empty again
            with open(path, "wb") as other:
                other.write(content)
    except OSError as error:
        return isinstance(error, PermissionError)  # what else is wrong with the disk meets its writer too
    return False


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Temporary folder: a new empty one in `folder`; it is removed at the end with all that is in it.

    A file beside it, of its name and `.lock`, says that its process lives. Folders of dead ones are removed first.
    Raises OSError where the system refuses.

    Example:
        >>> with temporary_folder(Path(".")) as temporary:
        ...     _ = (temporary / "notes.txt").write_text("soon gone")
    """
    remove_stale(folder)
    with temporary_path(folder, LOCK_SUFFIX) as lock:
        path = lock.with_name(lock.name.removesuffix(LOCK_SUFFIX))
        try:
            path.mkdir()
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


def remove_stale(folder: Path) -> None:
    """Clean-up of the temporary files and folders in `folder` whose processes are dead; says nothing if it cannot.

    Of this machine's their locks tell, of others' files that they were left alone for a day. A folder is nobody's once
    the file that is its lock is gone.
    """
    if fcntl is None:
        return
    folders: list[Path] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if TEMPORARY_NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                folders += [Path(entry.path)] if entry.name.startswith(_prefix()) else []
            elif TEMPORARY_NAME.fullmatch(entry.name) and (entry.name.startswith(_prefix()) or _is_old(entry)):
                with contextlib.suppress(OSError):
                    _remove_if_dead(entry.path)
    for path in folders:
        if not path.with_name(path.name + LOCK_SUFFIX).exists():
            shutil.rmtree(path, ignore_errors=True)


def _is_old(entry: os.DirEntry) -> bool:
    """Whether a file of another machine, or of a raymarch that told none, was left alone for a day."""
    return time.time() - entry.stat(follow_symlinks=False).st_mtime > DAY_SECONDS


def _remove_if_dead(path: str) -> None:
    """Remove the file if nobody holds its lock; OSError where somebody does, or where it is not ours to open."""
    held = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(held)

"""Files replaced in one step: a reader sees the old file or the new one, never a part."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from raymarch.errors import RaymarchError
from raymarch.io.guard import one_line

CURES = {
    errno.ENOSPC: "free disk space or choose another disk",
    errno.EDQUOT: "free disk space or choose another disk",
    errno.EFBIG: "the file is over a size limit: choose another disk or raise the limit",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder on a disk that is not read-only",
    errno.ENAMETOOLONG: "choose a shorter name",
}


@contextmanager
def replacing(path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there takes the place of `path` if the block succeeds.

    The new file is flushed to the disk before it gets its name, and the name before this returns. If anything fails
    the temporary file is removed and the old file stays as it was. Links are followed: the file they lead to is
    replaced.

    Raises RaymarchError where the folder is missing, the path is no file, or the system refuses to write; any other
    exception of the block passes through.

    Example:
        >>> with replacing("notes.txt") as temporary:
        ...     _ = temporary.write_text("all or nothing")
    """
    target = _require_target(path)
    # Beside the target, since a rename is one step only within one file system.
    temporary = target.parent / f".raymarch-{secrets.token_hex(8)}.tmp"
    try:
        # Not tempfile: its files are for the owner only, whatever the umask says.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        cure = CURES.get(error.errno or 0, "check the disk and the path")
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); {cure}") from error
    finally:
        with suppress(OSError):  # gone already after a success; a failure here shall not hide the first one
            temporary.unlink()


def _require_target(path) -> Path:
    """The file that `path` leads to, whose folder exists; never creates folders, a misspelt one would go unseen."""
    if "\0" in os.fspath(path):
        raise RaymarchError(f"{os.fspath(path)!r}: has a null character; choose another name")
    try:
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise RaymarchError(f"{path}: is a folder, want the name of a file; add one")
        if target.exists() and not target.is_file():
            raise RaymarchError(f"{path}: is a device or pipe, want a file; choose another name")
        if not target.parent.is_dir():
            raise RaymarchError(f"{path}: there is no folder {target.parent}; create it first")
    except OSError as error:
        cure = CURES.get(error.errno or 0, "check the path")
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); {cure}") from error
    return target


def require_writable(path) -> None:
    """RaymarchError where `replacing` could not write to `path`; tries it with an empty temporary file beside it."""
    target = _require_target(path)
    temporary = target.parent / f".raymarch-{secrets.token_hex(8)}.tmp"
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        temporary.unlink()
    except OSError as error:
        cure = CURES.get(error.errno or 0, "check the disk and the path")
        raise RaymarchError(f"{path}: cannot be written ({one_line(error)}); {cure}") from error


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the new name last a power cut, where folders can be flushed: not on Windows nor on some network disks."""
    try:
        _sync(folder, os.O_RDONLY)
    except OSError as error:
        if os.name != "nt" and error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES):
            raise

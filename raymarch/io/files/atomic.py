"""Atomic replacement of files and folders: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raymarch.errors import RaymarchError, one_line
from raymarch.io.files.temporary import remove_stale, temporary_folder, temporary_path

CURES = {
    errno.ENOSPC: "free disk space or choose another disk",
    errno.EDQUOT: "free disk space or choose another disk",
    errno.EFBIG: "the file is over a size limit: choose another disk or raise the limit",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose another name or a folder that you may write to",
    errno.EROFS: "choose a folder on a disk that is not read-only",
    errno.ENAMETOOLONG: "choose a shorter name",
}


@contextmanager
def replace_file(path: str | os.PathLike[str], suffix: str = "") -> Iterator[Path]:
    """Atomic replacement: a temporary path beside `path`, which takes its place if the block succeeds.

    The new file is flushed to the disk before it gets its name, and the name before this returns. If anything fails
    the temporary file is removed and the old file stays as it was. Links are followed: the file they lead to is
    replaced. The temporary path ends in `suffix`.

    Raises RaymarchError where the folder is missing, the path is no file, or the system refuses to write; any other
    exception of the block passes through.

    Example:
        >>> with replace_file("notes.txt") as temporary:
        ...     _ = temporary.write_text("all or nothing")
    """
    target = target_of(path)
    # Beside the target, since a rename is one step only within one file system.
    with system_refusals(path), temporary_path(target.parent, suffix) as temporary:
        yield temporary
        require_no_interrupt()
        _sync(temporary, os.O_RDWR)
        os.replace(temporary, target)
        _sync_folder(target.parent)


def require_no_interrupt() -> None:
    """KeyboardInterrupt where one came that a library lost while it wrote (`fitting.interrupt`)."""
    handlers = map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))
    if any(getattr(handler, "lost", lambda: False)() for handler in handlers):
        raise KeyboardInterrupt


@contextmanager
def system_refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context that turns the system's refusals into a RaymarchError with the file and the cure."""
    try:
        yield
    except OSError as error:
        number, said = _refusal(error)
        cure = CURES.get(number, "check the disk and the path")
        raise RaymarchError(f"{path}: cannot be written ({said}); {cure}") from error


def _refusal(error: OSError) -> tuple[int, str]:
    """Number and words of a refusal of the system, also where a library put them into words of its own: pydicom's have
    a traceback, NumPy's count the bytes that a full disk did not take."""
    text = str(error)
    if error.errno is None:
        number = re.search(r"\[Errno (\d+)\]", text)
        if number is not None or re.search(r"\d+ requested and \d+ written", text):
            found = int(number[1]) if number is not None else errno.ENOSPC
            return found, os.strerror(found)
    return error.errno or 0, one_line(error)


def target_of(path: str | os.PathLike[str]) -> Path:
    """Target file that `path` leads to, whose folder exists; never creates folders, a misspelt one would go unseen."""
    if "\0" in os.fspath(path):
        raise RaymarchError(f"{os.fspath(path)!r}: has a null character; choose another name")
    with system_refusals(path):
        target = Path(os.path.realpath(path))
        if target.is_dir():
            raise RaymarchError(f"{path}: is a folder, want the name of a file; add one")
        if target.exists() and not target.is_file():
            raise RaymarchError(f"{path}: is a device or pipe, want a file; choose another name")
        if not target.parent.is_dir():
            raise RaymarchError(f"{path}: there is no folder {target.parent}; create it first")
    return target


def require_writable(path: str | os.PathLike[str], size: int = 0) -> None:
    """Write check: RaymarchError where `replace_file` could not write `size` bytes to `path`; leaves all as it was.

    Tried are a file beside it, of that size but without content, and whether an older file of that name may be
    replaced; asked is how much is free. Files that killed processes left in the folder are removed.

    Example:
        >>> require_writable("notes.txt", size=1000)
    """
    target = target_of(path)
    remove_stale(target.parent)
    with system_refusals(path):
        if size:
            _require_room(target.parent, size, path)
        with temporary_path(target.parent) as temporary:
            if size:
                os.truncate(temporary, size)  # which a limit on the size of files refuses, without taking room
        _require_replaceable(target)


def _require_room(folder: Path, size: int, path: str | os.PathLike[str]) -> None:
    try:
        room = shutil.disk_usage(folder)
    except OSError:
        return  # some network disks do not tell
    if room.total and room.free < size:
        wanted = f"about {size:,} bytes are to be written but {room.free:,} are free"
        raise RaymarchError(f"{path}: {wanted}; {CURES[errno.ENOSPC]}")


def _require_replaceable(target: Path) -> None:
    """OSError where the system would not let another file take the place of `target`."""
    if not target.exists():
        return
    try:
        os.close(os.open(target, os.O_WRONLY))
    except OSError as error:
        # What is only read-only may be replaced, other than on Windows; what is immutable may not.
        if error.errno == errno.EPERM or os.name == "nt":
            raise
    folder = target.parent.stat()
    sticky = folder.st_mode & stat.S_ISVTX and os.name == "posix"
    if sticky and os.geteuid() not in (0, folder.st_uid, target.stat().st_uid):
        raise PermissionError(errno.EPERM, "the file is another user's, and so is the folder, which is sticky")


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


def require_new_folder(path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write check: RaymarchError where a folder could not be made at `path`, or one there would be lost.

    Example:
        >>> require_new_folder("new.zarr")
    """
    path = Path(path)
    with system_refusals(path):
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise RaymarchError(f"{path}: is a file or a link, want a new folder; choose another name")
        if path.is_dir() and any(path.iterdir()) and not overwrite:
            raise RaymarchError(f"{path}: is there already and would be lost; choose another name, or --overwrite")
    require_writable(path.parent / (path.name + ".new"))


@contextmanager
def replace_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Replacement of a folder: a temporary one beside `path`, which takes its place if the block succeeds.

    An older folder is moved aside first, and back if that fails; it is removed at the end.

    Example:
        >>> with replace_folder("new") as temporary:
        ...     _ = (temporary / "notes.txt").write_text("all or nothing")
    """
    target = Path(path)
    with system_refusals(path), temporary_folder(target.resolve().parent) as temporary:
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

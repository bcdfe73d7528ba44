"""Lock of an output: two processes that would write the same file or folder do not both begin."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from raymarch.errors import RaymarchError, escape
from raymarch.io.files.atomic import system_refusals

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK_SUFFIX = ".lock"
MAX_NAME_BYTES = 255  # bytes of a file's name
FIRST_WORD = "raymarch"  # word of a lock file
MAX_LOCK_BYTES = 1000  # bytes of one that are read
LOCKED_BYTE = 1 << 20  # place of the byte that is locked on Windows, where what is locked cannot be read
UNSUPPORTED_ERRORS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS)

_held: dict[Path, int] = {}  # locks of this process, by the thread that has each
_held_guard = threading.Lock()


@contextlib.contextmanager
def lock_file(path: str | os.PathLike[str], cure: str = "choose another name") -> Iterator[None]:
    """Context in which no other process, and no other thread, writes to `path` within such a context.

    A file beside `path`, of its name and `.lock`, says which process on which machine it is. The system frees its lock
    when that process dies, however it dies, and the next one takes the file over. Within the same thread it may be
    entered again.

    Raises RaymarchError, with `cure`, where another has it, and where the lock file cannot be made.

    Example:
        >>> with lock_file("ball.h5"):
        ...     Path("ball.h5.lock").exists()
        True
        >>> Path("ball.h5.lock").exists()
        False
    """
    place = _place_of(path)
    with _held_guard:
        again = _held.get(place) == threading.get_ident()
        if not again and place in _held:
            raise RaymarchError(f"{path}: another thread of this process writes it; wait until it ends, or {cure}")
        descriptor = -1 if again else _take_lock(place, path, cure)
        _held[place] = threading.get_ident()
    try:
        yield
    finally:
        if not again:
            with _held_guard:
                del _held[place]
                _free(place, descriptor)


def _place_of(path: str | os.PathLike[str]) -> Path:
    """Lock file of an output: beside what links lead to, so that all names of one file have one lock."""
    with system_refusals(path):
        target = Path(os.path.realpath(path))
    name = target.name + LOCK_SUFFIX
    if len(os.fsencode(name)) > MAX_NAME_BYTES:
        name = f".raymarch-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}{LOCK_SUFFIX}"
    return target.with_name(name)


def _take_lock(place: Path, path: str | os.PathLike[str], cure: str) -> int:
    """Descriptor of the lock file, which is this process's now."""
    while True:
        with system_refusals(path):
            descriptor = os.open(place, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            _require_ours(descriptor, place)
            if not _is_free(descriptor):
                raise RaymarchError(f"{path}: {_holder(descriptor, place)} writes it; wait until it ends, or {cure}")
            if os.fstat(descriptor).st_nlink and _is_same(descriptor, place):
                with system_refusals(path), _removed_if_unsigned(place):
                    _sign(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder removed it meanwhile


def _require_ours(descriptor: int, place: Path) -> None:
    text = os.read(descriptor, MAX_LOCK_BYTES)
    if text and not text.startswith(FIRST_WORD.encode()):
        raise RaymarchError(f"{place}: is there, and is no lock of raymarch's; move it, or choose another name")


def _is_free(descriptor: int) -> bool:
    """Whether nobody else has the lock, which is this process's then."""
    if fcntl is None:
        return _is_free_on_windows(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in UNSUPPORTED_ERRORS:  # a disk without locks: what the file says has to do
            return not _lock_words(descriptor) or not _is_alive(descriptor)
        return False
    return True


def _is_free_on_windows(descriptor: int) -> bool:
    import msvcrt

    os.lseek(descriptor, LOCKED_BYTE, os.SEEK_SET)
    try:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True


def _is_alive(descriptor: int) -> bool:
    """Whether the process that a lock file names lives, as far as this machine can tell."""
    words = _lock_words(descriptor)
    if len(words) < 2 or words[1] != platform.node():
        return bool(words)
    try:
        os.kill(int(words[0]), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except OSError:
        return True  # another user's
    return True


def _is_same(descriptor: int, place: Path) -> bool:
    """Whether the lock file is still the one that was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except OSError:
        return False


@contextlib.contextmanager
def _removed_if_unsigned(place: Path) -> Iterator[None]:
    """Context that leaves no empty lock file where the disk is full."""
    try:
        yield
    except OSError:
        with contextlib.suppress(OSError):
            place.unlink()
        raise


def _sign(descriptor: int) -> None:
    """Write who has the lock."""
    text = f"{FIRST_WORD} {os.getpid()} {platform.node()} {time.strftime('%Y-%m-%dT%H:%M:%S')}\n"
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, text.encode(errors="replace"))


def _lock_words(descriptor: int) -> list[str]:
    """Process, machine and time of a lock file; none where it is empty."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, MAX_LOCK_BYTES).decode(errors="replace").split()[1:]


def _holder(descriptor: int, place: Path) -> str:
    """Who has a lock, in words."""
    words = [escape(word) for word in _lock_words(descriptor)]
    if len(words) < 3:
        return "another raymarch"
    since = words[2].replace("T", " ")
    if words[1] == platform.node():
        return f"another raymarch (process {words[0]}, since {since})"
    return f"another raymarch (process {words[0]} on {words[1]}, since {since}; if that has died, remove {place})"


def _free(place: Path, descriptor: int) -> None:
    """Remove the lock file, while it is still locked, and end the lock."""
    with contextlib.suppress(OSError):
        if os.name == "nt":  # where an open file cannot be removed
            os.close(descriptor)
            place.unlink()
            return
        if _is_same(descriptor, place):
            place.unlink()
        os.close(descriptor)

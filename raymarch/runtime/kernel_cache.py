"""Kernel cache: the folder in which the engine keeps compiled kernels for later processes."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

from raymarch import engine

CACHE_VARIABLE = f"{engine.VARIABLE_PREFIX}OFFLINE_CACHE_FILE_PATH"
CACHE_NAME = "ticache" if engine.IS_TAICHI else "qdcache"
WINDOWS = os.name == "nt"
LOCK_FILE = f"{CACHE_NAME}.lock"
MAX_LOCK_AGE = 600  # seconds that a lock may be old: Taichi holds one while it reads or writes a list


def cache_folder() -> Path:
    """Folder of the user's cache, in which compiled kernels are kept; it may be missing, or not be writable."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    if WINDOWS:
        local = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        # Taichi reads names by the system's code page, to which other letters are those of another folder.
        return local / "raymarch" if str(local).isascii() else Path(f"C:/{engine.NAME}_cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / engine.NAME


def cache_argument() -> dict[str, str]:
    """Where compiled kernels are kept, for `ti.init`; nothing where the user's own variable tells it.

    Taichi would look elsewhere on Windows and by an empty XDG_CACHE_HOME, and crashes at exit where it may not write.
    """
    of_user = bool(os.environ.get(CACHE_VARIABLE))
    folder = cache_folder() if of_user else cache_folder() / CACHE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        folder, of_user = _private_folder(), False
    _remove_orphan(folder / LOCK_FILE)
    return {} if of_user else {"offline_cache_file_path": str(folder)}


def kernel_folder() -> Path:
    """Folder in which compiled kernels are kept, made if need be; the user's own variable may name one.

    Example:
        >>> kernel_folder().name != ""
        True
    """
    return Path(cache_argument().get("offline_cache_file_path") or os.environ[CACHE_VARIABLE])


def _remove_orphan(lock: Path) -> None:
    """Remove the lock of a killed process. With it, all later processes would compile everything again."""
    with contextlib.suppress(OSError):  # there is none, or it is another user's
        if time.time() - lock.stat().st_mtime > MAX_LOCK_AGE:
            lock.unlink()


def _private_folder() -> Path:
    """A folder among the temporary files that nobody else may write to, for what lies in a cache is run.

    The same each time, as Taichi writes to it when all else has ended and nobody could remove it.
    """
    if not WINDOWS:
        folder = Path(tempfile.gettempdir()) / f"raymarch-{os.getuid()}"
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
                return folder
    return Path(tempfile.mkdtemp(prefix="raymarch-"))

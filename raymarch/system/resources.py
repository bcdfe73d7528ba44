"""Free memory of this machine or container, asked before large arrays are made."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

from raymarch.data.control_group import memory_left, memory_limit
from raymarch.errors import RaymarchError

UNTOLD = 4 << 30  # bytes that are taken to be free, and half of all, where the system does not tell
# Called with a need before it is refused: who keeps memory for reuse frees it where it would not be there without.
spare: list[Callable[[int], None]] = []


def total_bytes() -> int:
    """Memory of this machine [byte], or of its container where that has less; where the system does not tell, 8 GiB."""
    limit = memory_limit()
    return _of_machine()[1] if limit is None else min(_of_machine()[1], limit)


def free_bytes() -> int:
    """Memory that is free [byte], that a container leaves to this process; where the system does not tell, 4 GiB."""
    left = memory_left()
    return _of_machine()[0] if left is None else min(_of_machine()[0], left)


def _of_machine(meminfo: Path = Path("/proc/meminfo")) -> tuple[int, int]:
    """Memory [byte] that is free and all that there is, of the machine as a whole."""
    try:
        rows = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        free, total = (int(rows[name].split()[0]) * 1024 for name in ("MemAvailable", "MemTotal"))
        return free, total
    except (OSError, KeyError, ValueError, IndexError):  # not Linux, or a kernel that does not tell what is available
        pass
    if sys.platform == "win32":
        status = (ctypes.c_ulonglong * 8)(64)
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status[2]), int(status[1])
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return total // 2, total
    except (ValueError, OSError, AttributeError):
        return UNTOLD, 2 * UNTOLD


def require_free(needed: int, what: str, cure: str) -> None:
    """Memory check: RaymarchError where `what` would take more bytes than are free.

    Example:
        >>> require_free(8, "two numbers", "take one")
    """
    for free_kept in spare:
        free_kept(needed)
    if needed > 0.9 * (free := free_bytes()):
        raise RaymarchError(f"{what} take {needed:,} bytes but {free:,} are free; {cure}")

"""Free memory of this machine or container, asked before large arrays are made."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from raymarch.data.control_group import memory_left
from raymarch.errors import RaymarchError


def free_bytes() -> int:
    """Memory that is free [byte], that a container leaves to this process; where the system does not tell, 4 GiB."""
    left = memory_left()
    return _of_machine() if left is None else min(_of_machine(), left)


def _of_machine() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        rows = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        return int(rows["MemAvailable"].split()[0]) * 1024
    if sys.platform == "win32":
        status = (ctypes.c_ulonglong * 8)(64)
        ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status[2])
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def require_free(needed: int, what: str, cure: str) -> None:
    """Memory check: RaymarchError where `what` would take more bytes than are free.

    Example:
        >>> require_free(8, "two numbers", "take one")
    """
    if needed > 0.9 * (free := free_bytes()):
        raise RaymarchError(f"{what} take {needed:,} bytes but {free:,} are free; {cure}")

"""Resources of this process: the processors and the memory that its machine, container or batch job leaves it.

Asked anew each time: what is free changes, and a control group's limits may. Limits are those of Linux's control groups
(the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1/memory); elsewhere the machine's own numbers count.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from raymarch.errors import RaymarchError

MAX_WORKERS = 8  # threads that hold a picture each
SYSTEM_ROOT = Path("/")
NO_LIMIT = 1 << 62  # bytes from which on a limit of the older kind is none
UNKNOWN_FREE = 4 << 30  # bytes that are taken to be free, and half of all, where the system does not tell

_reclaim: Callable[[int], None] | None = None  # of the pool of device memory, which keeps some for reuse


def cores() -> int:
    """Processors for this process: those it is bound to (`taskset`, a batch job), no more than its container's share.

    Example:
        >>> cores() >= 1
        True
    """
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = processors()
    return bound if share is None else max(1, min(bound, math.ceil(share)))


def workers() -> int:
    """Threads that decode pictures, or make them smaller: one a core, no more than pictures want memory at once.

    Example:
        >>> workers() <= cores()
        True
    """
    return min(cores(), MAX_WORKERS)


def total_bytes() -> int:
    """Memory of this machine [byte], or of its container where that has less; where the system does not tell, 8 GiB."""
    limit = memory_limit()
    return _machine_memory()[1] if limit is None else min(_machine_memory()[1], limit)


def free_bytes() -> int:
    """Memory that is free [byte], that a container leaves to this process; where the system does not tell, 4 GiB."""
    left = memory_left()
    return _machine_memory()[0] if left is None else min(_machine_memory()[0], left)


def _machine_memory(meminfo: Path = Path("/proc/meminfo")) -> tuple[int, int]:
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
        return UNKNOWN_FREE, 2 * UNKNOWN_FREE


def require_free(needed: int, what: str, cure: str) -> None:
    """Memory check: RaymarchError where `what` would take more bytes than are free.

    Example:
        >>> require_free(8, "two numbers", "take one")
    """
    if _reclaim is not None:
        _reclaim(needed)
    if needed > 0.9 * (free := free_bytes()):
        raise RaymarchError(f"{what} take {needed:,} bytes but {free:,} are free; {cure}")


def reclaim_with(free_kept: Callable[[int], None]) -> None:
    """Have memory that is kept for reuse freed before a need [byte] is refused: `free_kept` is called with it."""
    global _reclaim
    _reclaim = free_kept


def memory_left(system: Path = SYSTEM_ROOT) -> int | None:
    """Memory [byte] that the control group may still take, what its file cache would give back included; None where it
    has no limit.

    Limits of the groups around it hold too.

    Example:
        >>> left = memory_left()
        >>> left is None or left >= 0
        True
    """
    return min((left for _, left in _memory(system)), default=None)


def memory_limit(system: Path = SYSTEM_ROOT) -> int | None:
    """Memory [byte] that the control group may take in all; None where it has no limit.

    Example:
        >>> limit = memory_limit()
        >>> limit is None or limit >= memory_left()
        True
    """
    return min((most for most, _ in _memory(system)), default=None)


def _memory(system: Path) -> Iterator[tuple[int, int]]:
    """Limit of memory and what is left of it [byte], of each control group that has a limit."""
    for group in _groups("memory", system):
        for limit, used, cached in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most, taken = (_numbers(group / name) for name in (limit, used))
            if most and taken and most[0] < NO_LIMIT:
                yield most[0], max(most[0] - max(taken[0] - _row_number(group / "memory.stat", cached), 0), 0)


def processors(system: Path = SYSTEM_ROOT) -> float | None:
    """Processors that the control group may keep busy on average, 1.5 for three halves of one; None without a limit.

    Example:
        >>> share = processors()
        >>> share is None or share > 0
        True
    """
    shares = []
    for group in _groups("cpu", system):
        both = _numbers(group / "cpu.max") or [
            *_numbers(group / "cpu.cfs_quota_us"),
            *_numbers(group / "cpu.cfs_period_us"),
        ]
        if len(both) == 2 and min(both) > 0:
            shares.append(both[0] / both[1])
    return min(shares, default=None)


def _groups(controller: str, system: Path) -> Iterator[Path]:
    """Folders of the process's control group and of those around it, of both kinds, as far as they are seen here."""
    try:
        rows = (system / "proc/self/cgroup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):  # not Linux
        return
    mounted = system / "sys/fs/cgroup"
    for row in rows:
        _, controllers, path = [*row.split(":", 2), "", ""][:3]
        names = controllers.split(",")
        if not controllers:
            roots = [mounted, mounted / "unified"]
        elif controller in names:
            roots = [mounted / controllers, mounted / controller]
        else:
            continue
        parts = [part for part in PurePosixPath(path).parts if part not in ("/", "..")]
        for root in roots:
            yield from (root.joinpath(*parts[:n]) for n in range(len(parts) + 1))


def _numbers(file: Path) -> list[int]:
    """Whole numbers of a file of one line; none where it is missing, or holds a word."""
    try:
        return [int(word) for word in file.read_text().split()]
    except (OSError, ValueError):
        return []


def _row_number(file: Path, name: str) -> int:
    """Number of a row `name number`; 0 where there is none."""
    try:
        rows = dict(line.split(" ", 1) for line in file.read_text().splitlines() if " " in line)
        return int(rows.get(name, 0))
    except (OSError, ValueError):
        return 0

"""Processors that this process may use at once."""

from __future__ import annotations

import math
import os

from raymarch.data.control_group import processors

MOST_WORKERS = 8


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
    return min(cores(), MOST_WORKERS)

"""User at the other end of a connection within this machine, where the system tells: Linux does."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")  # where an end of IPv6 stands, though it reach one of IPv4
ROOT = 0  # who may read everything anyway


def users_of(peer: int, own: int, connections: str) -> set[int]:
    """Numbers of the users whose connections lead from port `peer` to port `own`, by one of Linux' tables.

    They are several where the addresses differ; an end that its user has closed counts as root's.

    Example:
        >>> table = '''  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid
        ...    4: 0100007F:CFD2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000'''
        >>> users_of(53202, 8080, table), users_of(8080, 53202, table)
        ({1000}, set())
    """
    found = set()
    for line in connections.splitlines()[1:]:
        words = line.split()[1:]
        ports = [place.rpartition(":")[2] for place in words[:2]]
        if ports == [f"{peer:04X}", f"{own:04X}"] and len(words) > 6 and words[6].isdecimal():
            found.add(int(words[6]))
    return found


def is_of_another_user(peer: int, own: int) -> bool:
    """Whether the connection from port `peer` to port `own` may be another user's: where the system tells, it is unless
    all that it tells of are this one's."""
    tables = []
    for path in TABLES:
        with suppress(OSError):
            tables.append(path.read_text())
    if not tables:
        return False
    users = {user for table in tables for user in users_of(peer, own, table)}
    return not users or not users <= {ROOT, os.getuid()}

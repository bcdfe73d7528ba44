"""Wire between a viewer and its pages: a server process, or whatever else carries messages, such as a notebook's."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import IO, Any, Protocol

# Linux tells which user is at the other end of a connection within the machine.

# where an end of IPv6 stands, though it reach one of IPv4
CONNECTION_TABLES = Path("/proc/net/tcp"), Path("/proc/net/tcp6")
ROOT_USER = 0  # who may read everything anyway


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
    for path in CONNECTION_TABLES:
        with suppress(OSError):
            tables.append(path.read_text())
    if not tables:
        return False
    users = {user for table in tables for user in users_of(peer, own, table)}
    return not users or not users <= {ROOT_USER, os.getuid()}


# The owner and the server exchange messages through a pipe. The lengths of header and body come before each message.

LENGTH_PREFIX = struct.Struct("<II")  # of the header and of the body
MAX_BODY_BYTES = 1 << 28


def pack_message(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Message of a header and a body.

    Example:
        >>> pack_message({"to": 1}, b"picture")[:8]
        b'\\t\\x00\\x00\\x00\\x07\\x00\\x00\\x00'
    """
    head = json.dumps(header).encode()
    return LENGTH_PREFIX.pack(len(head), len(body)) + head + body


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Next message of a stream; None at its end, also if that cuts a message."""
    lengths = stream.read(LENGTH_PREFIX.size)
    if len(lengths) < LENGTH_PREFIX.size:
        return None
    head, size = LENGTH_PREFIX.unpack(lengths)
    if size > MAX_BODY_BYTES:
        return None
    header, body = stream.read(head), stream.read(size)
    return (json.loads(header), body) if len(header) == head and len(body) == size else None


def page_frame(header: dict[str, Any], data: bytes | None) -> tuple[bool, bytes]:
    """Whether a message to a page is binary, and its bytes: JSON, or its length, JSON and bytes."""
    text = json.dumps(header, allow_nan=False).encode()
    return (False, text) if data is None else (True, struct.pack("<I", len(text)) + text + data)


# Of cameras, and of looks that change the same settings, only the latest message waits.

MAX_WAITING_MESSAGES = 256  # messages of a page that wait; what comes then is dropped, but for cameras


class Mailbox:
    """Mailbox of the pages' messages: one thread puts them, another takes them.

    A message is a mapping with the number of its page, "page", and its "type".

    Example:
        >>> waiting = Mailbox()
        >>> for n in (1, 2):
        ...     waiting.put({"page": 0, "type": "camera", "id": n})
        >>> [each["id"] for each in waiting.take()]
        [2]
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[dict[str, Any]] = deque()
        self._closed = False

    def put(self, message: dict[str, Any]) -> None:
        """Add a message and remove the waiting ones that it supersedes."""
        with self._changed:
            same = [each for each in self._waiting if each["page"] == message["page"]]
            for each in _superseded(same, message):
                self._waiting.remove(each)
            if len(same) < MAX_WAITING_MESSAGES or message["type"] in ("camera", "open", "close"):
                self._waiting.append(message)
            self._changed.notify_all()

    def close(self) -> None:
        """Close the mailbox: no message comes after this."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether the mailbox is closed."""
        return self._closed

    def take(self, seconds: float = 0.0) -> list[dict[str, Any]]:
        """All that waits, in order; where nothing does, what comes first within some seconds."""
        until = time.monotonic() + seconds
        with self._changed:
            while not self._waiting and not self._closed and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            taken = list(self._waiting)
            self._waiting.clear()
            return taken


def _superseded(waiting: list[dict[str, Any]], message: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a page's waiting messages that a new one makes idle: other cameras; looks that say no more than it, as
    far back as nothing else but cameras stands between."""
    if message["type"] == "camera":
        return [each for each in waiting if each["type"] == "camera"]
    if message["type"] != "look":
        return []
    others = reversed([each for each in waiting if each["type"] != "camera"])
    return [each for each in takewhile(lambda each: each["type"] == "look", others) if each.keys() <= message.keys()]


class Wire(Protocol):
    """Wire between a viewer and its pages.

    Attributes:
        inbox: what pages say: mappings with the page's number, "page", and a "type"; "open" is its first, "close" its
            last.
        url: address of the page, "" where it has none.
        url_once: address without the token that leads to it once, for what everybody can read.
        running: whether it carries anything still.
        atlas_bytes: size of the bricks that pages draw themselves, before they are packed, at most [byte].
    """

    inbox: Mailbox
    atlas_bytes: int

    @property
    def url(self) -> str:
        """Address of the page."""

    @property
    def url_once(self) -> str:
        """Address that leads to the page once."""

    @property
    def running(self) -> bool:
        """Whether the wire is open."""

    def send(
        self, header: dict[str, Any], data: bytes | None = None, to: int | None = None, hello: bool = False
    ) -> None:
        """Send a message to one page, or to all; `hello` is what pages get first that come later."""

    def close(self) -> None:
        """End it."""

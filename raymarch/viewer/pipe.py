"""Messages between the viewer's owner and its server: a pipe of bytes, each message with its lengths in front."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

LENGTHS = struct.Struct("<II")  # of the header and of the body
MOST_BODY = 1 << 28


def packed(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Message of a header and a body.

    Example:
        >>> packed({"to": 1}, b"picture")[:8]
        b'\\t\\x00\\x00\\x00\\x07\\x00\\x00\\x00'
    """
    head = json.dumps(header).encode()
    return LENGTHS.pack(len(head), len(body)) + head + body


def read(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Next message of a stream; None where it has ended, also in the middle of one."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    head, size = LENGTHS.unpack(lengths)
    if size > MOST_BODY:
        return None
    header, body = stream.read(head), stream.read(size)
    return (json.loads(header), body) if len(header) == head and len(body) == size else None


def for_page(header: dict[str, Any], data: bytes | None) -> tuple[bool, bytes]:
    """Whether a message to a page is binary, and its bytes: JSON, or its length, JSON and bytes."""
    text = json.dumps(header, allow_nan=False).encode()
    return (False, text) if data is None else (True, struct.pack("<I", len(text)) + text + data)

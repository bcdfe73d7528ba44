"""Head of an HTTP request, read from the first bytes of a connection, before the WebSocket library sees them.

That library closes connections whose request has a body, another method or no proper head without a word; here each
gets the answer that says why.
"""

from __future__ import annotations

from raymarch.viewer.server.guard import Refusal, Request

MAX_HEAD_BYTES = 1 << 14  # bytes of a request's line and headers
MAX_HEAD_LINES = 100
METHOD_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def read_head(data: bytes) -> Request | Refusal | None:
    """Request whose head `data` begins with; a refusal of what is none, None where more bytes have to come.

    Example:
        >>> read_head(b"GET /?a=1 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        Request(path='/?a=1', values={'host': ['localhost']}, method='GET')
        >>> read_head(b"GET / HT") is None
        True
        >>> read_head(b"\\x16\\x03\\x01").status
        400
    """
    if data[:1] and data[0] not in METHOD_LETTERS:
        https = data[:1] == b"\x16"
        why = "https came; the viewer speaks http, so open http://" if https else "what came is no HTTP request"
        return Refusal(400, why + ("..." if https else "; open the URL that raymarch printed in a browser"))
    head, end, _ = data.partition(b"\r\n\r\n")
    if len(head) > MAX_HEAD_BYTES or head.count(b"\n") > MAX_HEAD_LINES:
        cure = "clear the browser's cookies of this host, or open the page in a private window"
        most = f"the headers are more than {MAX_HEAD_BYTES:,} bytes or {MAX_HEAD_LINES} lines"
        return Refusal(431, f"{most}; {cure}")
    if not end:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.1", "HTTP/1.0") or not words[1].isascii():
        return Refusal(400, "what came is no HTTP/1.1 request; open the URL that raymarch printed in a browser")
    values: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or "\n" in line:
            return Refusal(400, "a header is no name and value; open the URL that raymarch printed in a browser")
        values.setdefault(name.lower(), []).append(value.strip())
    return Request(words[1], values, words[0])

"""Guard of the viewer's server: which requests are refused and why, as functions of the request alone.

The server listens on the loopback interface, but every web page that the user visits can send requests there. So a
request is answered only where its Host is loopback's own name (against DNS rebinding), where its Origin is this very
server, and where it bears the token that the URL has.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SOCKET = "/ws"
OPEN_FILES = ("/page.js", "/client.js", "/client.css")  # of the package, the same for everybody
LONGEST_PATH = 1024  # characters, query included
MOST_MESSAGE = 1 << 18  # bytes of a page's message; a table of 1024 knots is a fifth of that
MOST_PAGES = 16


@dataclass(frozen=True)
class Refusal:
    """Refusal of a request: HTTP status, and what was wrong in one line."""

    status: int
    why: str


@dataclass(frozen=True)
class Asked:
    """HTTP request as the guard sees it: `values` has the headers by their names in small letters, all of each."""

    path: str
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    method: str = "GET"

    def one(self, name: str) -> str | None:
        """Value of a header that is there once; None where it is missing or there more often."""
        values = self.values.get(name, ())
        return values[0] if len(values) == 1 else None


def new_token() -> str:
    """Token of 256 random bits, in characters that a URL may have."""
    return secrets.token_urlsafe(32)


def is_loopback(host: str) -> bool:
    """Whether a Host header names the loopback interface; any port does, as `ssh -L` may lead to it from another.

    Example:
        >>> is_loopback("localhost:8080"), is_loopback("localhost.evil.com"), is_loopback("[::1]:80")
        (True, False, True)
    """
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, "0"
    return name.lower() in LOOPBACK and port.isascii() and port.isdigit() and len(port) < 6


def token_of(path: str, name: str = "token") -> str:
    """Token in the query of a path; "" where there is none, or several."""
    try:
        given = parse_qs(urlsplit(path).query, max_num_fields=8).get(name, [])
    except ValueError:
        return ""
    return given[0] if len(given) == 1 else ""


def bears_ticket(path: str, ticket: str) -> bool:
    """Whether a path is the page's with the ticket that is good; none is where that is "".

    A ticket is what a browser is started with: everybody on the machine may read the arguments of a process.
    """
    given = token_of(path, "ticket").encode("utf-8", "replace")
    return path.partition("?")[0] == "/" and ticket != "" and hmac.compare_digest(given, ticket.encode())


def refusal(asked: Asked, token: str, pages: int = 0, ticket: str = "") -> Refusal | None:
    """Refusal of a request, of a server whose token is `token` and that serves so many `pages`; None where it is fine.

    With the `ticket` that is still good the page alone may be asked for.

    Example:
        >>> refusal(Asked("/?token=right", {"host": ["127.0.0.1:8080"]}), "right") is None
        True
        >>> refusal(Asked("/?token=right", {"host": ["evil.com"]}), "right")
        Refusal(status=421, why='this host is not the viewer; open the URL that raymarch printed')
    """
    if asked.method != "GET":
        return Refusal(405, "only GET is answered")
    if len(asked.path) > LONGEST_PATH:
        return Refusal(414, "the path is too long")
    if "content-length" in asked.values or "transfer-encoding" in asked.values:
        return Refusal(413, "a request has no body here")
    host = asked.one("host")
    if host is None or not is_loopback(host):
        return Refusal(421, "this host is not the viewer; open the URL that raymarch printed")
    place = asked.path.partition("?")[0]
    origin = asked.values.get("origin", ())
    if place == SOCKET and not origin:
        return Refusal(403, "no origin; open the URL that raymarch printed in a browser")
    if any(each.lower() != f"http://{host}".lower() for each in origin):
        return Refusal(403, "another web page asked; open the URL that raymarch printed")
    if place in OPEN_FILES:
        return None
    if place not in ("/", SOCKET):
        return Refusal(404, "there is no such page")
    known = hmac.compare_digest(token_of(asked.path).encode("utf-8", "replace"), token.encode())
    if not (known or bears_ticket(asked.path, ticket)):
        return Refusal(403, "the token is missing or not this viewer's; open the whole URL that raymarch printed")
    if place == SOCKET and (asked.one("upgrade") or "").lower() != "websocket":
        return Refusal(426, "this is for WebSockets")
    if place == SOCKET and pages >= MOST_PAGES:
        return Refusal(503, f"{MOST_PAGES} pages are open; close one")
    return None


def headers_of(kind: str, host: str) -> dict[str, str]:
    """Headers of an answer of a content type: nothing is kept, framed, sniffed or asked of any other server."""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:;"
        f" connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Type": kind,
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=()",
        "Cache-Control": "no-store",
    }

"""Guard of the viewer's server: which requests are refused and why, as functions of the request alone.

The server listens on the loopback interface, but every web page that the user visits can send requests there. So a
request is answered only where its Host is loopback's own name or one that the user allowed (against DNS rebinding),
where its Origin is this very server or such a name, and where it bears the token that the URL has.

A refusal says what to do about it, as it is all that somebody behind a proxy or in a container sees.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from urllib.parse import parse_qs, urlsplit

from raymarch.errors import RaymarchError, short_value

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
SOCKET_PATH = "/ws"
OPEN_FILES = ("/page.js", "/client.js", "/client.css")  # of the package, the same for everybody
MAX_PATH_LENGTH = 1024  # characters, query included
MAX_MESSAGE_BYTES = 1 << 18  # bytes of a page's message; a table of 1024 knots is a fifth of that
MAX_PAGES = 16
MANUAL_SECTION = 'docs/viewer.md, "Behind a proxy, in Docker"'
HOST_NAME = re.compile(
    r"(?:[a-z0-9_](?:[a-z0-9_.-]{0,250}[a-z0-9_])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?", re.ASCII | re.I
)
PROXY_CURE = (
    "a proxy on the way has to pass WebSockets on (nginx: proxy_http_version 1.1, and the headers Upgrade, Connection)"
)


@dataclass(frozen=True)
class Refusal:
    """Refusal of a request: HTTP status, and what was wrong in one line."""

    status: int
    why: str


@dataclass(frozen=True)
class Request:
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
    name, port = _name_and_port(host)
    return name in LOOPBACK_HOSTS and _is_port(port or "0")


def is_allowed(host: str, hosts: Sequence[str]) -> bool:
    """Whether a Host header names one of the names that the user allowed; one without a port allows all ports.

    Example:
        >>> [is_allowed(each, ["lab.org", "10.0.0.9:80"]) for each in ("Lab.org:8443", "10.0.0.9:81", "a.lab.org")]
        [True, False, False]
    """
    name, port = _name_and_port(host)
    return _is_port(port or "0") and any(
        name == allowed and own in ("", port) for allowed, own in map(_name_and_port, hosts)
    )


def _name_and_port(host: str) -> tuple[str, str]:
    """Name in small letters, and port or "", of a Host header."""
    name, colon, port = host.rpartition(":")
    return (host.lower(), "") if not colon or host.endswith("]") else (name.lower(), port or "none")


def _is_port(port: str) -> bool:
    return port.isascii() and port.isdigit() and len(port) < 6


def allowed_host(value: object) -> str:
    """Name, with a port or without, that a user allows; RaymarchError for what a browser would never say.

    Example:
        >>> allowed_host("Lab.example.org")
        'lab.example.org'
    """
    given = str(value).strip()
    if "://" in given or "/" in given:
        inside = urlsplit(given if "://" in given else f"//{given}").netloc or "lab.example.org"
        raise RaymarchError(f"host is {short_value(given)}, want a name without http:// or a path; give {inside}")
    if given in ("*", "0.0.0.0", "::", "[::]") or not HOST_NAME.fullmatch(given):
        raise RaymarchError(
            f"host is {short_value(given)}, want a name, or name:port, as the browser's address bar shows it; to "
            "listen on"
            " other addresses give bind"
        )
    return given.lower()


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


def unreadable(asked: Request) -> Refusal | None:
    """Refusal of a request by its method, path and size alone, whoever asks; None where it is fine."""
    if asked.method != "GET":
        return Refusal(405, "only GET is answered; open the URL that raymarch printed in a browser")
    if len(asked.path) > MAX_PATH_LENGTH:
        return Refusal(414, f"the path is longer than {MAX_PATH_LENGTH} characters; open the URL that raymarch printed")
    sizes = [each.strip() for each in asked.values.get("content-length", ())]
    if "transfer-encoding" in asked.values or any(size.strip("0") or not size for size in sizes):
        return Refusal(413, "a request has no body here; ask without one")
    return None


def refusal(asked: Request, token: str, pages: int = 0, ticket: str = "", hosts: Sequence[str] = ()) -> Refusal | None:
    """Refusal of a request, of a server whose token is `token` and that serves so many `pages`; None where it is fine.

    With the `ticket` that is still good the page alone may be asked for. `hosts` are names that the user allowed beside
    loopback's own.

    Example:
        >>> refusal(Request("/?token=right", {"host": ["127.0.0.1:8080"]}), "right") is None
        True
        >>> refusal(Request("/?token=right", {"host": ["lab.org"]}), "right", hosts=["lab.org"]) is None
        True
        >>> refusal(Request("/?token=right", {"host": ["evil.com"]}), "right").status
        421
    """
    found = unreadable(asked) or _origin_refusal(asked, hosts)
    place = asked.path.partition("?")[0]
    if found is not None or place in OPEN_FILES:
        return found
    if place not in ("/", SOCKET_PATH):
        why = f"the path is {_plain(place)}, and the viewer's page is at / alone; {_prefix(place)}"
        return Refusal(404, why)
    known = hmac.compare_digest(token_of(asked.path).encode("utf-8", "replace"), token.encode())
    if not (known or bears_ticket(asked.path, ticket)):
        why = "the token is missing or not this viewer's, which has a new one each time it starts"
        return Refusal(403, f"{why}; open the whole URL that raymarch printed, or add its /?token=... to this address")
    if place == SOCKET_PATH and (asked.one("upgrade") or "").lower() != "websocket":
        return Refusal(426, f"this is for WebSockets; {PROXY_CURE}")
    if place == SOCKET_PATH and "origin" not in asked.values:
        return Refusal(403, "no origin; open the URL that raymarch printed in a browser")
    if place == SOCKET_PATH and pages >= MAX_PAGES:
        return Refusal(503, f"{MAX_PAGES} pages are open; close one, and load this one again")
    return None


def _origin_refusal(asked: Request, hosts: Sequence[str]) -> Refusal | None:
    """Refusal by a request's Host and Origin."""
    host = asked.one("host")
    if host is None:
        return Refusal(421, "the request names no host, or several; open the URL that raymarch printed")
    if not (is_loopback(host) or is_allowed(host, hosts)):
        name = _plain(host)
        why = f"it was asked for as {name}, which the viewer does not answer to; open the URL that raymarch printed"
        return Refusal(421, f"{why}. If {name} is your own proxy, container or machine, {_allow(host)}")
    for origin in asked.values.get("origin", ()):
        scheme, _, from_ = origin.lower().partition("://")
        same = from_ == host.lower() and (scheme == "http" or (scheme == "https" and is_allowed(host, hosts)))
        if not (same or (scheme in ("http", "https") and is_allowed(from_, hosts))):
            why = f"a page of {_plain(origin)} asked, which is not the viewer's; open the URL that raymarch printed"
            return Refusal(403, f"{why}. If it is your own proxy, {_allow(from_)}")
    return None


def _allow(host: str) -> str:
    """How to allow a host name."""
    name = _name_and_port(host)[0] if HOST_NAME.fullmatch(host) else "NAME"
    return f"start the viewer with --allow-host {name} (rm.view: hosts=['{name}']); see {MANUAL_SECTION}"


def _prefix(place: str) -> str:
    if any(place.endswith(end) for end in ("/", "/ws", *OPEN_FILES)):
        return f"a proxy that leads here has to take its own prefix off the path; see {MANUAL_SECTION}"
    return "open the URL that raymarch printed"


def _plain(text: str) -> str:
    """What a request said, for words about it: short, of plain characters."""
    return text if re.fullmatch(r"[\w.:/\[\]~-]{1,120}", text, re.ASCII) else "something else"


def headers_of(kind: str, host: str, hosts: Sequence[str] = ()) -> dict[str, str]:
    """Headers of an answer of a content type: nothing is kept, framed, sniffed or asked of any other server."""
    sockets = [f"ws://{host}"]
    for each in hosts:  # a proxy may have put another Host in the place of its own
        sockets += [f"{scheme}://{each}" for scheme in ("ws", "wss") if f"{scheme}://{each}" not in sockets]
        if _name_and_port(each)[1] == "" and not each.endswith("]"):
            sockets += [f"{scheme}://{each}:*" for scheme in ("ws", "wss")]
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:;"
        f" connect-src 'self' {' '.join(sockets)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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


REFUSAL_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:4em auto;padding:0 1em}code{user-select:all}"
)


def refused_page(refused: Refusal) -> tuple[str, dict[str, str]]:
    """HTML page of a refusal, and its headers."""
    digest = b64encode(sha256(REFUSAL_STYLE.encode()).digest()).decode()
    headers = headers_of("text/html; charset=utf-8", "127.0.0.1")
    headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    words = re.sub(r"(--allow-host [^ ]+|/\?token=\S+)", r"<code>\1</code>", escape(refused.why, quote=False))
    lines = "".join(f"<p>{line[:1].upper() + line[1:]}</p>" for line in re.split(r"[;.] (?=[a-zA-Z])", words))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>raymarch: not answered</title>'
        f"<style>{REFUSAL_STYLE}</style><h1>The raymarch viewer did not answer this</h1>{lines}"
        f"<p>HTTP {refused.status}</p></html>\n"
    ), headers

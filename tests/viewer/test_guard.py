"""Law: a request is answered only from this machine, of this very page, and with the token; a table, asked by value."""

from __future__ import annotations

import re

import pytest

from raymarch.viewer.server.guard import (
    LOOPBACK_HOSTS,
    MAX_PAGES,
    MAX_PATH_LENGTH,
    OPEN_FILES,
    Request,
    headers_of,
    is_loopback,
    new_token,
    refusal,
    token_of,
)

TOKEN = "right"
HOST, ORIGIN = "127.0.0.1:8080", "http://127.0.0.1:8080"
SOCKET = {"upgrade": ["websocket"], "origin": [ORIGIN]}


def asked(path="/?token=right", method="GET", host=(HOST,), **values):
    return Request(path, {"host": host, **{name.replace("_", "-"): value for name, value in values.items()}}, method)


FINE = [
    asked(),
    asked(origin=[ORIGIN]),
    asked(host=["localhost:8080"]),
    asked(host=["[::1]:8080"]),
    asked(host=["localhost"]),  # through a tunnel from port 80
    asked(host=["localhost:9999"]),  # through ssh -L from another port
    asked("/ws?token=right", **SOCKET),
    asked("/ws?token=right", host=["LOCALHOST:8080"], upgrade=["WebSocket"], origin=["http://localhost:8080"]),
    *[asked(path) for path in OPEN_FILES],
]
REFUSED = {
    "another method": (asked(method="POST"), 405),
    "a body": (asked(content_length=["3"]), 413),
    "a body in chunks": (asked(transfer_encoding=["chunked"]), 413),
    "a long path": (asked("/?token=right&x=" + "a" * MAX_PATH_LENGTH), 414),
    "no host": (Request("/?token=right", {}), 421),
    "two hosts": (asked(host=[HOST, HOST]), 421),
    "a name rebound": (asked(host=["evil.com:8080"]), 421),
    "a name that begins as ours": (asked(host=["127.0.0.1.evil.com:8080"]), 421),
    "a name that ends as ours": (asked(host=["evil-localhost:8080"]), 421),
    "a port that is none": (asked(host=["localhost:80a"]), 421),
    "all interfaces": (asked(host=["0.0.0.0:8080"]), 421),
    "an address of the network": (asked(host=["192.168.0.7:8080"]), 421),
    "another page": (asked(origin=["http://evil.com"]), 403),
    "another port's page": (asked("/ws?token=right", upgrade=["websocket"], origin=["http://127.0.0.1:3000"]), 403),
    "another name of ours": (asked("/ws?token=right", upgrade=["websocket"], origin=["http://localhost:8080"]), 403),
    "a sandboxed page": (asked("/ws?token=right", upgrade=["websocket"], origin=["null"]), 403),
    "another scheme": (asked("/ws?token=right", upgrade=["websocket"], origin=["https://127.0.0.1:8080"]), 403),
    "two origins": (asked("/ws?token=right", upgrade=["websocket"], origin=[ORIGIN, "http://evil.com"]), 403),
    "a socket without origin": (asked("/ws?token=right", upgrade=["websocket"]), 403),
    "no token": (asked("/"), 403),
    "an empty token": (asked("/?token="), 403),
    "a wrong token": (asked("/?token=wrong"), 403),
    "a token cut": (asked("/?token=righ"), 403),
    "two tokens": (asked("/?token=right&token=right"), 403),
    "a token beyond ASCII": (asked("/?token=r%C3%AFght"), 403),
    "many fields": (asked("/?token=right" + "&a=1" * 20), 403),
    "a socket without token": (asked("/ws", **SOCKET), 403),
    "a socket with another's": (asked("/ws?token=wrong", **SOCKET), 403),
    "no socket": (asked("/ws?token=right", origin=[ORIGIN]), 426),
    "a file that is none": (asked("/secret?token=right"), 404),
    "a way up": (asked("/../guard.py?token=right"), 404),
    "a way up from a file": (asked("/client.js/../../guard.py"), 404),
    "a foreign page that asks for a file": (asked("/client.js", origin=["http://evil.com"]), 403),
    "a file at another host": (asked("/page.js", host=["evil.com"]), 421),
}


@pytest.mark.parametrize("request_", FINE, ids=range(len(FINE)))
def test_what_our_page_asks_is_answered(request_):
    assert refusal(request_, TOKEN) is None


def test_a_ticket_opens_the_page_alone_and_only_while_it_is_good():
    assert refusal(asked("/?ticket=once"), TOKEN, ticket="once") is None
    for request_, ticket in (
        (asked("/?ticket=once"), ""),
        (asked("/?ticket="), ""),
        (asked("/?ticket=other"), "once"),
        (asked("/?ticket=once&ticket=once"), "once"),
        (asked("/?token=once"), "once"),
        (asked("/ws?ticket=once", **SOCKET), "once"),
    ):
        assert refusal(request_, TOKEN, ticket=ticket).status == 403
    assert refusal(asked("/?ticket=once", host=["evil.com"]), TOKEN, ticket="once").status == 421


@pytest.mark.parametrize("name", REFUSED)
def test_what_others_ask_is_refused_in_a_line(name):
    request_, status = REFUSED[name]
    found = refusal(request_, TOKEN)
    assert found is not None and found.status == status
    assert "\n" not in found.why and TOKEN not in found.why.replace("right host", "")


def test_pages_are_counted():
    socket = asked("/ws?token=right", **SOCKET)
    assert refusal(socket, TOKEN, MAX_PAGES - 1) is None
    assert refusal(socket, TOKEN, MAX_PAGES).status == 503


@pytest.mark.parametrize("host", ["", ":", "[", "]", "[::1", "[::1]x", "localhost:", "localhost:-1", "a:b:c", "\x00"])
def test_odd_hosts_are_none_of_ours(host):
    assert not is_loopback(host)


def test_hosts_of_ours():
    assert all(is_loopback(each) and is_loopback(f"{each}:65535") for each in LOOPBACK_HOSTS)


def test_tokens_are_long_and_differ_and_stand_in_urls():
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100 and all(re.fullmatch(r"[\w-]{43}", each) for each in tokens)
    assert all(token_of(f"/?token={each}") == each for each in tokens)


def test_the_policy_lets_nothing_out():
    policy = dict(
        part.split(maxsplit=1) for part in headers_of("text/html", HOST)["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'" and policy["connect-src"] == f"'self' ws://{HOST}"
    sources = {word for value in policy.values() for word in value.split()} - {f"ws://{HOST}"}
    assert sources <= {"'none'", "'self'", "blob:", "data:"}
    assert "data:" not in policy["script-src"] and "blob:" not in policy["script-src"]

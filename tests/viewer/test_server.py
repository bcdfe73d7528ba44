"""Law: real requests to the server process get what the guard's table says, and it ends when its owner does."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from skips import require_extra

from raymarch.errors import RaymarchError
from raymarch.viewer.server import server_process, wire
from raymarch.viewer.server.guard import MAX_MESSAGE_BYTES, headers_of
from raymarch.viewer.server.open_browser import announce
from raymarch.viewer.server.server import PageServer
from raymarch.viewer.server.server_process import ServerProcess
from raymarch.viewer.server.wire import Mailbox

pytestmark = pytest.mark.extra
require_extra("websockets", "viewer")

from websockets.exceptions import ConnectionClosed, InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402


@pytest.fixture(scope="module")
def server():
    made = ServerProcess()
    made.send({"type": "scene", "name": "hello"}, hello=True)
    yield made
    made.close()
    assert made._child.returncode == 0


def where(server):
    found = urlsplit(server.url)
    return found.netloc, f"?{found.query}"


def get(server, path, method="GET", body=None, **headers):
    host, _ = where(server)
    link = http.client.HTTPConnection(host, timeout=10)
    try:
        link.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            link.putheader(name, value)
        link.endheaders(body)
        answer = link.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        link.close()


@contextmanager
def page(server, **how):
    host, query = where(server)
    with connect(f"ws://{host}/ws{query}", **{"origin": f"http://{host}", "max_size": None, **how}) as link:
        yield link


def heard(server, page_number=None, seconds=10):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for message in server.inbox.take(0.2):
            if message["type"] not in ("open", "close") and page_number in (None, message["page"]):
                return message
    raise AssertionError("nothing was said")


def test_the_page_and_its_files_are_served_with_a_strict_policy(server):
    host, query = where(server)
    for path, kind in ((f"/{query}", "text/html"), ("/client.js", "text/javascript"), ("/client.css", "text/css")):
        status, headers, body = get(server, path)
        assert (
            status == 200 and headers["Content-Type"].startswith(kind) and len(body) == int(headers["Content-Length"])
        )
        expected = headers_of(headers["Content-Type"], host)
        assert {name: headers[name] for name in expected} == expected
    assert b"export" in get(server, "/client.js")[2]
    assert server.url.encode() not in get(server, f"/{query}")[2]


REFUSALS = {
    "no token": ({"path": "/"}, 403),
    "a wrong token": ({"path": "/?token=wrong"}, 403),
    "a rebound name": ({"path": "/{query}", "Host": "evil.com"}, 421),
    "another page": ({"path": "/{query}", "Origin": "http://evil.com"}, 403),
    "a file that is none": ({"path": "/../guard.py"}, 404),
    "no socket": ({"path": "/ws{query}", "Origin": "http://{host}"}, 426),
    "a long path": ({"path": "/{query}&x=" + "a" * 2000}, 414),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_is_refused_on_the_wire(server, name):
    how, status = REFUSALS[name]
    host, query = where(server)
    how = {key: value.format(query=query, host=host) for key, value in how.items()}
    found, headers, body = get(server, how.pop("path"), **how)
    assert found == status and body.startswith(b"raymarch: ") and body.count(b"\n") == 1
    assert headers["X-Content-Type-Options"] == "nosniff" and server._token.encode() not in body


def test_what_a_browser_is_started_with_leads_to_the_page_once(monkeypatch):
    """Its arguments can be read by every user; the token is not among them."""
    server, opened, noted = ServerProcess(), [], []
    try:
        monkeypatch.delenv("SSH_CONNECTION", raising=False)
        monkeypatch.setenv("DISPLAY", ":0")
        monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
        said = []
        announce(server, said.append, noted.append, browser=True)
        until = time.monotonic() + 10
        while not opened and time.monotonic() < until:
            time.sleep(0.01)
        (url,) = opened
        assert said == [server.url] and server._token not in url
        path = f"/?{urlsplit(url).query}"
        status, headers, _ = get(server, path, Host="evil.com")
        assert status == 421 and server._token not in str(headers)
        status, headers, body = get(server, path)
        assert (status, headers["Location"], body) == (303, f"/?token={server._token}", b"")
        assert get(server, headers["Location"])[0] == 200
        status, headers, body = get(server, path)
        assert status == 403 and server._token not in str(headers) and server._token.encode() not in body
    finally:
        server.close()


OURS = os.getuid() if hasattr(os, "getuid") else 0
NEAR_END, FAR_END = "0100007F:1F90", "0100007F:CFD2"
MAPPED = "0000000000000000FFFF0000"  # before an address of IPv4 in the table of IPv6
CONNECTED = [
    ({}, 303),
    ({"tcp": []}, 403),
    ({"tcp": [0]}, 303),
    ({"tcp": [OURS]}, 303),
    ({"tcp": [OURS], "tcp6": []}, 303),
    ({"tcp": [12345]}, 403),
    ({"tcp": [0, 12345]}, 403),
    ({"tcp": [], "tcp6": [OURS]}, 303),
    ({"tcp": [], "tcp6": [12345]}, 403),
    ({"tcp": [OURS], "tcp6": [12345]}, 403),
]


@pytest.mark.parametrize(("tables", "status"), CONNECTED)
def test_a_ticket_is_for_this_user_alone_where_the_system_tells(tables, status, tmp_path, monkeypatch):
    """By tables of connections with these users at the other end; where there is no table, nothing is told."""
    row = "0: {} {} 01 00000000:00000000 00:00000000 00000000 {} 0 9\n"
    for name, users in tables.items():
        before = MAPPED if name == "tcp6" else ""
        text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        text += row.format(before + NEAR_END, before + FAR_END, 777)  # our own end
        (tmp_path / name).write_text(text + "".join(row.format(before + FAR_END, before + NEAR_END, u) for u in users))
    monkeypatch.setattr(wire, "CONNECTION_TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    pages = PageServer("right", Mailbox(), "once")
    headers = SimpleNamespace(raw_items=lambda: [("Host", "127.0.0.1:8080")])
    ends = SimpleNamespace(remote_address=("127.0.0.1", 0xCFD2), local_address=("127.0.0.1", 8080))
    answer = pages.process(ends, SimpleNamespace(path="/?ticket=once", headers=headers))
    assert (answer.status_code, pages.ticket) == (status, "" if status == 303 else "once")
    assert (answer.headers.get("Location") == "/?token=right") == (status == 303)


@pytest.mark.skipif(not all(map(Path.exists, wire.CONNECTION_TABLES)), reason="Linux's tables of connections")
def test_the_system_tells_whose_an_end_of_ipv6_is_that_leads_to_our_server():
    with socket.create_server(("127.0.0.1", 0)) as door, socket.socket(socket.AF_INET6) as link:
        own = door.getsockname()[1]
        link.connect(("::ffff:127.0.0.1", own))
        far = link.getsockname()[1]
        told = [wire.users_of(far, own, table.read_text()) for table in wire.CONNECTION_TABLES]
        assert told == [set(), {os.getuid()}]
        assert not wire.is_of_another_user(far, own)
    assert wire.is_of_another_user(0, own)


NO_REQUESTS = [
    b"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\nab",
    b"\x16\x03\x01\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000,
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500,
]


@pytest.mark.parametrize("sent", NO_REQUESTS, ids=range(len(NO_REQUESTS)))
def test_what_is_no_request_of_ours_is_cut_off(server, sent):
    host, _ = where(server)
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=10) as link:
        try:
            link.sendall(sent.replace(b"{host}", host.encode()))
            answer = link.recv(1000)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer.split()[1][:1] in (b"4", b"5")
    assert get(server, "/client.css")[0] == 200


@pytest.mark.parametrize(
    ("how", "status"),
    [({"origin": "http://evil.com"}, 403), ({"origin": None}, 403), ({"origin": "http://127.0.0.1:1"}, 403)],
)
def test_sockets_of_other_pages_are_refused(server, how, status):
    with pytest.raises(InvalidStatus) as refused, page(server, **how):
        pass
    assert refused.value.response.status_code == status


def test_a_socket_without_the_token_is_refused(server):
    host, _ = where(server)
    with pytest.raises(InvalidStatus) as refused, connect(f"ws://{host}/ws?token=no", origin=f"http://{host}"):
        pass
    assert refused.value.response.status_code == 403


def test_it_listens_on_this_machine_alone(server):
    port = int(where(server)[0].split(":")[1])
    with socket.socket() as free:  # would be refused if the server had all addresses
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        free.bind(("127.0.0.2", port)) if sys.platform == "linux" else None
    assert where(server)[0].startswith("127.0.0.1:")


def test_messages_go_both_ways_and_pings_are_answered_at_once(server):
    with page(server) as link:
        assert json.loads(link.recv(10))["name"] == "hello"
        link.send(json.dumps({"type": "ping", "id": 7}))
        assert json.loads(link.recv(10)) == {"type": "pong", "id": 7}
        link.send(json.dumps({"type": "look", "step": 1}))
        message = heard(server)
        assert {name: message[name] for name in ("type", "step")} == {"type": "look", "step": 1}
        frame = {"type": "frame", "width": 2, "height": 1, "of": [2, 1]}
        server.send(frame, b"picture", to=message["page"])
        data = link.recv(10)
        (length,) = struct.unpack("<I", data[:4])
        assert json.loads(data[4 : 4 + length]) == frame and data[4 + length :] == b"picture"


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"type": 3}', '{"type": "open"}', "[" * 5000, b"\x00\x01"])
def test_what_is_no_message_is_answered_and_the_page_goes_on(server, text):
    with page(server) as link:
        link.recv(10)
        link.send(text)
        assert json.loads(link.recv(10))["type"] == "error"
        link.send(json.dumps({"type": "ping", "id": 1}))
        assert json.loads(link.recv(10))["type"] == "pong"


@pytest.mark.parametrize("number", [None, "1", [], {}, [[]], 10**400, 2**53, "x" * 1000], ids=range(8))
def test_a_ping_without_a_number_is_not_sent_back(server, number):
    with page(server) as link:
        link.recv(10)
        link.send(json.dumps({"type": "ping", "id": number}))
        answer = link.recv(10)
        assert json.loads(answer)["type"] == "error" and len(answer) < 200


def test_a_page_that_asks_and_never_reads_is_let_go():
    inbox, closed = Mailbox(), []

    class Deaf:
        """Page's end of a socket that takes nothing."""

        def __aiter__(self):
            return self

        async def __anext__(self):
            if closed:
                raise StopAsyncIteration
            return '{"type": "ping", "id": 1}'

        async def send(self, data):
            await asyncio.sleep(60)

        async def close(self, code, reason):
            closed.append(reason)

    made = PageServer("token", inbox)
    asyncio.run(asyncio.wait_for(made.page(Deaf()), 10))
    assert closed == ["the page does not read"] and not made.pages
    assert [message["type"] for message in inbox.take()] == ["open", "close"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of open files are POSIX's")
def test_more_connections_than_there_are_files_are_a_line_once_and_it_goes_on():
    code = """if True:
        import resource, socket
        from raymarch.viewer.server.server_process import ServerProcess
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 4096))
        made = ServerProcess()
        port = made.port
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
        links = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(60)]
        for each in links:
            each.close()
        with socket.create_connection(("127.0.0.1", port), 10) as link:
            link.sendall(b"GET /client.css HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
            print(link.recv(12).decode())
        made.close()
        print(made._child.returncode)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["HTTP/1.1", "200", "0"]
    assert done.stderr.count("\n") == 1 and "Too many open files" in done.stderr


def test_a_message_too_long_ends_its_page_alone(server):
    with page(server) as other:
        other.recv(10)
        with page(server) as link:
            link.recv(10)
            link.send("x" * (MAX_MESSAGE_BYTES + 1))
            with pytest.raises(ConnectionClosed):
                link.recv(10)
        other.send(json.dumps({"type": "ping", "id": 1}))
        assert json.loads(other.recv(10))["type"] == "pong"


def test_a_page_that_vanishes_is_told_of_and_others_go_on(server):
    list(server.inbox.take())
    with page(server) as other:
        with page(server) as link:
            link.recv(10)
            link.socket.shutdown(socket.SHUT_RDWR)
        kinds, until = [], time.monotonic() + 10
        while "close" not in kinds and time.monotonic() < until:
            kinds += [message["type"] for message in server.inbox.take(0.2)]
        assert "close" in kinds
        server.send({"type": "note", "text": "still here"})
        other.recv(10)
        assert json.loads(other.recv(10))["text"] == "still here"


def test_a_port_in_use_is_a_line_with_the_cure(server):
    port = int(where(server)[0].split(":")[1])
    second = ServerProcess(port)
    with pytest.raises(RaymarchError, match=rf"port {port} is in use; choose another \(--port, in Python port=\)"):
        _ = second.url
    assert not second.running


def test_the_server_ends_when_its_owner_dies():
    code = (
        "import os; from raymarch.viewer.server.server_process import ServerProcess; made = ServerProcess();"
        " print(made.port, made._child.pid, flush=True); os._exit(1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    port, _ = map(int, done.stdout.split())
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return
        time.sleep(0.05)
    raise AssertionError("it still listens")


def test_the_owner_hears_when_the_server_dies():
    made = ServerProcess()
    assert made.running and made.port
    made._child.send_signal(signal.SIGTERM)
    made._child.wait(10)
    until = time.monotonic() + 10
    while not made.inbox.closed and time.monotonic() < until:
        time.sleep(0.02)
    assert not made.running
    made.send({"type": "note", "text": "to nobody"})
    made.close()


def test_the_server_process_has_neither_taichi_nor_numpy():
    code = "import sys, raymarch.viewer.server.server, websockets.asyncio.server as _"
    code += "; print({'taichi', 'numpy'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "websockets", None)
    with pytest.raises(RaymarchError, match=r'not installed; pip install "raymarch\[viewer\]"'):
        server_process.ServerProcess()

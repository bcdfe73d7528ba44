"""Law: through a tunnel, a proxy, a hub or a container the viewer is reached, or the refusal says what to do, and doing
that reaches it. Each is tried on real sockets; a small proxy stands for those that people have."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest
from skips import require_extra

from raymarch.errors import RaymarchError
from raymarch.viewer.server import guard
from raymarch.viewer.server.open_browser import entry_hints
from raymarch.viewer.server.request_head import MAX_HEAD_BYTES, read_head
from raymarch.viewer.server.server import HANDSHAKE_TIMEOUT
from raymarch.viewer.server.server_process import ServerProcess
from raymarch.viewer.viewer import LOG_INTERVAL, MAX_LOG_LINES, Complaints

pytestmark = pytest.mark.extra
require_extra("websockets", "viewer")

from websockets.exceptions import InvalidStatus  # noqa: E402
from websockets.sync.client import connect  # noqa: E402

PUBLIC = "lab.example.org"


@contextmanager
def serving(**how):
    made = ServerProcess(**how)
    try:
        made.send({"type": "scene", "name": "hello"}, hello=True)
        yield made, made.port, f"?{urlsplit(made.url).query}"
    finally:
        made.close()


@pytest.fixture(scope="module")
def plain():
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def allowed():
    with serving(hosts=[PUBLIC]) as found:
        yield found


def asked(port, head, body=b"", address="127.0.0.1"):
    """Status, headers and text of an answer to bytes of a request."""
    with closing(socket.create_connection((address, port), timeout=HANDSHAKE_TIMEOUT + 5)) as link:
        link.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        data = b""
        try:
            while more := link.recv(65536):
                data += more
        except ConnectionError:
            pass
    first, _, rest = data.partition(b"\r\n")
    headers, _, text = rest.partition(b"\r\n\r\n")
    return int(first.split()[1]) if first else 0, headers.decode(), text.decode()


class Proxy:
    """Reverse proxy that leads to a port: it changes the head of each request as told, and hands on all else."""

    def __init__(self, port, strip="", host=None, upgrade=True):
        self.to, self.strip, self.host, self.upgrade = port, strip, host, upgrade
        self.door, self.threads = socket.create_server(("127.0.0.1", 0)), []
        self.port = self.door.getsockname()[1]
        self.start(self.serve)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        self.door.close()

    def serve(self):
        while True:
            try:
                link, _ = self.door.accept()
            except OSError:
                return
            self.start(self.one, link)

    def start(self, work, *what):
        self.threads.append(threading.Thread(target=work, args=what, daemon=True))
        self.threads[-1].start()
        return self.threads[-1]

    def one(self, link):
        with link, socket.create_connection(("127.0.0.1", self.to)) as far:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (more := link.recv(65536)):
                    return
                head += more
            first, *lines = head.split(b"\r\n")
            if self.strip:
                first = first.replace(b" " + self.strip.encode(), b" ", 1)
            if self.host:
                own = b"Host: " + self.host.encode()
                lines = [own if each.lower().startswith(b"host:") else each for each in lines]
            if not self.upgrade:
                lines = [each for each in lines if not each.lower().startswith((b"upgrade:", b"connection:"))]
            far.sendall(b"\r\n".join([first, *lines]))
            back = self.start(self.pipe, link, far)
            self.pipe(far, link)
            back.join(10)

    @staticmethod
    def pipe(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def greeted(port, query, host, origin, prefix=""):
    """The scene, by a WebSocket as a browser at `origin` opens it, whose address has `host`."""
    link = socket.create_connection(("127.0.0.1", port))
    with link, connect(f"ws://{host}{prefix}/ws{query}", sock=link, origin=origin, proxy=None) as page:
        return json.loads(page.recv(10))["name"]


def fetched(port, query, host, prefix=""):
    """Status and text of the page and of its script through something at a port."""
    found = [asked(port, f"GET {prefix}{path} HTTP/1.1\nHost: {host}") for path in (f"/{query}", "/client.js")]
    return [status for status, _, _ in found], found[0][2]


TUNNELS = {
    "ssh -L to the same port": "127.0.0.1:{port}",
    "ssh -L to another port": "localhost:9000",
    "ssh -L to port 80": "localhost",
    "ports that VS Code forwards": "localhost:41999",
    "docker run -p 127.0.0.1:80:8080": "127.0.0.1",
    "kubectl port-forward": "localhost:30080",
    "a tunnel over IPv6": "[::1]:9000",
}


@pytest.mark.parametrize("name", TUNNELS)
def test_tunnels_to_loopback_work_as_they_are(plain, name):
    _, port, query = plain
    host = TUNNELS[name].format(port=port)
    assert fetched(port, query, host)[0] == [200, 200]
    assert greeted(port, query, host, f"http://{host}") == "hello"


PROXIES = {
    "JupyterHub's, with a prefix": {"strip": "/user/ann/proxy/8080"},
    "nginx that keeps the name": {},
    "nginx that puts its own": {"host": "127.0.0.1:8080"},
    "a cloud's, which says localhost": {"host": "localhost:8080"},
    "one with a prefix that puts its own name": {"strip": "/raymarch", "host": "127.0.0.1"},
}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_whose_name_is_allowed_has_the_page_and_its_socket(allowed, name, scheme):
    _, port, query = allowed
    with Proxy(port, **PROXIES[name]) as proxy:
        prefix = proxy.strip
        assert fetched(proxy.port, query, PUBLIC, prefix)[0] == [200, 200]
        assert greeted(proxy.port, query, PUBLIC, f"{scheme}://{PUBLIC}", prefix) == "hello"
        _, headers, _ = asked(proxy.port, f"GET {prefix}/{query} HTTP/1.1\nHost: {PUBLIC}")
        assert f"wss://{PUBLIC}" in headers


def allow_in(text):
    """Name that a refusal says to allow."""
    return re.search(r"--allow-host ([^ <]+)", text)[1]


@pytest.mark.parametrize("name", PROXIES)
def test_a_proxy_that_is_not_allowed_is_told_what_to_do_and_that_does_it(plain, name):
    _, port, query = plain
    with Proxy(port, **PROXIES[name]) as proxy:
        prefix, origin = proxy.strip, f"https://{PUBLIC}"
        if not proxy.host:
            statuses, text = fetched(proxy.port, query, PUBLIC, prefix)
            assert statuses == [421, 421]
        else:  # the page itself comes, the socket bears the proxy's name
            assert fetched(proxy.port, query, PUBLIC, prefix)[0] == [200, 200]
            with pytest.raises(InvalidStatus) as refused:
                greeted(proxy.port, query, PUBLIC, origin, prefix)
            assert refused.value.response.status_code == 403
            status, _, text = asked(
                proxy.port, f"GET {prefix}/ws{query} HTTP/1.1\nHost: {PUBLIC}"
            )  # as the page asks why
            assert status == 426 and "WebSocket was refused" in text
        assert "docs/viewer.md" in text and PUBLIC in text
        with serving(hosts=[allow_in(text)]) as (_, cured, own):
            proxy.to = cured
            assert fetched(proxy.port, own, PUBLIC, prefix)[0] == [200, 200]
            assert greeted(proxy.port, own, PUBLIC, origin, prefix) == "hello"


def test_a_proxy_that_passes_no_sockets_on_is_told_so(allowed):
    _, port, query = allowed
    with Proxy(port, upgrade=False) as proxy:
        with pytest.raises(InvalidStatus) as refused:
            greeted(proxy.port, query, PUBLIC, f"https://{PUBLIC}")
        assert refused.value.response.status_code == 426
        text = refused.value.response.body.decode()
        assert "pass WebSockets on" in text and "Upgrade" in text
        proxy.upgrade = True
        assert greeted(proxy.port, query, PUBLIC, f"https://{PUBLIC}") == "hello"


def test_a_proxy_that_leaves_its_prefix_is_told_so(allowed):
    _, port, query = allowed
    with Proxy(port) as proxy:
        status, _, text = asked(proxy.port, f"GET /viewer/{query} HTTP/1.1\nHost: {PUBLIC}")
        assert status == 404 and "prefix" in text
        proxy.strip = "/viewer"
        assert fetched(proxy.port, query, PUBLIC, "/viewer")[0] == [200, 200]


def own_address():
    """Address of this machine that is not loopback's; the test is skipped where it has none."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # no packet is sent
            found = probe.getsockname()[0]
        except OSError:
            found = "127.0.0.1"
    if found.startswith("127."):
        pytest.skip("this machine has no address but loopback's")
    return found


def test_a_published_port_of_a_container_reaches_what_listens_everywhere():
    """As Docker does it: it connects to the container's own address, and the browser says 127.0.0.1."""
    address = own_address()
    with serving() as (_, port, query), pytest.raises(OSError, match="refused"):
        asked(port, f"GET /{query} HTTP/1.1\nHost: 127.0.0.1:{port}", address=address)
    with serving(bind="0.0.0.0") as (made, port, query):
        assert made.url == f"http://127.0.0.1:{port}/{query}"
        status, _, _ = asked(port, f"GET /{query} HTTP/1.1\nHost: 127.0.0.1:{port}", address=address)
        assert status == 200
        status, _, text = asked(port, f"GET /{query} HTTP/1.1\nHost: {address}:{port}", address=address)
        assert status == 421 and allow_in(text) == address  # a name that nobody allowed stays out
        status, _, _ = asked(port, f"GET / HTTP/1.1\nHost: 127.0.0.1:{port}", address=address)
        assert status == 403
    with serving(bind="0.0.0.0", hosts=[address]) as (_, port, query):
        assert asked(port, f"GET /{query} HTTP/1.1\nHost: {address}:{port}", address=address)[0] == 200
    with serving(bind=address) as (made, port, query):
        assert urlsplit(made.url).hostname == address
        assert asked(port, f"GET /{query} HTTP/1.1\nHost: {address}:{port}", address=address)[0] == 200


def test_it_listens_on_loopback_alone_unless_told():
    with serving() as (made, port, _):
        assert made.bind == "127.0.0.1" and not made.open_to_others
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((own_address(), port), 2)


BINDS = {"192.0.2.7": "no address of this machine", "no such name": "no address of this machine"}


@pytest.mark.parametrize("bind", BINDS)
def test_an_address_that_is_not_this_machine_s_is_a_line_whose_cure_works(bind):
    made = ServerProcess(0, bind)
    with pytest.raises(RaymarchError, match=BINDS[bind]) as told:
        _ = made.url
    cure = re.search(r"give (\S+) for", str(told.value))[1]
    with serving(bind=cure) as (_, port, query):
        assert asked(port, f"GET /{query} HTTP/1.1\nHost: localhost:{port}")[0] == 200


NO_NAMES = ["*", "0.0.0.0", "", "a b", "http://lab.example.org/", "lab.example.org/x", "lab.example.org:port", "a\r\nb"]


@pytest.mark.parametrize("given", NO_NAMES)
def test_what_is_no_name_of_a_host_is_refused_with_what_is(given):
    with pytest.raises(RaymarchError, match="host is") as told:
        guard.allowed_host(given)
    if "lab" in given and "/" in given:
        assert guard.allowed_host(re.search(r"give (\S+)$", str(told.value))[1]) == PUBLIC


@pytest.mark.parametrize("host", ["lab.example.org.evil.com", "evil-lab.example.org", "lab.example.org:80a", "org"])
def test_names_that_are_like_an_allowed_one_stay_out(allowed, host):
    _, port, query = allowed
    assert asked(port, f"GET /{query} HTTP/1.1\nHost: {host}")[0] == 421
    for scheme in ("http", "https"):
        with pytest.raises(InvalidStatus):
            greeted(port, query, PUBLIC, f"{scheme}://{host}")


def test_an_allowed_name_needs_the_token_still(allowed):
    _, port, _ = allowed
    for path in ("/", "/?token=no", "/ws"):
        assert asked(port, f"GET {path} HTTP/1.1\nHost: {PUBLIC}")[0] == 403


ODD = {
    "a body": ("GET /{q} HTTP/1.1\nHost: localhost\nContent-Length: 3", b"abc", 413),
    "a body of no bytes": ("GET /{q} HTTP/1.1\nHost: localhost\nContent-Length: 0", b"", 200),
    "a body that does not come": ("GET /{q} HTTP/1.1\nHost: localhost\nContent-Length: 9", b"", 413),
    "a large body": ("GET /{q} HTTP/1.1\nHost: localhost\nContent-Length: 300000", b"a" * 300_000, 413),
    "a body in chunks": (
        "GET /{q} HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked",
        b"3\r\nabc\r\n0\r\n\r\n",
        413,
    ),
    "a size that is none": ("GET /{q} HTTP/1.1\nHost: localhost\nContent-Length: x", b"", 413),
    "a form that is posted": ("POST /{q} HTTP/1.1\nHost: localhost\nContent-Length: 3", b"abc", 405),
    "HEAD": ("HEAD /{q} HTTP/1.1\nHost: localhost", b"", 405),
    "OPTIONS": ("OPTIONS * HTTP/1.1\nHost: localhost", b"", 405),
    "PUT": ("PUT /{q} HTTP/1.1\nHost: localhost\nContent-Length: 1", b"a", 405),
    "CONNECT": ("CONNECT evil.com:443 HTTP/1.1\nHost: evil.com", b"", 405),
    "a long path": ("GET /" + "a" * 3000 + " HTTP/1.1\nHost: localhost", b"", 414),
    "large headers": ("GET /{q} HTTP/1.1\nHost: localhost\nCookie: " + "a" * MAX_HEAD_BYTES, b"", 431),
    "many headers": ("GET /{q} HTTP/1.1\nHost: localhost" + "\na: b" * 300, b"", 431),
    "https": ("\x16\x03\x01\x02", b"", 400),
    "another protocol": ("GET / SPDY/9\nHost: localhost", b"", 400),
    "a line that is none": ("HELLO", b"", 400),
    "a header that is none": ("GET / HTTP/1.1\nno header", b"", 400),
    "an unknown path": ("GET /admin HTTP/1.1\nHost: localhost", b"", 404),
}


@pytest.mark.parametrize("name", ODD)
def test_every_request_gets_an_answer_that_says_why(plain, name):
    _, port, query = plain
    head, body, status = ODD[name]
    found, headers, text = asked(port, head.replace("{q}", query), body)
    assert found == status
    if status != 200:
        assert text.startswith("raymarch: ") and text.count("\n") == 1 and "; " in text
        assert "Connection: close" in headers and f"Content-Length: {len(text.encode())}" in headers


def test_a_request_that_does_not_come_whole_is_answered_and_others_meanwhile(plain):
    _, port, query = plain
    begun = time.monotonic()
    slow = [socket.create_connection(("127.0.0.1", port), timeout=2 * HANDSHAKE_TIMEOUT) for _ in range(30)]
    for i, link in enumerate(slow):
        link.sendall(b"GET / HTTP/1.1\r\nHost: loc"[: i + 1] if i else b"")
    assert asked(port, f"GET /{query} HTTP/1.1\nHost: localhost")[0] == 200
    assert time.monotonic() - begun < HANDSHAKE_TIMEOUT
    for link in slow:
        assert link.recv(4096).startswith(b"HTTP/1.1 408 ")
        link.close()
    assert time.monotonic() - begun < HANDSHAKE_TIMEOUT + 4


def test_a_browser_gets_a_page_and_others_a_line(plain):
    _, port, query = plain
    evil = "<script>.example"
    for host in ("lab.example.org:8443", evil):
        status, headers, page = asked(port, f"GET /{query} HTTP/1.1\nHost: {host}\nAccept: text/html,*/*")
        assert status == 421 and page.startswith("<!doctype html>") and "text/html" in headers
        assert "<script" not in page and query[7:] not in page and "script-src" not in headers
        assert "default-src 'none'" in headers
    assert "--allow-host NAME" in page


@pytest.mark.parametrize("cut", range(1, 40, 5))
def test_a_head_may_come_in_parts(cut):
    head = b"GET /?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert read_head(head[:cut]) is None and read_head(head).path == "/?a=1"


def notes(url="http://127.0.0.1:8080/?token=abc", bind="127.0.0.1", hosts=(), container=False, **environment):
    return " | ".join(entry_hints(url, bind, hosts, environment, container=container))


def test_the_terminal_says_what_a_container_a_hub_and_an_open_door_need():
    assert notes() == ""
    assert "-p 127.0.0.1:8080:8080" in notes(container=True) and "--bind 0.0.0.0" in notes(container=True)
    assert "--bind" not in notes(container=True, bind="0.0.0.0") and "not encrypted" in notes(bind="0.0.0.0")
    hub = notes(JUPYTERHUB_SERVICE_PREFIX="/user/ann/")
    assert "/user/ann/proxy/8080/?token=abc" in hub and "--allow-host" in hub
    assert notes(hosts=(PUBLIC,)) == f"behind {PUBLIC} add /?token=abc to the address at which the proxy has the page"


def test_thousands_of_refusals_are_a_few_lines_and_a_count():
    said, now = [], [0.0]
    complaints = Complaints(said.append, lambda: now[0])
    for i in range(3000):
        complaints.add(f"type is 'unknown-{i}'")
    assert len(said) == MAX_LOG_LINES and "counted" in said[-1]
    now[0] = LOG_INTERVAL
    complaints.add("another")
    assert said[MAX_LOG_LINES:] == [f"{3000 - MAX_LOG_LINES:,} more messages of pages were refused", "another"]
    for _ in range(100):
        complaints.add("another")
    complaints.flush()
    assert said[-1] == "100 more messages of pages were refused" and len(said) == MAX_LOG_LINES + 3

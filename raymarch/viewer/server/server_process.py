"""The owner's side of the viewer's server process: it starts the process, exchanges messages with it and ends it."""

from __future__ import annotations

import errno
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from raymarch.errors import RaymarchError
from raymarch.system.child_process import child_command
from raymarch.viewer.server import wire
from raymarch.viewer.server.guard import allowed_host, is_loopback, new_token
from raymarch.viewer.server.wire import Mailbox

INSTALL = 'pip install "raymarch[viewer]"'
START_TIMEOUT = 20.0  # seconds until it listens; Python starts in one
LOOPBACK_ADDRESS = "127.0.0.1"
ATLAS_BYTES = 32 << 20  # of bricks that pages draw themselves, before they are packed
ALL_ADDRESSES = ("0.0.0.0", "::")  # all addresses of a machine


def require_websockets() -> None:
    """Check of the extra: RaymarchError where websockets is missing."""
    try:
        import websockets  # noqa: F401
    except ImportError:
        raise RaymarchError(f"the viewer's page is served by websockets, which is not installed; {INSTALL}") from None


class ServerProcess:
    """Server process; what pages say waits in `inbox`, which is closed when the process is over.

    Args:
        port: to listen on; a free one if 0.
        bind: address to listen on; this machine alone reaches the first one, 127.0.0.1.
        hosts: names, with a port or without, that it answers to beside 127.0.0.1, localhost and [::1].

    Raises RaymarchError where websockets is missing, for a name that is none, and, when asked for its `url`, where the
    port is taken or the address is not this machine's.
    """

    atlas_bytes = ATLAS_BYTES

    def __init__(self, port: int = 0, bind: str = LOOPBACK_ADDRESS, hosts: Sequence[str] = ()) -> None:
        require_websockets()
        self.bind = LOOPBACK_ADDRESS if bind.lower() == "localhost" else bind.strip("[]")  # one address, not two
        self.hosts = tuple(map(allowed_host, hosts))
        self._port, self._token, self._ticket, self.inbox = port, new_token(), new_token(), Mailbox()
        self._child = subprocess.Popen(
            child_command("raymarch.viewer.server.server"),
            cwd=Path(__file__).parent,  # what lies where the caller stands must not stand in for Python's modules
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C comes to us, and we end it
        )
        own = () if self.bind in ALL_ADDRESSES or is_loopback(self._name) else (self._name,)
        about = {"port": port, "bind": self.bind, "hosts": [*self.hosts, *own]}
        self._write({"token": self._token, "ticket": self._ticket, **about})
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._heard: dict[str, Any] = {}
        self._answered = threading.Event()
        self._reader.start()

    def _listen(self) -> None:
        assert self._child.stdout is not None
        while (message := wire.read_message(self._child.stdout)) is not None:
            header = message[0]
            if header["type"] in ("listening", "refused"):
                self._heard = header
                self._answered.set()
            else:
                self.inbox.put(header)
        self._answered.set()
        self.inbox.close()

    @property
    def port(self) -> int:
        """Port that the server listens on; RaymarchError if it does not listen."""
        self._answered.wait(START_TIMEOUT)
        if self._heard.get("type") == "listening":
            return self._heard["port"]
        code, why = self._heard.get("errno"), self._heard.get("text", "it ended without a word")
        self.close()
        if code == errno.EADDRINUSE:
            raise RaymarchError(
                f"port {self._port} is in use; choose another (--port, in Python port=), or leave it out for a free one"
            )
        if self._heard.get("unknown") or code == errno.EADDRNOTAVAIL:
            raise RaymarchError(
                f"{self.bind} is no address of this machine, so nothing can listen there; leave bind out, or"
                " give 0.0.0.0 for all addresses that it has"
            )
        if code == errno.EACCES:
            raise RaymarchError(f"port {self._port} may not be listened on by you; choose one over 1023")
        raise RaymarchError(f"the viewer's server did not start: {why}")

    @property
    def _name(self) -> str:
        """Name of the address that it listens on, as a URL has it."""
        name = LOOPBACK_ADDRESS if self.bind in ALL_ADDRESSES else self.bind
        return f"[{name}]" if ":" in name else name

    @property
    def url(self) -> str:
        """Address of the page, with the token."""
        return f"http://{self._name}:{self.port}/?token={self._token}"

    @property
    def open_to_others(self) -> bool:
        """Whether other machines may reach it."""
        return not (is_loopback(self._name) and self.bind not in ALL_ADDRESSES)

    @property
    def url_once(self) -> str:
        """Address that leads to the page once, and does not have the token: what a browser is started with."""
        return f"http://{self._name}:{self.port}/?ticket={self._ticket}"

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._child.poll() is None and not self.inbox.closed

    def send(
        self, header: dict[str, Any], data: bytes | None = None, to: int | None = None, hello: bool = False
    ) -> None:
        """Send a message to one page, or to all; `hello` is what pages get first that come later."""
        binary, body = wire.page_frame(header, data)
        about: dict[str, Any] = {"to": to, "binary": binary, "hello": hello}
        if header["type"] == "frame":
            about |= {"picture": True, "whole": [header["width"], header["height"]] == header["of"]}
        self._write(about, body)

    def _write(self, header: dict[str, Any], body: bytes = b"") -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(wire.pack_message(header, body))
            self._child.stdin.flush()
        except (OSError, ValueError):  # it is over: the inbox says so
            pass

    def close(self) -> None:
        """End the process."""
        self._write({"end": True})
        try:
            if self._child.stdin is not None:
                self._child.stdin.close()
        except OSError:
            pass
        try:
            self._child.wait(3)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._reader.join(1)
        if self._child.stdout is not None and not self._reader.is_alive():
            self._child.stdout.close()

"""Server process of the viewer: `python -m raymarch.viewer.server.server`, which knows neither Taichi nor NumPy.

Kernels hold Python's lock for up to a third of a second; so pages are served, pings answered and messages kept by a
process of their own, which speaks with the owner of the volume through its stdin and stdout (`pipe`). It ends when
either of them does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO, Any

from raymarch.errors import one_line
from raymarch.viewer.server import wire
from raymarch.viewer.server.client_files import serve_file
from raymarch.viewer.server.guard import (
    MAX_MESSAGE_BYTES,
    SOCKET_PATH,
    Refusal,
    Request,
    bears_ticket,
    headers_of,
    refusal,
    refused_page,
    unreadable,
)
from raymarch.viewer.server.request_head import read_head
from raymarch.viewer.server.wire import Mailbox, is_of_another_user

MAX_QUEUED_MESSAGES = 256  # messages that wait for a page; one that reads none of them is let go
UNREAD_CODE = 1013, "the page does not read"  # code and reason of that
HANDSHAKE_TIMEOUT = 5  # seconds that a request may take to come
DRAIN_TIMEOUT = 1.0  # seconds in which a refused request's body is read away, so that the refusal reaches who sent it
MAX_DRAINED_BYTES = 1 << 20  # bytes of it
FAREWELL_TIMEOUT = 1.5  # seconds that pages have to take their leave


class Outbox:
    """Messages that wait for a page. A whole picture replaces the pictures before it."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[bool, bool, bytes]] = deque()
        self._some = asyncio.Event()

    def put(self, binary: bool, whole: bool, picture: bool, data: bytes) -> bool:
        """Put a message; False where too many wait."""
        if whole:
            self._waiting = deque(each for each in self._waiting if not each[1])
        self._waiting.append((binary, picture, data))
        self._some.set()
        return len(self._waiting) < MAX_QUEUED_MESSAGES

    async def take(self) -> tuple[bool, bytes]:
        """Next message: whether it is binary, and its bytes."""
        while not self._waiting:
            self._some.clear()
            await self._some.wait()
        binary, _, data = self._waiting.popleft()
        return binary, data


class PageServer:
    """Server of the viewer's pages: answers requests that the guard lets through, and hands messages on."""

    def __init__(self, token: str, inbox: Mailbox, ticket: str = "", hosts: Sequence[str] = ()) -> None:
        self.token, self.inbox, self.ticket, self.hosts = token, inbox, ticket, tuple(hosts)
        self.pages: dict[int, tuple[Any, Outbox]] = {}
        self.hello: list[tuple[bool, bytes]] = []
        self._count = 0
        self._socket_refused = ""  # why the last WebSocket was
        self._closing: set[asyncio.Task] = set()

    def process(self, connection: Any, request: Any) -> Any:
        """Answer to a request: a refusal, a file, the way to the page for a ticket, or None for a WebSocket."""
        from websockets.datastructures import Headers
        from websockets.http11 import Response

        values: dict[str, list[str]] = {}
        for name, value in request.headers.raw_items():
            values.setdefault(name.lower(), []).append(value)
        asked = Request(request.path, values, getattr(request, "method", "GET"))
        refused = refusal(asked, self.token, len(self.pages), self.ticket, self.hosts)
        more: dict[str, str] = {}
        if refused is None and bears_ticket(request.path, self.ticket):
            refused, more = self._admitted(connection), {"Location": f"/?token={self.token}"}
        place = request.path.partition("?")[0]
        if place == SOCKET_PATH:
            if refused is None:
                return None
            refused = self._of_socket(asked, refused)
        if refused is not None:
            status, headers, body = refused_answer(refused, asked)
        else:
            status, kind, text = (303, "text/plain; charset=utf-8", "") if more else (200, *serve_file(place))
            headers, body = {**headers_of(kind, values["host"][0], self.hosts), **more}, text.encode()
        headers |= {"Content-Length": str(len(body)), "Connection": "close"}
        return Response(status, "OK" if refused is None else "Refused", Headers(headers), body)

    def _of_socket(self, asked: Request, refused: Refusal) -> Refusal:
        """Refusal of a WebSocket. It is kept, and the page that then asks for the reason gets it."""
        if (asked.one("upgrade") or "").lower() == "websocket":
            self._socket_refused = refused.why
        elif refused.status == 426 and self._socket_refused:
            return Refusal(426, f"the page's WebSocket was refused: {self._socket_refused}")
        return refused

    def _admitted(self, connection: Any) -> Refusal | None:
        """Redemption of the ticket, which is good once and for this user only; others get a refusal."""
        if is_of_another_user(connection.remote_address[1], connection.local_address[1]):
            return Refusal(403, "the browser is not known to be this user's; open the URL that raymarch printed")
        self.ticket = ""
        return None

    async def page(self, socket: Any) -> None:
        """One page, from its opening to its end."""
        from websockets.exceptions import ConnectionClosed

        self._count += 1
        number, outbox = self._count, Outbox()
        self.pages[number] = (socket, outbox)
        for binary, data in self.hello:
            outbox.put(binary, False, False, data)
        self.inbox.put({"page": number, "type": "open"})
        sender = asyncio.ensure_future(self._send(socket, outbox))
        try:
            async for text in socket:
                answer = self._take(number, text)
                if answer and not outbox.put(False, False, False, json.dumps(answer).encode()):
                    await socket.close(*UNREAD_CODE)
        except ConnectionClosed:
            pass
        finally:
            del self.pages[number]
            sender.cancel()
            self.inbox.put({"page": number, "type": "close"})

    def _take(self, number: int, text: Any) -> dict[str, Any] | None:
        """Pass a page's message on to the owner, or answer it here."""
        try:
            message = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict) or not isinstance(message.get("type"), str):
            return {"type": "error", "text": "a message came that is no JSON object with a type"}
        if message["type"] == "ping":
            return _pong_answer(message.get("id"))
        if message["type"] in ("open", "close"):
            return {"type": "error", "text": f"type is {message['type']!r}, which pages do not say"}
        self.inbox.put({**message, "page": number})
        return None

    async def _send(self, socket: Any, outbox: Outbox) -> None:
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            while True:
                binary, data = await outbox.take()
                await socket.send(data if binary else data.decode())

    def deliver(self, header: dict[str, Any], body: bytes) -> None:
        """Deliver a message of the owner to one page, or to all."""
        if header.get("hello"):  # what pages get that come while the owner is busy
            self.hello = [(header["binary"], body)]
        to = header.get("to")
        for number, (link, outbox) in list(self.pages.items()):
            fits = to is None or to == number
            how = header["binary"], header.get("whole", False), header.get("picture", False)
            if fits and not outbox.put(*how, body):
                self._closing.add(task := asyncio.ensure_future(link.close(*UNREAD_CODE)))
                task.add_done_callback(self._closing.discard)


def refused_answer(refused: Refusal, asked: Request | None = None) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a refusal: a page for a browser, one line for others."""
    wants = "" if asked is None else ",".join(asked.values.get("accept", ()))
    if "text/html" in wants:
        text, headers = refused_page(refused)
    else:
        text, headers = f"raymarch: {refused.why}\n", headers_of("text/plain; charset=utf-8", "127.0.0.1")
    if refused.status == 405:
        headers["Allow"] = "GET"
    if refused.status == 426:
        headers["Upgrade"] = "websocket"
    return refused.status, headers, text.encode()


def guarded_connection() -> type:
    """Class of the server's connections: a request that the WebSocket library would drop unanswered, for its method,
    body, size or slowness, is answered before that library sees it."""
    from websockets.asyncio.server import ServerConnection

    class GuardedConnection(ServerConnection):
        """Connection whose first bytes are checked."""

        def connection_made(self, transport: Any) -> None:
            self._head, self._passed, self._drained, self._wire = b"", False, -1, transport
            self._late = asyncio.get_running_loop().call_later(HANDSHAKE_TIMEOUT, self._too_late)
            super().connection_made(transport)

        def data_received(self, data: bytes) -> None:
            if self._passed:
                super().data_received(data)
            elif self._drained >= 0:
                self._drained += len(data)
                if self._drained > MAX_DRAINED_BYTES:
                    self._wire.abort()
            else:
                self._head += data
                asked = read_head(self._head)
                if isinstance(asked, Refusal):
                    self._refuse(asked, None)
                elif asked is not None:
                    self._answer(asked)

        def _answer(self, asked: Request) -> None:
            refused = unreadable(asked)
            if refused is not None:
                self._refuse(refused, asked)
                return
            self._late.cancel()
            self._passed, head, self._head = True, self._head, b""
            super().data_received(head)

        def eof_received(self) -> None:
            if self._passed:
                super().eof_received()
            else:
                self._wire.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._late.cancel()
            super().connection_lost(exc)

        def _too_late(self) -> None:
            why = f"no whole request came within {HANDSHAKE_TIMEOUT} seconds; load the page again"
            self._refuse(Refusal(408, why), None)

        def _refuse(self, refused: Refusal, asked: Request | None) -> None:
            self._late.cancel()
            self._drained, self._head = 0, b""
            status, headers, body = refused_answer(refused, asked)
            headers |= {"Content-Length": str(len(body)), "Connection": "close"}
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            self._wire.write(f"HTTP/1.1 {status} Refused\r\n{lines}\r\n".encode() + body)
            if self._wire.can_write_eof():
                self._wire.write_eof()
            self._late = asyncio.get_running_loop().call_later(DRAIN_TIMEOUT, self._wire.abort)

    return GuardedConnection


def _pong_answer(number: Any) -> dict[str, Any]:
    """Answer to a ping. Anything but a number is not sent back, because it may be long."""
    if not isinstance(number, int | float) or not abs(number) < 2**53:
        return {"type": "error", "text": "ping: id is no number below 2^53; give a whole number"}
    return {"type": "pong", "id": number}


def _log_once(told: set[str]) -> Callable[[Any, dict[str, Any]], None]:
    """Handler of errors in the loop, such as a lack of connections. It logs a line once, and the loop goes on."""

    def handle(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        why = one_line(error) if error else str(context.get("message"))
        if why not in told and len(told) < 8:
            told.add(why)
            print(f"warning: viewer: {why}: a request was not answered; close other pages", file=sys.stderr)

    return handle


async def _serve(first: dict[str, Any], source: IO[bytes], sink: IO[bytes]) -> None:
    """Serve until the owner says that it is over, or is."""
    from websockets.asyncio.server import serve

    inbox, over, loop = Mailbox(), asyncio.Event(), asyncio.get_running_loop()
    server = PageServer(first["token"], inbox, first["ticket"], first.get("hosts", ()))
    loop.set_exception_handler(_log_once(set()))

    def listen() -> None:
        while (message := wire.read_message(source)) is not None and not message[0].get("end"):
            loop.call_soon_threadsafe(server.deliver, *message)
        with contextlib.suppress(RuntimeError):  # the loop is over
            loop.call_soon_threadsafe(over.set)

    def hand_on() -> None:
        try:
            while not inbox.closed:
                for message in inbox.take(1.0):
                    sink.write(wire.pack_message(message))
                sink.flush()
        except (OSError, ValueError):  # the owner is gone
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(over.set)

    how: dict[str, Any] = {
        "max_size": MAX_MESSAGE_BYTES,
        "max_queue": 16,
        "compression": None,
        "open_timeout": HANDSHAKE_TIMEOUT + DRAIN_TIMEOUT + 1,  # the connection itself gives up before
        "close_timeout": 1,
        "server_header": None,
        "create_connection": guarded_connection(),
    }
    address = first.get("bind", "127.0.0.1")
    try:
        running = await serve(server.page, address, first["port"], process_request=server.process, **how)
    except (OSError, UnicodeError) as error:
        code = getattr(error, "errno", None)
        unknown = isinstance(error, (socket.gaierror, UnicodeError))
        told = {"errno": code, "unknown": unknown, "text": one_line(error)}
        sink.write(wire.pack_message({"page": 0, "type": "refused", **told}))
        sink.flush()
        return
    port = running.sockets[0].getsockname()[1]
    sink.write(wire.pack_message({"page": 0, "type": "listening", "port": port}))
    sink.flush()
    for work in (listen, hand_on):
        threading.Thread(target=work, daemon=True).start()
    await over.wait()
    inbox.close()
    running.close()
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(running.wait_closed(), FAREWELL_TIMEOUT)


def main() -> None:
    """Serve the owner's messages from stdin. The first one has a token and a port."""
    import logging

    logging.getLogger("websockets").addHandler(logging.NullHandler())  # else a page that vanishes is a traceback
    logging.getLogger("websockets").propagate = False
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C comes to the owner too, who ends this
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by accident is no message
    first = wire.read_message(source)
    if first is not None:
        asyncio.run(_serve(first[0], source, sink))
    os._exit(0)  # the threads may wait for ever


if __name__ == "__main__":
    main()

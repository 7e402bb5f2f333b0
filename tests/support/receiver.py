"""A receiver of webhooks on a real socket, in a thread of its own; fast enough for thousands of requests a second."""

import asyncio
import inspect
import ssl
import threading
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, NamedTuple, Self

import httptools
import uvloop

Headers = dict[str, str]  # names in lower case
ResponseTuple = tuple[int, Headers, bytes]


class ReceivedRequest(NamedTuple):
    headers: Headers
    body: bytes
    timestamp: float  # of time.time()


def no_content(_headers: Headers, _body: bytes) -> ResponseTuple:
    return 204, {}, b""


class Receiver:
    """`with Receiver() as receiver`: requests are in `received`. Set `answer` for another response than 204. It runs in
    the receiver's loop, so a function that waits is a coroutine function.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.received: list[ReceivedRequest] = []
        self.respond: Callable[[Headers, bytes], ResponseTuple | Awaitable[ResponseTuple]] = no_content
        self.connections = 0
        self._tls, self._host, self.port = tls, host, port
        self._loop = uvloop.new_event_loop()
        self.open_connections: set[_Connection] = set()

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(60), "the receiver did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        assert not self._thread.is_alive(), "the receiver did not stop"

    def _main(self, ready: threading.Event) -> None:
        run = self._loop.run_until_complete
        server = run(
            self._loop.create_server(lambda: _Connection(self), self._host, self.port, ssl=self._tls, backlog=1024)
        )  # fmt: skip
        self.port = server.sockets[0].getsockname()[1]
        self._loop.call_soon(ready.set)
        self._loop.run_forever()
        server.close()
        for each in list(self.open_connections):
            each.abort()
        run(_cancel_all())
        run(server.wait_closed())
        self._loop.close()


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One connection. The names that begin with `on_` are the parser's."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser = httptools.HttpRequestParser(self)
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._receiver.connections += 1
        self._receiver.open_connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._receiver.open_connections.discard(self)
        for each in self._tasks:
            each.cancel()

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def on_message_begin(self) -> None:
        self._headers: Headers = {}
        self._body = bytearray()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        request = ReceivedRequest(self._headers, bytes(self._body), time.time())
        self._receiver.received.append(request)
        response = self._receiver.respond(request.headers, request.body)
        if inspect.isawaitable(response):
            task = asyncio.ensure_future(self._respond_later(response))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._respond(response)

    async def _respond_later(self, response: Awaitable[ResponseTuple]) -> None:
        self._respond(await response)

    def _respond(self, response: ResponseTuple) -> None:
        status, headers, body = response
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if status != HTTPStatus.NO_CONTENT:
            lines.append(f"content-length: {len(body)}")
        self._transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
        if not self._parser.should_keep_alive():
            self._transport.close()

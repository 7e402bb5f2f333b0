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
Answer = tuple[int, Headers, bytes]


class Received(NamedTuple):
    headers: Headers
    body: bytes
    moment: float  # of time.time()


def accepted(_headers: Headers, _body: bytes) -> Answer:
    return 204, {}, b""


class Receiver:
    """`with Receiver() as receiver`: what came is in `received`. Set `answer` for another one than 204; it runs in the
    receiver's loop, so what takes time is a coroutine function.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.received: list[Received] = []
        self.answer: Callable[[Headers, bytes], Answer | Awaitable[Answer]] = accepted
        self.connections = 0
        self._tls, self._host, self.port = tls, host, port
        self._loop = uvloop.new_event_loop()
        self.open_now: set[_Connection] = set()

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    def __enter__(self) -> Self:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._main, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(20), "the receiver did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
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
        for each in list(self.open_now):
            each.abort()
        run(_all_cancelled())
        run(server.wait_closed())
        self._loop.close()


async def _all_cancelled() -> None:
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
        self._receiver.open_now.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._receiver.open_now.discard(self)
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
        got = Received(self._headers, bytes(self._body), time.time())
        self._receiver.received.append(got)
        answer = self._receiver.answer(got.headers, got.body)
        if inspect.isawaitable(answer):
            task = asyncio.ensure_future(self._answer_later(answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._answer(answer)

    async def _answer_later(self, answer: Awaitable[Answer]) -> None:
        self._answer(await answer)

    def _answer(self, answer: Answer) -> None:
        status, headers, body = answer
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if status != HTTPStatus.NO_CONTENT:
            lines.append(f"content-length: {len(body)}")
        self._transport.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)
        if not self._parser.should_keep_alive():
            self._transport.close()

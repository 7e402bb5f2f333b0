"""Connections that cost too much are closed: too many, too slow, headers without end."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADERS = 32 * 1024  # bytes of a request's line and headers


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol with limits. `app_state`, which the lifespan fills, has `max_connections` and
    `client_timeout` in seconds: for the headers and the body to arrive, and for the answer to be taken in.

    The two have a timer each: a client may send its next request while it takes in the last answer.
    """

    _sending: asyncio.TimerHandle | None = None  # until the request is here
    _taking: asyncio.TimerHandle | None = None  # until the answer is gone
    _received = 0  # bytes of the headers so far
    _untold = 0  # bytes since the parser last told of something: it keeps a header until it is whole

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._sending = self._timer(self._sending)
        if len(self.connections) > self.app_state["max_connections"]:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._sending, self._taking = self._stop(self._sending), self._stop(self._taking)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._untold += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._untold > MAX_HEADERS:
            self.send_400_response("Invalid HTTP request received.")
            return
        # Bytes that begin no request (an empty line) end uvicorn's wait for the next one.
        if self._sending is None and self._idle():
            self._sending = self._timer(None)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._received = self._untold = 0
        self._sending = self._timer(self._sending)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._untold = 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._sending = self._stop(self._sending)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():  # it closes once the answer is gone: not before, and not never
            self._taking = self._taking or self._timer(None)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._taking = self._taking or self._timer(None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self._timer(self._taking)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._taking = self._stop(self._taking)

    def _idle(self) -> bool:
        cycle: Any = self.cycle
        return self.timeout_keep_alive_task is None and (cycle is None or cycle.response_complete)

    def _count(self, more: int) -> None:
        self._received += more
        self._untold = 0
        if self._received > MAX_HEADERS:
            # The parser tells nobody, and the client gets uvicorn's answer to what is no proper request.
            raise ValueError("the headers are too long")

    def _timer(self, before: asyncio.TimerHandle | None) -> asyncio.TimerHandle:
        self._stop(before)
        timeout: Any = self.app_state["client_timeout"]
        return self.loop.call_later(timeout, self.transport.abort)

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

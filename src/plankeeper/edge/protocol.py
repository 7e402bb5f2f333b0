"""Connections that cost too much are closed: too many, too slow, headers without end."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADERS = 32 * 1024  # bytes of a request's line and headers


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol with limits. `app_state`, which the lifespan fills, has `max_connections` and
    `client_timeout` in seconds: for the headers and the body to arrive, and for the answer to be taken in.
    """

    _deadline: asyncio.TimerHandle | None = None
    _received = 0  # bytes of the headers so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._arm()
        if len(self.connections) > self.app_state["max_connections"]:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._received = 0
        self._arm()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._disarm()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._arm()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._disarm()

    def _count(self, more: int) -> None:
        self._received += more
        if self._received > MAX_HEADERS:
            # The parser tells nobody, and the client gets uvicorn's answer to what is no proper request.
            raise ValueError("the headers are too long")

    def _arm(self) -> None:
        self._disarm()
        timeout: Any = self.app_state["client_timeout"]
        self._deadline = self.loop.call_later(timeout, self.transport.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

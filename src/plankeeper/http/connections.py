"""Limits on connections: their number, their duration, and the size of request headers; one Host, no trailers.

uvicorn has none of these limits, so a slow client could keep a connection forever. They take about 6 of the 150 µs of
processor time of a get.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from plankeeper.http.admission import client_network

log = logging.getLogger(__name__)


class Peers:
    """The peers of one worker. Connections are counted by address, for IPv6 by /64; trusted proxies are not counted."""

    def __init__(self, trusted_proxies: Sequence[str], max_connections_per_address: int) -> None:
        self._trusted_networks = [ip_network(each) for each in trusted_proxies]
        self._max_connections = max_connections_per_address
        self._connections = Counter[str]()
        self._warnings = set[str]()

    def is_trusted(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._trusted_networks)

    def add(self, address: str) -> bool:
        """Counts a connection until `remove`; false if its address has too many."""
        network = client_network({"client": (address, 0)})
        self._connections[network] += 1
        if self._connections[network] <= self._max_connections:
            return True
        self._warn_once(
            "an address has more connections than PLANKEEPER_MAX_CONNECTIONS_PER_ADDRESS: if it is your proxy, add it"
            " to PLANKEEPER_TRUSTED_PROXIES"
        )
        return False

    def remove(self, address: str) -> None:
        network = client_network({"client": (address, 0)})
        self._connections[network] -= 1
        if not self._connections[network]:
            del self._connections[network]

    def warn_about_untrusted_proxy(self) -> None:
        """Logs that X-Forwarded-For came from a peer that is not a trusted proxy."""
        self._warn_once(
            "X-Forwarded-For is ignored, because its sender is not in PLANKEEPER_TRUSTED_PROXIES: if it is your proxy,"
            " all of its clients share one limit of invalid credentials and connections"
        )

    def _warn_once(self, message: str) -> None:
        """Log a warning once, without addresses, so that clients can't fill the log."""
        if message not in self._warnings:
            self._warnings.add(message)
            log.warning(message)


MAX_HEADER_BYTES = 32 * 1024  # of the request line and the headers

# A body that grows by this much has the whole timeout again: an upload ends for want of progress, and not of time.
PROGRESS_BYTES = 256 * 1024

# Seconds for which an idle connection stays open. HTTP clients keep idle connections for 5 to 15 seconds by default: if
# the server closed them at the same moment, requests would fail.
IDLE_TIMEOUT = 20
# Seconds in which a request can still arrive on an idle connection that a stopping server has closed on its side.
LINGER_TIMEOUT = 0.2


class LimitedHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits.

    The lifespan sets `max_connections`, `client_io_timeout` and `peers` in `app_state`.

    The timeout (seconds) applies to receiving the headers and each part of the body, and to sending the response. Each
    has its own timer, because a client can send its next request while it still receives the last response.
    """

    _receive_timer: asyncio.TimerHandle | None = None  # until the request is complete
    _send_timer: asyncio.TimerHandle | None = None  # until the response is sent
    _is_receiving = False  # a request has started and is incomplete
    _body_bytes = 0  # received since the timer started
    _unparsed_bytes = 0  # received since the parser's last callback; it buffers incomplete headers
    _untrusted_peer: str | None = None  # the peer's address, unless it is a trusted proxy
    _is_half_closed = False  # the server stops, and this connection was idle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._receive_timer = self._restart_timer(self._receive_timer)
        peers, address = self._peers, self.client[0] if self.client else ""
        if not peers.is_trusted(address):
            self._untrusted_peer = address
        has_too_many = self._untrusted_peer is not None and not peers.add(address)
        if has_too_many or len(self.connections) > self.app_state["max_connections"]:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._receive_timer, self._send_timer = (
            self._cancel_timer(self._receive_timer),
            self._cancel_timer(self._send_timer),
        )
        if self._untrusted_peer is not None:
            self._peers.remove(self._untrusted_peer)
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Called when the server stops. An idle connection ends without a reset, whatever arrives in the meantime.

        A request that arrives at this moment gets no response. If the socket were closed, the system would reset the
        connection, and HAProxy would report an error instead of sending the request to another server.
        """
        if self.transport.is_closing() or (self.cycle and not self.cycle.response_complete):
            super().shutdown()
            return
        self._is_half_closed = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_TIMEOUT, self.transport.close)

    def data_received(self, data: bytes) -> None:
        if self._is_half_closed:
            return
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._unparsed_bytes > MAX_HEADER_BYTES:
            self.send_400_response("Invalid HTTP request received.")
        # Most requests arrive complete and get no timer. An empty line before a request ends uvicorn's keep-alive wait.
        elif self._receive_timer is None and (self._is_receiving or self._is_idle()):
            self._receive_timer = self._restart_timer(None)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_receiving = True
        self._body_bytes = 0
        self._receive_timer = self._cancel_timer(self._receive_timer)

    def on_headers_complete(self) -> None:
        self._check_headers()
        super().on_headers_complete()
        # uvicorn appends trailers to this list too. In the request's own list, they would evade a proxy's rules for
        # the headers of a request.
        self.headers = []
        self._unparsed_bytes = 0

    def _check_headers(self) -> None:
        """Raises ValueError. The parser swallows it, and the client gets uvicorn's response to an invalid request."""
        size, hosts, codings = len(self.url), 0, list[bytes]()
        for name, value in self.headers:
            size += len(name) + len(value)
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                codings.append(value.strip(b" \t").lower())
            elif name == b"x-forwarded-for" and self._untrusted_peer is not None:
                self._peers.warn_about_untrusted_proxy()
        if size > MAX_HEADER_BYTES:
            raise ValueError("the headers are too long")
        parser: Any = self.parser
        is_http_1_0 = parser.get_http_version() == "1.0"
        if hosts != 1 and (hosts or not is_http_1_0):
            raise ValueError("a request has exactly one Host")
        if codings and (is_http_1_0 or codings != [b"chunked"]):
            raise ValueError("the only transfer coding is chunked, in HTTP/1.1")

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._unparsed_bytes = 0
        self._body_bytes += len(body)
        if self._body_bytes >= PROGRESS_BYTES:
            self._receive_timer, self._body_bytes = self._cancel_timer(self._receive_timer), 0

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_receiving = False
        self._receive_timer = self._cancel_timer(self._receive_timer)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():  # limits how long the close waits for unsent bytes
            self._send_timer = self._send_timer or self._restart_timer(None)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._send_timer = self._send_timer or self._restart_timer(None)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_timer = self._restart_timer(self._send_timer)

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._send_timer = self._cancel_timer(self._send_timer)

    @property
    def _peers(self) -> Peers:
        return self.app_state["peers"]

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle
        return self.timeout_keep_alive_task is None and (cycle is None or cycle.response_complete)

    def _restart_timer(self, previous: asyncio.TimerHandle | None) -> asyncio.TimerHandle:
        self._cancel_timer(previous)
        timeout: Any = self.app_state["client_io_timeout"]
        return self.loop.call_later(timeout, self.transport.abort)

    @staticmethod
    def _cancel_timer(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()

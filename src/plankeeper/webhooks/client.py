"""The HTTP client for webhooks: it resolves the host name, checks every address and connects to a checked address."""

import asyncio
import random
import socket
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import ContextVar
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from uuid import UUID
from weakref import WeakValueDictionary

import httpcore

from plankeeper.webhooks.schemas import MAX_BODY_BYTES
from plankeeper.webhooks.url_policy import IPNetwork, is_blocked, parse_ip, validate_url

# `resolve(host, port)` returns the addresses of a host name.
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]

LOOKUP_TIMEOUT = 5.0  # seconds that an attempt waits for addresses
MAX_LOOKUPS_PER_PLAN_MANAGER = 2  # at the same time: slow name servers of one plan manager don't delay the others
THREADS = 64
# Read by the C library. A look-up occupies its thread for about this long per name server, whatever we do.
RESOLVER_OPTIONS = "timeout:2 attempts:2"

# The plan manager of the endpoint whose host name is looked up.
lookup_plan_manager: ContextVar[UUID | None] = ContextVar("lookup_plan_manager", default=None)


class Resolver:
    """Resolves names with the system's resolver. Concurrent look-ups of a plan manager for the same name are one.

    A look-up counts for the limit of its plan manager until it ends, even after the attempt has timed out.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[UUID | None, str, int], asyncio.Task[Sequence[str]]] = {}
        self._limits: WeakValueDictionary[UUID | None, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses. Raises OSError if there are none, or if they aren't known in time."""
        key = lookup_plan_manager.get(), host, port
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(self._look_up(*key))
            task.add_done_callback(lambda finished: self._on_done(key, finished))
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                return await asyncio.shield(task)
        except TimeoutError:
            raise socket.gaierror(socket.EAI_AGAIN, "the look-up took too long") from None

    async def _look_up(self, plan_manager_id: UUID | None, host: str, port: int) -> Sequence[str]:
        limit = self._limits.get(plan_manager_id)
        if limit is None:
            limit = self._limits[plan_manager_id] = asyncio.Semaphore(MAX_LOOKUPS_PER_PLAN_MANAGER)
        async with limit:
            return await _getaddrinfo(host, port)

    def _on_done(self, key: tuple[UUID | None, str, int], task: asyncio.Task[Sequence[str]]) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: asyncio logs a warning otherwise


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "dns")


async def _getaddrinfo(host: str, port: int) -> Sequence[str]:
    def look_up() -> list[str]:
        results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for _, _, _, _, address in results]

    return await asyncio.get_running_loop().run_in_executor(_threads(), look_up)


ATTEMPT_TIMEOUT = 15.0  # seconds for one attempt
BODY_TIMEOUT = 1.0  # seconds for the beginning of a response's body, after its headers

if "sniffio" not in sys.modules and find_spec("sniffio") is None:
    # httpcore tries to import sniffio for each of its locks. Without this entry, the failing import takes a third of
    # the processor time of an attempt.
    sys.modules["sniffio"] = cast("Any", None)


class AttemptResult(NamedTuple):
    """The result of an attempt. `error` is a message for people that reveals no address and no response body."""

    status_code: int | None
    error: str | None
    duration_ms: int
    retry_after: float | None = None  # seconds
    response_body: bytes | None = None  # its first MAX_BODY_BYTES; None without a response of a public address
    request_headers: tuple[tuple[str, str], ...] = ()

    @property
    def succeeded(self) -> bool:
        return self.status_code is not None and 200 <= self.status_code < 300


class AddressNotAllowedError(Exception):
    """The URL or an address of its host is not allowed."""


_EXPECTED_ERRORS = (
    AddressNotAllowedError,
    OSError,
    UnicodeError,
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


class PublicAddressBackend(httpcore.AsyncNetworkBackend):
    """Connects only to hosts whose addresses are all public, and only to an address that was checked."""

    def __init__(self, allowed_networks: Sequence[IPNetwork], resolve: ResolveHost) -> None:
        self._allowed_networks = allowed_networks
        self._resolve = resolve
        self._inner: httpcore.AsyncNetworkBackend = cast("Any", httpcore).AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        ip_literal = parse_ip(host)
        addresses = [ip_literal] if ip_literal else [parse_ip(text) for text in await self._resolve(host, port)]
        if not addresses or any(ip is None or is_blocked(ip, self._allowed_networks) for ip in addresses):
            raise AddressNotAllowedError
        address = random.choice(addresses)  # noqa: S311 - spreads the load over the host's addresses
        return await self._inner.connect_tcp(
            str(address), port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )


class WebhookClient:
    """Sends each message over a new connection, so that the address is checked for every message."""

    def __init__(
        self,
        allowed_networks: Sequence[IPNetwork],
        resolve: ResolveHost | None = None,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._allowed_networks = allowed_networks
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or ssl.create_default_context(),
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=PublicAddressBackend(allowed_networks, resolve or Resolver()),
        )

    def validate_url(self, url: str) -> str | None:
        """The error message for an invalid URL; None for a valid one. Does not resolve the host name."""
        return validate_url(url, self._allowed_networks)

    async def close(self) -> None:
        await self._pool.aclose()

    async def post(
        self, url: str, headers: Sequence[tuple[str, str]], body: bytes, plan_manager_id: UUID | None = None
    ) -> AttemptResult:
        """Send one POST request. Does not follow redirects; returns errors instead of raising them.

        The look-up of the host name counts for the plan manager's limit.
        """
        started = time.monotonic()
        lookup_plan_manager.set(plan_manager_id)  # httpcore looks up the name in this task
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT):
                response, is_public = await self._send(url, headers, body)
        except _EXPECTED_ERRORS as error:
            return AttemptResult(None, _describe_error(error), _elapsed_ms(started))
        response_headers = {name.lower(): value for name, value in response.headers}
        retry_after = parse_retry_after(response_headers.get(b"retry-after"))
        result = AttemptResult(response.status, None, _elapsed_ms(started), retry_after)
        response_body = await _read_body(response)
        if is_public:
            result = result._replace(response_body=response_body)
        return result if result.succeeded else result._replace(error=f"the response status was {response.status}")

    async def _send(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> tuple[httpcore.Response, bool]:
        """Return the response, whose body is not read yet, and whether it comes from a public address."""
        if self.validate_url(url):
            raise AddressNotAllowedError
        target = _target(url)
        base_headers = [("host", _host_header(target)), ("content-length", str(len(body)))]
        streams: list[httpcore.AsyncNetworkStream] = []

        async def trace(event: str, info: dict[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                streams.append(info["return_value"])

        try:
            response = await self._pool.handle_async_request(
                httpcore.Request(
                    "POST", target, headers=[*base_headers, *headers], content=body, extensions={"trace": trace}
                )
            )
            return response, all(is_public(each.get_extra_info("server_addr")[0]) for each in streams)
        except BaseException:
            for stream in streams:  # httpcore does not close a connection whose TLS handshake times out
                await stream.aclose()
            raise


def is_public(address: str) -> bool:
    """Whether an address is public. The responses of other addresses aren't shown to people."""
    parsed = parse_ip(address)
    return parsed is not None and not is_blocked(parsed, ())


async def _read_body(response: httpcore.Response) -> bytes:
    """Read the first bytes of the body, and close the connection. An error after the headers fails no attempt."""
    body = b""
    with suppress(*_EXPECTED_ERRORS):
        try:
            async with (
                asyncio.timeout(BODY_TIMEOUT),
                aclosing(cast("AsyncGenerator[bytes]", response.aiter_stream())) as chunks,
            ):
                async for chunk in chunks:
                    body += chunk
                    if len(body) >= MAX_BODY_BYTES:
                        break
        finally:
            await response.aclose()
    return body[:MAX_BODY_BYTES]


def _target(url: str) -> httpcore.URL:
    """Build the URL from the parts that were checked: httpcore's own parser drops the text after a semicolon."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=path)


def _host_header(url: httpcore.URL) -> str:
    host = url.host.decode()
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{url.port}" if url.port else name


def _describe_error(error: Exception) -> str:
    causes = [error, error.__cause__, error.__context__]
    # One message for both, because their difference would reveal which internal names exist.
    is_unresolved = any(isinstance(cause, (socket.gaierror, UnicodeError)) for cause in causes)
    if is_unresolved or isinstance(error, AddressNotAllowedError):
        return "the host has no public address"
    if isinstance(error, (TimeoutError, httpcore.TimeoutException)):
        return f"no response within {ATTEMPT_TIMEOUT:g} s"
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "the certificate is not valid"
    return "the connection failed"


def parse_retry_after(retry_after: bytes | None) -> float | None:
    """The seconds of Retry-After, which is a number or a date; None for anything else."""
    text = (retry_after or b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time())


def _elapsed_ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)

"""One attempt: the name is resolved, every address checked, and the connection made to an address that was checked."""

import asyncio
import random
import socket
import ssl
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httpcore

from plankeeper.webhooks.dns import Names, Resolve
from plankeeper.webhooks.policy import TIMEOUT, Network, fault_of_url, is_refused, literal_of

if "sniffio" not in sys.modules and find_spec("sniffio") is None:
    # httpcore asks for it with each of its locks. Where it is not installed, the search took a third of an attempt.
    sys.modules["sniffio"] = cast("Any", None)


class Outcome(NamedTuple):
    """What came of an attempt. `error` is a sentence for people; it tells nothing of an address or of an answer."""

    status: int | None
    error: str | None
    milliseconds: int
    retry_after: float | None = None  # seconds

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class Refused(Exception):
    """The address may not be called."""


_FORESEEN = (
    Refused, OSError, UnicodeError, httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)  # fmt: skip


class Checked(httpcore.AsyncNetworkBackend):
    """Connects to public addresses alone; of a name all must be, and the one that was checked is the one called."""

    def __init__(self, allowed: Sequence[Network], resolve: Resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._inner: httpcore.AsyncNetworkBackend = cast("Any", httpcore).AnyIOBackend()

    async def connect_tcp(
        self, host: str, port: int, timeout: float | None = None,  # noqa: ASYNC109 - as httpcore has it
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:  # fmt: skip
        literal = literal_of(host)
        addresses = [literal] if literal else [literal_of(each) for each in await self._resolve(host, port)]
        if not addresses or any(each is None or is_refused(each, self._allowed) for each in addresses):
            raise Refused
        chosen = random.choice(addresses)  # noqa: S311 - who has several wants them all used
        return await self._inner.connect_tcp(
            str(chosen), port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )


class Sender:
    """Sends each message over a connection of its own: one that is kept would lead to yesterday's address."""

    def __init__(
        self, allowed: Sequence[Network], resolve: Resolve | None = None, trust: ssl.SSLContext | None = None
    ) -> None:
        self._allowed = allowed
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=trust or ssl.create_default_context(), max_connections=None, max_keepalive_connections=0,
            network_backend=Checked(allowed, resolve or Names()),
        )  # fmt: skip

    def fault(self, url: str) -> str | None:
        """What is wrong with an address, before its name is looked up."""
        return fault_of_url(url, self._allowed)

    async def close(self) -> None:
        await self._pool.aclose()

    async def post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> Outcome:
        """One POST, never followed elsewhere; what goes wrong is told as a sentence."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT):
                status, retry_after = await self._post(url, headers, body)
        except _FORESEEN as error:
            return Outcome(None, _told(error), _since(began))
        outcome = Outcome(status, None, _since(began), retry_after)
        return outcome if outcome.succeeded else outcome._replace(error=f"the answer was {status}")

    async def _post(self, url: str, headers: Sequence[tuple[str, str]], body: bytes) -> tuple[int, float | None]:
        """The status, and the seconds of Retry-After. Of the answer's body nothing is read."""
        if self.fault(url):
            raise Refused
        target = _target(url)
        own = [("host", _host(target)), ("content-length", str(len(body)))]
        opened: list[httpcore.AsyncNetworkStream] = []

        async def trace(event: str, info: dict[str, Any]) -> None:
            if event == "connection.connect_tcp.complete":
                opened.append(info["return_value"])

        try:
            answer = await self._pool.handle_async_request(
                httpcore.Request("POST", target, headers=[*own, *headers], content=body, extensions={"trace": trace})
            )
        except BaseException:
            for each in opened:  # httpcore forgets to close one that runs out of time while TLS is negotiated
                await each.aclose()
            raise
        await answer.aclose()
        found = {name.lower(): value for name, value in answer.headers}
        return answer.status, _seconds(found.get(b"retry-after"))


def _target(url: str) -> httpcore.URL:
    """The parts as they were checked: httpcore would part the URL by itself, and lose what follows a semicolon."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return httpcore.URL(scheme=parts.scheme, host=parts.hostname or "", port=parts.port, target=path)


def _host(url: httpcore.URL) -> str:
    host = url.host.decode()
    name = f"[{host}]" if ":" in host else host
    return f"{name}:{url.port}" if url.port else name


def _told(error: Exception) -> str:
    causes = [error, error.__cause__, error.__context__]
    if isinstance(error, Refused):
        return "the address is not allowed"
    if isinstance(error, (TimeoutError, httpcore.TimeoutException)):
        return f"no answer within {TIMEOUT:g} s"
    if any(isinstance(each, ssl.SSLError) for each in causes):
        return "the certificate was not accepted"
    if any(isinstance(each, (socket.gaierror, UnicodeError)) for each in causes):
        return "the name has no address"
    return "the connection failed"


def _seconds(retry_after: bytes | None) -> float | None:
    """The seconds of Retry-After, which is a number or a date; null where it is neither."""
    text = (retry_after or b"").decode("latin-1").strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else None
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time())


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)

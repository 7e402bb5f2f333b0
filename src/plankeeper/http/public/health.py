"""Health checks for load balancers and process managers, and metrics. They require no API key."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from plankeeper.core import server_folder
from plankeeper.core.errors import DomainError
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.database.unavailability import SENTENCES, Cause, WriteCheck, find_cause
from plankeeper.http.requests import read_headers, resolve_request_id
from plankeeper.http.responses import Response, error_response, log

READINESS_TIMEOUT = 1.8  # seconds, so that the response takes less than 2

# Each of these shows that a proxy sent the request.
_PROXY_HEADERS = {b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip"}


class MetricsEndpoint:
    """Responds with the text that `render` returns, to clients in `networks` only."""

    def __init__(
        self,
        render: Callable[[], bytes],
        content_type: str,
        networks: Sequence[IPv4Network | IPv6Network],
        trusted_proxies: Sequence[IPv4Network | IPv6Network],
    ) -> None:
        self._render = render
        self._content_type = content_type
        self._networks = networks
        self._trusted_proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_allowed(scope):
            response = StarletteResponse(self._render(), headers={"content-type": self._content_type})
            await response(scope, receive, send)
        else:
            error = DomainError("not_found", "/metrics responds only to clients in PLANKEEPER_METRICS_NETWORKS.")
            request_id = resolve_request_id(read_headers(scope))
            await error_response(error, request_id.decode()).send(request_id, send)

    def _is_allowed(self, scope: Scope) -> bool:
        address: str = scope["client"][0] if scope.get("client") else ""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        is_proxied = any(name in _PROXY_HEADERS for name, _ in headers)
        # Behind a trusted proxy, uvicorn replaced the peer's address with the client's. Otherwise, the peer itself is a
        # proxy, and its address isn't that of the client.
        if is_proxied and address != self._forwarded_client(headers):
            return False
        return _is_in(address, self._networks)

    def _forwarded_client(self, headers: list[tuple[bytes, bytes]]) -> str | None:
        """The client according to X-Forwarded-For: the last address that isn't a trusted proxy.

        A client can send the addresses before it. If all are trusted proxies, the first one is the client, as in
        uvicorn. None without trusted proxies, because then anyone can have sent the whole header.
        """
        forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for").decode("latin-1")
        if not self._trusted_proxies or not forwarded:
            return None
        addresses = [each.strip() for each in forwarded.split(",")]
        return next((each for each in reversed(addresses) if not _is_in(each, self._trusted_proxies)), addresses[0])


def _is_in(address: str, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return any(ip in network for network in networks)


class HealthCheck:
    """Responds with the result of a check."""

    def __init__(self, check: Callable[[], Awaitable[Response]]) -> None:
        self._check = check

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        request_id = resolve_request_id(read_headers(scope))
        try:
            response = await self._check()
        except DomainError as error:
            response = error_response(error, request_id.decode())
        await response.send(request_id, send)


async def liveness_check() -> Response:
    return Response.from_object(200, {"status": "ok"})


def _not_ready_error(detail: str) -> DomainError:
    return DomainError("service_unavailable", detail, retry_after=1)


def readiness_check(db: Database) -> Callable[[], Awaitable[Response]]:
    """200 if the database responds, can write and has the expected schema or a compatible one.

    Otherwise, and while the server is draining, 503 with the reason.
    """
    write_check = WriteCheck(db)

    async def measure() -> tuple[schema.SchemaVersion | None, Cause | None]:
        return await schema.current_version(db), await write_check.cause()

    async def check() -> Response:
        if server_folder.is_draining():
            raise _not_ready_error("The server is about to stop.")
        measuring = asyncio.create_task(measure())
        # The database may not even respond to the cancellation, so nothing waits for it.
        done, _ = await asyncio.wait({measuring}, timeout=READINESS_TIMEOUT)
        if not done:
            measuring.cancel()
            measuring.add_done_callback(lambda task: task.cancelled() or task.exception())
            log.warning("not ready", extra={"reason": "down"})
            raise _not_ready_error(SENTENCES["down"])
        try:
            version, cause = measuring.result()
        except Exception as error:
            cause = find_cause(error)
            log.warning("not ready", extra={"reason": cause}, exc_info=error)
            raise _not_ready_error(SENTENCES[cause]) from error
        if version is None or not version.is_compatible:
            revision = version.revision if version else None
            advice = "update this server" if version and version.is_newer else "run plankeeper migrate"
            detail = f"The database has schema {revision}, and this server requires {schema.LATEST_REVISION}: {advice}."
            raise _not_ready_error(detail)
        if cause:
            log.warning("not ready", extra={"reason": cause})
            raise _not_ready_error(SENTENCES[cause])
        return Response.from_object(200, {"status": "ok"})

    return check

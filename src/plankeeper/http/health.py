"""Health checks for load balancers and process managers, and metrics. They require no API key."""

from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.http.errors import ApiError
from plankeeper.http.requests import read_headers, resolve_request_id
from plankeeper.http.responses import Response, error_response, log


class MetricsEndpoint:
    """Responds with the text that `render` returns."""

    def __init__(self, render: Callable[[], bytes], content_type: str) -> None:
        self._render = render
        self._content_type = content_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await StarletteResponse(self._render(), headers={"content-type": self._content_type})(scope, receive, send)


class _HealthCheckFunction(Protocol):
    async def __call__(self) -> Response: ...


class HealthCheck:
    """Responds with the result of a check."""

    def __init__(self, check: _HealthCheckFunction) -> None:
        self._check = check

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        request_id = resolve_request_id(read_headers(scope))
        try:
            response = await self._check()
        except ApiError as error:
            response = error_response(error, request_id.decode())
        await response.send(request_id, send)


async def liveness_check() -> Response:
    return Response.from_object(200, {"status": "ok"})


def _not_ready_error(detail: str) -> ApiError:
    return ApiError("service_unavailable", detail, headers={"retry-after": "1"})


def readiness_check(db: Database) -> _HealthCheckFunction:
    """200 if the database responds and has the expected schema, otherwise 503 with the reason."""

    async def check() -> Response:
        try:
            revision = await schema.current_revision(db)
        except Exception as error:
            log.warning("not ready: %r", error)
            raise _not_ready_error("The database does not respond.") from error
        if revision != schema.LATEST_REVISION:
            newer = revision is not None and revision > schema.LATEST_REVISION
            advice = "update this server" if newer else "run plankeeper migrate"
            detail = f"The database has schema {revision}, and this server requires {schema.LATEST_REVISION}: {advice}."
            raise _not_ready_error(detail)
        return Response.from_object(200, {"status": "ok"})

    return check

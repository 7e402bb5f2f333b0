"""A request as it arrives and an answer as it leaves: headers, body, request id."""

import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from starlette.types import Receive, Scope, Send
from uuid_utils import uuid7

from plankeeper.database.client import is_unavailable
from plankeeper.http.auth import Principal
from plankeeper.http.errors import ApiError
from plankeeper.http.parsing import MAX_BODY_BYTES

log = logging.getLogger("plankeeper")

# `enc_hook`: an Email or a StateCode that came with the request is answered as the string that it is.
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
_JSON_CONTENT_TYPE = re.compile(rb'application/json *(; *charset *= *"?utf-8"? *)?', re.IGNORECASE)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_CONTENT_TYPE_HEADER = (b"content-type", b"application/json")
# No cache on the way keeps what is about a person, and no browser takes it for a page.
_SECURITY_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
NOT_MODIFIED = 304

RawHeaders = Sequence[tuple[bytes, bytes]]  # headers as they go over the wire


class ClientDisconnectedError(Exception):
    """The client closed the connection before it had sent its whole request."""


@dataclass(slots=True)
class RequestState:
    """One request on its way: what its log line, its metrics and its answer tell of it."""

    headers: dict[bytes, bytes]
    request_id: bytes
    started_at: float
    path: bytes = b""  # as it was sent, without the query
    principal: Principal | None = None
    plan_manager_id: UUID | None = None
    rate_limit_headers: RawHeaders = ()  # headers that say what is left

    @classmethod
    def from_scope(cls, scope: Scope) -> "RequestState":
        headers = read_headers(scope)
        return cls(headers, resolve_request_id(headers), time.perf_counter(), scope.get("raw_path", b""))


@dataclass(slots=True)
class Response:
    """Status, JSON body, and further headers in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] | None = None

    @classmethod
    def from_object(cls, status: int, value: object, headers: Mapping[str, str] | None = None) -> "Response":
        return cls(status, _encoder.encode(value), headers)

    async def send(self, request_id: bytes, send: Send, extra_headers: RawHeaders = ()) -> None:
        headers = [(b"x-request-id", request_id), *_SECURITY_HEADERS, *extra_headers]
        if self.status != NOT_MODIFIED:
            headers += _CONTENT_TYPE_HEADER, (b"content-length", b"%d" % len(self.body))
        if self.headers:
            headers += [(name.encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def read_headers(scope: Scope) -> dict[bytes, bytes]:
    """The headers by lower-case name; one sent twice holds both, so that it fails every check for one."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = value if name not in headers else headers[name] + b", " + value
    return headers


def resolve_request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """The caller's request id where it sent a sane one, else a new one."""
    header = headers.get(b"x-request-id", b"")
    return header if _REQUEST_ID.fullmatch(header) else str(uuid7()).encode()


async def read_body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """A JSON body of at most 1 MiB; raises ApiError 413 or 415, and ClientDisconnectedError."""
    if not _JSON_CONTENT_TYPE.fullmatch(headers.get(b"content-type", b"")):
        raise ApiError("unsupported_media_type")
    if int(headers.get(b"content-length", b"0")) > MAX_BODY_BYTES:
        raise ApiError("body_too_large")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            raise ApiError("body_too_large")
        if not message.get("more_body"):
            return body


def error_response(error: Exception, request_id: str) -> Response:
    """The answer to whatever went wrong; what was not foreseen is logged, and told to nobody else."""
    if not isinstance(error, ApiError):
        if is_unavailable(error):
            log.warning("request %s: the database is not available: %r", request_id, error)
            error = ApiError("service_unavailable", headers={"retry-after": "1"})
        else:
            log.error("request %s failed", request_id, exc_info=error)
            error = ApiError("internal_error")
    return Response.from_object(error.status, error.body(request_id), error.headers)

"""A request as it arrives: its headers, its id, its body."""

import re
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

from starlette.types import Receive, Scope
from uuid_utils import uuid7

from plankeeper.http.auth import Principal
from plankeeper.http.errors import ApiError
from plankeeper.http.parsing import MAX_BODY_BYTES
from plankeeper.http.responses import RawHeaders

_JSON_CONTENT_TYPE = re.compile(rb'application/json *(; *charset *= *"?utf-8"? *)?', re.IGNORECASE)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


# The id of the request that the current task handles, for log lines about its statements.
_current_request_id: ContextVar[bytes | None] = ContextVar("request_id", default=None)


class ClientDisconnectedError(Exception):
    """The client closed the connection before it sent the whole request."""


@dataclass(slots=True)
class RequestState:
    """What the response, the access log and the metrics need to know about a request."""

    headers: dict[bytes, bytes]
    request_id: bytes
    started_at: float
    path: bytes = b""  # as the client sent it, without the query string
    principal: Principal | None = None
    plan_manager_id: UUID | None = None
    account_id: UUID | None = None  # of a person who is signed in to the console
    rate_limit_headers: RawHeaders = ()
    trace_id: str | None = None  # only with telemetry
    error_code: str | None = None  # of an error response

    @classmethod
    def from_scope(cls, scope: Scope) -> "RequestState":
        headers = read_headers(scope)
        request_id = resolve_request_id(headers)
        _current_request_id.set(request_id)
        return cls(headers, request_id, time.perf_counter(), scope.get("raw_path", b""))


def current_request_id() -> str | None:
    """The id of the request that the current task handles, or None in a background task."""
    request_id = _current_request_id.get()
    return request_id.decode() if request_id else None


def read_headers(scope: Scope) -> dict[bytes, bytes]:
    """The headers by lower-case name. A repeated header has all values, so it fails every check for a single one.

    White space around a value is not part of it (RFC 9110, 5.5).
    """
    headers: dict[bytes, bytes] = {}
    for name, text in scope["headers"]:
        value = text.strip(b" \t")
        headers[name] = value if name not in headers else headers[name] + b", " + value
    return headers


def resolve_request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """The client's X-Request-Id if it is valid, otherwise a new id."""
    header = headers.get(b"x-request-id", b"")
    return header if _REQUEST_ID.fullmatch(header) else str(uuid7()).encode()


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """A JSON body of a limited size; raises ApiError 413 or 415, and ClientDisconnectedError."""
    if not _JSON_CONTENT_TYPE.fullmatch(headers.get(b"content-type", b"")):
        raise ApiError("unsupported_media_type")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        detail = "The body must not be compressed: send it without Content-Encoding."
        raise ApiError("unsupported_media_type", detail, headers={"accept-encoding": "identity"})
    too_large = ApiError("body_too_large", f"The body is larger than {max_bytes // 1024**2} MiB.")
    if int(headers.get(b"content-length", b"0")) > max_bytes:
        raise too_large
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise too_large
        if not message.get("more_body"):
            return body

"""Responses of the API: status, JSON body, headers, and the response for each kind of error."""

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.types import Send

from plankeeper.core.errors import DomainError, ErrorCode
from plankeeper.core.files import Download
from plankeeper.core.json import encode
from plankeeper.database.errors import is_unavailable
from plankeeper.database.unavailability import SENTENCES, Cause, find_cause, is_wrong_schema, retry_advice

log = logging.getLogger("plankeeper")

RawHeaders = Sequence[tuple[bytes, bytes]]  # as ASGI requires: lower-case names

NOT_MODIFIED = 304

_CONTENT_TYPE_HEADER = (b"content-type", b"application/json")
# Responses contain personal data, so no cache may store them; `nosniff` keeps browsers from rendering them as pages.
_SECURITY_HEADERS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class HttpError(DomainError):
    """An error about the HTTP request itself, whose response has further headers."""

    def __init__(self, code: ErrorCode, detail: str, headers: Mapping[str, str]) -> None:
        super().__init__(code, detail)
        self.headers = headers


@dataclass(slots=True)
class Response:
    """A status, a JSON body, and additional headers with lower-case names."""

    status: int
    body: bytes
    headers: Mapping[str, str] | None = None

    @classmethod
    def from_object(cls, status: int, value: object, headers: Mapping[str, str] | None = None) -> "Response":
        return cls(status, encode(value), headers)

    async def send(self, request_id: bytes, send: Send, extra_headers: RawHeaders = ()) -> None:
        headers = [(b"x-request-id", request_id), *_SECURITY_HEADERS, *extra_headers]
        body = self.body if self.status != NOT_MODIFIED else b""
        if self.status != NOT_MODIFIED:
            headers += _CONTENT_TYPE_HEADER, (b"content-length", b"%d" % len(body))
        if self.headers:
            headers += [(name.encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


FILE_POLICY = "sandbox; default-src 'none'"  # a browser that shows a file runs and loads nothing


@dataclass(slots=True)
class FileResponse(Response):
    """A response with a file: its body is the first chunk, and the others are sent as the client receives them."""

    chunks: AsyncIterator[bytes] | None = None

    @classmethod
    async def open(cls, download: Download, *, is_head: bool) -> "FileResponse":
        """Read the first chunk, so that a missing file is an error response. HEAD reads nothing."""
        headers = {
            "content-type": download.media_type,
            "content-disposition": content_disposition(download.file_name),
            "content-security-policy": FILE_POLICY,
        }
        if download.size is not None:
            headers["content-length"] = str(download.size)
        if is_head:
            return cls(200, b"", headers)
        return cls(200, await anext(download.chunks, b""), headers, download.chunks)

    async def send(self, request_id: bytes, send: Send, extra_headers: RawHeaders = ()) -> None:
        own_headers = [(name.encode(), value.encode("latin-1")) for name, value in (self.headers or {}).items()]
        headers = [(b"x-request-id", request_id), *_SECURITY_HEADERS, *extra_headers, *own_headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.chunks:
            await send({"type": "http.response.body", "body": self.body, "more_body": True})
            async for chunk in self.chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def content_disposition(file_name: str) -> str:
    """The header that has a browser store a file (RFC 6266). A name with other letters than ASCII is also in UTF-8."""
    ascii_name = re.sub(r"[^ !#-\[\]-~]", "_", file_name)
    extended = "" if ascii_name == file_name else f"; filename*=UTF-8''{quote(file_name, safe='')}"
    return f'attachment; filename="{ascii_name}"{extended}'


def log_unavailability(error: Exception, request_id: str) -> Cause | None:
    """Log why the database failed a request, and return it. None if the database isn't the cause of the error."""
    if not is_unavailable(error) and not is_wrong_schema(error):
        return None
    cause = find_cause(error)
    # Somebody has to act on a wrong schema; the other causes can end by themselves.
    level = logging.ERROR if cause == "wrong_schema" else logging.WARNING
    log.log(level, "the database is unavailable", extra={"request_id": request_id, "reason": cause}, exc_info=error)
    return cause


def to_api_error(error: Exception, request_id: str) -> DomainError:
    """The error that the client sees. Unexpected errors are logged and become `internal_error`."""
    if isinstance(error, DomainError):
        return error
    cause = log_unavailability(error, request_id)
    if cause:
        detail = f"{SENTENCES[cause]} {retry_advice(cause)}"
        return DomainError("service_unavailable", detail, retry_after=1)
    log.error("the request failed", extra={"request_id": request_id}, exc_info=error)
    return DomainError("internal_error")


def _error_headers(error: DomainError) -> dict[str, str]:
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if error.retry_after is not None:
        headers["retry-after"] = str(error.retry_after)
    return headers


def error_response(exception: Exception, request_id: str, public_url: str | None = None) -> Response:
    """The response for an exception: see `to_api_error`."""
    error = to_api_error(exception, request_id)
    return Response.from_object(error.status, error.body(request_id, public_url), _error_headers(error))

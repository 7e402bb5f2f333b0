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

from plankeeper.database.client import unavailable
from plankeeper.http.auth import Grant
from plankeeper.http.errors import Refusal
from plankeeper.http.parsing import MAX_BODY

log = logging.getLogger("plankeeper")

# `enc_hook`: an Email or a StateCode that came with the request is answered as the string that it is.
_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
_JSON = re.compile(rb'application/json *(; *charset *= *"?utf-8"? *)?', re.IGNORECASE)
_SANE_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_CONTENT = (b"content-type", b"application/json")
# No cache on the way keeps what is about a person, and no browser takes it for a page.
_PRIVATE = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
NOT_MODIFIED = 304

Pairs = Sequence[tuple[bytes, bytes]]  # headers as they go over the wire


class ClientGone(Exception):
    """The client closed the connection before it had sent its whole request."""


@dataclass(slots=True)
class Visit:
    """One request on its way: what its log line, its metrics and its answer tell of it."""

    headers: dict[bytes, bytes]
    request_id: bytes
    started: float
    path: bytes = b""  # as it was sent, without the query
    grant: Grant | None = None
    plan_manager_id: UUID | None = None
    quota: Pairs = ()  # headers that say what is left

    @classmethod
    def of(cls, scope: Scope) -> "Visit":
        headers = headers_of(scope)
        return cls(headers, request_id_of(headers), time.perf_counter(), scope.get("raw_path", b""))


@dataclass(slots=True)
class Answer:
    """Status, JSON body, and further headers in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] | None = None

    @classmethod
    def of(cls, status: int, shape: object, headers: Mapping[str, str] | None = None) -> "Answer":
        return cls(status, _encoder.encode(shape), headers)

    async def send(self, request_id: bytes, send: Send, more: Pairs = ()) -> None:
        headers = [(b"x-request-id", request_id), *_PRIVATE, *more]
        if self.status != NOT_MODIFIED:
            headers += _CONTENT, (b"content-length", b"%d" % len(self.body))
        if self.headers:
            headers += [(name.encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The headers by lower-case name; one sent twice holds both, so that it fails every check for one."""
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        headers[name] = value if name not in headers else headers[name] + b", " + value
    return headers


def request_id_of(headers: Mapping[bytes, bytes]) -> bytes:
    """The caller's request id where it sent a sane one, else a new one."""
    sent = headers.get(b"x-request-id", b"")
    return sent if _SANE_ID.fullmatch(sent) else str(uuid7()).encode()


async def read_body(headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
    """A JSON body of at most 1 MiB; raises Refusal 413 or 415, and ClientGone."""
    if not _JSON.fullmatch(headers.get(b"content-type", b"")):
        raise Refusal("unsupported_media_type")
    if int(headers.get(b"content-length", b"0")) > MAX_BODY:
        raise Refusal("body_too_large")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise Refusal("body_too_large")
        if not message.get("more_body"):
            return body


def refused(error: Exception, request_id: str) -> Answer:
    """The answer to whatever went wrong; what was not foreseen is logged, and told to nobody else."""
    if not isinstance(error, Refusal):
        if unavailable(error):
            log.warning("request %s: the database is not available: %r", request_id, error)
            error = Refusal("service_unavailable", headers={"retry-after": "1"})
        else:
            log.error("request %s failed", request_id, exc_info=error)
            error = Refusal("internal_error")
    return Answer.of(error.status, error.body(request_id), error.headers)

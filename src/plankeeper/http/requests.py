"""Reads a request: its headers, its id, its body."""

import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes
from uuid import UUID

from starlette.types import Receive, Scope
from uuid_utils import uuid7

from plankeeper.core.context import Principal, request_id_variable
from plankeeper.core.errors import DomainError, FieldErrorSummary, RejectionReason
from plankeeper.core.files import Upload
from plankeeper.http.parsing import MAX_BODY_BYTES
from plankeeper.http.responses import HttpError, RawHeaders

MAX_BUFFERED_BYTES = 64 * 1024**2  # of incomplete bodies, in one worker
MAX_BUFFERED_BYTES_PER_SENDER = 20 * 1024**2  # four bulk bodies
MAX_FILE_BYTES = 100 * 1024**2  # of files that arrive, in one worker
MAX_FILE_BYTES_PER_SENDER = 40 * 1024**2  # two of the largest files
_JSON_CONTENT_TYPE = re.compile(rb'application/json *(; *charset *= *"?utf-8"? *)?', re.IGNORECASE)
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")


class ClientDisconnectedError(Exception):
    """The client closed the connection before it sent the whole request."""


@dataclass(slots=True)
class RequestState:
    """The data of a request for the response, the access log and the metrics."""

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
    field_errors: FieldErrorSummary | None = None  # of an error response about fields
    rejected_key: tuple[UUID, RejectionReason] | None = None  # the id of a known key

    @classmethod
    def from_scope(cls, scope: Scope) -> "RequestState":
        headers = read_headers(scope)
        request_id = resolve_request_id(headers)
        request_id_variable.set(request_id)
        return cls(headers, request_id, time.perf_counter(), scope.get("raw_path", b""))


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


class BodyBudget:
    """Limits the memory of incomplete bodies: of one worker, and of each sender, which is a `noun`.

    A body that arrives with its headers doesn't count. Others count as long as their Content-Length says, from the
    start, or without one as long as they are.
    """

    def __init__(
        self, worker: int = MAX_BUFFERED_BYTES, sender: int = MAX_BUFFERED_BYTES_PER_SENDER, noun: str = "key"
    ) -> None:
        self._worker, self._sender, self._noun = worker, sender, noun
        self._senders = Counter[str]()
        self.used = 0

    def take(self, sender: str, size: int) -> None:
        """Raises DomainError 503 if the sender or the worker would have too many bytes."""
        if self._senders[sender] + size > self._sender:
            raise DomainError(
                "service_unavailable",
                f"Large bodies of this {self._noun} are arriving already,"
                f" {self._sender // 1024**2} MiB at most at a time.",
                retry_after=1,
            )
        if self.used + size > self._worker:
            raise DomainError("service_unavailable", "The server is too busy.", retry_after=1)
        self._senders[sender] += size
        self.used += size

    def give_back(self, sender: str, size: int) -> None:
        self._senders -= Counter({sender: size})  # keeps no zeros
        self.used -= size

    @contextmanager
    def reserve(self, sender: str, size: int) -> Generator[None]:
        """Take bytes until a file has arrived."""
        self.take(sender, size)
        try:
            yield
        finally:
            self.give_back(sender, size)


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request has a body that isn't empty."""
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


async def read_body(
    headers: Mapping[bytes, bytes],
    receive: Receive,
    budget: BodyBudget,
    sender: str,
    max_bytes: int = MAX_BODY_BYTES,
) -> bytes:
    """A JSON body of a limited size; raises DomainError 413, 415 or 503, and ClientDisconnectedError."""
    if not _JSON_CONTENT_TYPE.fullmatch(headers.get(b"content-type", b"")):
        raise DomainError("unsupported_media_type")
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        detail = "The body must not be compressed: send it without Content-Encoding."
        raise HttpError("unsupported_media_type", detail, {"accept-encoding": "identity"})
    announced = int(headers.get(b"content-length", b"0"))
    if announced > max_bytes:
        raise _too_large(max_bytes)
    body, is_complete = await _receive_part(receive)
    if is_complete and len(body) <= max_bytes:
        return body
    taken = 0
    try:
        while True:
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
            if (size := max(announced, len(body))) > taken:
                budget.take(sender, size - taken)
                taken = size
            if is_complete:
                return body
            part, is_complete = await _receive_part(receive)
            body += part
    finally:
        budget.give_back(sender, taken)


_FILE_NAME = re.compile(
    rb"filename\*=UTF-8''([!-:<-~]+)|filename=\"((?:[^\"\\]|\\.)*)\"|filename=([^\s;\"]+)", re.IGNORECASE
)
MAX_FILE_NAME_LENGTH = 255


def read_upload(headers: Mapping[bytes, bytes], receive: Receive, max_bytes: int) -> Upload:
    """The file in the body of a request; raises DomainError 413 if its Content-Length is too large."""
    if int(headers.get(b"content-length", b"0")) > max_bytes:
        raise _too_large(max_bytes)
    name = _parse_file_name(headers.get(b"content-disposition", b""))
    media_type = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
    return Upload(name, _read_chunks(receive, max_bytes), media_type)


def _parse_file_name(content_disposition: bytes) -> str | None:
    """The file name in a Content-Disposition header (RFC 6266), without a path."""
    match = _FILE_NAME.search(content_disposition)
    if match is None:
        return None
    encoded, quoted, token = match.groups()
    text = unquote_to_bytes(encoded) if encoded else re.sub(rb"\\(.)", rb"\1", quoted) if quoted else token or b""
    name = re.split(r"[/\\]", text.decode("utf-8", "replace"))[-1]
    printable = "".join(each for each in name if each.isprintable()).strip()
    return printable[-MAX_FILE_NAME_LENGTH:] or None


async def _read_chunks(receive: Receive, max_bytes: int) -> AsyncIterator[bytes]:
    """The parts of a body as they arrive; raises ClientDisconnectedError if it ends early."""
    size, is_complete = 0, False
    while not is_complete:
        chunk, is_complete = await _receive_part(receive)
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        if chunk:
            yield chunk


def _too_large(max_bytes: int) -> DomainError:
    """Never kept in a variable: with its traceback, it would keep the caller's frame, and the body, in a cycle."""
    return DomainError("body_too_large", f"The body is larger than {max_bytes // 1024**2} MiB.")


async def _receive_part(receive: Receive) -> tuple[bytes, bool]:
    """The next part of a body, and whether it is the last one."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnectedError
    return message.get("body", b""), not message.get("more_body")


def preferred_types(accept: bytes) -> list[str]:
    """The media types of an `Accept` header, the preferred ones first; those that are refused (`q=0`) are left out."""
    found = list[tuple[float, str]]()
    for part in accept.decode("latin-1").lower().split(","):
        media_type, *parameters = (each.strip() for each in part.split(";"))
        quality = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        weight = float(quality) if re.fullmatch(r"[01](\.[0-9]{0,3})?", quality) else 1.0
        if media_type and weight > 0:
            found.append((-weight, media_type))
    return [media_type for _, media_type in sorted(found, key=lambda each: each[0])]

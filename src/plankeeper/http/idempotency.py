"""Idempotent POST requests: the Idempotency-Key header."""

import hashlib
import re
from collections.abc import Mapping
from typing import Protocol

from starlette.types import Scope

from plankeeper.core.context import IdempotencyKey, Principal, WriteContext
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.json import canonical_json
from plankeeper.http.responses import Response
from plankeeper.http.routing import Operation

_KEY_PATTERN = re.compile(rb"[\x21-\x7e]{1,255}")


class IdempotencyStore(Protocol):
    """Stores responses in the transaction of the write."""

    async def get_or_claim(self, ctx: WriteContext, idempotency_key: IdempotencyKey) -> Response | None: ...

    async def save_response(
        self, ctx: WriteContext, idempotency_key: IdempotencyKey, response: Response, *, has_secret: bool
    ) -> None: ...


def parse_idempotency_key(
    operation: Operation, principal: Principal, scope: Scope, headers: Mapping[bytes, bytes], body: bytes
) -> IdempotencyKey | None:
    """The idempotency key of a POST, or None if it has no such header; raises ValidationError.

    An id in the path means the same in either case.
    """
    header = headers.get(b"idempotency-key")
    if header is None or operation.method != "POST":
        return None
    if not _KEY_PATTERN.fullmatch(header):
        message = "must be 1 to 255 visible ASCII characters"
        raise ValidationError(FieldError("Idempotency-Key", message, "invalid_format", location="header"))
    request_hash = hashlib.sha256(scope["query_string"] + b"\n" + canonical_json(body)).digest()
    return IdempotencyKey(principal.original_key_id, scope["path"].lower(), header.decode(), request_hash)

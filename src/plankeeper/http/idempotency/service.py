"""Idempotency keys: the first successful response is stored in the transaction of its write, and replayed."""

import hashlib
import re
from collections.abc import Mapping
from uuid import UUID

import asyncpg
from starlette.types import Scope

from plankeeper.core.context import IdempotencyKey, Principal, WriteContext
from plankeeper.core.encryption.cipher import encrypting_key_id, secret_cipher
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.json import canonical_json
from plankeeper.http.idempotency import store
from plankeeper.http.responses import Response
from plankeeper.http.routing import Operation

_KEY_PATTERN = re.compile(rb"[\x21-\x7e]{1,255}")


async def get_or_claim(ctx: WriteContext, idempotency_key: IdempotencyKey) -> Response | None:
    """The stored response, or None for the first request, which must call `save_response` in the same transaction.

    Raises DomainError `idempotency_in_progress` if the first request still runs after the lock timeout,
    `idempotency_key_reused` if the first request was different, and `secret_key_missing` if the response is encrypted
    with an unknown key.
    """
    try:
        if await store.claim(ctx.tx, ctx.plan_manager_id, idempotency_key):
            return None
    except asyncpg.LockNotAvailableError:
        raise DomainError("idempotency_in_progress", retry_after=1) from None
    stored = await store.get_response(ctx.tx, ctx.plan_manager_id, idempotency_key)
    if stored.request_hash != idempotency_key.request_hash:
        raise DomainError("idempotency_key_reused")
    body = stored.body
    if encrypting_key_id(body.decode()):  # a response with a secret; any other one is JSON
        associated_data = _associated_data(ctx.plan_manager_id, idempotency_key)
        body = secret_cipher(ctx.settings).decrypt(body.decode(), associated_data).encode()
    return Response(stored.status, body, {"idempotent-replayed": "true"})


async def save_response(
    ctx: WriteContext, idempotency_key: IdempotencyKey, response: Response, *, has_secret: bool
) -> None:
    """Store the response of the first request. The body of a response with a secret is encrypted."""
    body = response.body
    if has_secret:
        associated_data = _associated_data(ctx.plan_manager_id, idempotency_key)
        body = secret_cipher(ctx.settings).encrypt(body.decode(), associated_data).encode()
    await store.save_response(ctx.tx, ctx.plan_manager_id, idempotency_key, response.status, body)


def _associated_data(plan_manager_id: UUID, idempotency_key: IdempotencyKey) -> bytes:
    """The primary key of the record, as in `core.encryption.rotation`."""
    parts = (plan_manager_id, idempotency_key.original_key_id, idempotency_key.path, idempotency_key.key)
    return "\n".join(map(str, parts)).encode()


def parse_idempotency_key(
    operation: Operation, principal: Principal, scope: Scope, headers: Mapping[bytes, bytes], body: bytes
) -> IdempotencyKey | None:
    """The idempotency key of a POST, or None if it has no such header; raises ValidationError.

    Ids in the path are compared without regard to case.
    """
    header = headers.get(b"idempotency-key")
    if header is None or operation.method != "POST":
        return None
    if not _KEY_PATTERN.fullmatch(header):
        message = "must be 1 to 255 visible ASCII characters"
        raise ValidationError(FieldError("Idempotency-Key", message, "invalid_format", location="header"))
    request_hash = hashlib.sha256(scope["query_string"] + b"\n" + canonical_json(body)).digest()
    return IdempotencyKey(principal.original_key_id, scope["path"].lower(), header.decode(), request_hash)

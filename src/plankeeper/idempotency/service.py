"""Idempotency keys: the first successful response is stored in the transaction of its write, and replayed."""

from uuid import UUID

import asyncpg

from plankeeper.core.context import IdempotencyKey, WriteContext
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import DomainError
from plankeeper.http.responses import Response
from plankeeper.idempotency import store


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
    # The text of an encrypted response; JSON is returned as it is.
    associated_data = _associated_data(ctx.plan_manager_id, idempotency_key)
    body = secret_cipher(ctx.settings).decrypt(stored.body.decode(), associated_data).encode()
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
    """The primary key of the record, as in `encryption.store`."""
    parts = (plan_manager_id, idempotency_key.original_key_id, idempotency_key.path, idempotency_key.key)
    return "\n".join(map(str, parts)).encode()

"""Idempotency keys: the first successful response is stored in the transaction of its write, and replayed."""

from uuid import UUID

import asyncpg

from plankeeper.database.client import Transaction
from plankeeper.http.errors import ApiError
from plankeeper.http.idempotency import IdempotencyKey
from plankeeper.http.responses import Response
from plankeeper.idempotency import store


async def get_or_claim(tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey) -> Response | None:
    """The stored response, or None for the first request, which must call `save_response` in the same transaction.

    Raises ApiError `idempotency_in_progress` if the first request still runs after the lock timeout, and
    `idempotency_key_reused` if the first request was different.
    """
    try:
        if await store.claim(tx, plan_manager_id, idempotency_key):
            return None
    except asyncpg.LockNotAvailableError:
        raise ApiError("idempotency_in_progress", headers={"retry-after": "1"}) from None
    stored = await store.get_response(tx, plan_manager_id, idempotency_key)
    if stored.request_hash != idempotency_key.request_hash:
        raise ApiError("idempotency_key_reused")
    return Response(stored.status, stored.body, {"idempotent-replayed": "true"})


async def save_response(
    tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey, response: Response
) -> None:
    await store.save_response(tx, plan_manager_id, idempotency_key, response.status, response.body)

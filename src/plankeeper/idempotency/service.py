"""Idempotency keys: the first success is kept in the transaction of its write, and answered again."""

from uuid import UUID

import asyncpg

from plankeeper.database.client import Transaction
from plankeeper.http.errors import ApiError
from plankeeper.http.idempotency import IdempotencyKey
from plankeeper.http.responses import Response
from plankeeper.idempotency import store


async def get_or_claim(tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey) -> Response | None:
    """The kept answer, or null where the request is the first: then `save_response` must follow in the same transaction.

    Raises ApiError `idempotency_in_progress` where the first runs for longer than a lock is waited for, and
    `idempotency_key_reused` where it was another request.
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

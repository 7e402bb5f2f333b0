"""Idempotency keys: the first success is kept in the transaction of its write, and answered again."""

from uuid import UUID

import asyncpg

from plankeeper.database.client import Transaction
from plankeeper.http.errors import Refusal
from plankeeper.http.idempotency import Retry
from plankeeper.http.requests import Answer
from plankeeper.idempotency import store


async def replayed(tx: Transaction, plan_manager_id: UUID, retry: Retry) -> Answer | None:
    """The kept answer, or null where the request is the first: then `keep` must follow in the same transaction.

    Raises Refusal `idempotency_in_progress` where the first runs for longer than a lock is waited for, and
    `idempotency_key_reused` where it was another request.
    """
    try:
        if await store.claim(tx, plan_manager_id, retry):
            return None
    except asyncpg.LockNotAvailableError:
        raise Refusal("idempotency_in_progress", headers={"retry-after": "1"}) from None
    kept = await store.kept(tx, plan_manager_id, retry)
    if kept.request_hash != retry.request_hash:
        raise Refusal("idempotency_key_reused")
    return Answer(kept.status, kept.body, {"idempotent-replayed": "true"})


async def keep(tx: Transaction, plan_manager_id: UUID, retry: Retry, answer: Answer) -> None:
    await store.keep(tx, plan_manager_id, retry, answer.status, answer.body)

"""SQL of stored responses."""

from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import IdempotencyKey
from plankeeper.database.client import Executor, Transaction


class StoredResponse(Struct):
    """The response to the first request with an idempotency key, and the hash of that request."""

    request_hash: bytes
    status: int
    body: bytes


CLAIM = """
    insert into idempotency_records (plan_manager_id, original_key_id, path, idempotency_key, request_hash,
        created_at)
    values ($1, $2, $3, $4, $5, clock_timestamp())
    on conflict (plan_manager_id, original_key_id, path, idempotency_key) do update set
        request_hash = excluded.request_hash, status = null, body = null, created_at = excluded.created_at
    -- In UTC, because Citus requires an immutable condition, and `timestamptz - interval` depends on the time zone.
    where idempotency_records.created_at at time zone 'UTC'
        < excluded.created_at at time zone 'UTC' - interval '24 hours'
    returning true
"""


async def claim(tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey) -> bool | None:
    """True if the key is new, or older than a day. Waits for a concurrent transaction with the same key."""
    return await tx.one_or_none(bool, CLAIM, plan_manager_id, *idempotency_key)


GET_RESPONSE = """
    select request_hash, status, body
    from idempotency_records
    where plan_manager_id = $1 and original_key_id = $2 and path = $3 and idempotency_key = $4
"""


async def get_response(tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey) -> StoredResponse:
    return await tx.one(StoredResponse, GET_RESPONSE, plan_manager_id, *idempotency_key[:3])


SAVE_RESPONSE = """
    update idempotency_records set status = $5, body = $6
    where plan_manager_id = $1 and original_key_id = $2 and path = $3 and idempotency_key = $4
"""


async def save_response(
    tx: Transaction, plan_manager_id: UUID, idempotency_key: IdempotencyKey, status: int, body: bytes
) -> None:
    await tx.execute(SAVE_RESPONSE, plan_manager_id, *idempotency_key[:3], status, body)


PURGE = """
    -- one task deletes the expired keys of all plan managers
    delete from idempotency_records record using (
        select plan_manager_id, original_key_id, path, idempotency_key from idempotency_records
        where created_at < statement_timestamp() - interval '24 hours'
        order by created_at limit $1
    ) expired
    where record.plan_manager_id = expired.plan_manager_id and record.original_key_id = expired.original_key_id
        and record.path = expired.path and record.idempotency_key = expired.idempotency_key
"""


async def purge(db: Executor, limit: int = 1000) -> None:
    """Delete records older than a day, in batches."""
    await db.execute(PURGE, limit)

"""SQL of request batches."""

from collections.abc import Iterable
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.request_log.schemas import RequestBatch, RequestBatchInsert


async def insert(tx: Transaction, batches: Iterable[RequestBatchInsert]) -> None:
    await tx.insert_rows("api_request_batches", RequestBatchInsert, batches)


BATCHES: LiteralString = "select id, requests from api_request_batches where plan_manager_id = $1"
LIST_LATEST: LiteralString = f"""
    {BATCHES} and id <= coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
    order by id desc
    limit $3
"""


async def list_latest(db: Executor, plan_manager_id: UUID, newest: UUID | None, limit: int) -> list[RequestBatch]:
    """Batches in descending order, starting at `newest` if it is set."""
    return await db.rows(RequestBatch, LIST_LATEST, plan_manager_id, newest, limit)


LIST_EARLIEST: LiteralString = f"""
    {BATCHES} and id >= coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
    order by id
    limit $3
"""


async def list_earliest(db: Executor, plan_manager_id: UUID, oldest: UUID | None, limit: int) -> list[RequestBatch]:
    """Batches in ascending order, starting at `oldest` if it is set."""
    return await db.rows(RequestBatch, LIST_EARLIEST, plan_manager_id, oldest, limit)


GET = f"{BATCHES} and id = $2"


async def get(db: Executor, plan_manager_id: UUID, batch_id: UUID) -> RequestBatch | None:
    return await db.one_or_none(RequestBatch, GET, plan_manager_id, batch_id)


COUNT = "select coalesce(sum(count), 0) from api_request_batches where plan_manager_id = $1"


async def count(db: Executor, plan_manager_id: UUID) -> int:
    """The number of stored requests."""
    return await db.one(int, COUNT, plan_manager_id)


LIST_LATEST_OF_KEY: LiteralString = f"""
    {BATCHES} and strpos(requests::text, $2) > 0
    order by id desc
    limit $3
"""


async def list_latest_of_key(db: Executor, plan_manager_id: UUID, key_id: UUID, limit: int) -> list[RequestBatch]:
    """The latest batches that have requests of a key, in descending order, each with those of other keys too."""
    return await db.rows(RequestBatch, LIST_LATEST_OF_KEY, plan_manager_id, str(key_id), limit)


PURGE = """
    -- one task trims the logs of all plan managers
    delete from api_request_batches batch using (
        select plan_manager_id, id from api_request_batches
        where ended_at < statement_timestamp() - $1 * interval '1 day'
        order by ended_at limit $2
    ) expired
    where batch.plan_manager_id = expired.plan_manager_id and batch.id = expired.id
"""


async def purge(db: Executor, days: int, limit: int = 5000) -> None:
    """Delete batches older than a number of days, in chunks of `limit`."""
    await db.execute(PURGE, days, limit)


LIST_ACTIVE = """
    -- the task looks for busy plan managers
    select distinct plan_manager_id from api_request_batches
    where ended_at > statement_timestamp() - $1::float8 * interval '1 second'
"""


async def list_active(db: Executor, seconds: float) -> list[UUID]:
    """The plan managers with requests in the last `seconds`."""
    return await db.rows(UUID, LIST_ACTIVE, seconds)


TRIM = """
    with counted as (
        select id, sum(count) over (order by id desc) - count as newer
        from api_request_batches
        where plan_manager_id = $1
    )
    delete from api_request_batches batch using counted
    where batch.plan_manager_id = $1 and batch.id = counted.id and counted.newer >= $2
"""


async def trim(db: Executor, plan_manager_id: UUID, max_requests: int) -> None:
    """Delete the batches of a plan manager beyond its newest `max_requests` requests."""
    await db.execute(TRIM, plan_manager_id, max_requests)

"""SQL of request batches."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.access.request_log.schemas import (
    KeyDayCount,
    KeyRejection,
    MinuteCount,
    RequestBatch,
    RequestBatchInsert,
)
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_mapping import value_lists


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


ADD_MINUTES = """
    insert into api_request_minutes (plan_manager_id, minute, requests, rejected, failed)
    select plan_manager_id, minute, requests, rejected, failed
    from unnest($1::uuid[], $2::timestamptz[], $3::integer[], $4::integer[], $5::integer[])
        as added (plan_manager_id, minute, requests, rejected, failed)
    on conflict (plan_manager_id, minute) do update set
        requests = api_request_minutes.requests + excluded.requests,
        rejected = api_request_minutes.rejected + excluded.rejected,
        failed = api_request_minutes.failed + excluded.failed
"""


async def add_minutes(tx: Transaction, counts: Sequence[MinuteCount]) -> None:
    """Add counts to those that are stored. They are in order of the primary key."""
    await tx.execute(ADD_MINUTES, *value_lists(MinuteCount, counts))


ADD_KEY_DAYS = """
    insert into api_key_days (plan_manager_id, api_key_id, day, status, error_code, requests)
    select plan_manager_id, api_key_id, day, status, error_code, requests
    from unnest($1::uuid[], $2::uuid[], $3::date[], $4::integer[], $5::text[], $6::integer[])
        as added (plan_manager_id, api_key_id, day, status, error_code, requests)
    on conflict (plan_manager_id, api_key_id, day, status, error_code) do update set
        requests = api_key_days.requests + excluded.requests
"""


async def add_key_days(tx: Transaction, counts: Sequence[KeyDayCount]) -> None:
    """Add counts to those that are stored. They are in order of the primary key."""
    await tx.execute(ADD_KEY_DAYS, *value_lists(KeyDayCount, counts))


ADD_REJECTIONS = """
    -- the latest request is that of the worker that writes last, which is the latest one to within a second or two
    insert into api_key_rejections (
        api_key_id, reason, requests, first_at, last_at, method, route, user_agent, request_id
    )
    select api_key_id, reason, requests, first_at, last_at, method, route, user_agent, request_id
    from unnest(
        $1::uuid[], $2::text[], $3::bigint[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::text[],
        $9::text[]
    ) as added (api_key_id, reason, requests, first_at, last_at, method, route, user_agent, request_id)
    on conflict (api_key_id, reason) do update set
        requests = api_key_rejections.requests + excluded.requests,
        first_at = least(api_key_rejections.first_at, excluded.first_at),
        last_at = greatest(api_key_rejections.last_at, excluded.last_at),
        method = excluded.method,
        route = excluded.route,
        user_agent = excluded.user_agent,
        request_id = excluded.request_id
"""


async def add_rejections(tx: Transaction, rejections: Sequence[KeyRejection]) -> None:
    """Add rejected requests to those that are stored. They are in order of the primary key."""
    await tx.execute(ADD_REJECTIONS, *value_lists(KeyRejection, rejections))


LIST_REJECTIONS = """
    select api_key_id, reason, requests, first_at, last_at, method, route, user_agent, request_id
    from api_key_rejections
    where api_key_id = $1
    order by last_at desc, reason
"""


async def list_rejections(db: Executor, api_key_id: UUID) -> list[KeyRejection]:
    """The rejected requests of a key by reason, the latest first, whatever plan manager they were for."""
    return await db.rows(KeyRejection, LIST_REJECTIONS, api_key_id)


PURGE_REJECTIONS = "delete from api_key_rejections where last_at < $1"


async def purge_rejections(db: Executor, before: datetime) -> None:
    """Delete the rejections of all keys that did not happen again since a time."""
    await db.execute(PURGE_REJECTIONS, before)


LIST_MINUTES = """
    select plan_manager_id, minute, requests, rejected, failed
    from api_request_minutes
    where plan_manager_id = $1 and minute >= $2
    order by minute
"""


async def list_minutes(db: Executor, plan_manager_id: UUID, since: datetime) -> list[MinuteCount]:
    """The counts of a plan manager since a time, oldest first."""
    return await db.rows(MinuteCount, LIST_MINUTES, plan_manager_id, since)


LIST_KEY_DAYS = """
    select plan_manager_id, api_key_id, day, status, error_code, requests
    from api_key_days
    where plan_manager_id = $1 and api_key_id = $2 and day >= $3
    order by day, status, error_code
"""


async def list_key_days(db: Executor, plan_manager_id: UUID, api_key_id: UUID, since: date) -> list[KeyDayCount]:
    """The counts of a key for a plan manager since a day."""
    return await db.rows(KeyDayCount, LIST_KEY_DAYS, plan_manager_id, api_key_id, since)


PURGE_MINUTES = "delete from api_request_minutes where minute < $1"


async def purge_minutes(db: Executor, before: datetime) -> None:
    """Delete the older counts of all plan managers."""
    await db.execute(PURGE_MINUTES, before)


PURGE_KEY_DAYS = "delete from api_key_days where day < $1"


async def purge_key_days(db: Executor, before: date) -> None:
    """Delete the older counts of all keys."""
    await db.execute(PURGE_KEY_DAYS, before)

"""SQL of the counts of requests."""

from collections.abc import Sequence
from datetime import date, datetime
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_mapping import value_lists
from plankeeper.request_log.schemas import KeyDayCount, KeyRejection, MinuteCount

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

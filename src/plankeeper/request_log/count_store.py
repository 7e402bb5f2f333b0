"""SQL of the counts of requests."""

from collections.abc import Sequence
from datetime import date, datetime
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_mapping import value_lists
from plankeeper.request_log.schemas import KeyDayCount, MinuteCount

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

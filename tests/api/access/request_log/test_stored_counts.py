"""Counts of requests in the database: added up, by plan manager and key, and deleted when they are old."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.request_log import store
from plankeeper.access.request_log.buffer import DAY_RETENTION, MINUTE_RETENTION, RequestLogBuffer, RequestLogRetention
from plankeeper.access.request_log.schemas import KeyDayCount, MinuteCount
from plankeeper.core.context import RequestRecord
from plankeeper.database.client import Database
from support.cluster import SharedCluster

# Recent: servers of other tests delete old counts meanwhile.
HOUR = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
KEY = uuid7()


def record(owner: UUID, status: int, error_code: str | None = None) -> RequestRecord:
    return (owner, HOUR.timestamp(), str(KEY), "GET", "/x", b"/x", status, 0.001, b"r", error_code, None, None)


async def minutes_of(db: Database, owner: UUID) -> list[MinuteCount]:
    return await store.list_minutes(db, owner, datetime(2020, 1, 1, tzinfo=UTC))


async def days_of(db: Database, owner: UUID) -> list[KeyDayCount]:
    return await store.list_key_days(db, owner, KEY, date(2020, 1, 1))


async def test_each_flush_adds_to_the_counts(cluster: SharedCluster, new_plan_manager: Callable[[], UUID]) -> None:
    first, second = new_plan_manager(), new_plan_manager()
    async with Database(cluster.dsn).open() as db:
        for worker in (RequestLogBuffer(db, ZoneInfo("UTC")), RequestLogBuffer(db, ZoneInfo("UTC"))):
            worker.append(record(second, 200))
            worker.append(record(first, 200))
            worker.append(record(first, 404, "not_found"))
            await worker.flush()
            worker.append(record(first, 503, "service_unavailable"))
            await worker.close()
        assert await minutes_of(db, first) == [MinuteCount(first, HOUR, 6, 2, 2)]
        assert await minutes_of(db, second) == [MinuteCount(second, HOUR, 2, 0, 0)]
        assert await days_of(db, first) == [
            KeyDayCount(first, KEY, HOUR.date(), 200, "", 2),
            KeyDayCount(first, KEY, HOUR.date(), 404, "not_found", 2),
            KeyDayCount(first, KEY, HOUR.date(), 503, "service_unavailable", 2),
        ]
        assert await days_of(db, second) == [KeyDayCount(second, KEY, HOUR.date(), 200, "", 2)]


@pytest.mark.parametrize("is_on", [True, False])
async def test_old_counts_are_deleted_and_all_of_them_when_the_log_is_off(
    cluster: SharedCluster, new_plan_manager: Callable[[], UUID], *, is_on: bool
) -> None:
    owner, now, hour = new_plan_manager(), datetime.now(UTC), timedelta(hours=1)
    kept = MinuteCount(owner, now - MINUTE_RETENTION + hour, 1, 0, 0)
    kept_day = KeyDayCount(owner, KEY, (now - DAY_RETENTION).date() + timedelta(days=1), 200, "", 1)
    old = MinuteCount(owner, now - MINUTE_RETENTION - hour, 1, 0, 0)
    old_day = KeyDayCount(owner, KEY, (now - DAY_RETENTION).date() - timedelta(days=1), 200, "", 1)
    async with Database(cluster.dsn).open() as db:
        async with db.transaction() as tx:
            await store.add_minutes(tx, [old, kept])
            await store.add_key_days(tx, [old_day, kept_day])
        await RequestLogRetention(7 if is_on else 0)(db)
        assert await minutes_of(db, owner) == ([kept] if is_on else [])
        assert await days_of(db, owner) == ([kept_day] if is_on else [])

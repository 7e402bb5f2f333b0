"""Requests counted by minute, and by key and day."""

from datetime import UTC, date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.access.request_log.buffer import count_by_key_and_day, count_by_minute
from plankeeper.access.request_log.schemas import KeyDayCount, MinuteCount
from plankeeper.core.context import RequestRecord

FIRST, SECOND = UUID(int=1), UUID(int=2)
KEY = UUID(int=7)
ADELAIDE = ZoneInfo("Australia/Adelaide")
# 29 s before the first midnight of December in Adelaide, which is half an hour off.
NEAR_MIDNIGHT = datetime(2026, 11, 30, 13, 29, 31, tzinfo=UTC).timestamp()


def record(
    at: float = NEAR_MIDNIGHT,
    status: int = 200,
    error_code: str | None = None,
    owner: UUID = FIRST,
    key: str | None = str(KEY),
) -> RequestRecord:
    return (owner, at, key, "GET", "/x", b"/x", status, 0.001, b"r", error_code, None, None)


def test_requests_are_counted_by_minute_in_order_of_the_key() -> None:
    records = [
        record(owner=SECOND),
        record(NEAR_MIDNIGHT + 29),
        record(status=499),
        record(status=304),
        record(status=404),
        record(NEAR_MIDNIGHT + 28, status=503),
    ]
    minute = datetime(2026, 11, 30, 13, 29, tzinfo=UTC)
    assert count_by_minute(records) == [
        MinuteCount(FIRST, minute, 4, 2, 1),
        MinuteCount(FIRST, minute.replace(minute=30), 1, 0, 0),
        MinuteCount(SECOND, minute, 1, 0, 0),
    ]


def test_requests_of_a_key_are_counted_by_day_of_the_time_zone_and_by_result() -> None:
    records = [
        record(NEAR_MIDNIGHT + 29),
        record(status=404, error_code="not_found"),
        record(status=404, error_code="not_found"),
        record(status=499),
        record(),
        record(owner=SECOND),
        record(key=None),
        record(key="no id"),
    ]
    november, december = date(2026, 11, 30), date(2026, 12, 1)
    assert count_by_key_and_day(records, ADELAIDE) == [
        KeyDayCount(FIRST, KEY, november, 200, "", 1),
        KeyDayCount(FIRST, KEY, november, 404, "not_found", 2),
        KeyDayCount(FIRST, KEY, november, 499, "", 1),
        KeyDayCount(FIRST, KEY, december, 200, "", 1),
        KeyDayCount(SECOND, KEY, november, 200, "", 1),
    ]

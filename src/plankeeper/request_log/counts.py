"""Counts of requests: by minute for a plan manager, and by day for a key. The log itself has only the latest ones."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.core.context import RequestRecord
from plankeeper.core.ids import parse_uuid
from plankeeper.request_log.schemas import KeyDayCount, MinuteCount

MINUTE_RETENTION = timedelta(hours=25)
DAY_RETENTION = timedelta(days=31)

# A new day begins at a multiple of it in every time zone.
_DAY_STEP = 15 * 60  # seconds


def count_by_minute(records: Iterable[RequestRecord]) -> list[MinuteCount]:
    """One count for each plan manager and minute, in order of the primary key, so that workers can't deadlock."""
    counts: defaultdict[tuple[UUID, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for plan_manager_id, timestamp, _, _, _, _, status, *_ in records:
        count = counts[plan_manager_id, int(timestamp) // 60]
        count[0] += 1
        if status >= 500:
            count[2] += 1
        elif status >= 400:
            count[1] += 1
    return [
        MinuteCount(plan_manager_id, datetime.fromtimestamp(minute * 60, UTC), *count)
        for (plan_manager_id, minute), count in sorted(counts.items())
    ]


def count_by_key_and_day(records: Iterable[RequestRecord], zone: ZoneInfo) -> list[KeyDayCount]:
    """One count for each key, day of the zone and result, in order of the primary key."""
    counts: Counter[tuple[UUID, UUID, date, int, str]] = Counter()
    key_ids: dict[str, UUID | None] = {}
    days: dict[int, date] = {}
    for plan_manager_id, timestamp, key, _, _, _, status, _, _, error_code, *_ in records:
        key_id = key_ids.setdefault(key, parse_uuid(key)) if key else None
        step = int(timestamp) // _DAY_STEP
        if step not in days:
            days[step] = datetime.fromtimestamp(step * _DAY_STEP, zone).date()
        if key_id:
            counts[plan_manager_id, key_id, days[step], status, error_code or ""] += 1
    return [KeyDayCount(*key, count) for key, count in sorted(counts.items())]

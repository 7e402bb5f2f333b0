"""Buffers a worker's requests and writes them to the database once a second: a request only appends to a list."""

import asyncio
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import (
    MAX_KEPT_REQUESTS,
    KeyDayCount,
    KeyRejection,
    LoggedFieldError,
    LoggedRequest,
    MinuteCount,
    RequestBatchInsert,
)
from plankeeper.core.context import RejectedRequest, RequestRecord
from plankeeper.core.ids import parse_uuid
from plankeeper.core.json import to_json
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.database.write_buffer import WriteBuffer

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


log = logging.getLogger("plankeeper")

MAX_PENDING = 3 * MAX_KEPT_REQUESTS  # the oldest are dropped beyond it: memory is bounded while the database is down
MAX_PATH_LENGTH = 500  # characters


class RequestLogBuffer(WriteBuffer):
    """The buffer of one worker. `append` adds a request, and drops the oldest one if the buffer is full.

    Rejected requests of known keys are only counted, by key and reason. However many there are, they are one row of the
    database for each key and reason, which a worker updates at most once a second, and as many entries of the buffer.
    """

    contents = "requests of the request log"

    def __init__(self, db: Database, zone: ZoneInfo) -> None:
        """Requests are counted by the days of the zone."""
        self._db = db
        self._zone = zone
        self._pending: deque[RequestRecord] = deque(maxlen=MAX_PENDING)
        self._rejections: dict[tuple[UUID, str], KeyRejection] = {}
        self.append = self._pending.append

    def append_rejection(self, request: RejectedRequest) -> None:
        """Count a request with a known key that belongs to no plan manager."""
        self._add_rejection(_rejection(request))

    def _add_rejection(self, rejection: KeyRejection) -> None:
        key = rejection.api_key_id, rejection.reason
        waiting = self._rejections.get(key)
        self._rejections[key] = _sum_of(waiting, rejection) if waiting else rejection

    async def flush(self) -> None:
        records, rejections = [*self._pending], self._rejections
        self._pending.clear()
        self._rejections = {}
        if not records and not rejections:
            return
        try:
            async with self._db.transaction() as tx:
                if records:
                    await store.insert(tx, build_batches(records))
                    await store.add_minutes(tx, count_by_minute(records))
                    await store.add_key_days(tx, count_by_key_and_day(records, self._zone))
                if rejections:  # in order of the primary key, so that workers can't deadlock
                    await store.add_rejections(tx, [rejections[key] for key in sorted(rejections)])
        except asyncio.CancelledError:
            self._requeue(records, rejections)
            raise
        except Exception as error:
            if is_unavailable(error):
                self._requeue(records, rejections)
            else:
                log.exception("requests cannot be written to the request log")

    def _requeue(self, records: list[RequestRecord], rejections: dict[tuple[UUID, str], KeyRejection]) -> None:
        newer = [*self._pending]
        self._pending.clear()
        self._pending.extend([*records, *newer])  # in order, so that the oldest are dropped first
        for each in rejections.values():
            self._add_rejection(each)


def build_batches(records: list[RequestRecord]) -> list[RequestBatchInsert]:
    """One row per plan manager, with its newest requests."""
    by_plan_manager: dict[UUID, deque[RequestRecord]] = {}
    for each in records:
        by_plan_manager.setdefault(each[0], deque(maxlen=MAX_KEPT_REQUESTS)).append(each)
    now = datetime.now(UTC)
    return [
        RequestBatchInsert(
            plan_manager_id, uuid7(), now, len(newest), to_json([_logged_request(each) for each in newest])
        )
        for plan_manager_id, newest in by_plan_manager.items()
    ]


def _logged_request(record: RequestRecord) -> LoggedRequest:
    _, timestamp, key_id, method, route, path, status, seconds, request_id, error_code, user_agent, errors = record
    return LoggedRequest(
        int(timestamp * 1000) / 1000,
        key_id or "",
        method,
        route,
        path.decode("latin-1")[:MAX_PATH_LENGTH],
        status,
        int(seconds * 100_000) / 100,
        request_id.decode("latin-1"),
        error_code,
        _printable(user_agent),
        [LoggedFieldError(*each) for each in errors.errors] if errors else [],
        errors.total if errors else 0,
    )


@lru_cache(maxsize=1000)
def _printable(user_agent: bytes | None) -> str | None:
    """The text without control characters. A client sends the same one again and again."""
    if user_agent is None:
        return None
    return "".join(each for each in user_agent.decode("latin-1") if each.isprintable()).strip() or None


def _rejection(request: RejectedRequest) -> KeyRejection:
    agent, request_id = _printable(request.user_agent), request.request_id.decode("latin-1")
    times, details = (request.at, request.at), (request.method, request.route, agent, request_id)
    return KeyRejection(request.key_id, request.reason, 1, *times, *details)


def _sum_of(one: KeyRejection, other: KeyRejection) -> KeyRejection:
    """The requests of both, with the details of the latest one."""
    latest = max(one, other, key=lambda each: each.last_at)
    return replace(latest, requests=one.requests + other.requests, first_at=min(one.first_at, other.first_at))


CHECK_INTERVAL = 60.0  # seconds between two searches for active plan managers
MAX_TRIMS_PER_RUN = 10  # plan managers per second: counting requests reads all rows of a plan manager


class RequestLogRetention:
    """A periodic task of the sequencer. It checks active plan managers once a minute, and all of them at first."""

    def __init__(self, days: int) -> None:
        self._days = days
        self._due: list[UUID] = []
        self._checked_at: float | None = None

    async def __call__(self, db: Executor) -> None:
        await store.purge(db, self._days)
        now = time.monotonic()
        if not self._due and (self._checked_at is None or now - self._checked_at >= CHECK_INTERVAL):
            window = 1e9 if self._checked_at is None else now - self._checked_at + CHECK_INTERVAL
            self._due, self._checked_at = await store.list_active(db, window), now
            await self._purge_counts(db)
        for _ in range(min(MAX_TRIMS_PER_RUN, len(self._due))):
            await store.trim(db, self._due.pop(), MAX_KEPT_REQUESTS)

    async def _purge_counts(self, db: Executor) -> None:
        """Delete old counts, and all of them if the log is off."""
        now = datetime.now(UTC)
        await store.purge_minutes(db, now - MINUTE_RETENTION if self._days else now)
        await store.purge_key_days(db, (now - DAY_RETENTION).date() if self._days else date.max)
        await store.purge_rejections(db, now - DAY_RETENTION if self._days else now)

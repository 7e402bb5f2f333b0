"""Buffers a worker's requests and writes them to the database once a second: a request only appends to a list."""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import RejectedRequest, RequestRecord
from plankeeper.core.json import to_json
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.database.write_buffer import WriteBuffer
from plankeeper.request_log import count_store, store
from plankeeper.request_log.counts import count_by_key_and_day, count_by_minute
from plankeeper.request_log.schemas import (
    MAX_KEPT_REQUESTS,
    KeyRejection,
    LoggedFieldError,
    LoggedRequest,
    RequestBatchInsert,
)

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
                    await count_store.add_minutes(tx, count_by_minute(records))
                    await count_store.add_key_days(tx, count_by_key_and_day(records, self._zone))
                if rejections:  # in order of the primary key, so that workers can't deadlock
                    await count_store.add_rejections(tx, [rejections[key] for key in sorted(rejections)])
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
    return KeyRejection(
        request.key_id,
        request.reason,
        1,
        request.at,
        request.at,
        request.method,
        request.route,
        _printable(request.user_agent),
        request.request_id.decode("latin-1"),
    )


def _sum_of(one: KeyRejection, other: KeyRejection) -> KeyRejection:
    """The requests of both, with the details of the latest one."""
    latest = max(one, other, key=lambda each: each.last_at)
    return replace(latest, requests=one.requests + other.requests, first_at=min(one.first_at, other.first_at))

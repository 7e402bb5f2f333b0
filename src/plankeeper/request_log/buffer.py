"""Buffers a worker's requests and writes them to the database once a second: a request only appends to a list."""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from uuid_utils.compat import uuid7

from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.database.write_buffer import WriteBuffer
from plankeeper.http.instrumentation import RequestRecord
from plankeeper.http.json import to_json
from plankeeper.request_log import count_store, store
from plankeeper.request_log.counts import count_by_key_and_day, count_by_minute
from plankeeper.request_log.schemas import MAX_KEPT_REQUESTS, LoggedRequest, RequestBatchInsert

log = logging.getLogger("plankeeper")

MAX_PENDING = 3 * MAX_KEPT_REQUESTS  # the oldest are dropped beyond it: memory is bounded while the database is down
MAX_PATH_LENGTH = 500  # characters


class RequestLogBuffer(WriteBuffer):
    """The buffer of one worker. `append` adds a request, and drops the oldest one if the buffer is full."""

    contents = "requests of the request log"

    def __init__(self, db: Database, zone: ZoneInfo) -> None:
        """Requests are counted by the days of the zone."""
        self._db = db
        self._zone = zone
        self._pending: deque[RequestRecord] = deque(maxlen=MAX_PENDING)
        self.append = self._pending.append

    async def flush(self) -> None:
        records = [*self._pending]
        self._pending.clear()
        if not records:
            return
        try:
            async with self._db.transaction() as tx:
                await store.insert(tx, build_batches(records))
                await count_store.add_minutes(tx, count_by_minute(records))
                await count_store.add_key_days(tx, count_by_key_and_day(records, self._zone))
        except asyncio.CancelledError:
            self._requeue(records)
            raise
        except Exception as error:
            if is_unavailable(error):
                self._requeue(records)
            else:
                log.exception("requests cannot be written to the request log")

    def _requeue(self, records: list[RequestRecord]) -> None:
        newer = [*self._pending]
        self._pending.clear()
        self._pending.extend([*records, *newer])  # in order, so that the oldest are dropped first


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
    _, timestamp, key_id, method, route, path, status, seconds, request_id, error_code = record
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
    )

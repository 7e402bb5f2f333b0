"""Retention of the request log and of the counts of requests.

The log has a maximum age, and a maximum number of requests per plan manager.
"""

import time
from datetime import UTC, date, datetime
from uuid import UUID

from plankeeper.access.request_log import store
from plankeeper.access.request_log.buffer import DAY_RETENTION, MINUTE_RETENTION
from plankeeper.access.request_log.schemas import MAX_KEPT_REQUESTS
from plankeeper.database.client import Executor

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

"""Retention of the request log: a maximum age, and a maximum number of requests per plan manager."""

import time
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.request_log import store
from plankeeper.request_log.schemas import MAX_KEPT_REQUESTS

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
        for _ in range(min(MAX_TRIMS_PER_RUN, len(self._due))):
            await store.trim(db, self._due.pop(), MAX_KEPT_REQUESTS)

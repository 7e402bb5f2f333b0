"""Retention of access records: a maximum age."""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.access_records import store
from plankeeper.database.client import Database
from plankeeper.events.order_store import list_plan_managers
from plankeeper.http.parsing import uuid7_lower_bound

CHECK_INTERVAL = 600.0  # seconds between two looks at all plan managers
BATCH_SIZE = 5000  # records of one plan manager per second


class AccessRecordRetention:
    """A periodic task: deletes the expired records of one plan manager a second."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._due: list[UUID] = []
        self._checked_at: float | None = None

    async def __call__(self, db: Database) -> None:
        now = time.monotonic()
        if not self._due and (self._checked_at is None or now - self._checked_at >= CHECK_INTERVAL):
            self._due, self._checked_at = await list_plan_managers(db), now
        if self._due:
            before_id = uuid7_lower_bound(datetime.now(UTC) - self._retention)
            await store.purge(db, self._due.pop(), before_id, BATCH_SIZE)
